"""Microbenchmarks: what is made of times, what is doubted, and what a device file of them is."""

from pathlib import Path

import numpy as np
import pyopencl as cl
import pytest

from crosscast.characterization import toolchain
from crosscast.devices.catalogue import device_named
from crosscast.devices.device_files import read_device
from crosscast.errors import DeviceFault, EnvironmentFault
from crosscast.measure import host_state
from crosscast.measure.microbenchmarks import (
    CHAINS,
    GUARDED,
    ROWS,
    Backend,
    EmptyLaunch,
    HostBackend,
    OpenCLBackend,
    bench,
)
from crosscast.measure.opencl import devices
from support.commands import Command, Output


class Paper(Backend):
    """A device that takes as long as its numbers say."""

    def __init__(self) -> None:
        self.id, self.name, self.type, self.vendor, self.series = "paper:0", "Paper", "gpu", "", ""
        self.units, self.items, self.group, self.vector_bytes = 4, 1024, 256, 16
        self.memory_bytes, self.last_cache_bytes = 1 << 34, 1 << 20
        self.lanes = {"fp32": 1, "fp64": 1, "int32": 1, "local_words": 1, "atomics": 1}
        self.numbers = {"clock_hz": 1.5e9}
        self.rates = {"fp32": 1e12, "fp64": 2.5e11, "int32": 3e11}

    def memory(self, kernel: str, words: int, passes: int) -> float:
        if kernel == "scattered_words":
            return 4 * self.items * passes / 1e10
        moved = words * self.vector_bytes * (2 if kernel == "copy_words" else 1)
        return moved * passes / (4e11 if moved <= self.last_cache_bytes else 1e11)

    def chains(self, kernel: str, steps: int) -> float:
        return 2 * CHAINS * self.items * steps / self.rates.get(kernel, 1e11)

    def groups(self, count: int) -> float | None:
        return count * 2e-7 / self.units

    def launch(self) -> EmptyLaunch:
        return EmptyLaunch(3e-6, 2e-6, 8e-6)

    def transfer(self, nbytes: int, *, to_device: bool) -> float | None:
        return nbytes / (1.2e10 if to_device else 1.3e10)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_POINT_S", "_LAST_POINT_S", "_RATE_S", "_PASS_S"):
        monkeypatch.setattr(bench, name, 0.002)
    monkeypatch.setattr(bench, "_RUN_S", 0.001)


def test_rates_are_work_over_time_and_bandwidths_are_by_working_set() -> None:
    found = bench.measure(Paper())
    values = {name: each.best for name, each in found.values.items()}
    assert values["fp32_flop_per_s"] == pytest.approx(1e12)
    assert values["fp64_flop_per_s"] == pytest.approx(2.5e11)
    assert values["read_bytes_per_s"] == pytest.approx(1e11)
    assert values["cache_bytes_per_s"] == pytest.approx(4e11)
    assert values["scattered_bytes_per_s"] == pytest.approx(1e10)
    assert values["launch_s"] == 3e-6
    assert values["group_s"] == pytest.approx(2e-7)
    assert values["to_device_bytes_per_s"] == pytest.approx(1.2e10)
    assert found.working_sets["bytes"][0] == 1 << 14
    assert found.working_sets["bytes"][-1] == 4 << 20
    assert found.working_sets["copy"][-1] == pytest.approx(1e11)
    assert not found.unsure()
    # What a dataset says of a device is what calibrating says.
    measured = {"peak_flop_per_s": 1e12, "bandwidth_bytes_per_s": 1e11, "launch_overhead_s": 8e-6}
    assert bench.sheet_numbers(Paper()) == pytest.approx(measured)
    assert measured == pytest.approx({name: found.numbers[name] for name in measured})


@pytest.mark.parametrize("held", [1 << 23, 1 << 19, 1 << 16])
def test_a_last_cache_of_which_others_have_the_most_is_as_large_as_the_sets_that_it_holds(held: int) -> None:
    class Shared(Paper):
        def __init__(self) -> None:
            super().__init__()
            self.last_cache_bytes = 1 << 24
            self.numbers |= {"l3_bytes": float(self.last_cache_bytes)}
            self.most = 0

        def memory(self, kernel: str, words: int, passes: int) -> float:
            moved = words * self.vector_bytes * (2 if kernel == "copy_words" else 1)
            self.most = max(self.most, moved if kernel == "copy_words" else 0)
            return moved * passes / (4e11 if moved <= held else 1e11)

    device = Shared()
    found = bench.measure(device)
    # Half of what it has may be a power of two that it holds.
    shared = held < 1 << 23
    assert found.device("mine").numbers["l3_bytes"] == (held if shared else 1 << 24)
    assert any("the last cache holds" in text for text in found.doubts) == shared
    assert found.values["last_cache_bytes_per_s"].best == pytest.approx(4e11)
    # Larger sets would say nothing more, and take most of the time.
    assert found.working_sets["bytes"][-1] == device.most == 8 * held


def test_the_first_run_does_not_count_as_it_allocates_and_runs_that_differ_are_unsure() -> None:
    class Fresh(Paper):
        largest, calls = 0, 0

        def memory(self, kernel: str, words: int, passes: int) -> float:
            seconds = super().memory(kernel, words, passes)
            fresh, self.largest = words > self.largest, max(words, self.largest)
            return seconds * (1000 if fresh else 1)

        def chains(self, kernel: str, steps: int) -> float:
            self.calls += 1
            return super().chains(kernel, steps) * (1 if self.calls % 4 == 0 else 2)

    found = bench.measure(Fresh())
    assert found.values["read_bytes_per_s"].middle == pytest.approx(1e11)
    assert "fp32_flop_per_s" in found.unsure()
    assert "read_bytes_per_s" not in found.unsure()


def test_a_loaded_machine_a_battery_and_clocks_that_fall_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(Paper):
        def launch(self) -> EmptyLaunch:
            return EmptyLaunch(0.0, 0.0, 0.0)

    clocks = iter([3e9, 2e9, 3e9])
    monkeypatch.setattr(host_state, "doubts", lambda: ["others run"])
    monkeypatch.setattr(host_state, "on_battery", lambda: True)
    monkeypatch.setattr(host_state, "clock_hz", lambda: next(clocks))
    doubts = bench.measure(Paper()).doubts
    assert [text.split(" ")[0] for text in doubts] == ["others", "this", "the"]
    assert "from 3.00 to 2.00 GHz" in doubts[2]
    with pytest.raises(DeviceFault, match=r"paper:0: its times cannot be right: .*round_trip_s"):
        bench.sheet_numbers(Stuck())


@pytest.mark.parametrize("make", [lambda: OpenCLBackend(devices()[0]), HostBackend], ids=["opencl", "host"])
def test_every_kernel_runs_and_more_of_it_takes_longer(make: type[HostBackend]) -> None:
    backend: Backend = make()
    # A pass of the last one is a single word, so that it needs many to outlast the start of the threads.
    kernels = {"read_words": 2_000, "write_words": 2_000, "copy_words": 2_000, "scattered_words": 1_000_000}
    for kernel, passes in kernels.items():
        backend.memory(kernel, 1 << 14, 1)
        least = min(backend.memory(kernel, 1 << 14, 10) for _ in range(5))
        most = min(backend.memory(kernel, 1 << 14, passes) for _ in range(2))
        assert 0 < least < most
    groups = [backend.groups(1000) for _ in range(5)]
    assert None in groups or 0 < min(filter(None, groups)) < (backend.groups(1_000_000) or 0.0)
    for kernel in backend.lanes:
        backend.chains(kernel, 1)
        steps = (1, 100) if kernel in ROWS else (100, 100_000)  # Of the former, each is a row of work-items
        least = min(backend.chains(kernel, steps[0]) for _ in range(5))
        most = min(backend.chains(kernel, steps[1]) for _ in range(2))
        assert 0 < least < most
    waited, busy, trip = backend.launch()
    assert trip > 0
    assert waited is None or 0 < waited < trip
    assert busy is None or 0 < busy < trip


def test_rows_far_apart_share_no_cache_lines() -> None:
    backend = OpenCLBackend(devices()[0])
    touched = []
    for rows in (8, 16, 1000):
        backend.chains(GUARDED[1], rows)
        found = np.empty(backend._out.size // 4, np.float32)
        cl.enqueue_copy(backend._queue, found, backend._out).wait()
        touched.append(np.count_nonzero(found))
    one, two, most = touched
    assert 2 * one == two < most == 8 * backend.units * one


def test_threads_that_the_system_does_not_start_are_no_fast_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = HostBackend()
    monkeypatch.setattr(backend, "_measure", lambda *args: -1.0)
    with pytest.raises(EnvironmentFault, match="host: expected the system to start"):
        backend.chains("fp32", 1)


def test_the_command_writes_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    class Wide(Paper):
        """A work-item takes 0.27 ns on each of four compute units, as with AVX-512."""

        def __init__(self) -> None:
            super().__init__()
            self.lanes |= dict.fromkeys(ROWS, self.items)
            self.rates |= dict.fromkeys(ROWS, 2 * CHAINS * self.units / 0.27e-9)

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("crosscast.commands.measure.HostBackend", Wide)
    page = tmp_path / "page.html"
    command = Command.of("calibrate")
    found = command.answer(capsys, "--device", "host", "--name", "bench", "--html", str(page))
    assert found["measured"]["fp32_flop_per_s"]["best"] == pytest.approx(1e12)
    device = device_named("bench")
    assert read_device(Path(found["file"])) == device
    assert device.numbers["bandwidth_bytes_per_s"] == pytest.approx(1e11)
    assert device.numbers["launch_overhead_s"] == 8e-6
    verdict = Command.of("explain").answer(capsys, "bundled", "--devices", "bench", "--application", "fft")
    assert verdict["verdicts"][0]["device"] == "bench"
    assert page.read_text(encoding="utf-8").count("<img") == 2
    # What vectors do in less than a nanosecond is read back.
    assert device.measured["guarded_item_s"] == pytest.approx(0.27e-9, rel=1e-3)
    shown = Command.of("devices").text(capsys, "bench")
    assert "multiply-adds of single precision" in shown and "0.27 ns" in shown


def test_native_code_is_kept_for_the_cpu_it_is_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "some.c"
    source.write_text('__attribute__((visibility("default"))) int some(void) { return 1; }\n')

    def made(*options: str) -> Path:
        return toolchain.c_library([source], *options, needs=("libc.so.6",))

    native, portable = made("-march=native"), made()
    monkeypatch.setattr(toolchain, "_host_cpu", lambda: "another CPU")
    assert made("-march=native") != native
    assert made() == portable

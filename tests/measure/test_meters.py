"""Threads that work in the background."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from test_energy import BUS_ID, RANGE_UJ, Gpu, NVMLError, at, forever, install, make_zone

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError, SensorFault
from crosscast.measure.meters import Background, NvmlMeter, RaplMeter, ReplayMeter, open_meters
from support.processes import wait_until

# Libraries have threads of their own, of which Python warns from 3.12 on.
FORKS = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def test_it_works_until_there_is_nothing_more_to_do() -> None:
    left = [1]
    background = Background(left.clear, 0.001, "test", lambda: bool(left))
    assert background.ensure()
    wait_until(lambda: not background.runs)
    assert not left


def test_it_is_started_once_and_again_when_it_has_ended() -> None:
    begun = threading.Event()
    background = Background(begun.set, 0.001, "test", lambda: not begun.is_set())
    assert [background.ensure(), background.ensure()] == [True, False]
    wait_until(lambda: not background.runs)
    assert background.ensure()
    background.stop()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_it_is_started_again_after_work_that_failed() -> None:
    background = Background(lambda: next(iter(())), 0.001, "test", lambda: True)
    assert background.ensure()
    wait_until(lambda: not background.runs)
    assert background.ensure()
    wait_until(lambda: not background.runs)


def test_no_work_is_left_behind_by_a_thread_that_ends() -> None:
    left: list[int] = []
    done: list[int] = []

    def work() -> None:
        while left:
            done.append(left.pop())

    background = Background(work, 1e-5, "test", lambda: bool(left))
    for number in range(2000):
        left.append(number)
        background.ensure()
    wait_until(lambda: len(done) == 2000)
    background.stop()


def test_stopping_waits_and_tells_whether_it_ran() -> None:
    working, may_end = threading.Event(), threading.Event()

    def work() -> None:
        working.set()
        may_end.wait(10)

    background = Background(work, 0.001, "test", lambda: True)
    assert not background.stop()
    background.ensure()
    assert working.wait(10)
    threading.Timer(0.01, may_end.set).start()
    assert background.stop()
    assert may_end.is_set()
    assert not background.runs


@pytest.mark.parametrize("busy", [False, True])
@FORKS
def test_a_fork_has_no_thread_and_the_parent_goes_on(busy: bool) -> None:
    counted = [0]

    def work() -> None:
        counted[0] += 1
        time.sleep(0.002 if busy else 0)

    background = Background(work, 0.0005, "test", lambda: True)
    background.ensure()
    wait_until(lambda: counted[0] > 0)
    child = os.fork()
    if child == 0:
        os._exit(0 if not background.runs and background.ensure() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert background.runs
    before = counted[0]
    wait_until(lambda: counted[0] > before)
    background.stop()


def test_where_no_thread_can_be_started_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    nothing: Callable[[], None] = lambda: None  # noqa: E731
    background = Background(nothing, 1.0, "test", lambda: True)
    assert background.ensure()
    assert not background.runs


def test_rapl_tells_the_energy_since_it_was_opened(tmp_path: Path) -> None:
    package = make_zone(tmp_path, "intel-rapl:0", "package-0", 7_000_000)
    core = make_zone(tmp_path, "intel-rapl:0:0", "core", 5)
    meter = RaplMeter(tmp_path)
    assert meter.domains == ("package-0", "package-0/core")
    package.write_text("9500000\n")
    core.write_text("1000005\n")
    assert meter.read_j() == pytest.approx((2.5, 1.0))
    assert meter.read_j() == pytest.approx((2.5, 1.0))


def test_rapl_goes_on_over_wrap_arounds(tmp_path: Path) -> None:
    package = make_zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 1_000_000)
    core = make_zone(tmp_path, "intel-rapl:0:0", "core", RANGE_UJ - 3_000_000)
    meter = RaplMeter(tmp_path, clock=at(0.0, 1.0, 2.0, 3.0))
    # No thread, which would ask the clock too.
    meter._background._interval_s = 1e6
    for package_uj, core_uj in [(2_000_000, RANGE_UJ - 5), (5_000_000, 500_000), (6_000_000, 700_000)]:
        package.write_text(str(package_uj))
        core.write_text(str(core_uj))
        found = meter.read_j()
    assert found == pytest.approx((7.0, 3.7))


def test_a_rapl_meter_that_was_set_back_stays_broken(tmp_path: Path) -> None:
    package = make_zone(tmp_path, "intel-rapl:0", "package-0", 50_000_000)
    meter = RaplMeter(tmp_path)
    package.write_text("0")
    for _ in range(2):
        with pytest.raises(SensorFault, match="went back from 50000000 to 0"):
            meter.read_j()


def test_a_rapl_file_that_holds_something_else_is_named(tmp_path: Path) -> None:
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0)
    core = make_zone(tmp_path, "intel-rapl:0:0", "core", 0)
    meter = RaplMeter(tmp_path)
    core.write_text("no number")
    with pytest.raises(SensorFault, match=r"intel-rapl:0:0/energy_uj failed: invalid literal"):
        meter.read_j()


def test_a_thread_sees_the_wrap_arounds_that_nobody_else_looks_for(tmp_path: Path) -> None:
    # 30 J of range, and 25 J between any two looks.
    package = make_zone(tmp_path, "intel-rapl:0", "package-0", 0, range_uj=30_000_000)
    meter = RaplMeter(tmp_path)
    meter._background._interval_s = 0.002
    meter.read_j()
    for step in range(1, 5):
        with package.open("r+") as file:
            # In one piece: the thread must not see an empty file.
            file.write(f"{step * 25_000_000 % 30_000_000:012d}")
        seen = meter._last_s
        wait_until(lambda seen=seen: meter._last_s > seen)  # type: ignore[misc]
        seen = meter._last_s
        wait_until(lambda seen=seen: meter._last_s > seen)  # type: ignore[misc]
    assert meter.read_j() == pytest.approx((100.0,))
    meter._background.stop()


def test_nvml_tells_the_energy_that_a_thread_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    worked = threading.Event()

    def counter() -> Iterator[int]:
        while True:
            yield 5_250_000 if worked.is_set() else 5_000_000

    install(monkeypatch, counter(), forever(NVMLError(3)))
    meter = NvmlMeter(BUS_ID)
    meter._background._interval_s = 0.001
    assert (meter.domains, meter.read_j()) == (("gpu",), (0.0,))
    worked.set()
    wait_until(lambda: meter.read_j()[0] > 0)
    assert meter.read_j() == (250.0,)
    meter._background.stop()
    assert meter.resolution_s == pytest.approx(0.12)


def test_nvml_power_is_added_up_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, forever(NVMLError(3)), iter([0, 100_000, 300_000, 300_000]))
    meter = NvmlMeter(BUS_ID, "gpu-1", clock=at(0.0, 2.0, 3.0))
    meter._poll()
    meter._poll()
    meter._poll()
    assert meter._energy_j == pytest.approx(700)
    assert (meter.domains, meter.resolution_s) == (("gpu-1",), 0.1)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [((0, 5, 4), "the energy counter was set back"), ((0, 5, NVMLError(15)), "the GPU is lost")],
)
def test_a_gpu_that_fails_later_is_a_fault_from_then_on(
    monkeypatch: pytest.MonkeyPatch, values: tuple[Any, ...], complaint: str
) -> None:
    install(monkeypatch, iter(values), forever(NVMLError(3)))
    meter = NvmlMeter(BUS_ID)
    meter._background._interval_s = 60
    assert meter.read_j() == (0.0,)
    meter._background.stop()
    meter._background._interval_s = 0.001
    meter._background.ensure()
    wait_until(lambda: not meter._background.runs)
    for _ in range(2):
        with pytest.raises(SensorFault, match=complaint):
            meter.read_j()
    assert not meter._background.runs


def make_recording(folder: Path) -> Path:
    path = folder / "energy.csv"
    path.write_text("domain,time_s,energy_j\ngpu,0,0\ngpu,1,100\ngpu,2,300\n")
    return path


def test_a_recording_is_a_meter_until_it_ends(tmp_path: Path) -> None:
    meter = ReplayMeter(make_recording(tmp_path), clock=at(5.0, 5.5, 6.5, 7.5))
    assert [meter.read_j(), meter.read_j()] == [(50.0,), (200.0,)]
    with pytest.raises(SensorFault, match="ends after 2 s"):
        meter.read_j()


def test_meters_are_opened_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_gpus(monkeypatch, 1)
    make_zone(tmp_path, "intel-rapl:0", "package-0", 0)

    def opened(spec: str) -> list[tuple[str, ...]]:
        return [meter.domains for meter in open_meters(spec, tmp_path)[0]]

    assert opened("none") == []
    assert opened("rapl") == [("package-0",)]
    assert opened("nvml") == [("gpu",)]
    assert opened("nvml:GPU-0") == [("gpu",)]
    assert opened("auto") == [("package-0",), ("gpu",)]
    assert opened(f"replay:{make_recording(tmp_path)}") == [("gpu",)]


def test_several_gpus_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    install_gpus(monkeypatch, 2)
    assert [meter.domains for meter in open_meters("nvml")[0]] == [("gpu-0",), ("gpu-1",)]


def test_auto_says_what_does_not_work_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    meters, reasons = open_meters("auto", tmp_path)
    assert not meters
    assert [reason.partition(" ")[0] for reason in reasons] == ["rapl:", "reading"]


def test_what_was_asked_for_and_does_not_work_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EnvironmentFault, match="shows no energy counters"):
        open_meters("rapl", tmp_path)
    install_gpus(monkeypatch, 0)
    with pytest.raises(EnvironmentFault, match="no NVIDIA GPU"):
        open_meters("nvml")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(MissingExtraError, match=r"crosscast\[nvidia\]"):
        open_meters("nvml")
    with pytest.raises(InputError, match=r"sensors must be one of auto, rapl, .* found 'watt'"):
        open_meters("watt")


def install_gpus(monkeypatch: pytest.MonkeyPatch, number: int) -> Gpu:
    energies: Iterator[int] = count()
    gpu = install(monkeypatch, energies, forever(NVMLError(3)))
    library: Any = gpu
    library.nvmlDeviceGetCount = lambda: number
    library.nvmlDeviceGetHandleByIndex = lambda index: index
    library.nvmlDeviceGetUUID = lambda handle: f"GPU-{handle}"
    return gpu

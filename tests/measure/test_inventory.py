"""This machine: devices, the state of the host, sensors, and CPU counters as far as it allows these."""

import errno
import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crosscast.data.schema import DEVICES
from crosscast.data.table import check, table_of
from crosscast.errors import DeviceFault, EnvironmentFault
from crosscast.measure import host_state, inventory
from crosscast.measure.host_state import (
    EVENTS,
    Counters,
    CounterValue,
    LinuxPerf,
    available,
    counter_shares,
)
from crosscast.measure.inventory import caches_of, describe, known_row
from crosscast.measure.opencl import devices
from crosscast.measure.processes import DescribeJob
from crosscast.suite.application import Caches
from support.measuring import FakePerf, cl_error
from support.refusals import refusal, refusals

DEVICE = devices()[0]


@pytest.mark.system  # For long; building a dataset describes devices, too
def test_a_description_is_a_row_of_the_table_with_the_source_of_every_number() -> None:
    row, known = describe(DEVICE), known_row(DEVICE)
    for each in (row, known):
        check(DEVICES, table_of(DEVICES, [each]), "described")
    assert known.keys() < row.keys()
    assert (row["device"], row["type"]) == (DEVICE.key, DEVICE.type)
    assert row["compute_units"] == DEVICE.compute_units
    for name in ("bandwidth_bytes_per_s", "peak_flop_per_s", "launch_overhead_s", "timer_resolution_s"):
        assert row.number(name) > 0
    sources = json.loads(row.text("sources"))
    assert {name for name, value in row.items() if isinstance(value, int | float)} <= set(sources)
    assert sources["peak_flop_per_s"].startswith("measured")


def test_a_device_that_fails_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise cl_error(-2)

    monkeypatch.setattr("pyopencl.Kernel", fail)
    with pytest.raises(DeviceFault, match=f"measuring it on {DEVICE.id}: the device failed or was lost"):
        describe(DEVICE)


def test_caches_are_those_of_the_host_or_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_state, "caches", lambda: host_state.HostCaches(1 << 15, 1 << 20, 1 << 25))
    assert caches_of(replace(DEVICE, type="cpu")) == Caches(1 << 15, 1 << 20, 1 << 25)
    local, cache = known_row(DEVICE).integer("local_memory_bytes"), int(DEVICE.handle.global_mem_cache_size)
    assert caches_of(replace(DEVICE, type="gpu")) == Caches(local, cache, cache)
    message = f"{DEVICE.id}: expected a device that tells its cache sizes"
    assert message in refusal(caches_of, replace(DEVICE, type="accelerator"))


def numbered(path: str, *texts: str) -> dict[str, str]:
    """Files of CPUs, threads or caches from 0 on."""
    return {path.format(number): text for number, text in enumerate(texts)}


class Client:
    """As that of Dask: one worker is this process, one has another device, and one has none."""

    def __init__(self) -> None:
        self.workers = ["tcp://here", "tcp://gpu"]
        self.asked: list[str] = []

    def run(self, function: Callable[[], Any]) -> dict[str, object]:
        here = function()
        other = [replace(here[0], id="gpu:0", key="gpu")]
        return {"tcp://there": "no OpenCL device", "tcp://here": here, "tcp://gpu": other}

    def submit(self, function: Callable[..., object], *args: Any, workers: list[str], pure: bool) -> Any:
        future = Future[object]()
        self.asked = workers
        if workers and workers[0] in self.workers:
            future.set_result(function(*args))
        return future

    def scheduler_info(self, n_workers: int) -> dict[str, list[str]]:
        return {"workers": self.workers}


def test_workers_of_dask_do_jobs_where_the_device_is(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []

    def answer(job: object, timeout_s: float) -> dict[str, object]:
        done.append(job)
        return {"device": {}}

    monkeypatch.setattr(inventory, "run_job", answer)
    client: Any = Client()
    workers = inventory.Workers(client)
    known = {each.id: (each.key, each.type, each.driver) for each in devices()}
    known["gpu:0"] = ("gpu", DEVICE.type, DEVICE.driver)
    assert {each.id: (each.key, each.type, each.driver) for each in workers.devices(["all"])} == known
    (found,) = workers.devices([DEVICE.key])
    assert (found.id, found.handle, workers.known(found)) == (DEVICE.id, None, known_row(DEVICE))
    assert f"{DEVICE.id}, " in refusal(workers.devices, ["abacus:0"])
    job = DescribeJob(DEVICE.id)
    assert workers.run(job, 60, found) == {"device": {}}
    assert (done, client.asked) == ([job], ["tcp://here"])

    def fail(job: object, timeout_s: float) -> None:
        raise DeviceFault("it was lost")

    monkeypatch.setattr(inventory, "run_job", fail)
    with pytest.raises(DeviceFault, match="it was lost"):
        workers.run(job, 60)
    client.workers.clear()
    monkeypatch.setattr(inventory, "_POLL_S", 0.01)
    with pytest.raises(DeviceFault, match="no worker that has the device is left"):
        workers.run(job, 60, found)
    monkeypatch.setattr(client, "run", lambda function: {"tcp://there": "no OpenCL device"})
    with pytest.raises(EnvironmentFault, match=r"executor: no worker has a device \(no OpenCL device\)"):
        inventory.Workers(client)


CPU, BATTERY = "sys/devices/system/cpu/cpu{}/", "sys/class/power_supply/BAT0/"
MHZ = {"proc/cpuinfo": "processor\t: 0\ncpu MHz\t\t: 2000.5\n\ncpu MHz\t\t: 2600.144\n"}
CLOCKS = numbered(CPU + "cpufreq/scaling_cur_freq", "800000", "3600123", "<?>")
GOVERNORS = numbered(CPU + "cpufreq/scaling_governor", "powersave", "performance", "powersave")
# Own threads are not others, which are never fewer than none.
STATES = numbered("proc/self/task/{}/stat", "0 (python) R 1", "1 (a) R (b) S 1", "2 (pocl) R 1")


def caches(*known: str) -> dict[str, str]:
    """Files of caches with these levels, types and sizes."""
    files: dict[str, str] = {}
    for fact, texts in zip(("level", "type", "size"), zip(*map(str.split, known), strict=True), strict=True):
        files |= numbered(f"{CPU.format(0)}cache/index{{}}/{fact}", *texts)
    return files


@pytest.mark.parametrize(
    ("files", "asked", "told"),
    [
        # That of the fastest CPU.
        (CLOCKS | MHZ, host_state.clock_hz, pytest.approx(3.600123e9)),
        (MHZ, host_state.clock_hz, pytest.approx(2.600144e9)),
        (GOVERNORS, host_state.governor, "performance,powersave"),
        (STATES | {"proc/loadavg": "1.25 0.33 0.62 5/91 28737"}, host_state.others_running, 3),
        (STATES | {"proc/loadavg": "0.00 0.00 0.00 0/91 1"}, host_state.others_running, 0),
        ({"proc/loadavg": "1.25 0.33 0.62 5/91 28737"}, host_state.load, 1.25),
        (
            caches("1 Instruction 64K", "1 Data 48K", "2 Unified 1280K", "3 Unified 32M"),
            host_state.caches,
            (48 << 10, 1280 << 10, 32 << 20),
        ),
        # As some virtual machines show it.
        (caches("2 Unified 0K"), host_state.caches, (None, None, None)),
        ({BATTERY + "type": "Battery", BATTERY + "status": "Charging"}, host_state.on_battery, False),
        ({BATTERY + "type": "Battery", BATTERY + "status": "Discharging"}, host_state.on_battery, True),
        ({}, host_state.clock_hz, None),
        ({}, host_state.governor, None),
        ({}, host_state.load, None),
        ({}, host_state.others_running, None),
    ],
)
def test_the_host_tells_its_files(
    tmp_path: Path, files: dict[str, str], asked: Callable[[Path], object], told: object
) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
    assert asked(tmp_path) == told


@pytest.mark.parametrize(("load", "doubt"), [("0.49", ""), ("0.50", "0.5 threads"), ("3.21", "3.2 threads")])
def test_a_machine_that_others_keep_busy_is_doubted(tmp_path: Path, load: str, doubt: str) -> None:
    assert host_state.doubts(tmp_path) == []
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/loadavg").write_text(f"{load} 9.00 9.00 5/91 28737\n")
    found = host_state.doubts(tmp_path)
    assert [each.partition(" of this machine wanted to run")[0] for each in found] == [doubt] * bool(doubt)


def full_time(value: int) -> CounterValue:
    return CounterValue(value, 1000, 1000)


def test_counts_are_summed_over_threads() -> None:
    perf = FakePerf(lambda event, thread: full_time(event * 1000 + thread))
    with Counters(perf=perf, threads=[1, 2, 3]) as counters:
        assert perf.enabled == set(perf.opened)
    assert not counters.absent
    assert set(counters.values) == set(EVENTS)
    assert counters.values["cycles"] == 1 + 2 + 3
    assert counters.values["branch_misses"] == 3 * 5000 + 6
    assert counters.values["task_clock_s"] == pytest.approx((3 * 11000 + 6) * 1e-9)
    assert sorted(perf.closed) == sorted(perf.opened)
    assert isinstance(counters.values["cycles"], int)


@pytest.mark.parametrize(
    ("counts", "cycles"),
    [
        # Counted part of the time, it is scaled to all of it.
        ([CounterValue(100, 1000, 250), CounterValue(7, 500, 500)], pytest.approx(407)),
        # Threads that were never counted are like the others.
        ([CounterValue(300, 600, 600), CounterValue(0, 300, 0)], pytest.approx(450)),
        # Threads that did not run count nothing.
        ([CounterValue(0, 0, 0), CounterValue(0, 0, 0)], 0),
        # What was never counted is absent and not 0.
        ([CounterValue(0, 600, 0), CounterValue(0, 600, 0)], None),
    ],
)
def test_what_was_not_counted_all_the_time_is_scaled(counts: list[CounterValue], cycles: object) -> None:
    perf = FakePerf(lambda event, thread: full_time(5) if event else counts[thread - 1])
    with Counters(perf=perf, threads=[1, 2]) as counters:
        pass
    assert (counters.values.get("cycles"), counters.values["instructions"]) == (cycles, 10)
    reason = "the processor's counters were all taken"
    assert counters.absent == ({} if cycles is not None else {"cycles": reason})


@refusals("code reason")
def test_what_is_refused_is_absent_with_the_reason(code: int, reason: str) -> None:
    perf = FakePerf(lambda event, thread: full_time(1), {(0, 0): code, (1, 3): code})
    found = available(perf)
    assert found.keys() == set(EVENTS)
    assert reason in str(found["cycles"]) and reason in str(found["context_switches"])
    refused = {name for name, why in found.items() if why is not None}
    assert refused == {"cycles", "context_switches"}
    assert sorted(perf.closed) == sorted(perf.opened)


def test_events_of_a_ratio_are_counted_at_the_same_times() -> None:
    perf = FakePerf(lambda event, thread: full_time(1))
    with Counters(perf=perf, threads=[5, 6]):
        pass
    by_event = {asked[:3]: descriptor for descriptor, asked in perf.opened.items()}
    of_the_processor = [((0, follower), (0, leader)) for follower, leader in ((1, 0), (3, 2), (5, 4))]
    # Misses of what is read from the first and the last cache of data, and the table of pages.
    of_caches = [((3, cache + (1 << 16)), (3, cache)) for cache in (0, 2, 3)]
    for follower, leader in (*of_the_processor, *of_caches):
        for thread in (5, 6):
            descriptor = by_event[*follower, thread]
            assert perf.opened[descriptor][3] == by_event[*leader, thread]


def test_an_event_whose_partner_is_refused_is_counted_alone_and_an_ended_thread_passed_over() -> None:
    perf = FakePerf(lambda event, thread: full_time(thread), {(0, 2): errno.ENOENT})
    perf.gone = {7}
    with Counters(perf=perf, threads=[7, 8]) as counters:
        pass
    assert counters.values["cycles"] == counters.values["cache_misses"] == 8
    assert [asked[3] for asked in perf.opened.values() if asked[:2] == (0, 3)] == [-1]
    assert counters.absent.keys() == {"cache_references"}


def test_files_are_left_to_others_and_unknown_machines_have_no_counters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = sum(1 for _ in os.scandir("/proc/self/fd"))
    monkeypatch.setattr("resource.getrlimit", lambda which: (used + 70, used + 70))
    perf = FakePerf(lambda event, thread: full_time(1))
    with Counters(perf=perf, threads=list(range(100))) as counters:
        pass
    assert not counters.values and not perf.opened
    assert set(counters.absent.values()) == {"the process may not open more files (see ulimit -n)"}
    monkeypatch.undo()
    monkeypatch.setattr("platform.machine", lambda: "vax")
    assert set(available(LinuxPerf()).values()) == {"this system has no perf events"}


def test_all_is_given_back_if_the_block_or_the_start_fails() -> None:
    perf = FakePerf(lambda event, thread: full_time(1))
    with pytest.raises(KeyError), Counters(perf=perf, threads=[1]):
        raise KeyError
    assert sorted(perf.closed) == sorted(perf.opened)

    class Broken(FakePerf):
        def enable(self, descriptor: int) -> None:
            raise OSError(errno.EIO, "Input/output error")

    broken = Broken(lambda event, thread: full_time(1))
    with pytest.raises(OSError, match="Input/output"), Counters(perf=broken, threads=[1]):
        pass
    assert broken.opened and sorted(broken.closed) == sorted(broken.opened)


SHARES = {"ipc": 2.5, "llc_miss": 0.1, "l1_miss": 0.25, "branch_miss": 0.025, "dtlb_miss": 0.02}
COUNTED = {"cycles": 200.0, "instructions": 500.0, "branches": 40.0, "branch_misses": 1.0}
COUNTED |= {"llc_loads": 50.0, "llc_load_misses": 5.0, "cache_references": 10.0, "cache_misses": 8.0}
COUNTED |= {"l1d_loads": 100.0, "l1d_load_misses": 25.0, "dtlb_loads": 100.0, "dtlb_load_misses": 2.0}


def test_shares_are_misses_over_all_or_over_references_where_only_those_are_counted() -> None:
    assert counter_shares(COUNTED) == SHARES
    assert counter_shares({**COUNTED, "llc_loads": 0.0, "llc_load_misses": 0.0}) == SHARES | {"llc_miss": 0.8}
    # Multiplexed events may seem to miss more often than they occur.
    assert counter_shares({**COUNTED, "branch_misses": 41.0}) == SHARES | {"branch_miss": 1.0}
    for name in ("cycles", "instructions", "branches", "branch_misses"):
        without = {other: value for other, value in COUNTED.items() if other != name}
        left = counter_shares(without)
        assert len(left) == 4
        assert left == counter_shares({**without, name: 0.0})

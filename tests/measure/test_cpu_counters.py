"""CPU counters: the sums on system calls of our own, and the real ones as far as this machine allows."""

import errno
import os
import threading
import time
from mmap import mmap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.measure.cpu_counters import (
    EVENTS,
    Counters,
    CounterValue,
    LinuxPerf,
    available,
    counter_shares,
)
from support.measuring import Answer, FakePerf
from support.refusals import refusals


def full_time(value: int) -> CounterValue:
    return CounterValue(value, 1000, 1000)


def spin(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


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


def values(answer: Answer, threads: list[int], **options: Any) -> Counters:
    with Counters(perf=FakePerf(answer, **options), threads=threads) as counters:
        pass
    return counters


@pytest.mark.parametrize(
    ("counts", "cycles"),
    [
        # Counted part of the time, it is scaled to all of it.
        ([CounterValue(100, 1000, 250), CounterValue(7, 500, 500)], pytest.approx(407)),
        # Threads that were never counted are like the others.
        ([CounterValue(300, 600, 600), CounterValue(0, 300, 0)], pytest.approx(450)),
        # Threads that did not run count nothing.
        ([CounterValue(0, 0, 0), CounterValue(0, 0, 0)], 0),
    ],
)
def test_what_was_not_counted_all_the_time_is_scaled(counts: list[CounterValue], cycles: object) -> None:
    assert values(lambda event, thread: counts[thread - 1], [1, 2]).values["cycles"] == cycles


def test_what_was_never_counted_is_absent_and_not_zero() -> None:
    found = values(lambda event, thread: CounterValue(0, 600, 0) if event == 0 else full_time(5), [1])
    assert "cycles" not in found.values
    assert found.absent == {"cycles": "the processor's counters were all taken"}
    assert found.values["instructions"] == 5


@refusals("code reason")
def test_what_is_refused_is_absent_with_the_reason(code: int, reason: str) -> None:
    perf = FakePerf(lambda event, thread: full_time(1), {(0, 0): code, (1, 3): code})
    found = available(perf)
    assert reason in str(found["cycles"]) and reason in str(found["context_switches"])
    assert {name for name, why in found.items() if why is None} == set(EVENTS) - {
        "cycles",
        "context_switches",
    }
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


def test_an_event_whose_partner_is_refused_is_counted_alone() -> None:
    perf = FakePerf(lambda event, thread: full_time(1), {(0, 2): errno.ENOENT})
    with Counters(perf=perf, threads=[5]) as counters:
        pass
    assert counters.values["cache_misses"] == 1
    assert [asked[3] for asked in perf.opened.values() if asked[:2] == (0, 3)] == [-1]


def test_a_thread_that_ended_meanwhile_is_passed_over() -> None:
    perf = FakePerf(lambda event, thread: full_time(thread))
    perf.gone = {7}
    with Counters(perf=perf, threads=[7, 8]) as counters:
        pass
    assert counters.values["cycles"] == 8
    assert not counters.absent


def test_files_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    used = sum(1 for _ in os.scandir("/proc/self/fd"))
    monkeypatch.setattr("resource.getrlimit", lambda which: (used + 70, used + 70))
    perf = FakePerf(lambda event, thread: full_time(1))
    with Counters(perf=perf, threads=list(range(100))) as counters:
        pass
    assert not counters.values and not perf.opened
    assert set(counters.absent.values()) == {"the process may not open more files (see ulimit -n)"}


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


def test_switched_off_it_counts_nothing() -> None:
    perf = FakePerf(lambda event, thread: full_time(1))
    with Counters(False, perf=perf) as counters:
        pass
    assert not (perf.opened or counters.values or counters.absent)


def test_a_machine_whose_system_calls_are_not_known_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "vax")
    assert set(available(LinuxPerf()).values()) == {"this system has no perf events"}


def needs(event: str) -> None:
    reason = available()[event]
    if reason is not None:
        pytest.skip(f"{event}: {reason}")


def test_threads_old_and_new_are_counted_on_this_machine() -> None:
    needs("task_clock_s")
    begin = threading.Event()

    def wait_and_spin() -> None:
        begin.wait()
        spin(0.05)

    old = threading.Thread(target=wait_and_spin)
    old.start()
    with Counters() as counters:
        before = time.process_time()
        begin.set()
        new = threading.Thread(target=spin, args=(0.05,))
        new.start()
        spin(0.05)
        old.join()
        new.join()
        spent_s = time.process_time() - before
    assert counters.values["task_clock_s"] == pytest.approx(spent_s, rel=0.2)
    assert spent_s > 0.14


def test_touched_pages_are_counted_on_this_machine() -> None:
    needs("page_faults")
    # The system gives a page when it is first touched. A mapping of its own: an allocator may hand out
    # memory that was touched before.
    with Counters() as counters, mmap(-1, 8 << 20) as memory:
        for page in range(0, len(memory), 4096):
            memory[page] = 1
    faults = counters.values["page_faults"]
    assert faults >= 4, "huge pages would be 2 MiB each"


def test_waiting_switches_threads_on_this_machine() -> None:
    needs("context_switches")
    with Counters() as counters:
        for _ in range(10):
            time.sleep(0.001)
    assert counters.values["context_switches"] >= 10


def test_instructions_are_counted_where_there_is_a_counter() -> None:
    needs("instructions")
    with Counters() as few:
        spin(0.01)
    with Counters() as many:
        spin(0.1)
    assert many.values["instructions"] > 3 * few.values["instructions"] > 0


COUNTED = {
    "cycles": 200.0,
    "instructions": 500.0,
    "llc_loads": 50.0,
    "llc_load_misses": 5.0,
    "cache_references": 10.0,
    "cache_misses": 8.0,
    "l1d_loads": 100.0,
    "l1d_load_misses": 25.0,
    "branches": 40.0,
    "branch_misses": 1.0,
    "dtlb_loads": 100.0,
    "dtlb_load_misses": 2.0,
}


def test_shares_are_misses_over_all() -> None:
    assert counter_shares(COUNTED) == {
        "ipc": 2.5,
        "llc_miss": 0.1,
        "l1_miss": 0.25,
        "branch_miss": 0.025,
        "dtlb_miss": 0.02,
    }


def test_references_stand_for_loads_where_only_those_are_counted() -> None:
    counted = {name: value for name, value in COUNTED.items() if not name.startswith("llc")}
    assert counter_shares(counted)["llc_miss"] == 0.8
    assert counter_shares({**counted, "llc_loads": 0.0, "llc_load_misses": 0.0})["llc_miss"] == 0.8


@pytest.mark.parametrize("name", ["cycles", "instructions", "branches", "branch_misses"])
def test_a_counter_that_is_0_or_missing_leaves_its_feature_out(name: str) -> None:
    without = {other: value for other, value in COUNTED.items() if other != name}
    left = counter_shares(without)
    assert left == counter_shares({**without, name: 0.0})
    assert len(left) == 4


@given(st.dictionaries(st.sampled_from(sorted(EVENTS)), st.floats(0, 1e15)))
def test_features_are_never_0_and_shares_at_most_1(counters: dict[str, float]) -> None:
    found = counter_shares(counters)
    assert all(value >= 0 for value in found.values())
    assert all(value <= 1 for name, value in found.items() if name != "ipc")

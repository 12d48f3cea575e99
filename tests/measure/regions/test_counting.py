"""CPU counters of regions."""

import logging

import pytest
from fresh_process import begin_anew

from crosscast.errors import InputError
from crosscast.measure.cpu_counters import EVENTS, Count
from crosscast.measure.regions.history import Counting, counting_of, difference


class SteppingPerf:
    """Counters that go on by a step at each reading; cache events are not there."""

    def __init__(self) -> None:
        self.opened: list[tuple[int, int]] = []
        self.now = 0

    def open(self, kind: int, config: int, thread: int, leader: int, kernel_too: bool) -> int:
        if (kind, config) in ((0, 2), (0, 3)):
            raise OSError(2, "No such file or directory")
        self.opened.append((kind, config))
        return len(self.opened) - 1

    def enable(self, descriptor: int) -> None: ...

    def disable(self, descriptor: int) -> None: ...

    def close(self, descriptor: int) -> None: ...

    def read(self, descriptor: int) -> Count:
        self.now += 1
        # A counter that runs half of the time.
        return Count(10 * self.now, 200 * self.now, 100 * self.now)


def test_what_was_counted_between_two_readings_is_told_by_event() -> None:
    counting = Counting(["instructions", "cache_misses"], SteppingPerf())
    before, after = counting.read(), counting.read()
    assert before.keys() == {"instructions"}
    threads = len(before["instructions"])
    # Each thread's counter went on by as many steps as there are threads, and counts half of the time.
    assert difference(before, after) == {"instructions": 2 * 10 * threads**2}


def test_counters_that_were_all_taken_are_absent() -> None:
    before, after = {"cycles": [Count(5, 100, 50)]}, {"cycles": [Count(5, 300, 50)]}
    assert not difference(before, after)


def test_an_unknown_counter_is_named_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"counters: expected some of cycles, .*, found 'flops'"):
        counting_of(("cycles", "flops"))


def test_the_real_counters_are_opened_once() -> None:
    events = tuple(EVENTS)
    counting = counting_of(events)
    assert counting_of(events) is counting
    found = difference(counting.read(), counting.read())
    assert found.keys() <= EVENTS.keys()
    assert all(value >= 0 for value in found.values())


def test_counters_that_somebody_closed_are_said_once_and_absent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def closed(descriptor: int) -> Count:
        raise OSError(9, "Bad file descriptor")

    begin_anew(monkeypatch)
    perf = SteppingPerf()
    counting = Counting(["cycles"], perf)
    before = counting.read()
    monkeypatch.setattr(perf, "read", closed)
    with caplog.at_level(logging.WARNING, "crosscast"):
        assert not difference(before, counting.read())
        assert not difference(counting.read(), counting.read())
    assert [record.getMessage() for record in caplog.records] == [
        "regions have no CPU counters from now on: Bad file descriptor"
    ]

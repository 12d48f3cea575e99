"""CPU counters that run all the time, read when regions are entered and left."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from crosscast.errors import InputError
from crosscast.measure.counters import EVENTS, Counters, Perf, added_up
from crosscast.measure.perf_events import Count
from crosscast.measure.regions.notice import say_once
from crosscast.measure.regions.run import NOTHING

__all__ = ["Counted", "Counting", "counting_of", "difference"]

Counted = Mapping[str, Sequence[Count]]
"""What the counters of each event hold, one a thread."""


class Counting:
    """Counters of all threads that there are when it is made, and of those that they start.

    Parameters
    ----------
    events
        What to count, of `EVENTS`. What this machine does not count is absent.
    perf
        System calls to make; those of Linux by default.
    """

    def __init__(self, events: Sequence[str], perf: Perf | None = None) -> None:
        self._counters = Counters(perf=perf, events=events)
        self._counters.__enter__()
        self._works = True

    def read(self) -> Counted:
        """Read all counters; nothing if they were closed, as by a process that becomes a daemon."""
        if not self._works:
            return {}
        try:
            return self._counters.so_far()
        except OSError as error:
            self._works = False
            say_once(f"regions have no CPU counters from now on: {error.strerror}")
            return {}


def difference(before: Counted, after: Counted) -> Mapping[str, float]:
    """What was counted between two readings, by event."""
    found = {}
    for name, ends in after.items():
        pairs = zip(before[name], ends, strict=True)
        steps = [Count(*(now - then for then, now in zip(*pair, strict=True))) for pair in pairs]
        value = added_up(name, steps)
        if value is not None:
            found[name] = value
    return found or NOTHING


_SHARED: dict[tuple[str, ...], Counting] = {}


def counting_of(events: tuple[str, ...]) -> Counting:
    """The counters of some events, opened once in a process.

    Raises
    ------
    InputError
        If there is no such event.
    """
    found = _SHARED.get(events)
    if found is None:
        for name in events:
            if name not in EVENTS:
                raise InputError(f"counters: expected some of {', '.join(EVENTS)}, found {name!r}")
        found = _SHARED.setdefault(events, Counting(events))
    return found


# A forked process would read the counters of its parent.
os.register_at_fork(after_in_child=lambda: _SHARED.clear())

"""When all members of a bag run, and what each does meanwhile."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

__all__ = ["Span", "inside", "overlap", "window"]


class Span(NamedTuple):
    """A time from start to end, in seconds of a clock that all members share."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """Its length, in seconds."""
        return self.end_s - self.start_s


def window(jobs: Sequence[Sequence[Span]]) -> Span | None:
    """The time in which all members run: from the last first start to the first last end.

    Parameters
    ----------
    jobs
        Jobs of each member, one after another.

    Returns
    -------
    Span or None
        ``None`` if there is no such time.
    """
    if not jobs or not all(jobs):
        return None
    found = Span(max(some[0].start_s for some in jobs), min(some[-1].end_s for some in jobs))
    return found if found.length_s > 0 else None


def inside(jobs: Sequence[Span], time: Span) -> slice:
    """Which of a member's jobs, that are one after another, lie wholly inside of a time."""
    first = bisect_left(jobs, time.start_s, key=attrgetter("start_s"))
    last = bisect_right(jobs, time.end_s, key=attrgetter("end_s"))
    return slice(first, max(first, last))


def overlap(round_: Sequence[Span]) -> float:
    """Share of the time from the first start to the last end in which all run, 0 to 1.

    Parameters
    ----------
    round_
        One job of each member.
    """
    whole = max(job.end_s for job in round_) - min(job.start_s for job in round_)
    shared = min(job.end_s for job in round_) - max(job.start_s for job in round_)
    return max(shared, 0.0) / whole if whole > 0 else 1.0

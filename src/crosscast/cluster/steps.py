"""Counts that change from time to time, and stay as they are in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.cluster.jobs import Integers, Reals

__all__ = ["Steps", "steps_of"]


@dataclass(frozen=True)
class Steps:
    """A step function: 0 before its first time.

    Parameters
    ----------
    time_s
        When it changes, in seconds, ascending, of shape ``(k,)``.
    count
        What it is from each time until the next, of shape ``(k,)``.
    """

    time_s: Reals
    count: Integers

    def at(self, time_s: Reals) -> Integers:
        """What it is at each of these times; at a change, what it is from then on."""
        place = np.searchsorted(self.time_s, time_s, side="right")
        found: Integers = np.concatenate(([0], self.count))[place]
        return found

    def mean(self, start_s: float, end_s: float) -> float:
        """Its mean between two times, the second after the first."""
        inside = self.time_s[(self.time_s > start_s) & (self.time_s < end_s)]
        borders = np.concatenate(([start_s], inside, [end_s]))
        return float((self.at(borders[:-1]) * np.diff(borders)).sum() / (end_s - start_s))


def steps_of(time_s: Reals, change: Integers) -> Steps:
    """Add changes up in the order of their times; those of one time happen together.

    Parameters
    ----------
    time_s, change
        When a count changes, and by how much, in any order.

    Examples
    --------
    >>> steps = steps_of(np.array([0.0, 4.0, 2.0, 2.0]), np.array([1, -1, 3, -3]))
    >>> steps.time_s.tolist(), steps.count.tolist()
    ([0.0, 4.0], [1, 0])
    """
    order = np.argsort(time_s)
    times = time_s[order]
    first = np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)
    total = np.add.reduceat(change[order], first) if len(first) else change[:0]
    changed = total != 0
    return Steps(times[first][changed], np.cumsum(total)[changed])

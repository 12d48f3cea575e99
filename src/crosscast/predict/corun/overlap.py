"""How long a bag takes whose members slow each other down: from slowdowns to times, and back.

All members start a job together. Until the first ends, each runs as slowly as in the whole bag; those that
are left then run as slowly as in the bag without it, and so on; the last one alone runs as fast as alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError

__all__ = ["BagTimes", "bag_time", "bag_times", "even_slowdown", "with_fewer"]

_SAME = 1e-9
"""Members whose ends are no further apart, as a share of the time, end together."""


@dataclass(frozen=True, eq=False)
class BagTimes:
    """Times of ``b`` bags; not a number where a time or a slowdown is not known.

    Parameters
    ----------
    time_s
        Time from the common start to the end of the last, in seconds, of shape ``(b,)``.
    overlap
        Share of that time in which all run, of shape ``(b,)``.
    """

    time_s: Reals
    overlap: Reals


def bag_time(
    solo_times: Sequence[float], slowdowns_of: Callable[[tuple[int, ...]], Sequence[float]]
) -> tuple[float, float]:
    """Time of one bag, and the share of it in which all run.

    Parameters
    ----------
    solo_times
        Time of a job of each member alone, in seconds.
    slowdowns_of
        Slowdowns of members, two or more, that run without the others; they are given, and named, by their
        places in the bag.

    Raises
    ------
    InputError
        If a time or slowdown is not above 0.

    Examples
    --------
    >>> bag_time([1.0, 2.0], lambda running: [2.0, 2.0])
    (3.0, 0.6666666666666666)
    """

    def slowdowns(running: Flags) -> Reals:
        found = np.ones(running.shape)
        places = np.flatnonzero(running[0])
        found[0, places] = slowdowns_of(tuple(places.tolist()))
        return found

    times = np.array([solo_times], dtype=np.float64)
    whole = slowdowns(np.ones(times.shape, dtype=np.bool_)) if times.shape[1] > 1 else np.ones_like(times)
    result = bag_times(times, whole, slowdowns)
    return float(result.time_s[0]), float(result.overlap[0])


def bag_times(solo_times: Reals, slowdowns: Reals, slowdowns_left: Callable[[Flags], Reals]) -> BagTimes:
    """Times of ``b`` bags of ``n`` members each.

    Parameters
    ----------
    solo_times
        Times of jobs alone, in seconds, of shape ``(b, n)``.
    slowdowns
        Slowdowns in the whole bags, of shape ``(b, n)``.
    slowdowns_left
        Slowdowns, of shape ``(b, n)``, of those that still run, which are given as flags of the same shape.
        Only those of flagged members where two or more are left are looked at.

    Raises
    ------
    InputError
        If a time or slowdown is not above 0.
    """
    _check_positive("solo times", solo_times)
    work, rate = solo_times.copy(), slowdowns
    running = np.ones(work.shape, dtype=np.bool_)
    elapsed, together = np.zeros(len(work)), np.zeros(len(work))
    while running.any():
        left = running.sum(axis=1)
        if not running.all():
            rate = slowdowns_left(running) if (left > 1).any() else rate
        rate = np.where(running & (left > 1)[:, None], rate, 1.0)
        _check_positive("slowdowns", rate)
        ends = np.where(running, work * rate, np.inf)
        # Of a bag whose members have all ended, no time passes any more. What is not known spreads.
        first = np.where(left > 0, ends.min(axis=1), 0.0)
        elapsed += first
        together = np.where(running.all(axis=1), first, together)
        work = work - first[:, None] / rate
        running = running & (ends > first[:, None] * (1 + _SAME))
    with np.errstate(invalid="ignore"):
        return BagTimes(elapsed, together / elapsed)


def even_slowdown(solo_times: Reals, times: Reals) -> Reals:
    """Slowdown that all members share in the whole bag, from how long the bag takes.

    A bag's time alone does not tell which member slows down how much. It is taken that all slow down alike,
    and that with fewer members, slowdowns are as `with_fewer` says.

    Parameters
    ----------
    solo_times
        Times of jobs alone, in seconds, of shape ``(b, n)``, of two members or more.
    times
        Times of the bags, in seconds, of shape ``(b,)``.

    Returns
    -------
    array
        Of shape ``(b,)``; 1 where a bag takes no longer than its longest member alone.
    """
    members = solo_times.shape[1]
    steps = np.diff(np.sort(solo_times, axis=1), axis=1, prepend=0.0)
    # With k of n ended, (n - 1 - k) / (n - 1) of what the slowdown is above 1 is left.
    shared = steps @ ((members - 1 - np.arange(members)) / (members - 1))
    slowdown: Reals = np.maximum(1.0 + (times - solo_times.max(axis=1)) / shared, 1.0)
    return slowdown


def with_fewer(slowdown: Reals, members: int, running: Reals) -> Reals:
    """Slowdown among fewer members, where nothing better is known: its part above 1 goes with the others.

    Parameters
    ----------
    slowdown
        In the whole bag, of any shape.
    members
        Members of the whole bag, two or more.
    running
        How many of them are left, of a shape that fits.
    """
    fewer: Reals = 1.0 + (slowdown - 1.0) * (running - 1.0) / (members - 1)
    return fewer


def _check_positive(name: str, values: Reals) -> None:
    if (values <= 0).any():
        raise InputError(f"{name}: expected numbers above 0, found {float(np.nanmin(values)):g}")

"""Times of mixes from the slowdowns of their co-runners, which end one after another."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError

_SAME = 1e-9
"""Relative difference up to which ends of co-runners are equal."""

SlowdownsOf = Callable[[Integers, Integers], Reals]
"""Function from rows (mixes) and columns (co-runners) to slowdowns ``(rows, columns)``."""


def mix_times(isolated_s: Reals, slowdowns: Reals, slowdowns_of: SlowdownsOf) -> Reals:
    """Times of ``b`` mixes of ``n`` co-runners, (b,), from the common start to the end of the last.

    Until the first ends, slowdowns are `slowdowns`, (b, n); then those of `slowdowns_of`, which is called
    once for each set of co-runners that still run. NaN where a time or a slowdown is not known.
    """
    count = isolated_s.shape[1]
    work, running = isolated_s.copy(), np.ones(isolated_s.shape, dtype=np.bool_)
    elapsed, bits = np.zeros(len(work)), 1 << np.arange(count)
    while running.any():
        rate = np.where(running.all(axis=1, keepdims=True) & (count > 1), slowdowns, 1.0)
        subset = running @ bits
        for code in np.unique(subset).tolist() if count > 2 else ():
            rows, columns = np.flatnonzero(subset == code), np.flatnonzero(code & bits)
            if 1 < len(columns) < count:
                rate[np.ix_(rows, columns)] = slowdowns_of(rows, columns)
        for name, values in (("isolated times", isolated_s), ("slowdowns", rate)):
            if (values <= 0).any():
                raise InputError.of(where=name, expected="numbers above 0", found=f"{np.nanmin(values):g}")
        ends = np.where(running, work * rate, np.inf)
        # A mix whose co-runners have all ended takes no more time. NaN propagates.
        first = np.where(running.any(axis=1), ends.min(axis=1), 0.0)
        elapsed += first
        work = work - first[:, None] / rate
        running = running & (ends > first[:, None] * (1 + _SAME))
    return elapsed


def with_fewer(slowdown: Reals, members: int, running: int) -> Reals:
    """Approximate slowdown among fewer co-runners: the excess over 1 is proportional to the others."""
    fewer: Reals = 1.0 + (slowdown - 1.0) * (running - 1.0) / (members - 1)
    return fewer


def even_slowdown(isolated_s: Reals, times: Reals) -> Reals:
    """Slowdown common to all co-runners, from the mix's time, ``(b,)``.

    A mix's time alone does not determine each slowdown. All are assumed equal, and those of fewer co-runners
    as in `with_fewer`; 1 where a mix takes no longer than its longest run.
    """
    members = isolated_s.shape[1]
    steps = np.diff(np.sort(isolated_s, axis=1), axis=1, prepend=0.0)
    # With k of n ended, (n - 1 - k) / (n - 1) of the slowdown's excess over 1 remains.
    shared = steps @ ((members - 1 - np.arange(members)) / (members - 1))
    slowdown: Reals = np.maximum(1.0 + (times - isolated_s.max(axis=1)) / shared, 1.0)
    return slowdown


def pairs_added_up(mixes: int, members: int, slowdowns_of: Callable[[int, int], Reals]) -> Reals:
    """Slowdowns ``(mixes, members)`` if the excesses of pairs add up, as in time sharing.

    `slowdowns_of` returns those of the pair of two columns in all mixes, ``(mixes, 2)``.
    """
    added = np.ones((mixes, members))
    for pair in combinations(range(members), 2):
        added[:, pair] += np.maximum(slowdowns_of(*pair) - 1.0, 0.0)
    return added

"""How long a mix takes, from what its co-runners slow down by, as one after the other ends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError

_SAME = 1e-9
"""Co-runners whose ends are no further apart, as a share of the time, end together."""

SlowdownsOf = Callable[[Integers, Integers], Reals]
"""From rows of mixes, and places of two or more co-runners in them, to slowdowns of shape (rows, places)."""


def mix_times(isolated_s: Reals, slowdowns: Reals, slowdowns_of: SlowdownsOf) -> Reals:
    """Times of ``b`` mixes of ``n`` co-runners, (b,), from the common start to the end of the last.

    Until the first ends, all slow down as `slowdowns` says, (b, n); then `slowdowns_of` is asked, once for
    each set of co-runners that still run. Not a number where a time or a slowdown is not known.
    """
    count = isolated_s.shape[1]
    work, running = isolated_s.copy(), np.ones(isolated_s.shape, dtype=np.bool_)
    elapsed, bits = np.zeros(len(work)), 1 << np.arange(count)
    while running.any():
        rate = np.where(running.all(axis=1, keepdims=True) & (count > 1), slowdowns, 1.0)
        subset = running @ bits
        for code in np.unique(subset).tolist() if count > 2 else ():
            rows, places = np.flatnonzero(subset == code), np.flatnonzero(code & bits)
            if 1 < len(places) < count:
                rate[np.ix_(rows, places)] = slowdowns_of(rows, places)
        for name, values in (("isolated times", isolated_s), ("slowdowns", rate)):
            if (values <= 0).any():
                raise InputError.of(where=name, expected="numbers above 0", found=f"{np.nanmin(values):g}")
        ends = np.where(running, work * rate, np.inf)
        # Of a mix whose co-runners have all ended, no time passes any more. What is not known spreads.
        first = np.where(running.any(axis=1), ends.min(axis=1), 0.0)
        elapsed += first
        work = work - first[:, None] / rate
        running = running & (ends > first[:, None] * (1 + _SAME))
    return elapsed


def with_fewer(slowdown: Reals, members: int, running: int) -> Reals:
    """Slowdown among fewer, where nothing better is known: its part above 1 goes with the others."""
    fewer: Reals = 1.0 + (slowdown - 1.0) * (running - 1.0) / (members - 1)
    return fewer


def even_slowdown(isolated_s: Reals, times: Reals) -> Reals:
    """Slowdown that all co-runners share, from how long the mix takes, of shape (b,).

    A mix's time alone does not tell who slows down how much. It is taken that all slow down alike, and that
    with fewer of them slowdowns are as `with_fewer` says; 1 where a mix takes no longer than its longest.
    """
    members = isolated_s.shape[1]
    steps = np.diff(np.sort(isolated_s, axis=1), axis=1, prepend=0.0)
    # With k of n ended, (n - 1 - k) / (n - 1) of what the slowdown is above 1 is left.
    shared = steps @ ((members - 1 - np.arange(members)) / (members - 1))
    slowdown: Reals = np.maximum(1.0 + (times - isolated_s.max(axis=1)) / shared, 1.0)
    return slowdown


def pairs_added_up(mixes: int, members: int, slowdowns_of: Callable[[int, int], Reals]) -> Reals:
    """Slowdowns, (mixes, members), if what each other one alone costs adds up, as where they take turns.

    `slowdowns_of` tells those of the pair of two places in all mixes, of shape (mixes, 2).
    """
    added = np.ones((mixes, members))
    for pair in combinations(range(members), 2):
        added[:, pair] += np.maximum(slowdowns_of(*pair) - 1.0, 0.0)
    return added

"""Which bags of a new application to measure first, so that they tell most of the others.

Nothing of what came of a bag is looked at: what counts is how alike applications are, by their solo runs, and
which bags of others are known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.predict.corun.process.covariance import Sizes, Training
from crosscast.predict.corun.process.rows import MemberRows, distinct
from crosscast.predict.corun.process.traits import Traits
from crosscast.tables.corun.bag import Bag

__all__ = ["chosen_probes"]


def chosen_probes(
    bags: Sequence[Bag], of_new: Flags, name: str, count: int, traits: Traits, sizes: Sizes
) -> list[int]:
    """Choose bags of an application, one after the other: each lowers what is left open of all others most.

    What is open of a bag is the variance of a process (`crosscast.predict.corun.process`). Only bags are
    chosen in which nothing else is of the same application.

    Parameters
    ----------
    bags
        All bags.
    of_new
        Which of them have the application, of shape ``(b,)``.
    name
        Name of the application.
    count
        How many bags with each of its inputs (sizes), at most.
    traits, sizes
        How applications become numbers, and the sizes of the covariance between these, fitted to bags without
        the application.

    Returns
    -------
    list of int
        Places of the bags, in the order in which they are chosen.
    """
    solos, places = distinct([bag.solos for bag in bags])
    rows = MemberRows.of([bag.solos for bag in bags], places)
    old = ~of_new[rows.bag]
    covariance = Training(traits.traited(solos), rows).covariance(sizes)
    known, new = np.flatnonzero(old), np.flatnonzero(~old)
    inside = covariance[np.ix_(known, known)] + sizes.noise * np.eye(len(known))
    across = covariance[np.ix_(new, known)]
    left = covariance[np.ix_(new, new)] - across @ np.linalg.solve(inside, across.T)
    inputs = {
        place: [solo.name for solo in bags[place].solos if solo.application == name]
        for place in np.flatnonzero(of_new).tolist()
    }
    open_ = {place: found[0] for place, found in inputs.items() if len(found) == 1}
    return _greedily(left, rows.bag[new], open_, sizes.noise, count)


def _greedily(left: Reals, bag: Integers, inputs: dict[int, str], noise: float, count: int) -> list[int]:
    rows = {place: np.flatnonzero(bag == place) for place in sorted(inputs)}
    room = dict.fromkeys(inputs.values(), count)
    chosen: list[int] = []
    while rows and any(room.values()):
        gains = {place: _gain(left, found, noise) for place, found in rows.items()}
        best = max(gains, key=lambda place: (gains[place], -place))
        found = rows.pop(best)
        chosen.append(best)
        room[inputs[best]] -= 1
        rows = {place: each for place, each in rows.items() if room[inputs[place]]}
        left = left - left[:, found] @ _solved(left, found, noise)
    return chosen


def _solved(left: Reals, found: Integers, noise: float) -> Reals:
    inside = left[np.ix_(found, found)] + noise * np.eye(len(found))
    return np.asarray(np.linalg.solve(inside, left[found]), dtype=np.float64)


def _gain(left: Reals, found: Integers, noise: float) -> float:
    """By how much the sum of variances falls if a bag is measured."""
    return float((left[found] * _solved(left, found, noise)).sum())

"""Splits of bags: what is held out, and what a model may learn from meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers
from crosscast.errors import InputError
from crosscast.tables.corun.bag import Bag

__all__ = ["BAG_FOLDS", "SPLITS", "CoRunFold", "folds_of", "with_repeats"]

SPLITS = ("leave-benchmark-out", "leave-bag-out", "random-80-20")
"""Names of the splits: each application in turn; bags in folds; and a fifth of the bags at random."""

BAG_FOLDS = 10
"""Folds where bags are left out."""


@dataclass(frozen=True, eq=False)
class CoRunFold:
    """A part of the bags, to be predicted by a model that was fitted to others.

    Parameters
    ----------
    held_out
        What is held out, for people.
    train, test
        Places of the bags.
    """

    held_out: str
    train: Integers
    test: Integers


def folds_of(bags: Sequence[Bag], split: str, seed: int) -> tuple[CoRunFold, ...]:
    """Split bags into folds.

    Where a benchmark is left out, all bags with it are held out, whatever else is in them. Bags in which the
    same applications run at the same sizes are held out together.

    Parameters
    ----------
    bags
        The bags.
    split
        One of `SPLITS`.
    seed
        Start of all random numbers.

    Raises
    ------
    InputError
        If there is no such split, or there are too few applications or bags.
    """
    if split not in SPLITS:
        raise InputError(f"split: expected one of {', '.join(SPLITS)}, found {split!r}")
    if split == "leave-benchmark-out":
        return _without_benchmarks(bags)
    numbers = _numbers_of_alike(bags)
    count = int(numbers.max(initial=-1)) + 1
    if count < 5:
        raise InputError(f"bags: expected at least 5 different ones to split, found {count}")
    order = np.random.default_rng(seed).permutation(count)
    if split == "random-80-20":
        return (_fold("a fifth at random", np.isin(numbers, order[: count // 5])),)
    parts = np.array_split(order, min(BAG_FOLDS, count))
    return tuple(_fold(f"bags, part {k}", np.isin(numbers, part)) for k, part in enumerate(parts, start=1))


def with_repeats(bags: Sequence[Bag], places: Sequence[int]) -> tuple[int, ...]:
    """Places of some bags, and of all in which the same applications run at the same sizes, ascending."""
    numbers = _numbers_of_alike(bags)
    alike = np.isin(numbers, numbers[np.array(places, dtype=np.int64)])
    return tuple(np.flatnonzero(alike).tolist())


def _fold(held_out: str, tested: Flags) -> CoRunFold:
    return CoRunFold(held_out, np.flatnonzero(~tested), np.flatnonzero(tested))


def _numbers_of_alike(bags: Sequence[Bag]) -> Integers:
    """A number for each bag, equal where the same applications run at the same sizes."""
    order: dict[tuple[tuple[str, str], ...], int] = {}
    found = [
        order.setdefault(tuple(sorted((solo.application, solo.size) for solo in bag.solos)), len(order))
        for bag in bags
    ]
    return np.array(found, dtype=np.int64)


def _without_benchmarks(bags: Sequence[Bag]) -> tuple[CoRunFold, ...]:
    names = sorted({name for bag in bags for name in bag.applications})
    if len(names) < 3:
        raise InputError(f"applications: expected at least 3 to leave one out, found {len(names)}")
    folds = []
    for name in names:
        tested = np.array([name in bag.applications for bag in bags])
        if tested.all():
            raise InputError(f"applications: expected bags without {name} to learn from, found none")
        folds.append(_fold(name, tested))
    return tuple(folds)

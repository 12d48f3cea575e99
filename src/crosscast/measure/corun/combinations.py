"""Combinations of applications, of which one may be there several times: all, or some of them by lot."""

from __future__ import annotations

import random
from math import comb

__all__ = ["combination", "combinations", "drawn"]


def combinations(things: int, size: int) -> int:
    """How many bags of a size there are of so many things.

    Examples
    --------
    >>> combinations(3, 2)
    6
    """
    return comb(things + size - 1, size)


def combination(things: int, size: int, number: int) -> tuple[int, ...]:
    """One of them by its number, in the order of `itertools.combinations_with_replacement`.

    Parameters
    ----------
    things
        Number of things.
    size
        Things of a bag.
    number
        From 0 to below `combinations`.

    Examples
    --------
    >>> [combination(3, 2, number) for number in range(6)]
    [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    """
    chosen: list[int] = []
    thing = 0
    for left in range(size - 1, -1, -1):
        # So many bags go on with this thing.
        while number >= (count := combinations(things - thing, left)):
            number -= count
            thing += 1
        chosen.append(thing)
    return tuple(chosen)


def drawn(things: int, size: int, most: int | None, seed: int) -> list[tuple[int, ...]]:
    """All bags of a size, or so many of them by lot; a larger number begins with what a smaller one gives.

    Parameters
    ----------
    things
        Number of things.
    size
        Things of a bag.
    most
        Most bags; ``None`` for all.
    seed
        Start of the lot.
    """
    total = combinations(things, size)
    if most is None or most >= total:
        return [combination(things, size, number) for number in range(total)]
    # Not `sample`, whose choice of method depends on the number.
    lot = random.Random(f"{seed} {size}")
    numbers: dict[int, None] = {}
    while len(numbers) < most:
        numbers.setdefault(lot.randrange(total))
    return [combination(things, size, number) for number in numbers]

"""Slowdowns of bags, and of what is left of them as their members end, each predicted once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.predict.corun.process.slowdowns import SlowdownProcess
from crosscast.tables.corun.solo import Solo

__all__ = ["Running"]

_FEW = 64
"""So many parts of bags are predicted at once: one by one each would take nearly as long as all."""


class Running:
    """Slowdowns of those that run.

    Parameters
    ----------
    process
        What predicts them.
    bags
        The bags.
    """

    def __init__(self, process: SlowdownProcess, bags: Sequence[tuple[Solo, ...]]) -> None:
        self._process, self._bags = process, bags
        # By the number of a bag, and the places of its members that run.
        self._known: dict[tuple[int, ...], Reals] = {}
        few = sum(2 ** len(bag) for bag in bags) <= _FEW
        self._ask(
            [
                (number, *places)
                for number, bag in enumerate(bags)
                for members in range(min(2, len(bag)) if few else len(bag), len(bag) + 1)
                for places in combinations(range(len(bag)), members)
            ]
        )

    @property
    def whole(self) -> tuple[Reals, ...]:
        """Slowdowns in each whole bag, of shape ``(members,)``."""
        return tuple(self._known[(number, *range(len(bag)))] for number, bag in enumerate(self._bags))

    def left(self, bags: Sequence[int], running: Flags) -> Reals:
        """Slowdowns of those that still run, where these are two or more; 1 elsewhere.

        Parameters
        ----------
        bags
            Numbers of ``b`` bags of ``n`` members.
        running
            Which of them still run, of shape ``(b, n)``.
        """
        keys = [(number, *np.flatnonzero(runs).tolist()) for number, runs in zip(bags, running, strict=True)]
        several = [(row, key) for row, key in enumerate(keys) if len(key) > 2]
        self._ask([key for _, key in several if key not in self._known])
        found = np.ones(running.shape)
        for row, key in several:
            found[row, list(key[1:])] = self._known[key]
        return found

    def _ask(self, keys: Sequence[tuple[int, ...]]) -> None:
        if keys:
            parts = [tuple(self._bags[number][place] for place in places) for number, *places in keys]
            self._known.update(zip(keys, self._process.slowdowns(parts), strict=True))

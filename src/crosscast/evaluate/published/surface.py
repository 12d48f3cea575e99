"""Error of the forest out of the bag over its three parameters, grown only where it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluate.published.out_of_bag import OutOfBag
from crosscast.predict.cell_trees import Rows, draw_trees

__all__ = ["Grown", "Surface"]

_STEADY = 10
"""Trees from which on nearly every row is out of some tree's bag, and errors fall as 1 / trees."""


@dataclass(frozen=True)
class Grown:
    """A forest that tries so many features, with its error on the way.

    Parameters
    ----------
    trees
        ``k`` numbers of trees at which the error was taken, of shape ``(k,)``.
    errors
        Mean square error out of the bag, of shape ``(k, m)`` for ``m`` node sizes.
    forest
        Prediction of the whole forest for each node size and cell, of shape ``(m, c)``.
    """

    trees: Integers
    errors: Reals
    forest: Reals

    def error(self, trees: int, place: int) -> float:
        """Error with so many trees: between two taken, or beyond the last, on a line in 1 / trees."""
        errors = self.errors[:, place]
        if trees <= self.trees[-1]:
            return float(np.interp(-1 / trees, -1 / self.trees, errors))
        steady = self.trees >= min(_STEADY, self.trees[-1])
        if np.count_nonzero(steady) < 2:
            return float(errors[-1])
        # The slope is of the mean over many rows and never below 0, as more trees do not add noise.
        slope = max(0.0, float(np.polyfit(1 / self.trees[steady], errors[steady], 1)[0]))
        return float(errors[-1] - slope * (1 / self.trees[-1] - 1 / trees))


@dataclass
class Surface:
    """The error over ``num.trees``, ``mtry`` and ``min.node.size``.

    One forest a number of tried features serves all numbers of trees, by its first trees, and all node
    sizes, by cutting its trees. Beyond its last tree the error goes on along 1 / trees.

    Parameters
    ----------
    rows
        What the forest is fitted to.
    grown
        Trees that are grown for each number of tried features.
    node_sizes
        Node sizes that may be asked for.
    seed
        Start of all random numbers.
    """

    rows: Rows
    grown: int
    node_sizes: Sequence[int]
    seed: int
    _forests: dict[int, Grown] = field(default_factory=dict)

    @property
    def features(self) -> int:
        """How many features there are to try."""
        return int(self.rows.features.shape[1])

    def error(self, trees: int, tried: int, node_size: int) -> float:
        """Mean square error out of the bag.

        Raises
        ------
        InputError
            If the node size is none of those given.
        """
        if node_size not in self.node_sizes:
            raise InputError(
                f"node_size: expected one of {list(self.node_sizes)} of this surface, found {node_size}"
            )
        return self.at(tried).error(trees, list(self.node_sizes).index(node_size))

    def at(self, tried: int) -> Grown:
        """The forest that tries so many features; it is grown at the first call."""
        tried = min(tried, self.features)
        if tried not in self._forests:
            self._forests[tried] = self._grow(tried)
        return self._forests[tried]

    def _grow(self, tried: int) -> Grown:
        taken = _taken(self.grown)
        bag = OutOfBag(self.rows, self.node_sizes)
        errors = []
        for number, drawn in enumerate(
            draw_trees(self.rows, self.grown, tried=tried, seed=self.seed), start=1
        ):
            bag.add(drawn)
            if number in taken:
                errors.append(bag.errors())
        return Grown(np.array(sorted(taken)), np.array(errors), bag.forest())


def _taken(grown: int) -> set[int]:
    """About ten numbers of trees a decade, and the last."""
    places = np.unique(np.round(np.logspace(0, np.log10(grown), 1 + round(10 * np.log10(max(grown, 2))))))
    return {*places.astype(int).tolist(), grown}

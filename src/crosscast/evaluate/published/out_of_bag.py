"""Error of a forest out of the bag: each row is predicted by the trees that did not draw it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.cell_trees import Drawn, Rows

__all__ = ["OutOfBag"]


class OutOfBag:
    """Predictions out of the bag, which sharpen with every tree.

    Parameters
    ----------
    rows
        The rows that the forest is drawn from.
    node_sizes
        ``m`` sizes at or below which nodes are not split; each has predictions of its own.
    """

    def __init__(self, rows: Rows, node_sizes: Sequence[int]) -> None:
        self._rows = rows
        self._node_sizes = tuple(node_sizes)
        self._sums = np.zeros((len(self._node_sizes), len(rows.response)))
        self._trees = np.zeros(len(rows.response), dtype=np.int64)
        self._means = np.zeros((len(self._node_sizes), len(rows.features)))
        self._count = 0

    def add(self, drawn: Drawn) -> None:
        """Take one more tree in."""
        predictions = drawn.predictions(self._node_sizes)
        out = np.flatnonzero(drawn.times == 0)
        self._sums[:, out] += predictions[:, self._rows.cell[out]]
        self._trees[out] += 1
        self._count += 1
        self._means += (predictions - self._means) / self._count

    def errors(self) -> Reals:
        """Mean square error for each node size, of shape ``(m,)``, over rows that some tree did not draw."""
        known = self._trees > 0
        predicted = self._sums[:, known] / self._trees[known]
        errors: Reals = np.mean((predicted - self._rows.response[known]) ** 2, axis=1)
        return errors

    def forest(self) -> Reals:
        """Prediction of the whole forest for each node size and cell, of shape ``(m, c)``."""
        return self._means

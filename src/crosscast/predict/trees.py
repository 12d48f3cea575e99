"""Regression trees as arrays: kept as data, followed with numpy alone.

A prediction is the sum, over the trees, of the values of the leaves that a row comes to rest in. The mean of
a forest is the sum of trees whose values are divided by their number; a constant is a tree of one leaf. So
sums, multiples and projections of forests are forests again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.state import kept_integers, kept_reals

__all__ = ["Trees", "constant", "joined"]

_AT_ONCE = 1 << 15
"""Pairs of a row and a tree that are followed at the same time: what a processor's cache holds."""

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Trees:
    """``t`` trees with ``s`` splits, ``l`` leaves and ``o`` outputs, all together.

    A node is named by a number: a split by its place, a leaf at place ``k`` by ``-1 - k``.

    Parameters
    ----------
    feature
        Column that each split looks at, of shape ``(s,)``.
    threshold
        Rows whose feature, in single precision, is at most this go left, of shape ``(s,)``.
    left, right
        Children of each split, of shape ``(s,)``; splits among them have higher places than itself.
    root
        Root of each tree, of shape ``(t,)``.
    value
        What each leaf adds, of shape ``(l, o)``.
    """

    feature: Integers
    threshold: Singles
    left: Integers
    right: Integers
    root: Integers
    value: Reals

    def sum(self, rows: Reals) -> Reals:
        """Sum of all trees.

        Parameters
        ----------
        rows
            Features, of shape ``(n, f)``; finite.

        Returns
        -------
        array
            Of shape ``(n, o)``. A row's sum does not depend on the other rows.
        """
        singles = rows.astype(np.float32)
        total = np.empty((len(rows), self.value.shape[1]))
        step = max(1, _AT_ONCE // len(self.root))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            total[part] = self._sum_of(singles[part])
        return total

    def each(self, rows: Reals) -> Reals:
        """Value of each tree, of shape ``(t, n, o)``.

        Parameters
        ----------
        rows
            Features, of shape ``(n, f)``; finite.
        """
        singles = rows.astype(np.float32)
        values = np.empty((len(self.root), len(rows), self.value.shape[1]))
        step = max(1, _AT_ONCE // len(self.root))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            values[:, part] = self.value.take(self._leaves(singles[part]), axis=0)
        return values

    def _sum_of(self, rows: Singles) -> Reals:
        total: Reals = self.value.take(self._leaves(rows), axis=0).sum(axis=0)
        return total

    def _leaves(self, rows: Singles) -> Integers:
        """Leaf in which each row comes to rest, in each tree, of shape ``(t, n)``."""
        n, t = len(rows), len(self.root)
        cells, column, children = rows.T.ravel(), self.feature * n, self._children
        rest = np.repeat(self.root, n)
        # Pairs of a tree and a row that are still on their way: which, where, and in which row.
        way = np.flatnonzero(rest >= 0)
        at, row = rest.take(way), np.tile(np.arange(n), t).take(way)
        while len(way):
            right = cells.take(column.take(at) + row) > self.threshold.take(at)
            at = children.take(2 * at + right)
            rest[way] = at
            on = np.flatnonzero(at >= 0)
            at, row, way = at.take(on), row.take(on), way.take(on)
        leaves: Integers = (-1 - rest).reshape(t, n)
        return leaves

    @cached_property
    def _children(self) -> Integers:
        """Children of each split side by side: those of the split at ``k`` at ``2 k`` and ``2 k + 1``."""
        return np.column_stack([self.left, self.right]).ravel()

    def reading(self, columns: Sequence[int]) -> Trees:
        """The same trees on rows where their column ``k`` is at place ``columns[k]``."""
        places = np.asarray(columns, dtype=np.int64)
        return Trees(places[self.feature], self.threshold, self.left, self.right, self.root, self.value)

    def onto(self, directions: Reals) -> Trees:
        """Trees whose sums are those of these times a matrix.

        Parameters
        ----------
        directions
            Of shape ``(o, p)``; the new trees have ``p`` outputs.
        """
        value = self.value @ directions
        return Trees(self.feature, self.threshold, self.left, self.right, self.root, value)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes them again."""
        return {
            "split_feature": self.feature.astype(np.int32),
            "split_threshold": self.threshold,
            "split_left": self.left.astype(np.int32),
            "split_right": self.right.astype(np.int32),
            "root": self.root.astype(np.int32),
            "leaf_value": self.value,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]], features: int) -> Trees:
        """Make them from their arrays, and check that they are trees on so many features.

        Raises
        ------
        InputError
            If an array is missing or damaged, or nodes do not make up trees.
        """
        value = kept_reals(state, "leaf_value", 2)
        threshold = kept_reals(state, "split_threshold", 1)
        if (np.abs(threshold) > np.finfo(np.float32).max).any():
            raise InputError(
                "model: split_threshold: expected numbers of single precision, found larger ones"
            )
        splits, leaves = len(threshold), len(value)
        feature = kept_integers(state, "split_feature", 1, (0, features))
        left, right, root = (
            kept_integers(state, name, 1, (-leaves, splits)) for name in ("split_left", "split_right", "root")
        )
        if not len(feature) == len(left) == len(right) == splits:
            raise InputError(
                f"model: expected as many split_feature, split_left and split_right as split_threshold, "
                f"{splits}, found {len(feature)}, {len(left)} and {len(right)}"
            )
        _check_trees(left, right, root, leaves)
        return cls(feature, threshold.astype(np.float32), left, right, root, value)


def _check_trees(left: Integers, right: Integers, root: Integers, leaves: int) -> None:
    """Every node has one parent or is a root, and no split is below itself."""
    own = np.arange(len(left))
    for name, children in (("split_left", left), ("split_right", right)):
        above = (children >= 0) & (children <= own)
        if above.any():
            split = int(np.argmax(above))
            raise InputError(
                f"model: {name}: expected children after their parents, found {children[split]} at {split}"
            )
    if len(root) == 0:
        raise InputError("model: root: expected at least one tree, found none")
    parents = np.bincount(np.concatenate([left, right, root]) + leaves, minlength=leaves + len(left))
    if (parents != 1).any():
        node = int(np.argmax(parents != 1)) - leaves
        raise InputError(
            f"model: expected one parent, or to be a root, of every node, found {parents[node + leaves]} of "
            f"node {node}"
        )


def constant(value: Reals) -> Trees:
    """A tree of one leaf, of shape ``(o,)``."""
    none = np.empty(0, dtype=np.int64)
    root = np.array([-1], dtype=np.int64)
    return Trees(none, np.empty(0, dtype=np.float32), none, none, root, value[None, :])


def joined(parts: Sequence[Trees]) -> Trees:
    """The trees of all parts, whose sum is the sum of the parts' sums; at least one part."""
    splits = np.cumsum([0, *(len(part.feature) for part in parts)])[:-1]
    leaves = np.cumsum([0, *(len(part.value) for part in parts)])[:-1]

    def moved(name: str) -> Integers:
        nodes = [getattr(part, name) for part in parts]
        return np.concatenate(
            [
                np.where(own < 0, own - leaf, own + split)
                for own, leaf, split in zip(nodes, leaves, splits, strict=True)
            ]
        )

    return Trees(
        np.concatenate([part.feature for part in parts]),
        np.concatenate([part.threshold for part in parts]),
        moved("left"),
        moved("right"),
        moved("root"),
        np.concatenate([part.value for part in parts]),
    )

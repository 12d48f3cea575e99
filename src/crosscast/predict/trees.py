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

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_integers, kept_reals

_AT_ONCE = 1 << 15
"""Pairs of a row and a tree that are followed at the same time: what a processor's cache holds."""

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Trees:
    """``t`` trees with ``s`` splits, ``l`` leaves and ``o`` outputs, all together.

    A node is named by a number: a split by its place, a leaf at place ``k`` by ``-1 - k``.
    """

    feature: Integers  # Column that each split looks at, of shape `(s,)`
    threshold: Singles  # Rows whose feature, in single precision, is at most this go left, of shape `(s,)`
    # Children of each split, of shape `(s,)`; splits among them have higher places than itself
    left: Integers
    right: Integers
    root: Integers  # Root of each tree, of shape `(t,)`
    value: Reals  # What each leaf adds, of shape `(l, o)`

    def sum(self, rows: Reals) -> Reals:
        """Sum of all trees. Of shape ``(n, o)``. A row's sum does not depend on the other rows."""
        singles = rows.astype(np.float32)
        total = np.empty((len(rows), self.value.shape[1]))
        step = max(1, _AT_ONCE // len(self.root))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            total[part] = self._sum_of(singles[part])
        return total

    def each(self, rows: Reals) -> Reals:
        """Value of each tree, of shape ``(t, n, o)``."""
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
        """Trees whose sums are those of these times a matrix."""
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
        """Make them from their arrays, and check that they are trees on so many features."""
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


@dataclass(frozen=True)
class _Nodes:
    """Nodes of one tree, the root first, parents before children."""

    leaf: Flags
    feature: Integers
    threshold: Reals
    left: Integers
    right: Integers
    value: Reals


def trees_of_forest(forest: Any) -> Trees:
    """Trees of a fitted forest of regression trees, whose sum is what the forest predicts."""
    share = 1.0 / len(forest.estimators_)
    return _table([_nodes_of_tree(each.tree_, share) for each in forest.estimators_])


def trees_of_boosting(model: Any) -> Trees:
    """Trees of a fitted ``HistGradientBoostingRegressor``, whose sum is what it predicts.

    On features in single precision; without features that are categories.
    """
    grown = [each for (each,) in model._predictors]
    start = constant(np.full(1, float(np.ravel(model._baseline_prediction)[0])))
    return joined([start, _table([_nodes_of_histograms(each.nodes) for each in grown])])


def trees_of_gradient_boosting(model: Any) -> Trees:
    """Trees of a fitted ``GradientBoostingRegressor`` of least squares, whose sum is what it predicts."""
    start = constant(np.full(1, float(np.ravel(model.init_.constant_)[0])))
    grown = [_nodes_of_tree(each.tree_, model.learning_rate) for (each,) in model.estimators_]
    return joined([start, _table(grown)])


def trees_of_tree(model: Any) -> Trees:
    """The tree of a fitted ``DecisionTreeRegressor``, whose value is what it predicts."""
    return _table([_nodes_of_tree(model.tree_, 1.0)])


def _nodes_of_tree(tree: Any, share: float) -> _Nodes:
    return _Nodes(
        tree.children_left < 0,
        tree.feature,
        tree.threshold,
        tree.children_left,
        tree.children_right,
        tree.value[:, :, 0] * share,
    )


def _nodes_of_histograms(nodes: Any) -> _Nodes:
    return _Nodes(
        nodes["is_leaf"].astype(bool),
        nodes["feature_idx"],
        nodes["num_threshold"],
        nodes["left"].astype(np.int64),
        nodes["right"].astype(np.int64),
        nodes["value"][:, None],
    )


def _table(trees: Sequence[_Nodes]) -> Trees:
    return joined([_one(nodes) for nodes in trees])


def _one(nodes: _Nodes) -> Trees:
    """Number splits and leaves apart, each in the order of the nodes."""
    name = np.where(
        nodes.leaf, -np.cumsum(nodes.leaf, dtype=np.int64), np.cumsum(~nodes.leaf, dtype=np.int64) - 1
    )
    split = ~nodes.leaf
    return Trees(
        nodes.feature[split].astype(np.int64),
        _at_most(nodes.threshold[split]),
        name[nodes.left[split]],
        name[nodes.right[split]],
        name[:1],
        nodes.value[nodes.leaf],
    )


def _at_most(threshold: Reals) -> Singles:
    """Largest numbers of single precision that are not above the thresholds, which decide the same."""
    rounded = threshold.astype(np.float32)
    below = np.nextafter(rounded, np.float32(-np.inf))
    return np.where(rounded > threshold, below, rounded)

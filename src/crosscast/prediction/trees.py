"""Regression trees as arrays, stored as data and evaluated with NumPy alone; and those of ranger.

A prediction is the sum, over the trees, of the values of the row's leaves. The mean of a forest is the sum of
trees whose values are divided by their number; a constant is a tree of one leaf. So sums, multiples and
projections of forests are forests again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError, importing
from crosscast.prediction.serialization import Array, Stored

if TYPE_CHECKING:
    from xgboost import Booster


_AT_ONCE = 1 << 15
"""Pairs of a row and a tree that are evaluated at once, to fit a processor's cache."""

_LARGEST = float(np.finfo(np.float32).max)

Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Trees(Stored):
    """``t`` trees with ``s`` splits, ``l`` leaves and ``o`` outputs in total.

    A node has a number: a split its index, the leaf of index ``k`` the number ``-1 - k``.
    """

    split_feature: Annotated[Integers, Array("s", low=0)]  # Column of each split
    # Rows whose feature, in single precision, is at most this go left; in single precision, too
    split_threshold: Annotated[Reals, Array("s", low=-_LARGEST, high=_LARGEST)]
    # Children of each split; splits among them have higher indices
    split_left: Annotated[Integers, Array("s", below="s")]
    split_right: Annotated[Integers, Array("s", below="s")]
    root: Annotated[Integers, Array("t", below="s", least=1)]  # Root of each tree
    leaf_value: Annotated[Reals, Array("l o")]  # Contribution of each leaf

    def check(self) -> None:
        """Raise InputError unless every node has one parent or is a root, and no split is below itself."""
        leaves, splits = len(self.leaf_value), len(self.split_left)
        for name in ("split_left", "split_right", "root"):
            children = getattr(self, name)
            if children.min(initial=0) < -leaves:
                expected = f"numbers of nodes, at least {-leaves}"
                raise InputError.of(field=name, expected=expected, found=int(children.min()))
            above = (children >= 0) & (children <= np.arange(len(children)))
            if name != "root" and above.any():
                split = int(np.argmax(above))
                found = f"{children[split]} at {split}"
                raise InputError.of(field=name, expected="children after their parents", found=found)
        nodes = np.concatenate([self.split_left, self.split_right, self.root]) + leaves
        parents = np.bincount(nodes, minlength=leaves + splits)
        if (parents != 1).any():
            node = int(np.argmax(parents != 1)) - leaves
            expected = "one parent, or to be a root, of every node"
            raise InputError.of(expected=expected, found=f"{parents[node + leaves]} of node {node}")

    def check_width(self, features: int, outputs: int | None = None) -> None:
        """Raise InputError for trees on more features, or with other outputs."""
        if self.split_feature.max(initial=0) >= features:
            expected, found = f"columns of {features} features", int(self.split_feature.max())
            raise InputError.of(field="split_feature", expected=expected, found=found)
        if outputs is not None and self.leaf_value.shape[1] != outputs:
            expected, width = f"outputs of number {outputs}", self.leaf_value.shape[1]
            raise InputError.of(field="leaf_value", expected=expected, found=width)

    def sum(self, rows: Reals) -> Reals:
        """Sum of all trees, of shape ``(n, o)``. A row's sum does not depend on the other rows."""
        total = np.empty((len(rows), self.leaf_value.shape[1]))
        singles = rows.astype(np.float32)
        step = max(1, _AT_ONCE // len(self.root))
        for first in range(0, len(rows), step):
            part = slice(first, first + step)
            total[part] = self.leaf_value.take(self._leaves(singles[part]), axis=0).sum(axis=0)
        return total

    def _leaves(self, rows: Singles) -> Integers:
        """Leaf of each row in each tree, of shape ``(t, n)``."""
        n, t = len(rows), len(self.root)
        cells, column, children = rows.T.ravel(), self.split_feature * n, self._children
        thresholds = self._thresholds
        nodes = np.repeat(self.root, n)
        # Pairs of a tree and a row that have not reached a leaf: indices, current nodes, and rows.
        active = np.flatnonzero(nodes >= 0)
        node, row = nodes.take(active), np.tile(np.arange(n), t).take(active)
        while len(active):
            right = cells.take(column.take(node) + row) > thresholds.take(node)
            node = children.take(2 * node + right)
            nodes[active] = node
            inner = np.flatnonzero(node >= 0)
            node, row, active = node.take(inner), row.take(inner), active.take(inner)
        return (-1 - nodes).reshape(t, n)

    @cached_property
    def _children(self) -> Integers:
        """Children of each split side by side: those of the split at ``k`` at ``2 k`` and ``2 k + 1``."""
        return np.column_stack([self.split_left, self.split_right]).ravel()

    @cached_property
    def _thresholds(self) -> Singles:
        return self.split_threshold.astype(np.float32)

    def with_columns(self, columns: Sequence[int]) -> Trees:
        """The trees for rows in which their column ``k`` is column ``columns[k]``."""
        return replace(self, split_feature=np.asarray(columns, dtype=np.int64)[self.split_feature])

    def project(self, directions: Reals) -> Trees:
        """Trees whose sums are multiplied by a matrix."""
        return replace(self, leaf_value=self.leaf_value @ directions)


def constant(value: Reals) -> Trees:
    """A tree of one leaf, of shape ``(o,)``."""
    none = np.empty(0, dtype=np.int64)
    root = np.array([-1], dtype=np.int64)
    return Trees(none, np.empty(0), none, none, root, value[None, :])


def joined(parts: Sequence[Trees]) -> Trees:
    """Concatenate trees of one or more parts, so that their sum is that of the parts."""
    splits = np.cumsum([0, *(len(part.split_feature) for part in parts)])[:-1]
    leaves = np.cumsum([0, *(len(part.leaf_value) for part in parts)])[:-1]

    def renumbered(name: str) -> Integers:
        nodes = zip((getattr(part, name) for part in parts), leaves, splits, strict=True)
        return np.concatenate([np.where(part < 0, part - leaf, part + split) for part, leaf, split in nodes])

    return Trees(
        np.concatenate([part.split_feature for part in parts]),
        np.concatenate([part.split_threshold for part in parts]),
        renumbered("split_left"),
        renumbered("split_right"),
        renumbered("root"),
        np.concatenate([part.leaf_value for part in parts]),
    )


def trees_of_forest(forest: Any) -> Trees:
    """Trees of a fitted forest of regression trees, whose sum is its prediction."""
    share = 1.0 / len(forest.estimators_)
    return joined([_of_tree(each.tree_, share) for each in forest.estimators_])


def trees_of_gradient_boosting(model: Any) -> Trees:
    """Trees of a fitted ``GradientBoostingRegressor`` of least squares, whose sum is its prediction."""
    start = constant(np.full(1, float(np.ravel(model.init_.constant_)[0])))
    return joined([start, *(_of_tree(each.tree_, model.learning_rate) for (each,) in model.estimators_)])


def trees_of_tree(model: Any) -> Trees:
    """The tree of a fitted ``DecisionTreeRegressor``, whose value is its prediction."""
    return _of_tree(model.tree_, 1.0)


def _of_tree(tree: Any, share: float) -> Trees:
    left, right = tree.children_left, tree.children_right
    return exported(left < 0, tree.feature, tree.threshold, left, right, tree.value[:, :, 0] * share)


def exported(
    leaf: Flags, feature: Integers, threshold: Reals, left: Integers, right: Integers, value: Reals
) -> Trees:
    """One tree from its nodes, the root first; splits and leaves are numbered separately, in order."""
    name = np.where(leaf, -np.cumsum(leaf, dtype=np.int64), np.cumsum(~leaf, dtype=np.int64) - 1)
    split = ~leaf
    # Largest single-precision numbers that are not above the thresholds: rows compare equally.
    rounded = threshold[split].astype(np.float32)
    below = np.nextafter(rounded, np.float32(-np.inf))
    return Trees(
        feature[split].astype(np.int64),
        np.where(rounded > threshold[split], below, rounded).astype(np.float64),
        name[left[split]],
        name[right[split]],
        name[:1],
        value[leaf],
    )


def trees_of_booster(booster: Booster, outputs: int) -> Trees:
    """Trees of a fitted ``Booster`` of XGBoost without categories, with separate trees for each output.

    Their sum on the columns of `both_sides` is the booster's prediction, except for its rounding to single
    precision. A row goes left where its feature is less than the number of the split.
    """
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    parameters, model = learner["learner_model_param"], learner["gradient_booster"]["model"]
    start = np.atleast_1d(np.array(json.loads(parameters["base_score"]), dtype=np.float64))
    grown = []
    for tree, output in zip(model["trees"], model["tree_info"], strict=True):
        left = np.array(tree["left_children"], dtype=np.int64)
        feature = np.array(tree["split_indices"], dtype=np.int64)
        number = np.array(tree["split_conditions"], dtype=np.float32)
        missing_left = np.array(tree["default_left"], dtype=np.bool_)
        value = np.zeros((len(left), outputs))
        value[:, int(output)] = number
        grown.append(
            exported(
                left < 0,
                np.where(missing_left, feature, feature + int(parameters["num_feature"])),
                np.nextafter(number, np.float32(-np.inf)).astype(np.float64),
                left,
                np.array(tree["right_children"], dtype=np.int64),
                value,
            )
        )
    return joined([constant(np.broadcast_to(start, (outputs,)).copy()), *grown])


def within_singles(rows: Reals) -> Reals:
    """Features clipped to the range of single precision, for trees without missing values."""
    return np.clip(rows, -_LARGEST, _LARGEST)


def both_sides(rows: Reals) -> Reals:
    """Features ``(r, k)`` twice: missing values are below, for splits that send them left; and above."""
    missing, known = np.isnan(rows), within_singles(rows)
    return np.hstack([np.where(missing, -_LARGEST, known), np.where(missing, _LARGEST, known)])


_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Rows:
    """Rows of ``n`` responses, in ``c`` cells of ``p`` features."""

    features: Reals  # `(c, p)` Features of each cell; finite
    cell: Integers  # `(n,)` Number of each row's cell
    response: Reals  # `(n,)` What is to be predicted

    def means(self) -> Reals:
        """Mean response of each cell, of shape ``(c,)``; NaN where a cell has no row."""
        return _means(self.cell, self.response, len(self.features), np.nan)

    def take(self, rows: Integers | Flags) -> Rows:
        """The rows of these indices, or of a mask; the cells stay."""
        return Rows(self.features, self.cell[rows], self.response[rows])


def _means(groups: Integers, values: Reals, count: int, without: float) -> Reals:
    """Mean of each group's values, of shape ``(count,)``; `without` for a group without any."""
    counts = np.bincount(groups, minlength=count)
    sums = np.bincount(groups, values, minlength=count)
    means: Reals = np.divide(sums, counts, out=np.full(count, without), where=counts > 0)
    return means


@dataclass(frozen=True)
class Tree:
    """A tree that was grown to the end; all arrays have an entry for each node, the root first."""

    feature: Integers  # A node's rows whose feature is at most the threshold go left; -2 in leaves
    threshold: Reals
    left: Integers  # Children; -1 in leaves
    right: Integers
    value: Reals  # Mean response of the rows drawn
    rows: Reals  # Number of the rows drawn
    in_vain: Flags  # Whether ranger would not have split the node, as it tried in vain
    depth: Integers  # Splits between the root and the node

    def ends(self, node_sizes: Sequence[int]) -> Integers:
        """Leaf of a row that passes each node, if nodes are cut by size.

        Of shape ``(nodes, m)``, for each node and size; -1 where the row goes on below the node.
        """
        cut = self.in_vain[:, None] | (self.rows[:, None] <= np.asarray(node_sizes)[None, :])
        numbers = np.arange(len(self.left), dtype=np.int64)[:, None]
        ends = np.where(cut, numbers, -1)
        for parents in _levels(self.left, self.depth):
            for children in (self.left[parents], self.right[parents]):
                above = ends[parents]
                ends[children] = np.where(above >= 0, above, ends[children])
        return ends

    def cut(self, node_size: int) -> Tree:
        """The tree without the nodes below those that are not split, because of their size or in vain."""
        ends = self.ends([node_size])[:, 0]
        nodes = np.flatnonzero((ends < 0) | (ends == np.arange(len(ends))))
        new_index = np.full(len(ends), -1)
        new_index[nodes] = np.arange(len(nodes))
        arrays, leaf = {name: each[nodes] for name, each in vars(self).items()}, ends[nodes] >= 0
        for name in ("left", "right"):
            arrays[name] = np.where(leaf, -1, new_index[arrays[name]])
        return Tree(**arrays | {"feature": np.where(leaf, -2, arrays["feature"])})


def _levels(left: Integers, depth: Integers) -> Iterator[Integers]:
    """Nodes with children of each level, from the root on."""
    inner = np.flatnonzero(left >= 0)
    inner = inner[np.argsort(depth[inner], kind="stable")]
    starts = np.flatnonzero(np.diff(depth[inner], prepend=-1))
    yield from np.split(inner, starts[1:])


@dataclass(frozen=True)
class Drawn:
    """A tree, and its bootstrap sample."""

    tree: Tree
    times: Integers  # How often each row was drawn, of shape `(n,)`; those with 0 are out of the bag
    leaf: Integers  # Leaf of each cell, of shape `(c,)`

    def predictions(self, node_sizes: Sequence[int]) -> Reals:
        """Prediction for each cell, if nodes are cut at each of ``m`` sizes, of shape ``(m, c)``."""
        return self.tree.value[self.tree.ends(node_sizes)[self.leaf]].T


def draw_trees(rows: Rows, trees: int, *, tried: int, seed: int) -> Iterator[Drawn]:
    """Draw rows with replacement, as many as there are, and grow a tree on them; again and again.

    The first trees of a longer forest are those of a shorter one. Runs of one kernel on one device have the
    same features, and many of them are drawn. A split depends on the rows of a node only through how many
    they are and what their mean is at each point of the features, so a tree on cells that are weighted by the
    rows drawn of them is the tree on the rows, in a fortieth of the time.

    The trees are those of R's ranger (Wright and Ziegler 2017, doi:10.18637/jss.v077.i01), grown by
    scikit-learn. Two differences between the two are compensated for here:

    - ranger does not split a node of at most `node_size` rows, drawn twice counting twice. scikit-learn
      counts samples, so trees are grown to the end and cut.
    - ranger leaves a node whole where none of the features that it tries there varies within it. scikit-learn
      tries on until it finds one that does. Where ``k`` of ``p`` features vary, ``m`` tries find none with
      probability C(p - k, m) / C(p, m); with that probability a node is cut. Where one feature is left that
      varies, as where a node holds one kernel on several devices, that is exact; elsewhere scikit-learn does
      not report the features that it tried in vain, and the event is drawn independently of the choice of the
      split.
    """
    with importing("train", "fitting a model"):
        from sklearn.tree import DecisionTreeRegressor

    if min(trees, tried) < 1:
        raise InputError.of(
            field="forest", expected="at least one tree and one feature", found=f"{trees} and {tried}"
        )
    features, n = rows.features.astype(np.float32), len(rows.response)
    cells, p = features.shape
    tried = min(tried, p)
    # Probability that none of the features tried varies, by how many of all vary; 1 where none does.
    probability_in_vain = np.array([comb(p - k, tried) / comb(p, tried) for k in range(p + 1)])
    for number in range(trees):
        rng = np.random.default_rng([seed, number])
        times = np.bincount(rng.integers(0, n, n), minlength=n)
        grown = DecisionTreeRegressor(max_features=tried, random_state=int(rng.integers(_LARGEST_SEED)))
        weight = np.bincount(rows.cell, times, minlength=cells)
        total = np.bincount(rows.cell, times * rows.response, minlength=cells)
        drawn = np.flatnonzero(weight)
        weight, total = weight[drawn], total[drawn]
        grown.fit(features[drawn], total / weight, sample_weight=weight, check_input=False)
        nodes, leaf = grown.tree_, grown.tree_.apply(features)
        value, size = nodes.value[:, 0, 0].copy(), nodes.weighted_n_node_samples.copy()
        names = (nodes.feature, nodes.children_left, nodes.children_right, nodes.compute_node_depths())
        feature, left, right, depth = (each.astype(np.int64) for each in names)
        vary = _varying(features[drawn], leaf[drawn], left, right, depth)
        in_vain = rng.random(len(left)) < probability_in_vain[vary]
        tree = Tree(feature, nodes.threshold.copy(), left, right, value, size, in_vain, depth)
        yield Drawn(tree, times, leaf)


def _varying(features: Singles, leaf: Integers, left: Integers, right: Integers, depth: Integers) -> Integers:
    """Number of features that vary within each node."""
    order = np.argsort(leaf, kind="stable")
    leaves, starts = np.unique(leaf[order], return_index=True)
    low = np.empty((len(left), features.shape[1]), dtype=np.float32)
    high = np.empty_like(low)
    low[leaves] = np.minimum.reduceat(features[order], starts, axis=0)
    high[leaves] = np.maximum.reduceat(features[order], starts, axis=0)
    for parents in reversed(list(_levels(left, depth))):
        low[parents] = np.minimum(low[left[parents]], low[right[parents]])
        high[parents] = np.maximum(high[left[parents]], high[right[parents]])
    counts: Integers = np.count_nonzero(low < high, axis=1)
    return counts


def device_codes(device: Integers, response: Reals, devices: int) -> Reals:
    """Rank of each device by mean response; those without a row come last."""
    codes = np.empty(devices)
    codes[np.argsort(_means(device, response, devices, np.inf), kind="stable")] = np.arange(devices)
    return codes

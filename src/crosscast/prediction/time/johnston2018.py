"""Regression trees on rows, grown on the cells that share their features.

Runs of one kernel on one device have the same features, and many of them are drawn. A split depends on the
rows of a node only through how many they are and what their mean is at each point of the features, so a tree
on cells that are weighted by the rows drawn of them is the tree on the rows, in a fortieth of the time.

The trees are those of R's ranger (Wright and Ziegler 2017, doi:10.18637/jss.v077.i01), grown by scikit-learn.
Two differences between the two are compensated for here:

- ranger does not split a node of at most `node_size` rows, drawn twice counting twice. scikit-learn counts
  samples, so trees are grown to the end and cut.
- ranger leaves a node whole where none of the features that it tries there varies within it. scikit-learn
  tries on until it finds one that does. Where ``k`` of ``p`` features vary, ``m`` tries find none with
  probability C(p - k, m) / C(p, m); with that probability a node is cut. Where one feature is left that
  varies, as where a node holds one kernel on several devices, that is exact; elsewhere scikit-learn does not
  report the features that it tried in vain, and the event is drawn independently of the choice of the split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Annotated

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError, importing
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.time.data import Grid, ProfileBatch
from crosscast.prediction.trees import Trees, exported, joined
from crosscast.profile import METRICS

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

    The first trees of a longer forest are those of a shorter one.
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


def _varying(
    features: npt.NDArray[np.float32], leaf: Integers, left: Integers, right: Integers, depth: Integers
) -> Integers:
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


@dataclass(frozen=True)
class PublishedForest:
    """A random forest on all metrics and the device, with a row for each cell.

    The paper has a row for each run, as `crosscast.studies.johnston2018` does. As in the
    published scripts, an undefined metric is 0, and the device is one feature: its rank in the
    order of the devices' mean log times (ranger's ``respect.unordered.factors = "order"``).
    """

    trees: int = 505  # Number of trees (`num.trees`)
    tried: int = 30  # Features that are tried at each node (`mtry`); all where there are fewer
    node_size: int = 9  # Most rows of a node that is not split (`min.node.size`)
    name: str = "published-forest"

    def fit(self, grid: Grid, seed: int) -> FittedForest:
        """Fit the forest to a grid that may have cells without a time."""
        kernel, device = np.nonzero(~np.isnan(grid.log_time))
        if len(kernel) == 0:
            raise InputError("published-forest: expected a cell with a time to fit to, found none")
        log_time = grid.log_time[kernel, device]
        defined = np.flatnonzero(np.isfinite(grid.profiles.metrics).any(axis=0)).tolist()
        metrics = tuple(METRICS[column].name for column in defined)
        codes = device_codes(device, log_time, len(grid.devices))
        features = np.column_stack([_matrix(grid.profiles, metrics)[kernel], codes[device]])
        rows = Rows(features, np.arange(len(kernel)), log_time)
        drawn = draw_trees(rows, self.trees, tried=self.tried, seed=seed)
        exports = []
        for tree in (each.tree.cut(self.node_size) for each in drawn):
            value = tree.value[:, None] * (1.0 / self.trees)
            exports.append(
                exported(tree.left < 0, tree.feature, tree.threshold, tree.left, tree.right, value)
            )
        return FittedForest(metrics, codes, joined(exports))


@dataclass(frozen=True, eq=False)
class FittedForest(Stored, kind="forest"):
    """A fitted forest; see `PublishedForest`."""

    metrics: Annotated[tuple[str, ...], Array("m", among=tuple(each.name for each in METRICS))]  # Features
    device_codes: Annotated[Reals, Array("d")]  # Feature of each device
    trees: Annotated[Trees, Nested(flat=True)]  # On the metrics and the device

    def check(self) -> None:
        """Raise InputError unless the trees are on these metrics."""
        self.trees.check_width(len(self.metrics) + 1, outputs=1)

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        n, d = len(profiles), len(self.device_codes)
        metrics = np.repeat(_matrix(profiles, self.metrics), d, axis=0)
        rows = np.column_stack([metrics, np.tile(self.device_codes, n)])
        return self.trees.sum(rows).reshape(n, d)


def device_codes(device: Integers, response: Reals, devices: int) -> Reals:
    """Rank of each device by mean response; those without a row come last."""
    codes = np.empty(devices)
    codes[np.argsort(_means(device, response, devices, np.inf), kind="stable")] = np.arange(devices)
    return codes


def _matrix(profiles: ProfileBatch, metrics: Sequence[str]) -> Reals:
    """Metrics of ``n`` profiles, 0 where not defined, of shape ``(n, number of metrics)``."""
    values = np.column_stack([np.empty((len(profiles), 0)), *map(profiles.metric, metrics)])
    return np.where(np.isfinite(values), values, 0.0)

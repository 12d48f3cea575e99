"""Regression trees on rows, grown on the cells that share their features.

Runs of one kernel on one device have the same features, and many of them are drawn. A split depends on the
rows of a node only through how many they are and what their mean is at each point of the features, so a tree
on cells that are weighted by the rows drawn of them is the tree on the rows, in a fortieth of the time.

The trees are those of R's ranger (Wright and Ziegler 2017, doi:10.18637/jss.v077.i01), grown by scikit-learn.
Two things differ between the two and are made up for here:

- ranger does not split a node of at most `node_size` rows, drawn twice counting twice. scikit-learn counts
  samples, so trees are grown to the end and cut.
- ranger leaves a node whole where none of the features that it tries there varies within it. scikit-learn
  tries on until it finds one that does. Where ``k`` of ``p`` features vary, ``m`` tries find none with
  probability C(p - k, m) / C(p, m); with that probability a node is cut. Where one feature is left that
  varies, as where a node holds one kernel on several devices, that is exact; elsewhere the features that
  scikit-learn tried in vain are not told, and the event is drawn apart from the choice of the split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError, MissingExtraError

__all__ = ["Drawn", "Rows", "Tree", "draw_trees"]

_NODE = np.int64
_LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Rows:
    """Rows of ``n`` responses, in ``c`` cells of ``p`` features.

    Parameters
    ----------
    features
        Features of each cell, of shape ``(c, p)``; finite.
    cell
        Number of each row's cell, of shape ``(n,)``.
    response
        What is to be predicted, of shape ``(n,)``.
    """

    features: Reals
    cell: Integers
    response: Reals

    def __post_init__(self) -> None:
        """Check shapes and values."""
        if len(self.cell) != len(self.response) or len(self.cell) == 0:
            raise InputError(
                f"rows: expected as many cells as responses, at least one, found {len(self.cell)} and "
                f"{len(self.response)}"
            )
        if not (np.isfinite(self.features).all() and np.isfinite(self.response).all()):
            raise InputError("rows: expected finite features and responses, found others")

    def means(self) -> Reals:
        """Mean response of each cell, of shape ``(c,)``; not a number where a cell has no row."""
        counts = np.bincount(self.cell, minlength=len(self.features))
        sums = np.bincount(self.cell, self.response, minlength=len(self.features))
        means: Reals = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
        return means

    def take(self, rows: Integers | Flags) -> Rows:
        """Some of the rows; the cells stay."""
        return Rows(self.features, self.cell[rows], self.response[rows])


@dataclass(frozen=True)
class Tree:
    """A tree that was grown to the end; all arrays have an entry for each node, the root first.

    Parameters
    ----------
    feature, threshold
        A node's rows whose feature is at most the threshold go left; feature -2 in leaves.
    left, right
        Children; -1 in leaves.
    value
        Mean response of the rows drawn.
    rows
        Number of the rows drawn.
    whole
        Whether ranger would not have split the node, as it tried in vain.
    depth
        Splits between the root and the node.
    """

    feature: npt.NDArray[np.int64]
    threshold: Reals
    left: Integers
    right: Integers
    value: Reals
    rows: Reals
    whole: Flags
    depth: Integers

    def ends(self, node_sizes: Sequence[int]) -> Integers:
        """Where a row that reaches a node in the end comes to rest, if nodes are cut by size.

        Parameters
        ----------
        node_sizes
            ``m`` sizes at or below which a node is not split.

        Returns
        -------
        array
            Node at which a row rests, for each node and size, of shape ``(nodes, m)``; -1 where it goes on.
        """
        cut = self.whole[:, None] | (self.rows[:, None] <= np.asarray(node_sizes)[None, :])
        own = np.arange(len(self.left), dtype=_NODE)[:, None]
        ends = np.where(cut, own, -1)
        for parents in _levels(self.left, self.depth):
            for children in (self.left[parents], self.right[parents]):
                above = ends[parents]
                ends[children] = np.where(above >= 0, above, ends[children])
        return ends

    def cut(self, node_size: int) -> Tree:
        """The tree without what lies below nodes that are not split, because of their size or in vain."""
        ends = self.ends([node_size])[:, 0]
        own = np.arange(len(ends))
        kept = np.flatnonzero((ends < 0) | (ends == own))
        number = np.full(len(ends), -1)
        number[kept] = np.arange(len(kept))
        leaf = ends[kept] >= 0
        return Tree(
            np.where(leaf, -2, self.feature[kept]),
            self.threshold[kept],
            np.where(leaf, -1, number[self.left[kept]]),
            np.where(leaf, -1, number[self.right[kept]]),
            self.value[kept],
            self.rows[kept],
            self.whole[kept],
            self.depth[kept],
        )


def _levels(left: Integers, depth: Integers) -> Iterator[Integers]:
    """Nodes with children of each level, from the root on."""
    inner = np.flatnonzero(left >= 0)
    inner = inner[np.argsort(depth[inner], kind="stable")]
    starts = np.flatnonzero(np.diff(depth[inner], prepend=-1))
    yield from np.split(inner, starts[1:])


@dataclass(frozen=True)
class Drawn:
    """A tree, and what it was grown on.

    Parameters
    ----------
    tree
        The tree.
    times
        How often each row was drawn, of shape ``(n,)``; those with 0 are out of the bag.
    leaf
        Leaf of each cell, of shape ``(c,)``.
    """

    tree: Tree
    times: Integers
    leaf: Integers

    def predictions(self, node_sizes: Sequence[int]) -> Reals:
        """Prediction for each cell, if nodes are cut at each of ``m`` sizes, of shape ``(m, c)``."""
        predictions: Reals = self.tree.value[self.tree.ends(node_sizes)[self.leaf]].T
        return predictions


def draw_trees(rows: Rows, trees: int, *, tried: int, seed: int) -> Iterator[Drawn]:
    """Draw rows with replacement, as many as there are, and grow a tree on them; again and again.

    The first trees of a longer forest are those of a shorter one.

    Parameters
    ----------
    rows
        The rows.
    trees
        How many trees.
    tried
        Features that are tried at each node; all if there are fewer.
    seed
        Start of all random numbers.

    Raises
    ------
    InputError
        If a number is below 1.
    MissingExtraError
        If scikit-learn is not installed.
    """
    if min(trees, tried) < 1:
        raise InputError(f"forest: expected at least one tree and one feature, found {trees} and {tried}")
    regressor = _regressor()
    features = rows.features.astype(np.float32)
    tried = min(tried, features.shape[1])
    n = len(rows.response)
    for number in range(trees):
        rng = np.random.default_rng([seed, number])
        times = np.bincount(rng.integers(0, n, n), minlength=n)
        yield _grown(regressor, rows, features, times, tried, rng)


def _regressor() -> Any:
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ImportError as error:
        raise MissingExtraError("train", "fitting a model") from error
    return DecisionTreeRegressor


def _grown(
    regressor: Any,
    rows: Rows,
    features: npt.NDArray[np.float32],
    times: Integers,
    tried: int,
    rng: np.random.Generator,
) -> Drawn:
    weight = np.bincount(rows.cell, times, minlength=len(features))
    total = np.bincount(rows.cell, times * rows.response, minlength=len(features))
    there = np.flatnonzero(weight)
    grown = regressor(max_features=tried, random_state=int(rng.integers(_LARGEST_SEED)))
    grown.fit(features[there], total[there] / weight[there], sample_weight=weight[there], check_input=False)
    nodes = grown.tree_
    leaf = nodes.apply(features)
    left = nodes.children_left.astype(_NODE)
    right = nodes.children_right.astype(_NODE)
    depth = nodes.compute_node_depths().astype(np.int64)
    vary = _varying(features[there], leaf[there], left, right, depth)
    whole = rng.random(len(left)) < _in_vain(features.shape[1], tried)[vary]
    tree = Tree(
        nodes.feature.astype(np.int64),
        nodes.threshold.copy(),
        left,
        right,
        nodes.value[:, 0, 0].copy(),
        nodes.weighted_n_node_samples.copy(),
        whole,
        depth,
    )
    return Drawn(tree, times, leaf)


def _varying(
    features: npt.NDArray[np.float32], leaf: Integers, left: Integers, right: Integers, depth: Integers
) -> Integers:
    """How many features vary within each node."""
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


def _in_vain(features: int, tried: int) -> Reals:
    """Probability that none of the features tried varies, by how many of all vary; 1 where none does."""
    ways = comb(features, tried)
    return np.array([comb(features - k, tried) / ways for k in range(features + 1)])

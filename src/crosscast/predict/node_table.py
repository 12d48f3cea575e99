"""A forest as a table of nodes: what predicting needs, and nothing else than numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosscast.predict.cell_trees import Tree
from crosscast.predict.grid import Integers, Reals

__all__ = ["NodeTable", "node_table"]

_MOST_AT_ONCE = 1 << 20
"""Pairs of a row and a tree that are followed at the same time, which bounds the memory."""


@dataclass(frozen=True)
class NodeTable:
    """Nodes of ``t`` trees, one tree after the other; a prediction is the mean over the trees.

    Parameters
    ----------
    feature
        Feature that a node looks at.
    threshold
        Rows whose feature is at most this go left.
    left, right
        Rows of the table with a node's children; a leaf is its own.
    value
        What a leaf predicts.
    root
        Row of each tree's root, of shape ``(t,)``.
    depth
        Splits between a root and the deepest leaf, at most.
    """

    feature: npt.NDArray[np.int32]
    threshold: Reals
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: Reals
    root: npt.NDArray[np.int32]
    depth: int

    def predict(self, features: Reals) -> Reals:
        """Predictions for ``n`` rows of features, of shape ``(n,)``."""
        # Trees are grown, so also followed, with features of single precision.
        rounded = features.astype(np.float32)
        step = max(1, _MOST_AT_ONCE // len(self.root))
        parts = [self._follow(rounded[first : first + step]) for first in range(0, len(rounded), step)]
        return np.concatenate(parts) if parts else np.empty(0)

    def _follow(self, features: npt.NDArray[np.float32]) -> Reals:
        rows = np.arange(len(features))[:, None]
        at = np.broadcast_to(self.root, (len(features), len(self.root)))
        for _ in range(self.depth):
            goes_left = features[rows, self.feature[at]] <= self.threshold[at]
            at = np.where(goes_left, self.left[at], self.right[at])
        mean: Reals = self.value[at].mean(axis=1)
        return mean


def node_table(trees: Sequence[Tree], node_size: int) -> NodeTable:
    """Put trees into a table, without the nodes below those of at most `node_size` rows."""
    parts = [_kept(tree, tree.ends([node_size])[:, 0]) for tree in trees]
    sizes = np.array([len(part[0]) for part in parts])
    root = np.cumsum(sizes) - sizes
    left = np.concatenate([part[2] + first for part, first in zip(parts, root, strict=True)])
    right = np.concatenate([part[3] + first for part, first in zip(parts, root, strict=True)])
    return NodeTable(
        np.concatenate([part[0] for part in parts]).astype(np.int32),
        np.concatenate([part[1] for part in parts]),
        left.astype(np.int32),
        right.astype(np.int32),
        np.concatenate([part[4] for part in parts]),
        root.astype(np.int32),
        max(part[5] for part in parts),
    )


def _kept(tree: Tree, ends: Integers) -> tuple[Integers, Reals, Integers, Integers, Reals, int]:
    own = np.arange(len(ends))
    kept = np.flatnonzero((ends < 0) | (ends == own))
    number = np.cumsum((ends < 0) | (ends == own)) - 1
    leaf = ends[kept] >= 0
    left = np.where(leaf, number[kept], number[tree.left[kept]])
    right = np.where(leaf, number[kept], number[tree.right[kept]])
    feature = np.where(leaf, 0, tree.feature[kept])
    return feature, tree.threshold[kept], left, right, tree.value[kept], int(tree.depth[kept].max())

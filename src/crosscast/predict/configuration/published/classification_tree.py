"""The tree that tells from a kernel's sample runs which cluster it is of (Bailey et al. 2014, figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.state import kept_integers, kept_reals

__all__ = ["ClassificationTree", "TreeNode", "fit_classification_tree"]


class TreeNode(NamedTuple):
    """A node, as plain data for text and drawings.

    Parameters
    ----------
    feature
        Name of the feature that it asks for; None in a leaf.
    threshold
        Kernels whose feature is at most this go left; None in a leaf.
    left, right
        Numbers of the nodes below; None in a leaf.
    cluster
        Cluster of most of the training kernels that came here.
    counts
        How many of them are of each cluster.
    """

    feature: str | None
    threshold: float | None
    left: int | None
    right: int | None
    cluster: int
    counts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ClassificationTree:
    """A tree of ``m`` nodes, the root first, over ``f`` features and ``k`` clusters.

    Parameters
    ----------
    names
        ``(f,)`` Names of the features.
    feature
        ``(m,)`` Feature that each node asks for; -1 in leaves.
    threshold
        ``(m,)`` Kernels whose feature, in single precision, is at most this go left; 0 in leaves.
    left, right
        ``(m,)`` Nodes below, which come after it; -1 in leaves.
    counts
        ``(m, k)`` Training kernels of each cluster that came to each node.
    """

    names: tuple[str, ...]
    feature: Integers
    threshold: Reals
    left: Integers
    right: Integers
    counts: Integers

    def cluster_of(self, values: Reals) -> int:
        """Cluster of a kernel with these features, of shape ``(f,)``."""
        node = 0
        while self.feature[node] >= 0:
            # scikit-learn compares in single precision; so thresholds between equal numbers stay between.
            goes_left = np.float32(values[self.feature[node]]) <= self.threshold[node]
            node = int(self.left[node] if goes_left else self.right[node])
        return int(self.counts[node].argmax())

    @property
    def nodes(self) -> tuple[TreeNode, ...]:
        """All nodes, the root first."""
        return tuple(self._node(number) for number in range(len(self.feature)))

    @property
    def depth(self) -> int:
        """Most questions between the root and a leaf."""
        depths = np.zeros(len(self.feature), np.int64)
        for node in np.flatnonzero(self.feature >= 0):
            depths[[self.left[node], self.right[node]]] = depths[node] + 1
        return int(depths.max())

    def _node(self, number: int) -> TreeNode:
        counts = tuple(int(each) for each in self.counts[number])
        cluster = int(self.counts[number].argmax())
        if self.feature[number] < 0:
            return TreeNode(None, None, None, None, cluster, counts)
        return TreeNode(
            self.names[self.feature[number]],
            float(self.threshold[number]),
            int(self.left[number]),
            int(self.right[number]),
            cluster,
            counts,
        )

    def text(self) -> str:
        """The tree for people: a line a branch, further in the deeper it is."""
        return "\n".join(self._lines(0, 0))

    def _lines(self, number: int, depth: int) -> list[str]:
        node, indent = self._node(number), "|   " * depth
        if node.feature is None or node.left is None or node.right is None:
            kernels = f"{sum(node.counts)} training kernel{'s' if sum(node.counts) != 1 else ''}"
            return [f"{indent}cluster {node.cluster} ({kernels})"]
        return [
            f"{indent}{node.feature} <= {node.threshold:.6g}",
            *self._lines(node.left, depth + 1),
            f"{indent}{node.feature} > {node.threshold:.6g}",
            *self._lines(node.right, depth + 1),
        ]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "tree_feature": self.feature,
            "tree_threshold": self.threshold,
            "tree_left": self.left,
            "tree_right": self.right,
            "tree_counts": self.counts,
        }

    @classmethod
    def from_state(
        cls, state: Mapping[str, npt.NDArray[Any]], names: Sequence[str], clusters: int
    ) -> ClassificationTree:
        """Make it from its arrays, and check that they are a tree.

        Raises
        ------
        InputError
            If an array is missing or damaged, or the nodes do not make up a tree.
        """
        threshold = kept_reals(state, "tree_threshold", 1)
        m = len(threshold)
        feature = kept_integers(state, "tree_feature", 1, (-1, len(names)))
        left, right = (kept_integers(state, name, 1, (-1, m)) for name in ("tree_left", "tree_right"))
        counts = kept_integers(state, "tree_counts", 2, (0, np.iinfo(np.int64).max))
        if m == 0 or not len(feature) == len(left) == len(right) == m or counts.shape != (m, clusters):
            raise InputError(
                f"model: tree_counts: expected a node at least, and for each of {m} the counts of {clusters} "
                f"clusters, found shape {counts.shape}"
            )
        inner, own = feature >= 0, np.arange(m)
        below = np.sort(np.concatenate([left[inner], right[inner]]))
        rising = (left[inner] > own[inner]).all() and (right[inner] > own[inner]).all()
        if not rising or not np.array_equal(below, own[1:]):
            raise InputError("model: tree_left: expected every node but the root below one before it")
        return cls(tuple(names), feature, threshold, left, right, counts)


def fit_classification_tree(
    names: Sequence[str], features: Reals, clusters: Integers, *, depth: int, seed: int
) -> ClassificationTree:
    """Learn which features tell the clusters apart.

    Parameters
    ----------
    names
        ``(f,)`` Names of the features.
    features
        ``(n, f)`` Features of the training kernels; finite.
    clusters
        ``(n,)`` Their clusters, from 0 on without gaps.
    depth
        Most questions that it asks.
    seed
        Decides between features that tell as much.
    """
    counts = np.bincount(clusters)
    if len(counts) == 1 or not names:
        none = np.full(1, -1, np.int64)
        return ClassificationTree(tuple(names), none, np.zeros(1), none, none, counts[None].astype(np.int64))
    # Imported here: predicting needs it not.
    from sklearn.tree import DecisionTreeClassifier

    grown = DecisionTreeClassifier(max_depth=depth, random_state=seed).fit(features, clusters).tree_
    inner = grown.children_left >= 0
    shares = grown.value[:, 0, :] * grown.weighted_n_node_samples[:, None]
    return ClassificationTree(
        tuple(names),
        np.where(inner, grown.feature, -1).astype(np.int64),
        np.where(inner, grown.threshold, 0.0),
        grown.children_left.astype(np.int64),
        grown.children_right.astype(np.int64),
        np.rint(shares).astype(np.int64),
    )

"""Trees that scikit-learn has grown, as arrays. Nothing of scikit-learn is imported here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.predict.trees import Singles, Trees, constant, joined

__all__ = ["trees_of_boosting", "trees_of_forest", "trees_of_gradient_boosting", "trees_of_tree"]


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
    """Trees of a fitted forest of regression trees, whose sum is what the forest predicts.

    Parameters
    ----------
    forest
        ``RandomForestRegressor``, ``ExtraTreesRegressor`` or another with ``DecisionTreeRegressor`` as its
        ``estimators_`` and their mean as its prediction.
    """
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

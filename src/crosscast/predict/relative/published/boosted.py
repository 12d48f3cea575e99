"""Boosted trees that XGBoost has grown, as arrays. Nothing of XGBoost is imported here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.trees import Singles, Trees, constant, joined

__all__ = ["average_gain", "trees_of_booster"]


def trees_of_booster(booster: Any, outputs: int) -> Trees:
    """Trees of a fitted ``Booster`` of regression trees without categories, a tree for one output each.

    Their sum, on the columns of `low_and_high`, is what the booster predicts, up to its rounding to single
    precision.

    Parameters
    ----------
    booster
        The booster.
    outputs
        How many entries it predicts.
    """
    learner = _learner(booster)
    model = learner["gradient_booster"]["model"]
    start = _start(learner["learner_model_param"]["base_score"], outputs)
    columns = int(learner["learner_model_param"]["num_feature"])
    trees = [
        _tree(tree, int(output), outputs, columns)
        for tree, output in zip(model["trees"], model["tree_info"], strict=True)
    ]
    return joined([constant(start), *trees])


def average_gain(booster: Any, features: int) -> Reals:
    """Mean gain of the splits at each feature, over all trees; 0 where there is none (section VI-B).

    Parameters
    ----------
    booster
        The booster; its features have no names.
    features
        How many there are.
    """
    gain = np.zeros(features)
    for name, value in booster.get_score(importance_type="gain").items():
        gain[int(name.removeprefix("f"))] = max(float(value), 0.0)
    return gain


def _learner(booster: Any) -> Mapping[str, Any]:
    learner: Mapping[str, Any] = json.loads(bytes(booster.save_raw("json")))["learner"]
    return learner


def _start(text: str, outputs: int) -> Reals:
    """What the trees add to: one number for all outputs, or one for each."""
    values = np.array(np.atleast_1d(json.loads(text)), dtype=np.float64)
    return np.broadcast_to(values, (outputs,)).copy()


def _tree(tree: Mapping[str, Sequence[Any]], output: int, outputs: int, columns: int) -> Trees:
    """One tree: a node goes left where its feature is less than its number, in single precision."""
    left = np.array(tree["left_children"], dtype=np.int64)
    right = np.array(tree["right_children"], dtype=np.int64)
    feature = np.array(tree["split_indices"], dtype=np.int64)
    number: Singles = np.array(tree["split_conditions"], dtype=np.float32)
    missing_left = np.array(tree["default_left"], dtype=np.bool_)
    leaf = left < 0
    name = np.where(leaf, -np.cumsum(leaf, dtype=np.int64), np.cumsum(~leaf, dtype=np.int64) - 1)
    value = np.zeros((int(leaf.sum()), outputs))
    value[:, output] = number[leaf]
    split = ~leaf
    return Trees(
        np.where(missing_left, feature, feature + columns)[split],
        np.nextafter(number[split], np.float32(-np.inf)),
        name[left[split]],
        name[right[split]],
        name[:1],
        value,
    )

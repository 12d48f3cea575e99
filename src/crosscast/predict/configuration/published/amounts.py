"""How many clusters and how deep a tree: what predicts best when each application is left out in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.configuration.published.grouping import groupings
from crosscast.predict.configuration.published.training import Training

__all__ = ["Amounts", "Tried", "amounts_of"]


class Amounts(NamedTuple):
    """Numbers that are chosen.

    Parameters
    ----------
    clusters
        How many clusters.
    depth
        Most questions that the tree asks.
    """

    clusters: int
    depth: int


@dataclass(frozen=True)
class Tried:
    """What may be chosen from.

    Parameters
    ----------
    clusters
        Numbers of clusters, rising.
    depths
        Depths of the tree, rising.
    """

    clusters: tuple[int, ...]
    depths: tuple[int, ...]


def amounts_of(training: Training, tried: Tried, *, logarithms: bool, seed: int) -> Amounts:
    """Choose the numbers of the least error, of equals the smaller ones.

    The error is that of the whole model, clusters, tree and all, on the kernels of each application in turn
    when it is fitted to the others: the mean square of the logarithms of performance and of power, where
    applications count the same. With one application there is none to leave out: the largest of `tried` are
    taken.

    Parameters
    ----------
    training
        The training kernels.
    tried
        What to choose from.
    logarithms
        Whether the models are of logarithms.
    seed
        Start of all random numbers.
    """
    if max(tried.clusters) == 1:
        return Amounts(1, min(tried.depths))  # One cluster leaves nothing to ask.
    pairs = [Amounts(clusters, depth) for clusters in tried.clusters for depth in tried.depths]
    applications = np.unique(training.groups)
    if len(pairs) == 1 or len(applications) < 2:
        return pairs[-1]
    errors = np.mean(
        [_errors(training, group, tried, logarithms, seed) for group in applications], axis=0
    ).ravel()
    # What differs by rounding alone is equal.
    return pairs[int(np.flatnonzero(errors <= errors.min() * (1 + 1e-9) + 1e-12)[0])]


def _errors(training: Training, left_out: int, tried: Tried, logarithms: bool, seed: int) -> Reals:
    """Error on one application, of shape ``(clusters, depths)``."""
    out = training.groups == left_out
    known, asked = training.take(~out), training.take(out)
    names = [str(each) for each in range(known.features.shape[1])]
    labels = groupings(known.apart, max(tried.clusters))
    errors = np.empty((len(tried.clusters), len(tried.depths)))
    for row, clusters in enumerate(tried.clusters):
        own = labels[min(clusters, len(labels)) - 1]
        models = known.models(own, logarithms=logarithms)
        for column, depth in enumerate(tried.depths):
            tree = known.tree(names, own, depth, seed)
            found = np.array([tree.cluster_of(values) for values in asked.features], np.int64)
            errors[row, column] = _error(asked, models.relative_performance, models.power_w, found)
    return errors


def _error(asked: Training, relative: Reals, power_w: Reals, clusters: Integers) -> float:
    squares = (
        np.log(relative[clusters] / asked.relative) ** 2 + np.log(power_w[clusters] / asked.power_w) ** 2
    )
    # What the others did not run is not predicted.
    return float(np.mean(squares[np.isfinite(squares)])) if np.isfinite(squares).any() else 0.0

"""What the offline stage learns from: frontiers, features and values to be predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.predict.configuration.frontier import pareto_frontier
from crosscast.predict.configuration.published.classification_tree import (
    ClassificationTree,
    fit_classification_tree,
)
from crosscast.predict.configuration.published.cluster_models import ClusterModels, fit_cluster_models
from crosscast.predict.configuration.published.design import Design, design_of
from crosscast.predict.configuration.published.rank_correlation import dissimilarities, rank_correlations
from crosscast.predict.configuration.references import references
from crosscast.predict.configuration.sample_features import SampleFeatures
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["Training", "training_of"]


@dataclass(frozen=True, eq=False)
class Training:
    """``n`` training kernels.

    Parameters
    ----------
    design
        Variables of the ``c`` configurations.
    correlations
        ``(n, n)`` Rank correlations of their frontiers; NaN where two share fewer than two configurations.
    features
        ``(n, f)`` Features of their sample runs, in watts, as ratios and as counts.
    relative, power_w
        ``(n, c)`` Performance relative to that at the sample of the same device, and power.
    groups
        ``(n,)`` A number for each application.
    """

    design: Design
    correlations: Reals
    features: Reals
    relative: Reals
    power_w: Reals
    groups: Integers

    def take(self, rows: Flags) -> Training:
        """Some of the kernels alone."""
        return Training(
            self.design,
            self.correlations[np.ix_(rows, rows)],
            self.features[rows],
            self.relative[rows],
            self.power_w[rows],
            self.groups[rows],
        )

    @property
    def apart(self) -> Reals:
        """``(n, n)`` Dissimilarities."""
        return dissimilarities(self.correlations)

    def models(self, clusters: Integers, *, logarithms: bool) -> ClusterModels:
        """Fit the models of clusters."""
        return fit_cluster_models(self.design, self.relative, self.power_w, clusters, logarithms=logarithms)

    def tree(self, names: Sequence[str], clusters: Integers, depth: int, seed: int) -> ClassificationTree:
        """Fit the tree of clusters."""
        return fit_classification_tree(names, self.features, clusters, depth=depth, seed=seed)


def training_of(surfaces: Surfaces, samples: Sequence[int]) -> tuple[Training, SampleFeatures]:
    """What kernels tell, all of which ran at the samples."""
    features, values = SampleFeatures.of(surfaces, samples)
    frontiers = [
        pareto_frontier(time, power) for time, power in zip(surfaces.time_s, surfaces.power_w, strict=True)
    ]
    sample = np.array(samples)[references(surfaces.space, samples)]
    applications = [each.application for each in surfaces.kernels]
    groups = np.unique(applications, return_inverse=True)[1].astype(np.int64)
    training = Training(
        design_of(surfaces.space),
        rank_correlations(frontiers),
        features.readable(values),
        surfaces.time_s[:, sample] / surfaces.time_s,
        surfaces.power_w,
        groups,
    )
    return training, features

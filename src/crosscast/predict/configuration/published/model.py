"""The published model: clusters of frontiers, linear models, and a tree that finds a kernel's cluster.

Bailey, Lowenthal, Ravi, Rountree, Schulz and de Supinski 2014, "Adaptive configuration selection for
power-constrained heterogeneous systems", section III.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers
from crosscast.errors import InputError
from crosscast.predict.configuration.forecast import SurfaceForecast
from crosscast.predict.configuration.kept_space import kept_space, space_state
from crosscast.predict.configuration.plain_forecast import plain_forecast
from crosscast.predict.configuration.published.amounts import Tried, amounts_of
from crosscast.predict.configuration.published.classification_tree import ClassificationTree
from crosscast.predict.configuration.published.cluster_models import ClusterModels
from crosscast.predict.configuration.published.clusters import Clusters, clusters_of
from crosscast.predict.configuration.published.design import design_of
from crosscast.predict.configuration.published.grouping import groupings
from crosscast.predict.configuration.published.training import training_of
from crosscast.predict.configuration.references import references
from crosscast.predict.configuration.sample_features import SampleFeatures
from crosscast.predict.configuration.sample_runs import sample_places, sampled
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["PUBLISHED_CLUSTERS", "PublishedModel", "PublishedPredictor"]

PUBLISHED_CLUSTERS = 5
"""How many the paper has found best for its kernels."""

_MOST_CLUSTERS = 8
_DEPTHS = (1, 2, 3, 4)


@dataclass(frozen=True)
class PublishedModel:
    """The offline stage.

    Parameters
    ----------
    clusters
        How many clusters, or fewer where there are fewer kernels; by default as many as predict best when
        each training application is left out in turn, up to 8.
    logarithms
        Whether the linear models are of the logarithms of performance and power, which stabilises variances:
        the future work that the paper names.

    Raises
    ------
    InputError
        If the number of clusters is below 1.
    """

    clusters: int | None = None
    logarithms: bool = False

    def __post_init__(self) -> None:
        if self.clusters is not None and self.clusters < 1:
            raise InputError(f"clusters: expected at least 1, found {self.clusters}")

    @property
    def name(self) -> str:
        """Its name: ``published``, with ``-log`` and the number of clusters where these are set."""
        count = f"-{self.clusters}" if self.clusters is not None else ""
        return f"published{'-log' if self.logarithms else ''}{count}"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> PublishedPredictor:
        """Group the kernels that ran at all samples; fit each group's models, and the tree.

        The tree's depth is chosen as the number of clusters is, inside the training data.

        Raises
        ------
        InputError
            If no kernel ran at all samples.
        """
        # Imported here: predicting needs it not.
        from threadpoolctl import threadpool_limits

        kernels = sampled(surfaces, samples)
        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            training, features = training_of(kernels, samples)
            labels = groupings(training.apart, self.clusters or _MOST_CLUSTERS)
            counts = tuple(range(1, len(labels) + 1)) if self.clusters is None else (len(labels),)
            amounts = amounts_of(training, Tried(counts, _DEPTHS), logarithms=self.logarithms, seed=seed)
            own = labels[amounts.clusters - 1]
            return PublishedPredictor(
                surfaces.space,
                tuple(samples),
                features,
                training.tree(features.readable_names, own, amounts.depth, seed),
                training.models(own, logarithms=self.logarithms),
                clusters_of(kernels.kernels, own, training.correlations, self.clusters),
            )


@dataclass(frozen=True, eq=False)
class PublishedPredictor:
    """The online stage; see `crosscast.predict.configuration.model.ConfigurationPredictor`.

    Parameters
    ----------
    space
        The configurations.
    samples
        Where a new kernel is run first. Its performance on a device is scaled from the first of them there.
    features
        What the tree asks for.
    tree
        Finds a kernel's cluster.
    models
        Performance and power of each cluster.
    clusters
        What the clusters are, for reports.
    """

    space: Space
    samples: tuple[int, ...]
    features: SampleFeatures
    tree: ClassificationTree
    models: ClusterModels
    clusters: Clusters

    @cached_property
    def _references(self) -> Integers:
        return references(self.space, self.samples)

    def cluster_of(self, observed: Observed) -> int:
        """Cluster of a kernel by its sample runs.

        Raises
        ------
        InputError
            If a run at a sample configuration is missing, or its time or power is not above 0.
        """
        places = sample_places(self.space, self.samples, observed)
        return self._cluster_of(observed, places)

    def _cluster_of(self, observed: Observed, places: Sequence[int]) -> int:
        return self.tree.cluster_of(self.features.readable(self.features.values(observed, places)))

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power; measured values stand where there are runs.

        Raises
        ------
        InputError
            If a run at a sample configuration is missing, or its time or power is not above 0.
        """
        places = sample_places(self.space, self.samples, observed)
        cluster = self._cluster_of(observed, places)
        at_sample = observed.time_s[np.array(places)[self._references]]
        return plain_forecast(
            at_sample / self.models.relative_performance[cluster], self.models.power_w[cluster], observed
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            **space_state(self.space, self.samples),
            **self.features.state(),
            **self.tree.state(),
            **self.models.state(),
            **self.clusters.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> PublishedPredictor:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or they do not belong together.
        """
        space, samples = kept_space(state)
        features = SampleFeatures.from_state(state, len(samples))
        models = ClusterModels.from_state(state, design_of(space))
        clusters = Clusters.from_state(state)
        if len(clusters.members) != len(models):
            raise InputError(
                f"model: cluster_sizes: expected those of {len(models)} clusters, found "
                f"{len(clusters.members)}"
            )
        tree = ClassificationTree.from_state(state, features.readable_names, len(models))
        return cls(space, samples, features, tree, models, clusters)

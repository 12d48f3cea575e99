"""The models of configurations by name, and a baseline that predicts the change from a sample run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import expect_known
from crosscast.prediction.configuration.bailey2014 import PUBLISHED_CLUSTERS, PublishedModel
from crosscast.prediction.configuration.data import (
    ConfigurationModel,
    ConfigurationSpace,
    Observed,
    SurfaceForecast,
    Surfaces,
    plain_forecast,
    reference_samples,
    sample_indices,
)
from crosscast.prediction.configuration.features import SampleFeatures, TrainingRuns
from crosscast.prediction.configuration.process import ProcessModel

DEFAULT_MODEL = "model"

MODELS: Mapping[str, Callable[[], ConfigurationModel]] = MappingProxyType(
    {
        "model": ProcessModel,
        "published": PublishedModel,
        f"published-{PUBLISHED_CLUSTERS}": lambda: PublishedModel(PUBLISHED_CLUSTERS),
    }
)
"""Models that can be trained and stored."""


def model_named(name: str) -> ConfigurationModel:
    """Return a new model of `MODELS`."""
    expect_known(name, MODELS, field="model")
    return MODELS[name]()


_KERNELS = 3
_LEAST_DISTANCE = 1e-6


@dataclass(frozen=True)
class NearestKernels:
    """Changes of time and power of the three nearest training kernels, weighted by inverse distance."""

    name = "nearest"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> NearestPredictor:
        """Store the kernels that ran at all samples; nothing is random."""
        runs = TrainingRuns.of(surfaces, samples)
        time_s, power_w = runs.surfaces.time_s, runs.surfaces.power_w
        changes = np.log([each / each[:, runs.scaled_from] for each in (time_s, power_w)])
        points = runs.features.standardized(runs.values)
        return NearestPredictor(surfaces.space, tuple(samples), runs.features, points, changes)


@dataclass(frozen=True, eq=False)
class NearestPredictor:
    """The stored kernels; see `ConfigurationPredictor`. It cannot be kept."""

    kind: ClassVar[str] = ""
    fitted: ClassVar[None] = None

    space: ConfigurationSpace
    samples: tuple[int, ...]
    features: SampleFeatures
    points: Reals  # (n, f) Standardised features of the kernels
    changes: Reals  # (2, n, c) Logarithms of times and of powers over those of the sample run

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power; measured values replace predictions where there are runs.

        Where none of the nearest ran, all that did are used; NaN where none ran.
        """
        indices = sample_indices(self.space, self.samples, observed)
        point = self.features.standardized(self.features.values(observed, indices))
        runs = np.array(indices)[reference_samples(self.space, self.samples)]
        distances = np.sqrt(((self.points - point) ** 2).sum(axis=1))
        weights = 1 / np.maximum(distances, _LEAST_DISTANCE)
        near = np.argsort(distances, kind="stable")[:_KERNELS]
        of_near = [_mean(values[near], weights[near]) for values in self.changes]
        of_all = [_mean(values, weights) for values in self.changes]
        time, power = np.exp(np.where(np.isnan(of_near), of_all, of_near))
        return plain_forecast(observed.time_s[runs] * time, observed.power_w[runs] * power, observed)


def _mean(values: Reals, weights: Reals) -> Reals:
    """Mean over the first axis of the known values; NaN where none is known."""
    known = np.isfinite(values)
    total = weights @ known
    means: Reals = np.full(len(total), np.nan)
    return np.divide(weights @ np.where(known, values, 0.0), total, out=means, where=total > 0)

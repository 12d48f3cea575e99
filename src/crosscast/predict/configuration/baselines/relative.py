"""Baselines that learn how time and power change from a sample run to every configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.configuration.forecast import SurfaceForecast
from crosscast.predict.configuration.plain_forecast import plain_forecast
from crosscast.predict.configuration.references import references
from crosscast.predict.configuration.sample_features import SampleFeatures
from crosscast.predict.configuration.sample_runs import sample_places, sampled
from crosscast.predict.configuration.space import Space
from crosscast.predict.configuration.surfaces import Observed, Surfaces

__all__ = ["Changes", "Learned", "RelativePredictor", "changes_of"]


class Changes(NamedTuple):
    """What is learned from: ``n`` kernels that ran at all samples.

    Parameters
    ----------
    features
        What the features are.
    points
        ``(n, f)`` Features, standardised.
    time, power
        ``(n, c)`` Logarithms of time and power over those at the first sample on the same device; NaN where
        not known.
    groups
        ``(n,)`` A number for each application.
    """

    features: SampleFeatures
    points: Reals
    time: Reals
    power: Reals
    groups: Integers


def changes_of(surfaces: Surfaces, samples: Sequence[int]) -> Changes:
    """What the kernels tell.

    Raises
    ------
    InputError
        If none ran at all samples.
    """
    kernels = sampled(surfaces, samples)
    features, values = SampleFeatures.of(kernels, samples)
    sample = np.array(samples)[references(surfaces.space, samples)]
    applications = [each.application for each in kernels.kernels]
    return Changes(
        features,
        features.standardized(values),
        np.log(kernels.time_s / kernels.time_s[:, sample]),
        np.log(kernels.power_w / kernels.power_w[:, sample]),
        np.unique(applications, return_inverse=True)[1].astype(np.int64),
    )


class Learned(Protocol):
    """What a baseline has learned."""

    def changes(self, point: Reals) -> tuple[Reals, Reals]:
        """Logarithms of time and power over those at the sample, each ``(c,)``, of a kernel ``(f,)``."""
        ...


@dataclass(frozen=True, eq=False)
class RelativePredictor:
    """A fitted baseline; see `crosscast.predict.configuration.model.ConfigurationPredictor`.

    Parameters
    ----------
    space
        The configurations.
    samples
        Where a new kernel is run first.
    features
        What is seen of a kernel.
    learned
        How time and power change.
    """

    space: Space
    samples: tuple[int, ...]
    features: SampleFeatures
    learned: Learned

    @cached_property
    def _references(self) -> Integers:
        return references(self.space, self.samples)

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power; measured values stand where there are runs.

        Raises
        ------
        InputError
            If a run at a sample configuration is missing, or its time or power is not above 0.
        """
        places = sample_places(self.space, self.samples, observed)
        point = self.features.standardized(self.features.values(observed, places))
        time, power = self.learned.changes(point)
        runs = np.array(places)[self._references]
        return plain_forecast(
            observed.time_s[runs] * np.exp(time), observed.power_w[runs] * np.exp(power), observed
        )

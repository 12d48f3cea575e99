"""Relative performance of architecture-independent profiles: ratios of the times that time models predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.combined import Combined, CombinedPredictor
from crosscast.predict.grid import Grid, Profiles
from crosscast.predict.relative.observations import NO_SOURCE, Observations, Vectors, relative_to_slowest
from crosscast.predict.relative.profiles_seen import INVOCATIONS
from crosscast.profile import METRICS

__all__ = ["ByTimes", "ByTimesPredictor", "are_profiles", "profiles_of"]

_CORRECTED = 0.5
"""Share of the correction that is kept.

What the correction learned of single devices is half chance; the mean of the physical model and the corrected
one, with each by itself, is `crosscast.predict.combined` with half of its correction.
"""

_NAMES = tuple(metric.name for metric in METRICS)


def are_profiles(observations: Observations) -> bool:
    """Whether all rows are profiles of no device, with metrics for counters."""
    return set(observations.source) == {NO_SOURCE} and set(observations.names) <= set(_NAMES)


def profiles_of(observations: Observations) -> Profiles:
    """The profiles that `crosscast.predict.relative.profiles_seen.profiles_seen` made rows of."""
    metrics = np.full((len(observations), len(_NAMES)), np.nan)
    for place, name in enumerate(observations.names):
        if name in _NAMES:
            metrics[:, _NAMES.index(name)] = observations.counters[:, place]
    invocations: Reals = np.ones(len(observations))
    if INVOCATIONS in observations.configuration:
        invocations = observations.settings[:, observations.configuration.index(INVOCATIONS)]
    counts: Integers = np.where(invocations >= 1, invocations, 1).astype(np.int64)
    return Profiles(observations.application, observations.kernel, observations.size, metrics, counts)


@dataclass(frozen=True, eq=False)
class ByTimesPredictor:
    """A fitted time model, of whose times ratios are made.

    Parameters
    ----------
    times
        The time model.
    """

    times: CombinedPredictor

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors, of shape ``(r, d)``; the largest entry of a row is 1.

        Raises
        ------
        InputError
            If a row is no profile, or lacks a metric.
        """
        if not are_profiles(observations):
            raise InputError(
                "profile: expected architecture-independent profiles, which the model was trained on, found "
                "counters of a device, a profile whose counters the model does not know"
            )
        profiles = profiles_of(observations)
        corrected = self.times.log_time(profiles)
        physical = self.times.physical.log_time(profiles)
        log: Reals = _CORRECTED * corrected + (1 - _CORRECTED) * physical
        return relative_to_slowest(np.exp(log))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return self.times.state()

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> ByTimesPredictor:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        return cls(CombinedPredictor.from_state(state))


@dataclass(frozen=True)
class ByTimes:
    """The model of times of `crosscast.predict.combined`, with half of its correction."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "by-times"

    def fit(self, vectors: Vectors, seed: int) -> ByTimesPredictor:
        """Fit the time model to the times of the vectors.

        Raises
        ------
        InputError
            If a row is no profile, or nothing is known of the devices.
        MissingExtraError
            If scikit-learn or SciPy is not installed.
        """
        if not are_profiles(vectors.observations):
            raise InputError(
                f"{self.name}: expected architecture-independent profiles to learn from, found counters of "
                f"{', '.join(sorted(set(vectors.observations.source)))}"
            )
        if not vectors.described:
            raise InputError(f"{self.name}: expected a description of each device, found none")
        shape = vectors.times_s.shape
        grid = Grid(
            profiles_of(vectors.observations),
            vectors.described,
            np.log(vectors.times_s),
            np.full(shape, np.nan),
            np.ones(shape, dtype=np.int64),
        )
        return ByTimesPredictor(Combined().fit(grid, seed))

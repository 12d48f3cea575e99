"""Extremely randomized trees on intensities: the best where the kernel is known and its size is new.

They remember every kernel that they have seen (Geurts, Ernst and Wehenkel 2006,
doi:10.1007/s10994-006-6226-1). For kernels that they have not seen, `crosscast.predict.relative.blend` is
better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.format1 import physical_arrays
from crosscast.predict.relative.blend import Blend
from crosscast.predict.relative.data import (
    INVOCATIONS,
    NO_SOURCE,
    Observations,
    RelativeModel,
    RelativePredictor,
    Vectors,
    check_runs,
    kernel_weights,
    relative_to_slowest,
)
from crosscast.predict.relative.features import FeatureScale, FittedFeatures
from crosscast.predict.relative.nichols2024 import (
    LogMean,
    PublishedForest,
    PublishedLinear,
    PublishedMean,
    PublishedXGBoost,
    within_singles,
)
from crosscast.predict.relative.sums import base_of, intensities_of, kept_base, unknown_counters
from crosscast.predict.time.combined import Combined, CombinedPredictor
from crosscast.predict.time.data import Grid, ProfileBatch
from crosscast.predict.trees import Trees, kept_trees, trees_of_forest
from crosscast.profile import METRICS


@dataclass(frozen=True, eq=False)
class ExtraTreesPredictor:
    """Fitted trees."""

    features: FittedFeatures  # What makes `k` features of intensities
    trees: Trees  # Trees of centred logarithms of times, an output for each of `d` devices
    base: str  # What totals are divided by, one of `crosscast.predict.relative.sums.BASES`

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors, of shape ``(r, d)``; the largest entry of a row is 1."""
        rows = self.features.transform(intensities_of(observations, self.base))
        return relative_to_slowest(np.exp(self.trees.sum(within_singles(rows))))

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters of runs that nothing is learned from."""
        return unknown_counters(observations, self.base, self.features.known)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            **self.features.state(),
            **self.trees.state(),
            "base": np.array([self.base], dtype=np.str_),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> ExtraTreesPredictor:
        """Make it from its arrays."""
        features = FittedFeatures.from_state(state)
        if not features.fill:
            raise InputError("model: feature_fill: expected features whose gaps are filled, found others")
        return cls(features, kept_trees(state, len(features.names)), kept_base(state))


@dataclass(frozen=True)
class ExtraTrees:
    """Trees of centred logarithms of times, to which kernels weigh the same."""

    trees: int = 150  # Number of trees

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "extra-trees"

    def fit(self, vectors: Vectors, seed: int) -> ExtraTreesPredictor:
        """Fit it."""
        try:
            from sklearn.ensemble import ExtraTreesRegressor
        except ImportError as error:
            raise MissingExtraError("train", "fitting a model") from error

        check_runs(self.name, vectors)
        base = base_of(vectors.observations)
        seen = intensities_of(vectors.observations, base)
        features = FeatureScale("own", fill=True).fit(seen)
        log_time = np.log(vectors.times_s)
        forest = ExtraTreesRegressor(self.trees, random_state=seed, n_jobs=1)
        forest.fit(
            within_singles(features.transform(seen)),
            log_time - log_time.mean(axis=1, keepdims=True),
            sample_weight=kernel_weights(vectors.observations),
        )
        return ExtraTreesPredictor(features, trees_of_forest(forest), base)


_CORRECTED = 0.5
"""Share of the correction that is kept.

What the correction learned of single devices is half chance; the mean of the physical model and the corrected
one, with each by itself, is `crosscast.predict.time.combined` with half of its correction.
"""

_NAMES = tuple(metric.name for metric in METRICS)


def are_profiles(observations: Observations) -> bool:
    """Whether all rows are profiles of no device, with metrics for counters."""
    return set(observations.source) == {NO_SOURCE} and set(observations.names) <= set(_NAMES)


def profiles_of(observations: Observations) -> ProfileBatch:
    """The profiles that `crosscast.predict.relative.data.profiles_seen` made rows of."""
    metrics = np.full((len(observations), len(_NAMES)), np.nan)
    for place, name in enumerate(observations.names):
        if name in _NAMES:
            metrics[:, _NAMES.index(name)] = observations.counters[:, place]
    invocations: Reals = np.ones(len(observations))
    if INVOCATIONS in observations.configuration:
        invocations = observations.settings[:, observations.configuration.index(INVOCATIONS)]
    counts: Integers = np.where(invocations >= 1, invocations, 1).astype(np.int64)
    return ProfileBatch(observations.application, observations.kernel, observations.size, metrics, counts)


@dataclass(frozen=True, eq=False)
class ByTimesPredictor:
    """A fitted time model, of whose times ratios are made."""

    times: CombinedPredictor  # The time model

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors, of shape ``(r, d)``; the largest entry of a row is 1."""
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
        """Make it from its arrays."""
        return cls(CombinedPredictor.from_state(physical_arrays(dict(state))))


@dataclass(frozen=True)
class ByTimes:
    """The model of times of `crosscast.predict.time.combined`, with half of its correction."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "by-times"

    def fit(self, vectors: Vectors, seed: int) -> ByTimesPredictor:
        """Fit the time model to the times of the vectors."""
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


@dataclass(frozen=True)
class CombinedRelative:
    """`crosscast.predict.relative.models` for profiles, `crosscast.predict.relative.blend` for counters."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "combined"

    def fit(self, vectors: Vectors, seed: int) -> RelativePredictor:
        """Fit the one for what the rows are."""
        if are_profiles(vectors.observations) and vectors.described:
            return ByTimes().fit(vectors, seed)
        return Blend().fit(vectors, seed)


DEFAULT_MODEL = "combined"

BASELINES = ("published-mean", "log-mean")
"""Those that look at no counter: anything else must beat them."""

MODELS: Mapping[str, Callable[[], RelativeModel]] = MappingProxyType(
    {
        "published-mean": PublishedMean,
        "log-mean": LogMean,
        "published-linear": PublishedLinear,
        "published-forest": PublishedForest,
        "published-xgboost": PublishedXGBoost,
        "extra-trees": ExtraTrees,
        "combined": CombinedRelative,
    }
)
"""What makes each model, from the trivial to the strong."""


def models_named(names: Sequence[str]) -> list[RelativeModel]:
    """Make models, in the order of their names."""
    for name in names:
        if name not in MODELS:
            raise InputError(f"models: expected one of {', '.join(MODELS)}, found {name!r}")
    return [MODELS[name]() for name in dict.fromkeys(names)]

"""Extremely randomized trees on intensities: the best where the kernel is known and its size is new.

They remember every kernel that they have seen (Geurts, Ernst and Wehenkel 2006,
doi:10.1007/s10994-006-6226-1). For kernels that they have not seen, `crosscast.predict.relative.blend` is
better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.grown import trees_of_forest
from crosscast.predict.relative.blend.intensities import base_of, intensities_of, kept_base, unknown_counters
from crosscast.predict.relative.features import FeatureScale, FittedFeatures
from crosscast.predict.relative.kernel_weights import kernel_weights
from crosscast.predict.relative.observations import Observations, Vectors, check_runs, relative_to_slowest
from crosscast.predict.relative.published.trees import within_singles
from crosscast.predict.trees import Trees

__all__ = ["ExtraTrees", "ExtraTreesPredictor"]


@dataclass(frozen=True, eq=False)
class ExtraTreesPredictor:
    """Fitted trees.

    Parameters
    ----------
    features
        What makes ``k`` features of intensities.
    trees
        Trees of centred logarithms of times, an output for each of ``d`` devices.
    base
        What totals are divided by, one of `crosscast.predict.relative.blend.intensities.BASES`.
    """

    features: FittedFeatures
    trees: Trees
    base: str

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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        features = FittedFeatures.from_state(state)
        if not features.fill:
            raise InputError("model: feature_fill: expected features whose gaps are filled, found others")
        return cls(features, Trees.from_state(state, len(features.names)), kept_base(state))


@dataclass(frozen=True)
class ExtraTrees:
    """Trees of centred logarithms of times, to which kernels weigh the same.

    Parameters
    ----------
    trees
        Number of trees.
    """

    trees: int = 150

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "extra-trees"

    def fit(self, vectors: Vectors, seed: int) -> ExtraTreesPredictor:
        """Fit it.

        Raises
        ------
        InputError
            If there is no row, or nothing that was counted differs between the runs.
        MissingExtraError
            If scikit-learn is not installed.
        """
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

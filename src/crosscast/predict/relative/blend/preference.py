"""How runs differ between devices, by trees on their intensities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.grid import Reals
from crosscast.predict.grown import trees_of_forest
from crosscast.predict.relative.blend.intensities import intensities_of
from crosscast.predict.relative.features import FeatureScale, FittedFeatures
from crosscast.predict.relative.observations import Observations
from crosscast.predict.trees import Trees

__all__ = ["TREES", "FittedPreference", "fit_preference"]

TREES = 300
_SHARE = 0.15
"""Share of the features that are tried at a split: with few kernels to learn from, trees should differ."""


@dataclass(frozen=True, eq=False)
class FittedPreference:
    """Extremely randomized trees of centred logarithms of times.

    Parameters
    ----------
    features
        What makes features of intensities.
    trees
        The trees, with an output for each device.
    """

    features: FittedFeatures
    trees: Trees

    def log_relative(self, observations: Observations) -> Reals:
        """Logarithms of times less their mean over the devices, of shape ``(r, d)``."""
        rows = self.features.transform(intensities_of(observations))
        return self.trees.sum(_finite(rows))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {**self.features.state(), **self.trees.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedPreference:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        features = FittedFeatures.from_state(state)
        if not features.fill:
            raise InputError("model: feature_fill: expected features whose gaps are filled, found others")
        return cls(features, Trees.from_state(state, len(features.names)))


def _finite(rows: Reals) -> Reals:
    limit = float(np.finfo(np.float32).max)
    return np.clip(rows, -limit, limit)


def fit_preference(
    observations: Observations, log_relative: Reals, weights: Reals, seed: int
) -> FittedPreference:
    """Grow the trees (Geurts, Ernst and Wehenkel 2006, doi:10.1007/s10994-006-6226-1).

    Parameters
    ----------
    observations
        ``r`` runs.
    log_relative
        Logarithms of times less their mean over the devices, of shape ``(r, d)``.
    weights
        Weight of each run, of shape ``(r,)``.
    seed
        Start of the random numbers.

    Raises
    ------
    InputError
        If nothing that was counted differs between the runs.
    MissingExtraError
        If scikit-learn is not installed.
    """
    try:
        from sklearn.ensemble import ExtraTreesRegressor
    except ImportError as error:
        raise MissingExtraError("train", "fitting a model") from error

    seen = intensities_of(observations)
    features = FeatureScale("own", fill=True).fit(seen)
    forest = ExtraTreesRegressor(TREES, max_features=_SHARE, random_state=seed, n_jobs=1)
    forest.fit(_finite(features.transform(seen)), log_relative, sample_weight=weights)
    return FittedPreference(features, trees_of_forest(forest))

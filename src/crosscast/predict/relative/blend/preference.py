"""How runs differ between devices, by trees on their intensities: grown at random, and boosted.

The two err apart: trees grown at random learn logarithms of times and smooth between kernels; boosted trees
learn the vectors themselves, by their absolute error as in the paper, and hold on to single kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.grown import trees_of_forest
from crosscast.predict.relative.blend.intensities import (
    base_of,
    intensities_of,
    kept_base,
    unknown_counters,
)
from crosscast.predict.relative.blend.training_rows import TrainingRows
from crosscast.predict.relative.features import FeatureScale
from crosscast.predict.relative.observations import Observations
from crosscast.predict.relative.published.trees import TreesPredictor, within_singles
from crosscast.predict.relative.published.xgboost import RATE, ROUNDS, PublishedXGBoost
from crosscast.predict.trees import Trees

__all__ = ["BRIEF", "FULL", "Effort", "FittedPreference", "fit_preference"]


@dataclass(frozen=True)
class Effort:
    """How many trees are grown, and how many rounds boosted at which rate."""

    trees: int
    rounds: int
    rate: float


FULL = Effort(trees=300, rounds=ROUNDS, rate=RATE)
"""For what predicts."""

BRIEF = Effort(trees=80, rounds=40, rate=0.25)
"""For what only tells how well trees do, which is fitted many times."""

_SHARE = 0.15
"""Share of the features that are tried at a split: with few kernels to learn from, trees should differ."""

_FEATURES = FeatureScale("own", fill=True)
_GROWN = "grown_"


@dataclass(frozen=True, eq=False)
class FittedPreference:
    """Trees of ``d`` devices.

    Parameters
    ----------
    boosted
        Boosted trees of relative vectors, with what makes ``k`` features of intensities.
    grown
        Extremely randomized trees of centred logarithms of times, on the same features.
    base
        What totals are divided by, one of `crosscast.predict.relative.blend.intensities.BASES`.
    """

    boosted: TreesPredictor
    grown: Trees
    base: str

    def log_relative(self, observations: Observations) -> Reals:
        """Logarithms of times less their mean over the devices, of shape ``(r, d)``."""
        rows = self.boosted.features.transform(intensities_of(observations, self.base))
        boosted = np.log(self.boosted.predict_features(rows))
        both: Reals = (boosted + self.grown.sum(within_singles(rows))) / 2
        centred: Reals = both - both.mean(axis=1, keepdims=True)
        return centred

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters of runs that nothing is learned from."""
        return unknown_counters(observations, self.base, self.boosted.features.known)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        grown = {f"{_GROWN}{name}": values for name, values in self.grown.state().items()}
        return {**self.boosted.state(), **grown, "base": np.array([self.base], dtype=np.str_)}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedPreference:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or the trees are of unlike numbers of devices.
        """
        boosted = TreesPredictor.from_state(state)
        if not boosted.features.fill:
            raise InputError("model: feature_fill: expected features whose gaps are filled, found others")
        own = {name.removeprefix(_GROWN): values for name, values in state.items() if name.startswith(_GROWN)}
        grown = Trees.from_state(own, len(boosted.features.names))
        counts = boosted.trees.value.shape[1], grown.value.shape[1]
        if counts[0] != counts[1]:
            raise InputError(f"model: grown_leaf_value: expected {counts[0]} devices, found {counts[1]}")
        return cls(boosted, grown, kept_base(state))


def fit_preference(rows: TrainingRows, seed: int, effort: Effort = FULL) -> FittedPreference:
    """Grow and boost the trees.

    Extremely randomized trees are those of Geurts, Ernst and Wehenkel 2006 (doi:10.1007/s10994-006-6226-1).

    Parameters
    ----------
    rows
        What to learn from.
    seed
        Start of the random numbers.
    effort
        How many trees.

    Raises
    ------
    InputError
        If nothing that was counted differs between the runs.
    MissingExtraError
        If scikit-learn or XGBoost is not installed.
    """
    try:
        from sklearn.ensemble import ExtraTreesRegressor
    except ImportError as error:
        raise MissingExtraError("train", "fitting a model") from error

    base = base_of(rows.vectors.observations)
    seen = intensities_of(rows.vectors.observations, base)
    boosted = PublishedXGBoost(rounds=effort.rounds, rate=effort.rate, features=_FEATURES).fit(
        replace(rows.vectors, observations=seen), seed, weights=rows.weights / rows.weights.mean()
    )
    forest = ExtraTreesRegressor(effort.trees, max_features=_SHARE, random_state=seed, n_jobs=1)
    features = boosted.features.transform(seen)
    forest.fit(within_singles(features), rows.log_relative, sample_weight=rows.weights)
    return FittedPreference(boosted, trees_of_forest(forest), base)

"""Boosted trees as XGBoost grows them (paper 003, section VI-A)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import MissingExtraError
from crosscast.predict.relative.features import FeatureScale
from crosscast.predict.relative.observations import Vectors, check_runs
from crosscast.predict.relative.published.boosted import average_gain, trees_of_booster
from crosscast.predict.relative.published.positive import least_entry
from crosscast.predict.relative.published.trees import TreesPredictor

__all__ = ["DEPTH", "OBJECTIVE", "RATE", "ROUNDS", "PublishedXGBoost"]

OBJECTIVE = "reg:absoluteerror"
"""What is minimised: the mean absolute error, as published."""

DEPTH = 6
"""Splits from the root to a leaf, at most: XGBoost's default. The paper names none of these three."""

ROUNDS = 100
"""Trees for each entry of the vector: XGBoost's default."""

RATE = 0.1
"""How much of what is left each tree takes away.

With XGBoost's own 0.3, errors on runs of new kernels are some per cent larger; with 300 rounds they are a few
per cent less, in three times the time.
"""


@dataclass(frozen=True)
class PublishedXGBoost:
    """XGBoost with trees of their own for each entry of the vector, and missing features left to it.

    Parameters
    ----------
    depth, rounds, rate
        See `DEPTH`, `ROUNDS` and `RATE`.
    selected
        Take only so many features, those of the most gain in a first fit to the same rows (section VI-B);
        ``None`` for all.
    features
        What it learns from.
    """

    depth: int = DEPTH
    rounds: int = ROUNDS
    rate: float = RATE
    selected: int | None = None
    features: FeatureScale = field(default_factory=FeatureScale)

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "published-xgboost" if self.selected is None else f"published-xgboost-{self.selected}"

    def fit(self, vectors: Vectors, seed: int, *, weights: Reals | None = None) -> TreesPredictor:
        """Fit it, in one thread: the same rows and seed give the same trees.

        Parameters
        ----------
        vectors
            Rows to learn from.
        seed
            Start of all random numbers.
        weights
            Weight of each row, of shape ``(r,)``; all the same by default, as published.

        Raises
        ------
        InputError
            If there is no row.
        MissingExtraError
            If XGBoost is not installed.
        """
        check_runs(self.name, vectors)
        features, vector = self.features.fit(vectors.observations), vectors.vector
        rows = features.transform(vectors.observations)
        booster = self._boosted(rows, vector, weights, seed)
        gain = average_gain(booster, rows.shape[1])
        places = np.arange(rows.shape[1])
        if self.selected is not None:
            # Of features of the same gain, the first.
            places = np.sort(np.argsort(-gain, kind="stable")[: self.selected])
            booster = self._boosted(rows[:, places], vector, weights, seed)
            gain = np.zeros(rows.shape[1])
            gain[places] = average_gain(booster, len(places))
        trees = trees_of_booster(booster, vector.shape[1]).reading(_twice(places, rows.shape[1]))
        return TreesPredictor(features, trees, least_entry(vector), gain)

    def _boosted(self, rows: Reals, vector: Reals, weights: Reals | None, seed: int) -> Any:
        try:
            import xgboost
        except ImportError as error:
            raise MissingExtraError("train", "fitting a model of boosted trees") from error
        settings = {
            "objective": OBJECTIVE,
            "max_depth": self.depth,
            "eta": self.rate,
            "tree_method": "hist",
            "multi_strategy": "one_output_per_tree",
            "seed": seed % 2**31,
            "nthread": 1,
            "verbosity": 0,
        }
        data = xgboost.DMatrix(rows.astype(np.float32), label=vector, weight=weights, nthread=1)
        return xgboost.train(settings, data, num_boost_round=self.rounds)


def _twice(places: Integers, features: int) -> list[int]:
    """Where the columns of `low_and_high` of some features are among those of all."""
    return [*places.tolist(), *(places + features).tolist()]

"""The models of Nichols et al. 2024: mean, linear regression, forest and XGBoost, as published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError, importing
from crosscast.prediction.relative.data import Observations, Vectors, check_runs, relative_to_slowest
from crosscast.prediction.relative.features import (
    FittedFeatures,
    TreesOnFeatures,
    VectorBoosting,
    fit_features,
)
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.trained import single_threaded
from crosscast.prediction.trees import trees_of_forest


@dataclass(frozen=True)
class PublishedMean:
    """The mean of the training vectors (section VI-A)."""

    name = "published-mean"

    def fit(self, vectors: Vectors, seed: int = 0) -> FixedVector:
        """Compute the mean."""
        check_runs(self.name, vectors)
        return FixedVector(vectors.vector.mean(axis=0))


@dataclass(frozen=True)
class LogMean:
    """The mean of the logarithms of the training vectors, which does not depend on the reference device."""

    name = "log-mean"

    def fit(self, vectors: Vectors, seed: int = 0) -> FixedVector:
        """Compute the mean."""
        check_runs(self.name, vectors)
        return FixedVector(relative_to_slowest(np.exp(np.log(vectors.vector).mean(axis=0))[None])[0])


@dataclass(frozen=True, eq=False)
class FixedVector(Stored, kind="relative-vector"):
    """A constant vector, predicted for all runs."""

    vector: Annotated[Reals, Array("d", above=0, least=2)]

    def predict(self, observations: Observations) -> Reals:
        """The vector for each run, of shape ``(r, d)``."""
        return np.tile(self.vector, (len(observations), 1))


@dataclass(frozen=True)
class PublishedLinear:
    """scikit-learn's ``LinearRegression`` with its defaults, of all entries; missing features are filled."""

    name = "published-linear"

    def fit(self, vectors: Vectors, seed: int = 0) -> LinearPredictor:
        """Fit the regression; nothing is random."""
        with importing("train", "fitting a model"):
            from sklearn.linear_model import LinearRegression
        check_runs(self.name, vectors)
        features, vector = fit_features(vectors.observations, fill=True), vectors.vector
        # The order of sums changes last digits.
        with single_threaded():
            model = LinearRegression().fit(features.transform(vectors.observations), vector)
        # In the order in which it is stored, for the same reason.
        slopes = np.ascontiguousarray(np.asarray(model.coef_, dtype=np.float64).T)
        level = np.asarray(model.intercept_, dtype=np.float64)
        return LinearPredictor(features, slopes, level, float(vector.min()))


@dataclass(frozen=True, eq=False)
class LinearPredictor(Stored, kind="relative-linear"):
    """A fitted regression of ``d`` entries on ``k`` features."""

    features: Annotated[FittedFeatures, Nested(flat=True)]
    slopes: Annotated[Reals, Array("k d")]
    level: Annotated[Reals, Array("d")]
    least: Annotated[float, Array(above=0)]  # the least entry in the training

    def check(self) -> None:
        """Raise InputError unless slopes are of these features."""
        count = len(self.features.names)
        if len(self.slopes) != count:
            raise InputError.of(field="slopes", expected=f"those of {count} features", found=len(self.slopes))

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors ``(r, d)``, at least the least entry in the training."""
        # Not a matrix product, whose sums depend on the number of rows.
        rows = self.features.transform(observations)
        vectors: Reals = np.einsum("rk,kd->rd", rows, self.slopes) + self.level
        return np.maximum(vectors, self.least)


@dataclass(frozen=True)
class PublishedVectorForest:
    """``RandomForestRegressor`` with its defaults, all entries as outputs of a tree, and features filled.

    The paper names neither kind nor settings of its forest.
    """

    name = "published-forest"
    trees: int = 100  # scikit-learn's default

    def fit(self, vectors: Vectors, seed: int) -> TreesOnFeatures:
        """Fit the forest."""
        with importing("train", "fitting a model"):
            from sklearn.ensemble import RandomForestRegressor
        check_runs(self.name, vectors)
        features, vector = fit_features(vectors.observations, fill=True), vectors.vector
        forest = RandomForestRegressor(self.trees, random_state=seed)
        forest.fit(features.transform(vectors.observations), vector)
        gain = np.asarray(forest.feature_importances_, dtype=np.float64)
        return TreesOnFeatures(features, trees_of_forest(forest), float(vector.min()), gain)


@dataclass(frozen=True)
class PublishedXGBoost(VectorBoosting):
    """XGBoost minimising the mean absolute error, with missing features left to it.

    The paper names neither depth nor rounds nor rate; the first two are XGBoost's defaults. With its default
    rate of 0.3, errors on runs of new kernels are some per cent larger; with 300 rounds they are a few per
    cent less, in three times the time.
    """

    rounds: int = 100
    rate: float = 0.1

    @property
    def name(self) -> str:
        """Name on the command line and in tables."""
        return "published-xgboost" if self.selected is None else f"published-xgboost-{self.selected}"

    def fit(self, vectors: Vectors, seed: int) -> TreesOnFeatures:
        """Fit in one thread: equal rows and seeds give equal trees."""
        check_runs(self.name, vectors)
        features = fit_features(vectors.observations)
        return self.boost(features, features.transform(vectors.observations), vectors.vector, seed)

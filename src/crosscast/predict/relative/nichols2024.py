"""Predicted relative vectors that are vectors: above 0."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.artefact import kept_reals
from crosscast.predict.relative.data import Observations, Vectors, check_runs, relative_to_slowest
from crosscast.predict.relative.features import FeatureScale, FittedFeatures
from crosscast.predict.trees import Singles, Trees, constant, joined, kept_trees, trees_of_forest


def least_entry(vector: Reals) -> float:
    """The least entry of the vectors that a model learns from, of shape ``(r, d)``."""
    return float(vector.min())


def positive(predicted: Reals, least: float) -> Reals:
    """Predictions that are nowhere below the least entry that was learned from.

    A sum of trees or of linear terms may be 0 or less, which no ratio of times is; the paper says nothing of
    it. What is above 1 stays.
    """
    return np.maximum(predicted, least)


def kept_least(state: Mapping[str, npt.NDArray[Any]]) -> float:
    """Read the least that is predicted."""
    least = kept_reals(state, "least", 1)
    if len(least) != 1 or not least[0] > 0:
        raise InputError(f"model: least: expected one number above 0, found {least.tolist()}")
    return float(least[0])


def trees_of_booster(booster: Any, outputs: int) -> Trees:
    """Trees of a fitted ``Booster`` of regression trees without categories, a tree for one output each.

    Their sum, on the columns of `low_and_high`, is what the booster predicts, up to its rounding to single
    precision.
    """
    learner = _learner(booster)
    model = learner["gradient_booster"]["model"]
    start = _start(learner["learner_model_param"]["base_score"], outputs)
    columns = int(learner["learner_model_param"]["num_feature"])
    trees = [
        _tree(tree, int(output), outputs, columns)
        for tree, output in zip(model["trees"], model["tree_info"], strict=True)
    ]
    return joined([constant(start), *trees])


def average_gain(booster: Any, features: int) -> Reals:
    """Mean gain of the splits at each feature, over all trees; 0 where there is none (section VI-B)."""
    gain = np.zeros(features)
    for name, value in booster.get_score(importance_type="gain").items():
        gain[int(name.removeprefix("f"))] = max(float(value), 0.0)
    return gain


def _learner(booster: Any) -> Mapping[str, Any]:
    learner: Mapping[str, Any] = json.loads(bytes(booster.save_raw("json")))["learner"]
    return learner


def _start(text: str, outputs: int) -> Reals:
    """What the trees add to: one number for all outputs, or one for each."""
    values = np.array(np.atleast_1d(json.loads(text)), dtype=np.float64)
    return np.broadcast_to(values, (outputs,)).copy()


def _tree(tree: Mapping[str, Sequence[Any]], output: int, outputs: int, columns: int) -> Trees:
    """One tree: a node goes left where its feature is less than its number, in single precision."""
    left = np.array(tree["left_children"], dtype=np.int64)
    right = np.array(tree["right_children"], dtype=np.int64)
    feature = np.array(tree["split_indices"], dtype=np.int64)
    number: Singles = np.array(tree["split_conditions"], dtype=np.float32)
    missing_left = np.array(tree["default_left"], dtype=np.bool_)
    leaf = left < 0
    name = np.where(leaf, -np.cumsum(leaf, dtype=np.int64), np.cumsum(~leaf, dtype=np.int64) - 1)
    value = np.zeros((int(leaf.sum()), outputs))
    value[:, output] = number[leaf]
    split = ~leaf
    return Trees(
        np.where(missing_left, feature, feature + columns)[split],
        np.nextafter(number[split], np.float32(-np.inf)).astype(np.float64),
        name[left[split]],
        name[right[split]],
        name[:1],
        value,
    )


_BEYOND = float(np.finfo(np.float32).max)


def within_singles(rows: Reals) -> Reals:
    """Features without gaps, of shape ``(r, k)``, within single precision, which trees split in."""
    return np.clip(rows, -_BEYOND, _BEYOND)


def low_and_high(rows: Reals) -> Reals:
    """Features twice, once with what is missing below everything, and once above everything.

    Trees that know on which side of each split to leave a row without the feature then need no more than
    the right one of the two: a split that such rows pass on the left looks at the first.
    Of shape ``(r, 2 k)``, finite, within single precision.
    """
    missing = np.isnan(rows)
    known = within_singles(rows)
    return np.concatenate([np.where(missing, -_BEYOND, known), np.where(missing, _BEYOND, known)], axis=1)


@dataclass(frozen=True, eq=False)
class TreesPredictor:
    """Fitted trees of ``d`` outputs."""

    features: FittedFeatures  # What makes `k` features of counters
    trees: Trees  # Trees on the `2 k` columns of `low_and_high`
    least: float  # The least that is predicted
    # How much the splits at each feature improved the fit, on average over these; 0 for one without a split.
    # Of shape `(k,)`
    gain: Reals

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors of ``r`` runs, of shape ``(r, d)``."""
        return self.predict_features(self.features.transform(observations))

    def predict_features(self, rows: Reals) -> Reals:
        """The same from features, of shape ``(r, k)``."""
        return positive(self.trees.sum(low_and_high(rows)), self.least)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        own = {"least": np.array([self.least]), "gain": self.gain}
        return {**self.features.state(), **self.trees.state(), **own}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> TreesPredictor:
        """Make it from its arrays."""
        features = FittedFeatures.from_state(state)
        trees = kept_trees(state, 2 * len(features.names))
        gain = kept_reals(state, "gain", 1)
        if len(gain) != len(features.names) or (gain < 0).any():
            raise InputError(f"model: gain: expected {len(features.names)} numbers from 0 on, found others")
        return cls(features, trees, kept_least(state), gain)


@dataclass(frozen=True)
class PublishedMean:
    """The mean of the training vectors (paper 003, section VI-A)."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "published-mean"

    def fit(self, vectors: Vectors, seed: int = 0) -> FittedVector:
        """Fit it. Nothing is random, so the seed is not used."""
        return FittedVector(_known(vectors, self.name).mean(axis=0))


@dataclass(frozen=True)
class LogMean:
    """The mean of the logarithms of the training vectors, over its largest entry.

    Ratios of times have no natural direction: this one is the same whichever device is divided by.
    """

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "log-mean"

    def fit(self, vectors: Vectors, seed: int = 0) -> FittedVector:
        """Fit it. Nothing is random, so the seed is not used."""
        return FittedVector(
            relative_to_slowest(np.exp(np.log(_known(vectors, self.name)).mean(axis=0))[None])[0]
        )


def _known(vectors: Vectors, name: str) -> Reals:
    check_runs(name, vectors)
    return vectors.vector


@dataclass(frozen=True, eq=False)
class FittedVector:
    """A vector of shape ``(d,)`` that is predicted for all runs."""

    vector: Reals

    def predict(self, observations: Observations) -> Reals:
        """The vector for each of ``r`` runs, of shape ``(r, d)``."""
        return np.tile(self.vector, (len(observations), 1))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {"vector": self.vector}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedVector:
        """Make it from its array."""
        vector = kept_reals(state, "vector", 1)
        if len(vector) < 2 or (vector <= 0).any():
            raise InputError("model: vector: expected two or more numbers above 0, found others")
        return cls(vector)


@dataclass(frozen=True)
class PublishedLinear:
    """scikit-learn's ``LinearRegression`` with its defaults, of all entries of the vector.

    Features that are missing are filled as `FeatureScale` fills them, as least squares can do nothing with
    them. Where features hang together, the solution is the one of least norm.
    """

    # What it learns from; filled
    features: FeatureScale = field(default_factory=lambda: FeatureScale(fill=True))

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "published-linear"

    def fit(self, vectors: Vectors, seed: int = 0) -> LinearPredictor:
        """Fit it. Nothing is random, so the seed is not used."""
        try:
            from sklearn.linear_model import LinearRegression
            from threadpoolctl import threadpool_limits
        except ImportError as error:
            raise MissingExtraError("train", "fitting a model") from error
        check_runs(self.name, vectors)
        features = self.features.fit(vectors.observations)
        vector = vectors.vector
        model = LinearRegression()
        # Sums in another order would have other last digits.
        with threadpool_limits(1):
            model.fit(features.transform(vectors.observations), vector)
        # In the order in which it is read again: sums in another would have other last digits.
        slopes = np.ascontiguousarray(np.asarray(model.coef_, dtype=np.float64).T)
        return LinearPredictor(
            features, slopes, np.asarray(model.intercept_, np.float64), least_entry(vector)
        )


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """A fitted regression of ``d`` entries on ``k`` features."""

    features: FittedFeatures  # What makes features of counters
    slopes: Reals  # What each feature adds, of shape `(k, d)`
    level: Reals  # What is added to, of shape `(d,)`
    least: float  # The least that is predicted

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors of ``r`` runs, of shape ``(r, d)``."""
        # Not a product of matrices, whose sums depend on how many rows there are.
        rows = self.features.transform(observations)
        return positive(np.einsum("rk,kd->rd", rows, self.slopes) + self.level, self.least)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        own = {"slopes": self.slopes, "level": self.level, "least": np.array([self.least])}
        return {**self.features.state(), **own}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> LinearPredictor:
        """Make it from its arrays."""
        features = FittedFeatures.from_state(state)
        slopes, level = kept_reals(state, "slopes", 2), kept_reals(state, "level", 1)
        if slopes.shape != (len(features.names), len(level)):
            raise InputError(
                f"model: slopes: expected shape {(len(features.names), len(level))}, found {slopes.shape}"
            )
        return cls(features, slopes, level, kept_least(state))


TREES = 100
"""Trees of the forest: scikit-learn's default, as the paper names no number."""


@dataclass(frozen=True)
class PublishedForest:
    """``RandomForestRegressor`` with its defaults, and all entries of the vector as outputs of each tree.

    The paper names neither kind nor settings of its forest. Features that are missing are filled as
    `FeatureScale` fills them.
    """

    trees: int = TREES  # Number of trees
    # What it learns from; filled
    features: FeatureScale = field(default_factory=lambda: FeatureScale(fill=True))

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "published-forest"

    def fit(self, vectors: Vectors, seed: int) -> TreesPredictor:
        """Fit it."""
        try:
            from sklearn.ensemble import RandomForestRegressor
        except ImportError as error:
            raise MissingExtraError("train", "fitting a model") from error
        check_runs(self.name, vectors)
        features, vector = self.features.fit(vectors.observations), vectors.vector
        forest = RandomForestRegressor(self.trees, random_state=seed)
        forest.fit(features.transform(vectors.observations), vector)
        gain = np.asarray(forest.feature_importances_, dtype=np.float64)
        return TreesPredictor(features, trees_of_forest(forest), least_entry(vector), gain)


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
    """XGBoost with trees of their own for each entry of the vector, and missing features left to it."""

    depth: int = DEPTH  # See `DEPTH`, `ROUNDS` and `RATE`
    rounds: int = ROUNDS
    rate: float = RATE
    # Take only so many features, those of the most gain in a first fit to the same rows (section VI-B);
    # `None` for all
    selected: int | None = None
    features: FeatureScale = field(default_factory=FeatureScale)  # What it learns from

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "published-xgboost" if self.selected is None else f"published-xgboost-{self.selected}"

    def fit(self, vectors: Vectors, seed: int, *, weights: Reals | None = None) -> TreesPredictor:
        """Fit it, in one thread: the same rows and seed give the same trees."""
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

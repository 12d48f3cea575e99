"""Features of counters and settings, trees on them, and the models of Nichols et al. 2024."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError, importing
from crosscast.prediction.relative import (
    NO_SOURCE,
    Observations,
    Vectors,
    check_runs,
    relative_to_slowest,
    unknown_counters_error,
)
from crosscast.prediction.relative.counters import INTENSITIES, SETTINGS, TABLE_3, table3_features
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.trained import single_threaded
from crosscast.prediction.trees import Trees, both_sides, trees_of_booster, trees_of_forest

if TYPE_CHECKING:
    from xgboost import Booster


# Scales: shares are unchanged; amounts become ``log(x + 1)``, signed values ``asinh(x)``
AS_IS, LOGARITHM, ROOT = range(3)
# Origins of features: Table III of Nichols et al. 2024 (two kinds), the dataset (two kinds), devices.
COUNTED, SETTING, OWN_COUNTER, OWN_SETTING, SOURCE = range(5)

_USES_GPU = SETTINGS[-1]


def scale_for(values: Reals) -> int:
    """Choose a scale from the values of the training rows: signed if one is below 0, else shares or amounts.

    Shares are from 0 to 1, or in percent from 0 to 100 and not all whole.
    """
    known = values[np.isfinite(values)]
    if known.min() < 0:
        return ROOT
    is_percent = known.max() <= 100 and bool((known != np.floor(known)).any())
    return AS_IS if known.max() <= 1 or is_percent else LOGARITHM


def on_scale(values: Reals, scale: int) -> Reals:
    """Transform values to a scale, negative amounts symmetrically; NaN where they are not finite."""
    values = np.where(np.isfinite(values), values, np.nan)
    if scale == LOGARITHM:
        return np.sign(values) * np.log1p(np.abs(values))
    return np.arcsinh(values) if scale == ROOT else values


class _Columns:
    """Values of the features of some rows, by origin and key, before they are scaled."""

    def __init__(self, rows: Observations) -> None:
        self.rows = rows
        counted, self.used = table3_features(rows)
        table = {
            COUNTED: zip(TABLE_3, counted.T, strict=True),
            OWN_COUNTER: zip(rows.names, rows.counters.T, strict=True),
            OWN_SETTING: zip(rows.configuration, rows.settings.T, strict=True),
        }
        self.values = {(origin, key): column for origin, each in table.items() for key, column in each}
        source = np.array(rows.source)
        for key in sorted(set(rows.source) - {NO_SOURCE}):
            self.values[SOURCE, key] = (source == key).astype(np.float64)
        for key in SETTINGS:
            self.values[SETTING, key] = self.values.pop((OWN_SETTING, key), np.full(len(rows), np.nan))

    def of(self, origin: int, key: str) -> Reals:
        """Values ``(r,)`` of a feature; without it, 0 for a device and NaN for others."""
        absent = 0.0 if origin == SOURCE else np.nan
        return np.asarray(self.values.get((origin, key), np.full(len(self.rows), absent)))

    def known(self, keys: set[str], counters: tuple[str, ...]) -> Flags:
        """Mask of the counters that are among some, or used by some features of Table III."""
        names = set(counters).union(*(self.used[TABLE_3.index(key)] for key in keys))
        return np.array([name in names for name in self.rows.names], dtype=np.bool_)


def fit_features(observations: Observations, *, own: bool = False, fill: bool = False) -> FittedFeatures:
    """Choose and scale features by these rows; constant ones are dropped.

    These are settings, devices with the counters, features of Table III for which there are counters, and the
    counters that none of them uses; with `own`, all counters instead. With `fill`, missing values become the
    mean of the training rows, with an indicator feature; else they stay NaN.
    """
    columns = _Columns(observations)
    used = {(OWN_COUNTER, name) for name in frozenset[str]().union(*columns.used) if not own}
    fitted = [
        column
        for origin, key in sorted(columns.values, key=lambda each: each[0])
        if (origin, key) not in used
        and not (own and origin == COUNTED)
        and (column := _fitted(origin, key, columns.of(origin, key))) is not None
    ]
    if not fitted:
        expected = f"some that differ between {len(observations)} runs"
        found = f"none among {', '.join(observations.names)[:200] or 'none'}"
        raise InputError.of(where="counters", expected=expected, found=found)
    origins, keys, scales, means, deviations, gaps = zip(*fitted, strict=True)
    origin, scale, mean, deviation, gap = (
        np.array(each) for each in (origins, scales, means, deviations, gaps)
    )
    return FittedFeatures(origin, keys, scale, mean, deviation, gap, fill, observations.names)


def _fitted(origin: int, key: str, raw: Reals) -> tuple[int, str, int, float, float, bool] | None:
    """A feature with its scale, mean, deviation and whether it has gaps; ``None`` if it is constant."""
    known = raw[np.isfinite(raw)]
    if known.size == 0 or known.min() == known.max():
        return None
    has_gaps = known.size < raw.size
    if origin in (OWN_COUNTER, OWN_SETTING):
        scale = scale_for(raw)
    else:
        scale = AS_IS if origin == SOURCE or key in (*INTENSITIES, _USES_GPU) else LOGARITHM
    if origin == SOURCE or key == _USES_GPU:
        return origin, key, scale, 0.0, 1.0, has_gaps
    values = on_scale(known, scale)
    mean, deviation = float(values.mean()), float(values.std())
    # Values that differ in their last digits only are constant up to rounding.
    if deviation <= 1e-12 * max(abs(mean), 1e-300):
        return None
    return origin, key, scale, mean, deviation, has_gaps


@dataclass(frozen=True, eq=False)
class FittedFeatures(Stored):
    """Features, as fitted to the training rows."""

    origins: Annotated[Integers, Array("k", low=0, high=SOURCE, least=1)]
    keys: Annotated[tuple[str, ...], Array("k")]  # features of Table III, counters, settings, devices
    scales: Annotated[Integers, Array("k", low=0, high=ROOT)]
    means: Annotated[Reals, Array("k")]  # of the training rows on that scale; 0 and 1 for unchanged values
    deviations: Annotated[Reals, Array("k", above=0)]
    gaps: Annotated[Flags, Array("k")]  # whether some training row has no value
    fill: bool
    known: tuple[str, ...]  # all counters of the training rows

    def check(self) -> None:
        """Raise InputError for unknown features of Table III."""
        published = np.isin(self.origins, (COUNTED, SETTING))
        for key, is_published in zip(self.keys, published, strict=True):
            if is_published and key not in (*TABLE_3, *SETTINGS):
                raise InputError.of(field="keys", expected="features of Table III", found=repr(key[:60]))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of `transform`, for people."""
        prefixes = {SOURCE: "source ", OWN_SETTING: "setting "}
        origins = zip(self.origins.tolist(), self.keys, strict=True)
        names = [f"{prefixes.get(origin, '')}{key}" for origin, key in origins]
        missing = np.flatnonzero(self.gaps) if self.fill else ()
        return (*names, *(f"{names[index]} is missing" for index in missing))

    def transform(self, observations: Observations) -> Reals:
        """Features of runs, ``(r, len(names))``.

        Columns of counters have mean 0 and deviation 1 over the training rows that have them.
        """
        columns, present = _Columns(observations), np.isfinite(observations.counters)
        unknown = present.any(axis=1) & ~present[:, columns.known(self._published, self.known)].any(axis=1)
        if unknown.any() and self.known:
            raise unknown_counters_error(observations, int(np.argmax(unknown)), self.known)
        fitted = zip(self.origins.tolist(), self.keys, self.scales.tolist(), strict=True)
        scaled = [on_scale(columns.of(origin, key), scale) for origin, key, scale in fitted]
        rows: Reals = (np.column_stack(scaled) - self.means) / self.deviations
        if not self.fill:
            return rows
        missing = np.isnan(rows)
        return np.hstack([np.where(missing, 0.0, rows), missing[:, self.gaps].astype(np.float64)])

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters of the rows that the training rows lack, and that no feature uses."""
        present = np.isfinite(observations.counters).any(axis=0)
        unknown = np.flatnonzero(present & ~_Columns(observations).known(self._published, self.known))
        return tuple(observations.names[index] for index in unknown)

    @property
    def _published(self) -> set[str]:
        """Its features of Table III that use counters."""
        return {key for origin, key in zip(self.origins, self.keys, strict=True) if origin == COUNTED}


@dataclass(frozen=True, eq=False)
class TreesOnFeatures(Stored, kind="relative-trees"):
    """Fitted trees of relative vectors of ``d`` devices."""

    features: Annotated[FittedFeatures, Nested(flat=True)]
    trees: Annotated[Trees, Nested(flat=True)]  # on the columns of `both_sides`
    least: Annotated[float, Array(above=0)]  # the least entry in the training
    # Mean gain of the splits at each feature; 0 for one without a split.
    gain: Annotated[Reals, Array("k", low=0)]

    def check(self) -> None:
        """Raise InputError for parts of different sizes."""
        count = len(self.features.names)
        self.trees.check_width(2 * count)
        if len(self.gain) != count:
            raise InputError.of(field="gain", expected=f"{count} numbers", found=len(self.gain))

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors, of shape ``(r, d)``."""
        return self.predict_features(self.features.transform(observations))

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters of runs that no feature uses."""
        return self.features.unknown_counters(observations)

    def predict_features(self, rows: Reals) -> Reals:
        """Predicted relative vectors from features; at least the least entry in the training, as above 0."""
        return np.maximum(self.trees.sum(both_sides(rows)), self.least)


@dataclass(frozen=True)
class VectorBoosting:
    """Settings of XGBoost with separate trees for each entry of the vector, minimising the MAE."""

    rounds: int  # trees for each entry
    rate: float
    depth: int = 6
    # Number of features, those of the most gain in a first fit to the same rows (section VI-B of Nichols et
    # al. 2024); `None` for all.
    selected: int | None = None

    def boost(
        self, features: FittedFeatures, rows: Reals, vector: Reals, seed: int, weights: Reals | None = None
    ) -> TreesOnFeatures:
        """Fit to features of training runs, in one thread: equal rows and seeds give equal trees."""
        columns = list(range(rows.shape[1]))
        booster, gain = self._booster(rows, columns, vector, weights, seed)
        if self.selected is not None:
            # Of features of equal gain, the first.
            columns = sorted(np.argsort(-gain, kind="stable")[: self.selected].tolist())
            booster, gain = self._booster(rows, columns, vector, weights, seed)
        sides = [*columns, *(column + rows.shape[1] for column in columns)]
        trees = trees_of_booster(booster, vector.shape[1]).with_columns(sides)
        return TreesOnFeatures(features, trees, float(vector.min()), gain)

    def _booster(
        self, rows: Reals, columns: list[int], vector: Reals, weights: Reals | None, seed: int
    ) -> tuple[Booster, Reals]:
        """Trees on some of the features, and the mean gain of their splits at each of all features."""
        with importing("train", "fitting a model of boosted trees"):
            import xgboost
        settings = {
            "objective": "reg:absoluteerror",
            "max_depth": self.depth,
            "eta": self.rate,
            "tree_method": "hist",
            "multi_strategy": "one_output_per_tree",
            "seed": seed % 2**31,
            "nthread": 1,
            "verbosity": 0,
        }
        chosen = rows[:, columns].astype(np.float32)
        data = xgboost.DMatrix(chosen, label=vector, weight=weights, nthread=1)
        booster = xgboost.train(settings, data, num_boost_round=self.rounds)
        gain = np.zeros(rows.shape[1])
        for name, value in booster.get_score(importance_type="gain").items():
            gain[columns[int(name.removeprefix("f"))]] = max(float(np.max(value)), 0.0)
        return booster, gain


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

    def unknown_counters(self, observations: Observations) -> None:
        """Return ``None``: it uses no counters."""


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

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters of runs that no feature uses."""
        return self.features.unknown_counters(observations)


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

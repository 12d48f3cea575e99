"""The default model: by-times for profiles and the blend for counters; extra trees; all models by name.

Extremely randomized trees are those of Geurts, Ernst and Wehenkel 2006 (doi:10.1007/s10994-006-6226-1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError, expect_known, importing
from crosscast.prediction.relative import (
    INVOCATIONS,
    NO_SOURCE,
    Observations,
    RelativeModel,
    RelativePredictor,
    Vectors,
    centred,
    check_runs,
    kernel_weights,
    relative_to_slowest,
)
from crosscast.prediction.relative.counters import (
    BYTES,
    ITEMS,
    LAUNCHES,
    OPERATIONS,
    Base,
    amounts_of,
    base_of,
    intensities_of,
    unknown_counters,
)
from crosscast.prediction.relative.nichols2024 import (
    FittedFeatures,
    LogMean,
    PublishedLinear,
    PublishedMean,
    PublishedVectorForest,
    PublishedXGBoost,
    TreesOnFeatures,
    VectorBoosting,
    fit_features,
)
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.time import Grid, ProfileBatch
from crosscast.prediction.time.models import Combined, CombinedPredictor
from crosscast.prediction.trees import Trees, trees_of_forest, within_singles
from crosscast.profile import METRICS


def _fit_features(vectors: Vectors) -> tuple[Base, FittedFeatures, Reals]:
    """The divisor of totals, fitted features of intensities, and their values."""
    base = base_of(vectors.observations)
    intensities = intensities_of(vectors.observations, base)
    features = fit_features(intensities, own=True, fill=True)
    return base, features, features.transform(intensities)


def _check_filled(features: FittedFeatures) -> None:
    if not features.fill:
        raise InputError.of(field="features.fill", expected="features whose gaps are filled", found="others")


def _random_trees(
    count: int, rows: Reals, vectors: Vectors, seed: int, max_features: float = 1.0, leaf: int = 1
) -> Trees:
    """Extremely randomized trees of centred log times, with equal weights of kernels."""
    with importing("train", "fitting a model"):
        from sklearn.ensemble import ExtraTreesRegressor
    forest = ExtraTreesRegressor(
        count, max_features=max_features, min_samples_leaf=leaf, random_state=seed, n_jobs=1
    )
    target, weights = centred(np.log(vectors.times_s)), kernel_weights(vectors.observations)
    forest.fit(within_singles(rows), target, sample_weight=weights)
    return trees_of_forest(forest)


@dataclass(frozen=True)
class IntensityTrees:
    """Extremely randomized trees on intensities: the best model for new sizes of known kernels."""

    name = "extra-trees"
    trees: int = 150

    def fit(self, vectors: Vectors, seed: int) -> ExtraTreesPredictor:
        """Fit the trees."""
        check_runs(self.name, vectors)
        base, features, rows = _fit_features(vectors)
        return ExtraTreesPredictor(features, _random_trees(self.trees, rows, vectors, seed), base)


@dataclass(frozen=True, eq=False)
class ExtraTreesPredictor(Stored, kind="relative-extra-trees"):
    """Fitted trees of centred logarithms of times, on features of intensities."""

    features: Annotated[FittedFeatures, Nested(flat=True)]
    trees: Annotated[Trees, Nested(flat=True)]
    base: Base

    def check(self) -> None:
        """Raise InputError unless the trees are on these features."""
        _check_filled(self.features)
        self.trees.check_width(len(self.features.names))

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors ``(r, d)``; the largest entry of a row is 1."""
        rows = self.features.transform(intensities_of(observations, self.base))
        return relative_to_slowest(np.exp(self.trees.sum(within_singles(rows))))

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters of runs that no feature uses."""
        return unknown_counters(observations, self.base, self.features.known)


def spread_rows(vectors: Vectors, most: int) -> Vectors:
    """At most `most` rows of each kernel, spread evenly from its shortest to its longest runs."""
    length = np.log(vectors.times_s).mean(axis=1)
    kernels: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, kernel in enumerate(vectors.observations.kernels):
        kernels[kernel].append(row)
    chosen = []
    for rows in map(np.array, kernels.values()):
        ordered = rows[np.argsort(length[rows], kind="stable")]
        positions = np.linspace(0, len(rows) - 1, min(len(rows), most)).round().astype(np.int64)
        chosen.append(np.sort(ordered[positions]))
    return vectors.rows(np.concatenate(chosen))


@dataclass(frozen=True)
class Effort:
    """Numbers of random trees and boosting rounds, and the rate of boosting."""

    trees: int
    rounds: int
    rate: float
    rows: int = 120  # Most rows of a kernel: more hardly improve predictions, and cost time and space
    leaf: int = 1  # Least rows in a leaf of the random trees


FULL = Effort(trees=300, rounds=100, rate=0.1)
# For trees that only measure errors, and are fitted many times
BRIEF = Effort(trees=80, rounds=40, rate=0.25)
# For a model of a few 100 KB
COMPACT = Effort(trees=60, rounds=100, rate=0.1, rows=30, leaf=2)
_SHARE_OF_FEATURES = 0.15  # Tried at a split: with few training kernels, trees should differ


@dataclass(frozen=True, eq=False)
class MixedTrees(Stored):
    """Boosted and random trees on the same features of intensities."""

    boosted: Annotated[TreesOnFeatures, Nested(flat=True)]  # of relative vectors
    grown: Trees  # of centred logarithms of times
    base: Base

    def check(self) -> None:
        """Raise InputError for trees of other features or devices."""
        _check_filled(self.boosted.features)
        self.grown.check_width(len(self.boosted.features.names), self.devices)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return len(self.boosted.trees.leaf_value.T)

    def log_relative(self, observations: Observations) -> Reals:
        """Logarithms of times less their mean over the devices, of shape ``(r, d)``."""
        rows = self.boosted.features.transform(intensities_of(observations, self.base))
        boosted = np.log(self.boosted.predict_features(rows))
        return centred((boosted + self.grown.sum(within_singles(rows))) / 2)


def fit_trees(vectors: Vectors, seed: int, effort: Effort = FULL) -> MixedTrees:
    """Fit boosted and random trees, with equal weights of kernels."""
    base, features, rows = _fit_features(vectors)
    weights = kernel_weights(vectors.observations)
    boosting = VectorBoosting(effort.rounds, effort.rate)
    boosted = boosting.boost(features, rows, vectors.vector, seed, weights / weights.mean())
    random = _random_trees(effort.trees, rows, vectors, seed, _SHARE_OF_FEATURES, effort.leaf)
    return MixedTrees(boosted, random, base)


_ROBUST = 0.5  # Error of a logarithm from which on the loss is linear
_PULL = 0.2  # Weight of a prior of prices, at which a term alone is about a third of the typical time
_THIRD = -1.0
_LEAST_S = 1e-30


def terms_of(observations: Observations) -> Reals:
    """Priced amounts, ``(r, 4)``: launches or 1, bytes, operations, and launches times bytes of an item.

    The last represents the time that parallelism does not shorten. NaN without counters.
    """
    amounts = amounts_of(observations)
    launches = np.where(amounts[LAUNCHES] > 0, amounts[LAUNCHES], 1.0)
    items = np.where(amounts[ITEMS] > 0, amounts[ITEMS], np.nan)
    return np.column_stack([launches, amounts[BYTES], amounts[OPERATIONS], launches * amounts[BYTES] / items])


@dataclass(frozen=True, eq=False)
class WorkPrices(Stored):
    """Prices of work on ``d`` devices: a time is the sum of amounts times their prices."""

    devices: Annotated[tuple[str, ...], Array("d")]
    # Seconds for a unit of each term; 0 for a term that the training runs lack.
    prices: Annotated[Reals, Array("4 d", low=0)]

    def check(self) -> None:
        """Raise InputError for a device without a price."""
        if not self.prices.any(axis=0).all():
            raise InputError.of(field="prices", expected="one above 0 for each device", found="none")

    def log_relative(self, observations: Observations, *, anchored: bool) -> Reals:
        """Logarithms of times less their mean over the devices, ``(r, d)``; NaN without an amount.

        If anchored, a run's measured time replaces the one on its source.
        """
        terms = terms_of(observations)
        used = self.prices.any(axis=1)
        times = np.log(np.maximum(terms[:, used] @ self.prices[used], _LEAST_S))
        for column, device in enumerate(self.devices if anchored else ()):
            rows = (np.array(observations.source) == device) & (observations.time_s > 0)
            times[rows, column] = np.log(observations.time_s[rows])
        return centred(times)


def fit_prices(
    observations: Observations, devices: tuple[str, ...], log_time: Reals, weights: Reals
) -> WorkPrices | None:
    """Fit prices to log times ``(r, d)``; ``None`` without counters of work other than launches."""
    terms = terms_of(observations)
    usable = np.isfinite(terms).all(axis=0) & (terms > 0).any(axis=0)
    if usable.sum() < 2:
        return None
    prices = np.zeros((terms.shape[1], len(devices)))
    root = np.sqrt(weights / weights.mean())
    for column in range(len(devices)):
        prices[usable, column] = _prices_of(terms[:, usable], log_time[:, column], root)
    return WorkPrices(devices, prices)


def _prices_of(terms: Reals, log_time: Reals, root: Reals) -> Reals:
    with importing("train", "fitting a model"):
        from scipy.optimize import least_squares
    # Prices at which each term alone equals the typical time of the runs that have it.
    typical = np.exp([np.median(log_time[term > 0] - np.log(term[term > 0])) for term in terms.T])
    scaled = terms * typical

    def errors(prices: Reals) -> Reals:
        residuals = np.log(np.maximum(scaled @ np.exp(prices), _LEAST_S)) - log_time
        return np.concatenate([residuals * root, _PULL * (prices - _THIRD)])

    starts = (np.full(terms.shape[1], start) for start in (-2.0, -1.0, 0.0))
    fits = [least_squares(errors, start, loss="soft_l1", f_scale=_ROBUST) for start in starts]
    best = min(fits, key=lambda fit: float(fit.cost))
    return np.asarray(typical * np.exp(best.x))


def mean_if_better(vectors: Vectors, held_out: Sequence[tuple[Vectors, Vectors, Reals]]) -> Reals | None:
    """The mean of centred log times, unless the model is better; then ``None``.

    For each held-out part of the kernels `held_out` has the other ones, the part, and its predicted
    logarithms. The model has to be better than the mean by more than a standard error over kernels (the
    one-standard-error rule of Breiman et al. 1984), as a few kernels may favour it by chance.
    """
    gains: list[float] = []
    for rest, out, log in held_out:
        mean = centred(np.log(rest.times_s)).mean(axis=0, keepdims=True)
        errors = [np.abs(relative_to_slowest(np.exp(each)) - out.vector).mean(axis=1) for each in (mean, log)]
        kernels = np.array(["/".join(kernel) for kernel in out.observations.kernels])
        gains += [float((errors[0] - errors[1])[kernels == kernel].mean()) for kernel in np.unique(kernels)]
    if len(gains) < 2 or np.mean(gains) > np.std(gains, ddof=1) / np.sqrt(len(gains)):
        return None
    return np.asarray(centred(np.log(vectors.times_s)).mean(axis=0))


@dataclass(frozen=True, eq=False)
class BlendPredictor(Stored, kind="relative-blend"):
    """A weighted mean of log times: of trees, and of priced work."""

    trees: Annotated[MixedTrees, Nested(flat=True)]
    prices: WorkPrices | None  # `None` without counters of work
    share: Annotated[float, Array(low=0, high=1)]  # of the priced work
    anchored: bool  # whether a run's measured time replaces the priced one on its source
    # Logarithms predicted for all runs, where the model is not better; else `None`
    mean: Annotated[Reals, Array("d")] | None = None

    def check(self) -> None:
        """Raise InputError for prices or a mean on other devices."""
        if self.mean is not None and len(self.mean) != self.trees.devices:
            raise InputError.of(field="mean", expected=f"{self.trees.devices} devices", found=len(self.mean))
        devices = 0 if self.prices is None else len(self.prices.devices)
        if devices != self.trees.devices and (devices or self.share > 0):
            raise InputError.of(field="prices", expected=f"{self.trees.devices} devices", found=devices)

    def predict(self, observations: Observations) -> Reals:
        """Relative vectors ``(r, d)``, without counters of work by trees alone; the largest entry is 1."""
        if self.mean is not None:
            return _constant_vectors(self.mean, observations)
        log = self.trees.log_relative(observations)
        if self.prices is not None:
            log = _mixed(log, self.prices.log_relative(observations, anchored=self.anchored), self.share)
        return relative_to_slowest(np.exp(log))

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters of runs that no feature uses."""
        return unknown_counters(observations, self.trees.base, self.trees.boosted.features.known)


def _constant_vectors(mean: Reals, observations: Observations) -> Reals:
    return np.tile(relative_to_slowest(np.exp(mean)[None]), (len(observations), 1))


def _mixed(log: Reals, priced: Reals, share: float) -> Reals:
    known = np.isfinite(priced).all(axis=1, keepdims=True)
    return np.asarray(np.where(known, (1 - share) * log + share * np.where(known, priced, 0.0), log))


_FOLDS = 8
_HALF = (0.5, True)  # Share and anchor with too few kernels to hold out, or without any error


def fit_blend(vectors: Vectors, seed: int, effort: Effort = FULL, brief: Effort = BRIEF) -> BlendPredictor:
    """Fit trees on intensities and priced work, with the share and anchor that are best on held-out kernels.

    `brief` is the effort of fits without a part of the kernels.
    """
    rows = spread_rows(vectors, effort.rows)
    trees, prices = _parts(rows, seed, effort)
    share, anchored, mean = _best_mix(rows, seed, brief)
    if prices is None:
        share, anchored = 0.0, False
    return BlendPredictor(trees, prices, share, anchored, mean)


def _parts(vectors: Vectors, seed: int, effort: Effort) -> tuple[MixedTrees, WorkPrices | None]:
    observations, log_time = vectors.observations, np.log(vectors.times_s)
    trees = fit_trees(vectors, seed, effort)
    return trees, fit_prices(observations, vectors.devices, log_time, kernel_weights(observations))


def _best_mix(vectors: Vectors, seed: int, effort: Effort) -> tuple[float, bool, Reals | None]:
    """Choose the share of priced work by the errors of both parts on held-out kernels.

    Weights are proportional to the inverse of the squared error, as for independent measurements. The share
    of the least error of the mixture itself would depend on a few kernels by chance.
    """
    errors: list[list[float]] = []
    parts: list[tuple[Vectors, Vectors, MixedTrees, WorkPrices | None]] = []
    for rest, out in _without_kernels(vectors, seed):
        try:
            trees, prices = _parts(rest, seed, effort)
        except InputError:
            # All features of the few remaining runs are constant: skip the part.
            continue
        parts.append((rest, out, trees, prices))
        if prices is not None:
            errors += _errors(trees, prices, out)
    share, anchored = _HALF
    if errors:
        of_trees, with_own, free = np.mean(errors, axis=0).tolist()
        of_prices = min(with_own, free)
        total = of_trees**2 + of_prices**2
        share, anchored = (of_trees**2 / total, with_own <= free) if total > 0 else _HALF
    held_out = []
    for rest, out, trees, prices in parts:
        log = trees.log_relative(out.observations)
        if prices is not None:
            log = _mixed(log, prices.log_relative(out.observations, anchored=anchored), share)
        held_out.append((rest, out, log))
    return share, anchored, mean_if_better(vectors, held_out)


def _without_kernels(vectors: Vectors, seed: int) -> Iterator[tuple[Vectors, Vectors]]:
    """Rows without a part of the kernels, and the rows of the part, for each part."""
    folds = _kernel_folds(vectors.observations, seed)
    for fold in range(int(folds.max()) + 1):
        if not (folds == fold).all():
            yield vectors.rows(folds != fold), vectors.rows(folds == fold)


def _errors(trees: MixedTrees, prices: WorkPrices, held_out: Vectors) -> list[list[float]]:
    """Mean absolute errors of trees, anchored and free prices, on rows with counters of work."""
    observations = held_out.observations
    free = prices.log_relative(observations, anchored=False)
    priced = np.isfinite(free).all(axis=1)
    if not priced.any():
        return []
    logs = (trees.log_relative(observations), prices.log_relative(observations, anchored=True), free)
    true, weights = held_out.vector[priced], kernel_weights(observations)[priced]
    errors = [np.abs(relative_to_slowest(np.exp(log[priced])) - true).mean(axis=1) for log in logs]
    return [[float(np.average(each, weights=weights)) for each in errors]]


def _kernel_folds(observations: Observations, seed: int) -> Integers:
    """Number of the fold of each row; whole kernels are assigned at random."""
    known = sorted(set(observations.kernels))
    folds = np.random.default_rng(seed).permutation(len(known)) % _FOLDS
    number = dict(zip(known, folds.tolist(), strict=True))
    return np.array([number[kernel] for kernel in observations.kernels], dtype=np.int64)


_METRICS = tuple(metric.name for metric in METRICS)


def are_profiles(observations: Observations) -> bool:
    """Whether all rows are profiles of no device, with metrics for counters."""
    return set(observations.source) == {NO_SOURCE} and set(observations.names) <= set(_METRICS)


def profiles_of(observations: Observations) -> ProfileBatch:
    """The profiles of rows that `crosscast.prediction.relative.observations_of_profiles` made."""
    counters = dict(zip(observations.names, observations.counters.T, strict=True))
    settings = dict(zip(observations.configuration, observations.settings.T, strict=True))
    missing = np.full(len(observations), np.nan)
    metrics = np.column_stack([counters.get(name, missing) for name in _METRICS])
    invocations = settings.get(INVOCATIONS, missing)
    counts = np.where(invocations >= 1, invocations, 1).astype(np.int64)
    return ProfileBatch(observations.application, observations.kernel, observations.size, metrics, counts)


@dataclass(frozen=True, eq=False)
class ByTimesPredictor(Stored, kind="relative-by-times"):
    """A fitted model of times, from which ratios follow."""

    times: Annotated[CombinedPredictor, Nested(flat=True)]
    # Logarithms predicted for all runs, where the model is not better; else `None`
    mean: Annotated[Reals, Array("d")] | None = None

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors ``(r, d)``; the largest entry of a row is 1.

        Half of the correction of single devices is chance, so it is halved.
        """
        if not are_profiles(observations):
            expected = "architecture-independent profiles, which the model was trained on"
            found = "counters of a device, a profile whose counters the model does not know"
            raise InputError.of(where="profile", expected=expected, found=found)
        if self.mean is not None:
            return _constant_vectors(self.mean, observations)
        return relative_to_slowest(np.exp(_log_by_times(self.times, observations)))

    def unknown_counters(self, observations: Observations) -> None:
        """Return ``None``: it uses metrics of profiles alone."""


def _log_by_times(times: CombinedPredictor, observations: Observations) -> Reals:
    profiles = profiles_of(observations)
    return centred(0.5 * times.log_time(profiles) + 0.5 * times.physical.log_time(profiles))


def fit_by_times(vectors: Vectors, seed: int) -> ByTimesPredictor:
    """Fit a model of times to profiles, and to parts of the kernels to compare it with a mean."""

    def fitted(part: Vectors) -> CombinedPredictor:
        log_time, profiles = np.log(part.times_s), profiles_of(part.observations)
        spread, runs = np.full_like(log_time, np.nan), np.ones(log_time.shape, dtype=np.int64)
        return Combined().fit(Grid(profiles, part.described, log_time, spread, runs), seed)

    parts = _without_kernels(vectors, seed)
    held_out = [(rest, out, _log_by_times(fitted(rest), out.observations)) for rest, out in parts]
    return ByTimesPredictor(fitted(vectors), mean_if_better(vectors, held_out))


@dataclass(frozen=True)
class CombinedRelative:
    """The model of times for profiles on described devices, the blend for counters."""

    name = "combined"
    effort = FULL

    def fit(self, vectors: Vectors, seed: int) -> RelativePredictor:
        """Fit the model for the kind of the rows."""
        check_runs(self.name, vectors)
        if not (vectors.described and are_profiles(vectors.observations)):
            return fit_blend(vectors, seed, self.effort)
        return fit_by_times(vectors, seed)


@dataclass(frozen=True)
class CompactRelative(CombinedRelative):
    """`CombinedRelative` with fewer and smaller trees, for a model of a few 100 KB."""

    name = "compact"
    effort = COMPACT


DEFAULT_MODEL = "combined"

BASELINES = ("published-mean", "log-mean")  # Models without counters, which all others must beat

_MODELS: tuple[Callable[[], RelativeModel], ...] = (
    *(PublishedMean, LogMean, PublishedLinear, PublishedVectorForest, PublishedXGBoost),
    *(IntensityTrees, CompactRelative, CombinedRelative),
)
MODELS = {make().name: make for make in _MODELS}  # Factories by name, from the trivial to the strong


def models_named(names: Sequence[str]) -> list[RelativeModel]:
    """Return new models, in the order of their names."""
    expect_known(names, MODELS, where="models")
    return [MODELS[name]() for name in dict.fromkeys(names)]

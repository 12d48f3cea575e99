"""Rows that the blend learns from: no kernel weighs more than another, or has more than so many rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.artefact import kept_integers, kept_reals
from crosscast.predict.relative.data import (
    Observations,
    Vectors,
    check_runs,
    kernel_weights,
    relative_to_slowest,
)
from crosscast.predict.relative.features import FeatureScale
from crosscast.predict.relative.nichols2024 import (
    RATE,
    ROUNDS,
    PublishedXGBoost,
    TreesPredictor,
    within_singles,
)
from crosscast.predict.relative.sums import (
    FittedSums,
    base_of,
    fit_sums,
    intensities_of,
    kept_base,
    unknown_counters,
)
from crosscast.predict.trees import Trees, kept_trees, trees_of_forest

_MOST = 120
"""Rows of a kernel: more of one that was run at a thousand sizes tell hardly more, and cost time."""


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to fit to."""

    vectors: Vectors  # `r` rows
    log_time: Reals  # Logarithms of times in seconds, of shape `(r, d)`
    weights: Reals  # Weight of each row, of shape `(r,)`: kernels weigh the same

    @property
    def log_relative(self) -> Reals:
        """Logarithms of times less their mean over the devices, of shape ``(r, d)``."""
        centred: Reals = self.log_time - self.log_time.mean(axis=1, keepdims=True)
        return centred

    def rows(self, places: Integers) -> TrainingRows:
        """Some of the rows."""
        return TrainingRows(self.vectors.rows(places), self.log_time[places], self.weights[places])


def training_rows(vectors: Vectors) -> TrainingRows:
    """Take rows of each kernel, spread evenly from its shortest to its longest runs."""
    seen, log_time = vectors.observations, np.log(vectors.times_s)
    length = log_time.mean(axis=1)
    kernels: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, kernel in enumerate(zip(seen.application, seen.kernel, strict=True)):
        kernels[kernel].append(row)
    chosen = [_spread(np.array(rows), length) for rows in kernels.values()]
    places = np.concatenate(chosen)
    kept = vectors.rows(places)
    return TrainingRows(kept, log_time[places], kernel_weights(kept.observations))


def _spread(rows: Integers, length: Reals) -> Integers:
    if len(rows) <= _MOST:
        return rows
    ordered = rows[np.argsort(length[rows], kind="stable")]
    return np.sort(ordered[np.linspace(0, len(rows) - 1, _MOST).round().astype(np.int64)])


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
    """Trees of ``d`` devices."""

    boosted: TreesPredictor  # Boosted trees of relative vectors, with what makes `k` features of intensities
    grown: Trees  # Extremely randomized trees of centred logarithms of times, on the same features
    base: str  # What totals are divided by, one of `crosscast.predict.relative.sums.BASES`

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
        """Make it from its arrays."""
        boosted = TreesPredictor.from_state(state)
        if not boosted.features.fill:
            raise InputError("model: feature_fill: expected features whose gaps are filled, found others")
        own = {name.removeprefix(_GROWN): values for name, values in state.items() if name.startswith(_GROWN)}
        grown = kept_trees(own, len(boosted.features.names))
        counts = boosted.trees.leaf_value.shape[1], grown.leaf_value.shape[1]
        if counts[0] != counts[1]:
            raise InputError(f"model: grown_leaf_value: expected {counts[0]} devices, found {counts[1]}")
        return cls(boosted, grown, kept_base(state))


def fit_preference(rows: TrainingRows, seed: int, effort: Effort = FULL) -> FittedPreference:
    """Grow and boost the trees.

    Extremely randomized trees are those of Geurts, Ernst and Wehenkel 2006 (doi:10.1007/s10994-006-6226-1).
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


_FOLDS = 8
"""Parts of the kernels that are left out in turn."""


@dataclass(frozen=True)
class Mix:
    """How trees and sums are mixed."""

    share: float  # Share of the sums in the mean of the logarithms
    anchored: bool  # Whether the sums take a run's own time on its source


_UNTOLD = Mix(0.5, True)
"""Where too few kernels are there to leave some out, or neither errs."""


@dataclass(frozen=True, eq=False)
class BlendPredictor:
    """A fitted blend."""

    preference: FittedPreference  # The trees
    sums: FittedSums | None  # The sums of work; `None` if the counters tell of no work
    mix: Mix  # How the two are mixed

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors, of shape ``(r, d)``; the largest entry of a row is 1."""
        log = self.preference.log_relative(observations)
        if self.sums is not None:
            log = _mixed(
                log, self.sums.log_relative(observations, anchored=self.mix.anchored), self.mix.share
            )
        return relative_to_slowest(np.exp(log))

    def unknown_counters(self, observations: Observations) -> tuple[str, ...]:
        """Counters of runs that it does not look at: neither they nor what they mean were in the training."""
        return self.preference.unknown_counters(observations)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        sums = {} if self.sums is None else self.sums.state()
        mix = {"share": np.array([self.mix.share]), "anchored": np.array([self.mix.anchored], dtype=np.int64)}
        return {**self.preference.state(), **sums, **mix}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> BlendPredictor:
        """Make it from its arrays."""
        preference, share = FittedPreference.from_state(state), kept_reals(state, "share", 1)
        anchored = kept_integers(state, "anchored", 1, (0, 2))
        if len(share) != 1 or not 0 <= share[0] <= 1:
            raise InputError(f"model: share: expected one number from 0 to 1, found {share.tolist()}")
        if len(anchored) != 1:
            raise InputError(f"model: anchored: expected one integer, found {anchored.tolist()}")
        has_sums = share[0] > 0 or "prices" in state
        sums = FittedSums.from_state(state) if has_sums else None
        devices = preference.grown.leaf_value.shape[1]
        if sums is not None and len(sums.devices) != devices:
            raise InputError(f"model: prices: expected {devices} devices, found {len(sums.devices)}")
        return cls(preference, sums, Mix(float(share[0]), bool(anchored[0])))


def _mixed(trees: Reals, sums: Reals, share: float) -> Reals:
    """The weighted mean; the trees alone where the sums know nothing of a run."""
    known = np.isfinite(sums).all(axis=1, keepdims=True)
    return np.where(known, (1 - share) * trees + share * np.where(known, sums, 0.0), trees)


@dataclass(frozen=True)
class Blend:
    """Trees on intensities and sums of work, mixed as serves groups that were left out of the training rows.

    The share of the sums, and whether they take a run's own time, are found by leaving kernels out of the
    training rows.
    """

    effort: Effort = FULL  # How many trees predict
    brief: Effort = BRIEF  # How many trees are grown for each part of the kernels that is left out

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "blend"

    def fit(self, vectors: Vectors, seed: int) -> BlendPredictor:
        """Fit it."""
        check_runs(self.name, vectors)
        rows = training_rows(vectors)
        preference, sums = _parts(rows, seed, self.effort)
        return BlendPredictor(
            preference, sums, Mix(0.0, False) if sums is None else _best_mix(rows, seed, self.brief)
        )


def _parts(rows: TrainingRows, seed: int, effort: Effort) -> tuple[FittedPreference, FittedSums | None]:
    seen, devices = rows.vectors.observations, rows.vectors.devices
    return (
        fit_preference(rows, seed, effort),
        fit_sums(seen, devices, rows.log_time, rows.weights),
    )


def _best_mix(rows: TrainingRows, seed: int, effort: Effort) -> Mix:
    """Weigh the parts by how well each does by itself on groups that were left out.

    Weights go with the inverse of the squared error, as of two independent measurements. The share with the
    least error of the mean itself would be chosen by the luck of a few kernels.
    """
    groups = _groups(rows.vectors.observations, seed)
    errors: list[list[float]] = []
    for group in range(int(groups.max()) + 1):
        inside, outside = np.flatnonzero(groups != group), np.flatnonzero(groups == group)
        if not len(inside):
            break
        try:
            preference, sums = _parts(rows.rows(inside), seed, effort)
        except InputError:
            # Nothing differs between the few runs that are left: they tell nothing of the mix.
            continue
        if sums is not None:
            errors += _errors(preference, sums, rows.rows(outside))
    if not errors:
        return _UNTOLD
    trees, anchored, free = np.mean(errors, axis=0).tolist()
    sums_alone = min(anchored, free)
    total = trees**2 + sums_alone**2
    return Mix(trees**2 / total, anchored <= free) if total > 0 else _UNTOLD


def _errors(preference: FittedPreference, sums: FittedSums, held: TrainingRows) -> list[list[float]]:
    """Mean absolute errors of the trees, the anchored sums and the free ones, where sums tell something."""
    seen = held.vectors.observations
    free = sums.log_relative(seen, anchored=False)
    told = np.isfinite(free).all(axis=1)
    if not told.any():
        return []
    logs = (preference.log_relative(seen), sums.log_relative(seen, anchored=True), free)
    known, weights = held.vectors.vector[told], held.weights[told]
    wrong = [np.abs(relative_to_slowest(np.exp(log[told])) - known).mean(axis=1) for log in logs]
    return [[float(np.average(each, weights=weights)) for each in wrong]]


def _groups(seen: Observations, seed: int) -> Integers:
    """A number for each row, the same for all of a kernel; kernels are dealt to the numbers by chance."""
    kernels = list(zip(seen.application, seen.kernel, strict=True))
    known = sorted(set(kernels))
    dealt = np.random.default_rng(seed).permutation(len(known)) % _FOLDS
    number = dict(zip(known, dealt.tolist(), strict=True))
    return np.array([number[kernel] for kernel in kernels], dtype=np.int64)

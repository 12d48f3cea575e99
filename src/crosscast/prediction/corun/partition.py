"""Relative time of jobs alone on parts of a GPU, predicted from mixes of jobs at levels of MPS."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType
from typing import Literal

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import Mixes
from crosscast.errors import InputError, importing

Novelty = Literal["known jobs", "new job"]
"""What a model will be asked about: new mixes of jobs that it knows from others, or mixes with a new job."""

NOVELTIES: tuple[Novelty, ...] = ("known jobs", "new job")

_SET_FOLDS, _JOB_BLOCKS, _MOST_SCORED, _TINY = 4, 6, 400, 1e-9


def features_of(shared: Reals, judged: Flags) -> Reals:
    """Features of the co-runners of ``n`` mixes that are judged, of shape ``(r, 5 l + 1)``.

    A row for each, in the order of mixes and co-runners: its own logarithms of times, the mean, maximum,
    minimum and standard deviation of those of the others, and the share of co-runners that are judged.
    Logarithms are centred for each co-runner, as its times are known relative to each other alone. The order
    of the others does not matter.
    """
    if shared.ndim != 3 or shared.shape[1] < 2 or judged.shape != shared.shape[:2]:
        expected = "the shape (n, k, l), k at least 2, and judged (n, k)"
        raise InputError.of(where="shared", expected=expected, found=f"{shared.shape} and {judged.shape}")
    wrong = ~(np.isfinite(shared) & (shared > 0))
    if wrong.any():
        raise InputError.of(where="shared", expected="times above 0", found=f"{shared[wrong][0]:g}")
    logs = np.log(shared)
    logs -= logs.mean(axis=2, keepdims=True)
    own = []
    for place in range(shared.shape[1]):
        # Sorted, so that sums do not depend on the order in which others are.
        others = np.sort(np.delete(logs, place, axis=1), axis=1)
        told = (others.mean(axis=1), others.max(axis=1), others.min(axis=1), others.std(axis=1))
        own.append(np.concatenate([logs[:, place], *told], axis=1))
    count = np.broadcast_to(judged.mean(axis=1)[:, None, None], (*judged.shape, 1))
    return np.asarray(np.concatenate([np.stack(own, axis=1), count], axis=2)[judged])


@dataclass(frozen=True, eq=False)
class MixFold:
    """A part of the co-runners, to be predicted by a model that was fitted to other mixes."""

    held_out: str  # What is held out, for people
    train: Flags  # Whether each mix is learned from, of shape `(n,)`
    test: Flags  # Whether each co-runner is predicted, of shape `(n, k)`; none of a mix that is learned from


def folds_without_sets(mixes: Mixes, count: int, seed: int) -> tuple[MixFold, ...]:
    """Leave mixes out in folds, those of the same jobs together."""
    number = mixes.job_set
    sets = int(number.max(initial=-1)) + 1
    if sets < 2:
        raise InputError.of(where=mixes.label, expected="mixes of at least 2 sets of jobs", found=sets)
    parts = np.array_split(np.random.default_rng(seed).permutation(sets), min(count, sets))
    tested = [np.isin(number, part) for part in parts]
    return tuple(
        MixFold(f"mixes, part {place}", ~each, each[:, None] & mixes.judged)
        for place, each in enumerate(tested, start=1)
    )


def folds_without_jobs(mixes: Mixes, blocks: Sequence[Integers]) -> tuple[MixFold, ...]:
    """Leave jobs out in blocks, with all mixes that any of them is in, and predict these jobs alone."""
    folds = []
    for block in blocks:
        test = np.isin(mixes.job, block)
        train = ~np.asarray(test.any(axis=1))
        names = ", ".join(mixes.jobs[job] for job in block.tolist())
        if not (train[:, None] & mixes.judged).any():
            expected = f"mixes without {names} to learn from"
            raise InputError.of(where=mixes.label, expected=expected, found="none")
        if test.any():
            folds.append(MixFold(names, train, test))
    return tuple(folds)


def folds_within(mixes: Mixes, novelty: Novelty, seed: int) -> tuple[MixFold, ...]:
    """Folds within training mixes that are to these as what will be asked about is to all of them."""
    if novelty == "known jobs":
        return folds_without_sets(mixes, _SET_FOLDS, seed)
    there = np.unique(mixes.job[mixes.judged])
    if len(there) < 2:
        raise InputError.of(where=mixes.label, expected="at least 2 jobs to learn from", found=len(there))
    random = np.random.default_rng(seed)
    blocks = np.array_split(random.permutation(there), min(_JOB_BLOCKS, len(there)))
    folds = []
    for fold in folds_without_jobs(mixes, blocks):
        # Blocks of jobs in many mixes tell as much by some of their co-runners.
        places = np.flatnonzero(fold.test)
        if len(places) > _MOST_SCORED:
            places = random.choice(places, _MOST_SCORED, replace=False)
        test = np.isin(np.arange(fold.test.size), places).reshape(fold.test.shape)
        folds.append(MixFold(fold.held_out, fold.train, test))
    return tuple(folds)


Rows = tuple[Reals, Reals]
"""Co-runners to learn from: features, (r, f), see `features_of`, and relative times on parts, (r, s)."""


def sample(rows: Rows, most: int, seed: int) -> Rows:
    """At most so many of the rows, at random."""
    count = len(rows[0])
    if count <= most:
        return rows
    chosen = np.sort(np.random.default_rng(seed).choice(count, most, replace=False))
    return rows[0][chosen], rows[1][chosen]


@dataclass(frozen=True)
class Effort:
    """How much work a fit may be."""

    trees: int  # Trees of a forest
    tree_rows: int  # Rows that trees learn from, drawn at random where there are more
    ridge_rows: int  # The same for kernel ridge regression


_EVERY = 1 << 40
# Trees and kernels that know fewer co-runners are as good where the job is new.
_WHOLE = {"known jobs": Effort(100, _EVERY, 2000), "new job": Effort(50, 4000, 2000)}
_WITHIN = {"known jobs": Effort(30, _EVERY, 1000), "new job": Effort(20, 1500, 800)}

Fitted = Callable[[Reals], Reals]
"""What was learned: from features of shape ``(r, f)`` to relative times on parts, of shape ``(r, s)``.

That of a `Learner` predicts in several ways at once, of shape ``(ways, r, s)``.
"""

Way = tuple[float, float]
"""Width of the Gaussians of a ridge, and its weight beside the median of trees."""

Learner = Callable[[Rows, Effort, int, Sequence[Way]], Fitted]
"""Learns from rows with so much work and a seed; those that have no choice learn in one way."""

WAYS: tuple[Way, ...] = tuple(product((0.01, 0.03, 0.1), (0.0, 0.25, 0.5, 0.75, 1.0)))
"""Ways among which the errors on what is left out in training choose."""


def fit_mean(rows: Rows, *_: object) -> Fitted:
    """The mean of each size of parts, whatever is asked."""
    means: Reals = rows[1].mean(axis=0)
    return lambda features: np.tile(means, (1, len(features), 1))


def fit_forest(rows: Rows, effort: Effort, seed: int, *_: object) -> Fitted:
    """The mean over trees with scikit-learn's defaults.

    Moolchandani et al. 2022 have no parts of GPUs; this is their kind of model, on what is known of the
    co-runner itself and of the others together.
    """
    with importing("train", "fitting a model"):
        from sklearn.ensemble import RandomForestRegressor

    features, alone = sample(rows, effort.tree_rows, seed)
    own_and_mean = slice(0, 2 * (features.shape[1] - 1) // 5)
    forest = RandomForestRegressor(effort.trees, random_state=seed)
    forest.fit(features[:, own_and_mean], alone)
    return lambda features: np.asarray([forest.predict(features[:, own_and_mean])])


def fit_tree_median(rows: Rows, effort: Effort, seed: int) -> Fitted:
    """The median of trees, each of which proposes what a co-runner that it has seen does.

    A mean over the proposals lies between jobs, where no job is; the median is of one of them, and the least
    wrong in absolute error.
    """
    with importing("train", "fitting a model"):
        from sklearn.ensemble import ExtraTreesRegressor

    forest = ExtraTreesRegressor(effort.trees, random_state=seed)
    forest.fit(*sample(rows, effort.tree_rows, seed))
    return lambda features: np.asarray(
        np.median([tree.predict(features.astype(np.float32)) for tree in forest.estimators_], axis=0)
    )


_PENALTY = 0.3


def fit_ridge(rows: Rows, effort: Effort, seed: int, gamma: float) -> Fitted:
    """Kernel ridge regression on standard scores of the features, held to 0 to 1."""
    with importing("train", "fitting a model"):
        from sklearn.kernel_ridge import KernelRidge

    centre, spread, level = rows[0].mean(axis=0), rows[0].std(axis=0) + _TINY, rows[1].mean(axis=0)
    features, alone = sample(rows, effort.ridge_rows, seed)
    ridge = KernelRidge(alpha=_PENALTY, kernel="rbf", gamma=gamma)
    ridge.fit((features - centre) / spread, alone - level)
    return lambda features: np.clip(ridge.predict((features - centre) / spread) + level, 0.0, 1.0)


def fit_blend(rows: Rows, effort: Effort, seed: int, ways: Sequence[Way]) -> Fitted:
    """Weighted means of the median of trees and of ridges."""
    trees = fit_tree_median(rows, effort, seed)
    ridges = {gamma: fit_ridge(rows, effort, seed, gamma) for gamma in sorted({gamma for gamma, _ in ways})}

    def predict(features: Reals) -> Reals:
        median = trees(features)
        smooth = {gamma: ridge(features) for gamma, ridge in ridges.items()}
        return np.stack([(1.0 - weight) * median + weight * smooth[gamma] for gamma, weight in ways])

    return predict


PARTITION_BASELINES = ("mean",)
"""Those that look at no mix: anything else must beat them."""

PARTITION_MODELS: Mapping[str, Learner] = MappingProxyType(
    {"mean": fit_mean, "published-forest": fit_forest, "partition": fit_blend}
)
"""The models, from the trivial to the strong."""


@dataclass(frozen=True, eq=False)
class PartitionPrediction:
    """Relative times of ``r`` co-runners alone on ``s`` sizes of parts, of shape ``(r, s)``."""

    centre: Reals  # Over the time on the part on which it is slowest
    low: Reals  # Limits of its interval
    high: Reals


@dataclass(frozen=True)
class PartitionModel:
    """A way to learn, chosen and calibrated for what will be asked about."""

    name: str  # One of `PARTITION_MODELS`
    # What is left out within training: ways are chosen by errors on that, and intervals are as wide as these
    novelty: Novelty = "new job"

    def __post_init__(self) -> None:
        """Refuse other names."""
        if self.name not in PARTITION_MODELS:
            expected = f"one of {', '.join(PARTITION_MODELS)}"
            raise InputError.of(where="models", expected=expected, found=repr(self.name))

    def fit(self, mixes: Mixes, seed: int) -> FittedPartition:
        """Fit it to mixes."""
        judged = mixes.judged
        features = np.full((*judged.shape, 5 * len(mixes.levels) + 1), np.nan)
        features[judged] = features_of(mixes.shared, judged)
        learner, parts = PARTITION_MODELS[self.name], []
        for number, fold in enumerate(folds_within(mixes, self.novelty, seed)):
            train = fold.train[:, None] & judged
            rows = features[train], mixes.alone[train]
            fitted = learner(rows, _WITHIN[self.novelty], seed + number, WAYS)
            parts.append(np.abs(fitted(features[fold.test]) - mixes.alone[fold.test]))
        errors = np.concatenate(parts, axis=1)
        best = int(errors.mean(axis=(1, 2)).argmin())
        rows = features[judged], mixes.alone[judged]
        whole = learner(rows, _WHOLE[self.novelty], seed, WAYS[best : best + 1])
        return FittedPartition(mixes.levels, lambda some: whole(some)[0], errors[best])


@dataclass(frozen=True, eq=False)
class FittedPartition:
    """A fitted model; see `PartitionModel`."""

    levels: tuple[float, ...]  # Percentages of MPS at which mixes are run
    fitted: Fitted
    errors: Reals  # Absolute errors on what was left out in training, of shape `(e, s)`

    def half_width(self, level: float) -> Reals:
        """How far intervals extend to both sides on each size of parts, of shape ``(s,)``.

        Quantiles of the errors on co-runners that were left out (split conformal). Co-runners count the same:
        the few jobs that are left out as a block are not taken as one error each.
        """
        count = len(self.errors)
        place = min(count, int(np.ceil((count + 1) * level - _TINY))) - 1
        return np.asarray(np.sort(self.errors, axis=0)[max(place, 0)])

    def predict(self, shared: Reals, judged: Flags, level: float = 0.9) -> PartitionPrediction:
        """Predict co-runners of mixes."""
        if shared.shape[2:] != (len(self.levels),):
            expected = f"{len(self.levels)} levels"
            raise InputError.of(where="shared", expected=expected, found=f"shape {shared.shape}")
        centre, half_width = self.fitted(features_of(shared, judged)), self.half_width(level)
        low, high = np.clip([centre - half_width, centre + half_width], 0.0, 1.0)
        # By rounding, a prediction of 1 may be below a time of 1.
        return PartitionPrediction(centre, low - _TINY, high + _TINY)

"""Evaluate models of relative times on held-out rows: splits, scores and bootstrap.

Scores of predicted relative vectors are the published two, and the cost of choosing by them.

For a row with times ``t_j``, vector ``v_j = t_j / max t`` and prediction ``p_j`` over ``d`` devices:

- *absolute error*: mean over j of ``|p_j - v_j|``; its mean over rows is MAE;
- *same order*: 1 where every device has the same rank in both (Nichols et al. 2024, section VI-C), that is
  ``p_i < p_j`` for each pair with ``v_i < v_j``. Devices that truly tie may be predicted in either order;
  devices that are predicted to tie, and truly do not, are in the wrong order;
- *top-1*: 1 where the device of least ``p`` (the first of several) has the least ``t``;
- *regret*: ``t`` of that device over the least ``t``, less 1;
- *log error*: mean over pairs of devices of ``|ln(p_i / p_j) - ln(v_i / v_j)|``; the *typical factor* is the
  exponential of its mean over rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Unpack, get_args

import numpy as np

from crosscast.arrays import Arrays, Integers, Reals
from crosscast.errors import InputError, expect_known
from crosscast.evaluation import JSON_VERSION
from crosscast.evaluation.keep import digest, fingerprint
from crosscast.evaluation.loop import (
    Fold,
    FoldTask,
    RunArguments,
    check_names,
    check_seed,
    folds_by_group,
    run_tasks,
)
from crosscast.evaluation.relative import Weighting
from crosscast.evaluation.resampling import DRAWS, SHARE, Confidence, Scored, confidences
from crosscast.evaluation.time.scores import pair_order
from crosscast.prediction.relative import (
    Observations,
    RelativeModel,
    Vectors,
    check_times,
    relative_to_slowest,
)
from crosscast.prediction.relative.models import BASELINES
from crosscast.results import Tabular, columns_of

# Scores ``(r,)`` by name; the absolute error is ``mae``
RowScores = Mapping[str, Reals]


@dataclass(frozen=True)
class RelativeMetrics:
    """Weighted means over rows; `typical_factor` is the exponential of one, `median_regret` a median."""

    rows: int
    mae: float
    same_order: float
    top1: float
    regret: float
    median_regret: float  # weighted: rows of at least half of the weight do not exceed it
    typical_factor: float


# Metrics with intervals, and whether more (1) or less (-1) of them is better
BETTER = {"mae": -1, "same_order": 1, "top1": 1, "regret": -1, "typical_factor": -1}


def row_scores(times_s: Reals, predicted: Reals) -> RowScores:
    """Scores of each row's prediction."""
    if times_s.shape != predicted.shape or times_s.ndim != 2 or times_s.shape[1] < 2:
        expected = "the shape (r, d) of the times, d at least 2"
        found = f"{predicted.shape} for {times_s.shape}"
        raise InputError.of(where="predicted", expected=expected, found=found)
    check_times(times_s, "times_s")
    check_times(predicted, "predicted")
    vector = relative_to_slowest(times_s)
    first, second = np.triu_indices(times_s.shape[1], 1)
    order, predicted_order = pair_order(times_s), pair_order(predicted)
    chosen = np.take_along_axis(times_s, predicted.argmin(axis=1)[:, None], axis=1)[:, 0]
    regret = chosen / times_s.min(axis=1) - 1.0
    error = np.log(predicted) - np.log(vector)
    return {
        "mae": np.abs(predicted - vector).mean(axis=1),
        "same_order": ((order == 0) | (predicted_order == order)).all(axis=1).astype(np.float64),
        "top1": (regret == 0).astype(np.float64),
        "regret": regret,
        "log_error": np.abs(error[:, first] - error[:, second]).mean(axis=1),
    }


def metrics_of(scores: RowScores, weights: Reals) -> RelativeMetrics:
    """Weighted means of the scores of rows with a positive weight."""
    counts = weights > 0
    if not counts.any():
        raise InputError.of(where="scores", expected="at least one row that counts", found="none")
    weights, rows = weights[counts], {name: values[counts] for name, values in scores.items()}
    means = {name: float(np.average(values, weights=weights)) for name, values in rows.items()}
    median = np.quantile(rows["regret"], 0.5, weights=weights, method="inverted_cdf")
    factor = float(np.exp(means.pop("log_error")))
    return RelativeMetrics(len(weights), **means, median_regret=float(median), typical_factor=factor)


_SOURCES = ("prediction", "evaluation/relative/evaluation.py")

PUBLISHED = "published"  # The split of Nichols et al. 2024: rows at random

# Share of the rows in its test, and folds within the others (section VI-A)
TEST_SHARE, FOLDS = 0.1, 5


_ROW = ()
_APPLICATION = ("application",)
_KERNEL = ("application", "kernel")
_WORK = ("application", "kernel", "size")


def _groups_by(observations: Observations, names: Sequence[str]) -> list[str]:
    """Name of the group of each row: the values of these fields of the observations, or the row itself."""
    if not names:
        return [str(row) for row in range(len(observations))]
    return ["/".join(each) for each in zip(*(getattr(observations, name) for name in names), strict=True)]


@dataclass(frozen=True)
class RelativeSplit:
    """A way to hold out groups, each once; groups are rows that agree in fields of the observations."""

    name: str
    noun: str  # the groups, in the plural
    by: tuple[str, ...]
    folds: int | None  # number of folds to which groups are assigned at random; `None` for a fold per group
    resampled: tuple[str, ...]  # groups of the bootstrap
    reported: tuple[str, ...]  # groups with separate scores

    def groups(self, observations: Observations) -> list[str]:
        """Name of the group of each row."""
        return _groups_by(observations, self.by)

    def folds_of(self, observations: Observations, seed: int) -> tuple[Fold, ...]:
        """The folds; each row is tested in one of them, except with `PUBLISHED`, which tests some rows."""
        groups = self.groups(observations)
        by_group = folds_by_group(self.name, self.noun, groups)
        if self.name == PUBLISHED:
            return _published(len(observations), seed)
        if self.folds is None:
            return by_group
        order = np.random.default_rng(seed).permutation(len(by_group)).tolist()
        parts = (order[start :: self.folds] for start in range(min(self.folds, len(order))))
        tests = ([by_group[group].test for group in part] for part in parts)
        rows = np.arange(len(groups))
        masks = (np.isin(rows, np.concatenate(test)) for test in tests)
        return tuple(Fold.of(f"fold {number}", mask) for number, mask in enumerate(masks, 1))


def _published(rows: int, seed: int) -> tuple[Fold, ...]:
    """The test, and after it the folds of the cross-validation within the other rows."""
    order = np.random.default_rng(seed).permutation(rows).astype(np.int64)
    test, rest = np.split(order, [max(1, round(TEST_SHARE * rows))])
    parts = [rest[start::FOLDS] for start in range(min(FOLDS, len(rest)))]
    within = [
        Fold(f"validation {number}", np.setdiff1d(rest, part), np.sort(part))
        for number, part in enumerate(parts if len(parts) > 1 else (), 1)
    ]
    return (Fold("test", np.sort(rest), np.sort(test)), *within)


_SPLITS = (
    RelativeSplit(PUBLISHED, "rows", _ROW, None, _WORK, _APPLICATION),
    RelativeSplit("leave-configuration-out", "kernels at a size", _WORK, FOLDS, _WORK, _KERNEL),
    RelativeSplit("leave-application-out", "applications", _APPLICATION, None, _APPLICATION, _APPLICATION),
    RelativeSplit("leave-kernel-out", "kernels", _KERNEL, None, _KERNEL, _KERNEL),
    RelativeSplit("leave-machine-out", "devices with counters", ("source",), None, _KERNEL, ("source",)),
    RelativeSplit("leave-scale-out", "scales", ("scale",), None, _KERNEL, ("scale",)),
)
SPLITS = {split.name: split for split in _SPLITS}


def split_named(name: str) -> RelativeSplit:
    """The split of a name."""
    expect_known(name, SPLITS, where="folds")
    return SPLITS[name]


WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)


def row_weights(observations: Observations, weighting: Weighting) -> Reals:
    """Weights of rows that sum to 1, equal for all units of the weighting."""
    expect_known(weighting, WEIGHTINGS, where="weights")
    groups = _groups_by(observations, {"rows": _ROW, "kernels": _KERNEL}.get(weighting, _APPLICATION))
    count = Counter(groups)
    return np.array([1.0 / (count[group] * len(count)) for group in groups])


@dataclass(frozen=True, eq=False)
class _RelativeTask(FoldTask[RelativeModel, Fold, Vectors]):
    """Fit a model to the training rows of a fold, and predict the test rows."""

    @property
    def cache_keys(self) -> Sequence[object]:
        rows = digest([self.fold.train, self.fold.test])
        return [["relative", self.model.name, fingerprint(self.model), rows, self.seed]]

    def run(self, data: Vectors, queries: Sequence[int]) -> list[Arrays]:
        predictor = self.model.fit(data.rows(self.fold.train), self.seed)
        predicted = predictor.predict(data.observations.rows(self.fold.test))
        check_times(predicted, "predicted")
        return [{"predicted": predicted}]

    def is_valid(self, data: Vectors, query: int, arrays: Arrays) -> bool:
        predicted, shape = arrays.get("predicted"), (len(self.fold.test), len(data.devices))
        if predicted is None or predicted.dtype != np.float64 or predicted.shape != shape:
            return False
        return bool((np.isfinite(predicted) & np.greater(predicted, 0)).all())


@dataclass(frozen=True, eq=False)
class RelativeResult:
    """Result of one model in one split."""

    model: str
    split: str
    baseline: bool  # whether other models are compared with it
    weighting: Weighting  # of `metrics` and `confidence`
    by_weighting: Mapping[Weighting, RelativeMetrics]
    per_group: Mapping[str, RelativeMetrics]  # with equal weights of rows
    confidence: Confidence
    validation_mae: float | None  # mean MAE of the folds within the training rows, if there are such
    rows: Integers  # (m,) indices of the predicted rows, rising
    predicted: Reals  # (m, d)

    @property
    def metrics(self) -> RelativeMetrics:
        """The metrics, with rows weighted by `weighting`."""
        return self.by_weighting[self.weighting]

    def to_dict(self) -> dict[str, object]:
        """All but predictions, as an object of JSON."""
        return {
            "model": self.model,
            "folds": self.split,
            "weights": self.weighting,
            **asdict(self.metrics),
            "validation_mae": self.validation_mae,
            "baseline": self.baseline,
            **self.confidence.to_dict(),
            "by_weights": {name: asdict(metrics) for name, metrics in self.by_weighting.items()},
            "per_group": {name: asdict(metrics) for name, metrics in self.per_group.items()},
        }


@dataclass(frozen=True, eq=False)
class RelativeEvaluation(Tabular):
    """Results of models in one split."""

    label: str  # of the dataset
    vectors: Vectors
    split: RelativeSplit
    folds: tuple[Fold, ...]
    seed: int
    results: tuple[RelativeResult, ...]
    repeated: float  # share of tested rows whose kernel at its size is also in the training

    def best(self) -> RelativeResult:
        """The result with the least MAE, of baselines only if there is no other."""
        return min(self.results, key=lambda each: (each.baseline, each.metrics.mae))

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of rows, kernels, sources, devices and counters."""
        rows, devices = self.vectors.observations, len(self.vectors.devices)
        parts = {"sources": len(set(rows.source)), "devices": devices, "counters": len(rows.names)}
        return {"rows": len(rows), **rows.counts, **parts}

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each model, with its metrics and the limits of their intervals."""
        rows = [each.to_dict() for each in self.results]
        names = ("model", "folds", "weights", "baseline", *(each.name for each in fields(RelativeMetrics)))
        intervals = [each.confidence.intervals for each in self.results]
        limits = {
            f"{name}_{end}": [getattr(each.get(name), end, None) for each in intervals]
            for end in ("low", "high")
            for name in BETTER
        }
        return columns_of(rows, names) | limits

    def to_dict(self) -> dict[str, object]:
        """All but predictions, as ``--json`` prints it; unknown values are null."""
        return {
            "version": JSON_VERSION,
            "dataset": self.label,
            "question": "relative",
            "folds": self.split.name,
            "seed": self.seed,
            "devices": list(self.vectors.devices),
            "sources": sorted(set(self.vectors.observations.source)),
            "counts": self.counts,
            "fold_count": len(self.folds),
            "repeated_share": self.repeated,
            "bootstrap": {"draws": DRAWS, "share": SHARE},
            "results": [result.to_dict() for result in self.results],
            "studies": None,
        }


def evaluate_relative(
    vectors: Vectors,
    models: Sequence[RelativeModel],
    folds: str,
    *,
    label: str = "dataset",
    weighting: Weighting | None = None,
    baselines: Sequence[str] = BASELINES,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> RelativeEvaluation:
    """Fit models to the training rows of each fold, by these rows alone, and score them on the test rows."""
    check_seed(seed)
    check_names([model.name for model in models])
    check_times(vectors.times_s, "vectors")
    split = split_named(folds)
    if weighting is None:
        # As published, but by kernel where kernels or their sizes are held out.
        weighting = "kernels" if split.by in (_KERNEL, _WORK) else "rows"
    row_weights(vectors.observations, weighting)
    all_folds = split.folds_of(vectors.observations, seed)
    tasks = [_RelativeTask(model, fold, seed) for model in models for fold in all_folds]
    fold_answers = iter(run_tasks(tasks, vectors, sources=_SOURCES, **run))
    predicted = [
        [np.asarray(next(fold_answers)[0]["predicted"], np.float64) for _ in all_folds] for _ in models
    ]
    tests = all_folds[:1] if folds == PUBLISHED else all_folds
    rows = np.concatenate([fold.test for fold in tests])
    order = np.argsort(rows)
    tested = vectors.rows(rows[order])
    joined = [np.concatenate(each[: len(tests)])[order] for each in predicted]
    scores = [row_scores(tested.times_s, each) for each in joined]
    bootstrap = _bootstrap(models, scores, baselines, tested.observations, split, weighting, seed)
    weights = {each: row_weights(tested.observations, each) for each in WEIGHTINGS}
    group = np.array(_groups_by(tested.observations, split.reported))
    groups = {str(name): (group == name).astype(np.float64) for name in np.unique(group)}
    results = tuple(
        RelativeResult(
            model=model.name,
            split=folds,
            baseline=model.name in baselines,
            weighting=weighting,
            by_weighting={name: metrics_of(scores[index], each) for name, each in weights.items()},
            per_group={name: metrics_of(scores[index], each) for name, each in groups.items()},
            confidence=bootstrap[index],
            validation_mae=_mean_mae(vectors, all_folds[len(tests) :], predicted[index][len(tests) :]),
            rows=rows[order],
            predicted=joined[index],
        )
        for index, model in enumerate(models)
    )
    work = np.array(_groups_by(vectors.observations, _WORK))
    repeated = np.concatenate([np.isin(work[fold.test], work[fold.train]) for fold in tests])
    return RelativeEvaluation(label, vectors, split, all_folds, seed, results, float(repeated.mean()))


def _mean_mae(vectors: Vectors, folds: Sequence[Fold], predicted: Sequence[Reals]) -> float | None:
    """Mean MAE of folds; ``None`` if there are none."""
    errors = [
        row_scores(vectors.times_s[fold.test], each)["mae"].mean()
        for fold, each in zip(folds, predicted, strict=True)
    ]
    return float(np.mean(errors)) if errors else None


def _bootstrap(
    models: Sequence[RelativeModel],
    scores: Sequence[RowScores],
    baselines: Sequence[str],
    tested: Observations,
    split: RelativeSplit,
    weighting: Weighting,
    seed: int,
) -> tuple[Confidence, ...]:
    """Intervals and differences from the best baseline; none for a single group."""
    names, group = np.unique(np.array(_groups_by(tested, split.resampled)), return_inverse=True)
    weights = row_weights(tested, weighting)

    def draw(scores: RowScores, drawn: Reals) -> Mapping[str, Reals]:
        under = drawn @ np.bincount(group, weights)
        sums = {name: np.bincount(group, weights * values) for name, values in scores.items()}
        means: dict[str, Reals] = {name: drawn @ each / under for name, each in sums.items()}
        factor = np.exp(means.pop("log_error"))
        return {**means, "typical_factor": factor}

    scored = [
        Scored(model.name, model.name in baselines, asdict(metrics_of(each, weights)), partial(draw, each))
        for model, each in zip(models, scores, strict=True)
    ]
    return confidences(scored, len(names), BETTER, seed, fewest=2)


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Held-out rows, each predicted by a model that was fitted without its group."""

    model: str
    vectors: Vectors  # `m` runs: all, except with the published split, which tests a tenth of them
    predicted: Reals  # (m, d) relative vectors


def held_out_predictions(
    vectors: Vectors, model: RelativeModel, folds: str, *, seed: int = 0, **run: Unpack[RunArguments]
) -> HeldOutPredictions:
    """Predict each run without its group; arguments are those of `evaluate_relative`."""
    (result,) = evaluate_relative(vectors, [model], folds, baselines=(), seed=seed, **run).results
    return HeldOutPredictions(model.name, vectors.rows(result.rows), result.predicted)

"""Scores of predicted relative vectors: the published two, and what choosing by them costs.

For a row with times ``t_j``, vector ``v_j = t_j / max t`` and prediction ``p_j`` over ``d`` devices:

- *absolute error*: mean over j of ``|p_j - v_j|``; its mean over rows is MAE;
- *same order*: 1 where every device has the same rank in both (paper 003, section VI-C), that is
  ``p_i < p_j`` for each pair with ``v_i < v_j``. Devices that truly tie may be predicted in either order;
  devices that are predicted to tie, and truly do not, are in the wrong order;
- *top-1*: 1 where the device of least ``p`` (the first of several) has the least ``t``;
- *regret*: ``t`` of that device over the least ``t``, less 1;
- *log error*: mean over pairs of devices of ``|ln(p_i / p_j) - ln(v_i / v_j)|``; the *typical factor* is the
  exponential of its mean over rows.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluation.cache_folder import (
    cache_key,
    cached_arrays,
    cached_file,
    fingerprint,
    library_versions,
    sources_digest,
)
from crosscast.evaluation.confidence import DRAWS, Confidence, Difference, difference_of, interval_of
from crosscast.evaluation.processes import Progress, check_jobs, check_seed, done_tasks, one_thread
from crosscast.predict.relative.artefact import RelativeCard
from crosscast.predict.relative.data import (
    Observations,
    RelativeModel,
    RelativePredictor,
    Vectors,
    relative_to_slowest,
)
from crosscast.predict.relative.intervals import HeldOut, check_level
from crosscast.predict.relative.models import BASELINES
from crosscast.tables.whole_file import make_folder


@dataclass(frozen=True, eq=False)
class RowScores:
    """Scores of ``r`` rows, each of shape ``(r,)``: see this module for what they are."""

    absolute_error: Reals
    same_order: Reals
    top1: Reals
    regret: Reals
    log_error: Reals

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.regret)

    def where(self, chosen: Flags) -> RowScores:
        """The scores of some rows."""
        return RowScores(
            self.absolute_error[chosen],
            self.same_order[chosen],
            self.top1[chosen],
            self.regret[chosen],
            self.log_error[chosen],
        )


@dataclass(frozen=True)
class RelativeMetrics:
    """Weighted means over rows, except where the name says otherwise."""

    rows: int  # How many rows
    mae: float  # Means
    same_order: float
    top1: float
    regret: float
    # Weighted median: the least regret that rows of at least half of the weight do not exceed
    median_regret: float
    typical_factor: float  # Exponential of the mean log error


def row_scores(times_s: Reals, predicted: Reals) -> RowScores:
    """Score predictions row by row."""
    if times_s.shape != predicted.shape or times_s.ndim != 2 or times_s.shape[1] < 2:
        raise InputError(
            f"predicted: expected the shape (r, d) of the times, with d at least 2, found {predicted.shape} "
            f"for {times_s.shape}"
        )
    for name, values in (("times_s", times_s), ("predicted", predicted)):
        wrong = ~(np.isfinite(values) & (values > 0))
        if wrong.any():
            raise InputError(f"{name}: expected positive numbers, found {values[wrong][0]}")
    vector = relative_to_slowest(times_s)
    first, second = np.triu_indices(times_s.shape[1], 1)
    order = np.sign(times_s[:, first] - times_s[:, second])
    said = np.sign(predicted[:, first] - predicted[:, second])
    chosen = np.take_along_axis(times_s, predicted.argmin(axis=1)[:, None], axis=1)[:, 0]
    regret = chosen / times_s.min(axis=1) - 1.0
    error = np.log(predicted) - np.log(vector)
    return RowScores(
        np.abs(predicted - vector).mean(axis=1),
        ((order == 0) | (said == order)).all(axis=1).astype(np.float64),
        (regret == 0).astype(np.float64),
        regret,
        np.abs(error[:, first] - error[:, second]).mean(axis=1),
    )


def metrics_of(scores: RowScores, weights: Reals) -> RelativeMetrics:
    """Bring the scores of rows together."""
    if not len(scores) or not weights.sum() > 0:
        raise InputError("scores: expected at least one row that counts, found none")
    return RelativeMetrics(
        len(scores),
        float(np.average(scores.absolute_error, weights=weights)),
        float(np.average(scores.same_order, weights=weights)),
        float(np.average(scores.top1, weights=weights)),
        float(np.average(scores.regret, weights=weights)),
        float(np.quantile(scores.regret, 0.5, weights=weights, method="inverted_cdf")),
        float(np.exp(np.average(scores.log_error, weights=weights))),
    )


PUBLISHED = "published"
"""The split of paper 003: rows at random, whatever they are of."""

TEST_SHARE = 0.1
"""Share of the rows that `PUBLISHED` tests with (section VI-A)."""

FOLDS = 5
"""Folds within the others (section VI-A), and of ``leave-configuration-out``."""


@dataclass(frozen=True, eq=False)
class RelativeFold:
    """One way to hold rows out."""

    held_out: str  # What it is, for people
    train: Integers  # Rows that models learn from, and those that they predict
    test: Integers


@dataclass(frozen=True)
class RelativeSplit:
    """A way to hold groups out, each once."""

    name: str  # Its name on the command line
    noun: str  # What is held out, in the plural
    group: Callable[[Observations], Sequence[str]]  # Name of the group of each row, of length `r`
    folds: int | None  # Into how many folds groups are dealt at random; `None` for a fold a group
    # Name of the group of each row that a bootstrap draws, of length `r`
    resampled: Callable[[Observations], Sequence[str]]
    # Name of the group of each row that scores are told of, of length `r`
    reported: Callable[[Observations], Sequence[str]]

    def folds_of(self, observations: Observations, seed: int) -> tuple[RelativeFold, ...]:
        """The folds; each row is tested in one of them, except with `PUBLISHED`, which tests some rows."""
        groups = np.array(self.group(observations))
        names = np.unique(groups)
        if len(names) < 2:
            found = f"{len(names)} ({names[0]})" if len(names) else "none"
            raise InputError(f"{self.name}: expected at least 2 {self.noun} to split by, found {found}")
        if self.name == PUBLISHED:
            return _published(len(observations), seed)
        if self.folds is None:
            return tuple(_fold(str(name), groups == name) for name in names)
        dealt = np.random.default_rng(seed).permutation(len(names))
        count = min(self.folds, len(names))
        return tuple(
            _fold(f"fold {place + 1}", np.isin(groups, names[dealt[place::count]])) for place in range(count)
        )


def _fold(name: str, held_out: Flags) -> RelativeFold:
    return RelativeFold(name, np.flatnonzero(~held_out), np.flatnonzero(held_out))


def _published(rows: int, seed: int) -> tuple[RelativeFold, ...]:
    """The test, and after it the folds of the cross-validation within the rows that are left."""
    order = np.random.default_rng(seed).permutation(rows).astype(np.int64)
    held_out = max(1, round(TEST_SHARE * rows))
    test, rest = order[:held_out], order[held_out:]
    count = min(FOLDS, len(rest))
    within = [
        RelativeFold(
            f"validation {place + 1}",
            np.sort(np.concatenate([rest[other::count] for other in range(count) if other != place])),
            np.sort(rest[place::count]),
        )
        for place in range(count if count > 1 else 0)
    ]
    return (RelativeFold("test", np.sort(rest), np.sort(test)), *within)


def _rows(observations: Observations) -> Sequence[str]:
    return [str(row) for row in range(len(observations))]


def _applications(observations: Observations) -> Sequence[str]:
    return observations.application


def _kernels(observations: Observations) -> Sequence[str]:
    return _joined(observations.application, observations.kernel)


def _works(observations: Observations) -> Sequence[str]:
    return _joined(observations.application, observations.kernel, observations.size)


def _scales(observations: Observations) -> Sequence[str]:
    return observations.scale


def _sources(observations: Observations) -> Sequence[str]:
    return observations.source


def _joined(*names: Sequence[str]) -> list[str]:
    return ["/".join(each) for each in zip(*names, strict=True)]


SPLITS: Mapping[str, RelativeSplit] = MappingProxyType(
    {
        split.name: split
        for split in (
            RelativeSplit(PUBLISHED, "rows", _rows, None, _works, _applications),
            RelativeSplit("leave-configuration-out", "kernels at a size", _works, FOLDS, _works, _kernels),
            RelativeSplit(
                "leave-application-out", "applications", _applications, None, _applications, _applications
            ),
            RelativeSplit("leave-kernel-out", "kernels", _kernels, None, _kernels, _kernels),
            RelativeSplit("leave-machine-out", "devices with counters", _sources, None, _kernels, _sources),
            RelativeSplit("leave-scale-out", "scales", _scales, None, _kernels, _scales),
        )
    }
)
"""The splits by name."""


def split_named(name: str) -> RelativeSplit:
    """A split."""
    if name not in SPLITS:
        raise InputError(f"split: expected one of {', '.join(SPLITS)}, found {name!r}")
    return SPLITS[name]


Weighting = Literal["rows", "kernels", "applications"]

WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)


def row_weights(observations: Observations, weighting: Weighting) -> Reals:
    """Weights of rows, of shape ``(r,)``; their sum is 1."""
    if weighting not in WEIGHTINGS:
        raise InputError(f"weights: expected one of {', '.join(WEIGHTINGS)}, found {weighting!r}")
    if weighting == "rows":
        return np.full(len(observations), 1.0 / len(observations))
    kernels = observations.kernel if weighting == "kernels" else [""] * len(observations)
    groups = list(zip(observations.application, kernels, strict=True))
    count = Counter(groups)
    return np.array([1.0 / (count[group] * len(count)) for group in groups])


@dataclass(frozen=True, eq=False)
class RelativeResult:
    """How one model did in one split."""

    model: str  # Its name
    split: str  # Name of the split
    baseline: bool  # Whether other models are compared with it
    weighting: Weighting  # How rows are weighted in `metrics` and `sure`
    by_weighting: Mapping[Weighting, RelativeMetrics]  # The metrics with each way to weight rows
    # The metrics of the rows of each group, all weighted the same; the groups are those that are held out, or
    # applications or kernels where rows or sizes are
    per_group: Mapping[str, RelativeMetrics]
    sure: Confidence  # Intervals of the metrics, and differences from the best baseline
    # Mean over the folds within the training rows of their MAE; `None` where the split has none
    validation_mae: float | None
    rows: Integers  # Rows that were predicted, of shape `(m,)`, rising
    predicted: Reals  # What was predicted for them, of shape `(m, d)`

    @property
    def metrics(self) -> RelativeMetrics:
        """The metrics, with rows weighted by `weighting`."""
        return self.by_weighting[self.weighting]

    def to_dict(self) -> dict[str, Any]:
        """Everything but predictions, as an object of JSON."""
        return {
            "model": self.model,
            "split": self.split,
            "weights": self.weighting,
            **asdict(self.metrics),
            "validation_mae": self.validation_mae,
            "baseline": self.baseline,
            **self.sure.to_dict(),
            "by_weights": {name: asdict(metrics) for name, metrics in self.by_weighting.items()},
            "per_group": {name: asdict(metrics) for name, metrics in self.per_group.items()},
        }


@dataclass(frozen=True, eq=False)
class FoldTask:
    """What to do."""

    model: RelativeModel  # The model
    fold: RelativeFold  # What is held out
    seed: int  # Start of all random numbers

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"


def predict_fold(vectors: Vectors, task: FoldTask) -> Reals:
    """Fit the model to the rows of training alone, and let it predict those that are held out. Of shape
    ``(rows of the test, d)``.
    """
    try:
        predictor = task.model.fit(vectors.rows(task.fold.train), task.seed)
    except InputError as error:
        raise InputError(f"{task.label}: {error}") from error
    predicted = predictor.predict(vectors.observations.rows(task.fold.test))
    if not (np.isfinite(predicted) & (predicted > 0)).all():
        raise InputError(f"{task.label}: expected positive numbers as predictions, found others")
    return predicted


def vectors_digest(vectors: Vectors) -> str:
    """A hash of all that is in vectors."""
    rows = vectors.observations
    texts = [
        rows.application,
        rows.kernel,
        rows.size,
        rows.scale,
        rows.source,
        rows.names,
        rows.configuration,
        vectors.devices,
        [asdict(device) for device in vectors.described],
    ]
    digest = hashlib.sha256(json.dumps(texts).encode())
    for values in (rows.counters, rows.settings, rows.time_s, vectors.times_s):
        # All that is not a number is the same, whatever its bits.
        plain = np.where(np.isnan(values), np.nan, values)
        digest.update(str(plain.shape).encode() + plain.tobytes())
    return digest.hexdigest()


_SOURCES = ("predict", "evaluation/relative.py")


@dataclass(frozen=True)
class Kept:
    """A folder of predictions, each under a name made of all that they depend on.

    That is the vectors, the rows of the fold, the model with its parameters, the seed, the source of
    `crosscast.predict`, and the versions of the libraries. A model that is no dataclass is known by its name
    and class alone.
    """

    folder: Path  # Where; made if it is not there
    vectors: Vectors  # What the predictions are of

    def __post_init__(self) -> None:
        """Make the folder."""
        make_folder("cache", self.folder)

    def load(self, task: FoldTask) -> Reals | None:
        """Predictions that were kept, or ``None``; damaged ones are as good as none."""
        predicted = cached_arrays(self._path(task), ["predicted"]).get("predicted")
        shape = (len(task.fold.test), len(self.vectors.devices))
        if predicted is None or predicted.dtype != np.float64 or predicted.shape != shape:
            return None
        return predicted if (np.isfinite(predicted) & (predicted > 0)).all() else None

    def save(self, task: FoldTask, predicted: Reals) -> None:
        """Keep predictions."""
        with cached_file(self._path(task)) as temporary:
            np.savez_compressed(temporary, predicted=predicted)

    def _path(self, task: FoldTask) -> Path:
        rows = hashlib.sha256(np.asarray(task.fold.train, np.int64).tobytes())
        rows.update(b"test" + np.asarray(task.fold.test, np.int64).tobytes())
        facts = {
            "sources": sources_digest(_SOURCES),
            "vectors": self._digest,
            "model": [task.model.name, fingerprint(task.model)],
            "rows": rows.hexdigest(),
            "seed": task.seed,
        }
        return self.folder / f"relative-{cache_key(facts)}.npz"

    @cached_property
    def _digest(self) -> str:
        return vectors_digest(self.vectors)


def predict_folds(
    vectors: Vectors,
    tasks: Sequence[FoldTask],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[Reals]:
    """Do all tasks that a cache does not know."""
    kept = None if cache is None else Kept(cache, vectors)
    return done_tasks(tasks, kept, _worker, vectors, what="fitted models", progress=progress, jobs=jobs)


@dataclass(frozen=True)
class _Worker:
    """What a process knows throughout."""

    vectors: Vectors

    def predict(self, task: FoldTask) -> Reals:
        with one_thread("evaluating models"):
            return predict_fold(self.vectors, task)


def _worker(vectors: Vectors) -> Callable[[FoldTask], Reals]:
    return _Worker(vectors).predict


RESAMPLED = {"mae": -1, "same_order": 1, "top1": 1, "regret": -1, "typical_factor": -1}
"""Metrics with intervals, and whether more (1) or less (-1) of them is better."""


@dataclass(frozen=True, eq=False)
class Scored:
    """The scores of a model."""

    name: str  # Its name
    baseline: bool  # Whether others are compared with it
    scores: RowScores  # Scores of `r` rows


def confidences(
    models: Sequence[Scored], groups: Sequence[str], weights: Reals, seed: int, draws: int = DRAWS
) -> tuple[Confidence, ...]:
    """Draw the groups again and again, with replacement, and score each draw.

    All models see the same draws, so differences between them are of pairs. Rows of a group stay together:
    they resemble each other, and intervals that took them for independent would be too narrow. With a single
    group there are no intervals.
    """
    names, group = np.unique(np.array(groups), return_inverse=True)
    count = len(names)
    if count < 2:
        return tuple(Confidence({}) for _ in models)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.float64)
    values = [_drawn(model.scores, group.astype(np.int64), weights, drawn) for model in models]
    whole = [metrics_of(model.scores, weights) for model in models]
    baselines = [place for place, model in enumerate(models) if model.baseline]
    answers = []
    for place, model in enumerate(models):
        intervals = {
            metric: interval
            for metric, each in values[place].items()
            if (interval := interval_of(each)) is not None
        }
        differences = {
            metric: difference
            for metric in (RESAMPLED if baselines and not model.baseline else ())
            if (difference := _difference(metric, place, baselines, models, whole, values)) is not None
        }
        answers.append(Confidence(intervals, differences))
    return tuple(answers)


def _drawn(scores: RowScores, place: Integers, weights: Reals, drawn: Reals) -> dict[str, Reals]:
    """Each metric in each draw, of shape ``(draws,)``."""

    def mean(values: Reals) -> Reals:
        count = drawn.shape[1]
        over: Reals = drawn @ np.bincount(place, weights * values, minlength=count)
        under: Reals = drawn @ np.bincount(place, weights, minlength=count)
        return over / under

    return {
        "mae": mean(scores.absolute_error),
        "same_order": mean(scores.same_order),
        "top1": mean(scores.top1),
        "regret": mean(scores.regret),
        "typical_factor": np.exp(mean(scores.log_error)),
    }


def _difference(
    metric: str,
    place: int,
    baselines: Sequence[int],
    models: Sequence[Scored],
    whole: Sequence[RelativeMetrics],
    values: Sequence[dict[str, Reals]],
) -> Difference | None:
    """The difference of a model from the baseline that is best in a metric."""
    sign = RESAMPLED[metric]
    best = max(baselines, key=lambda baseline: sign * getattr(whole[baseline], metric))
    apart = getattr(whole[place], metric) - getattr(whole[best], metric)
    return difference_of(models[best].name, apart, values[place][metric] - values[best][metric], sign)


@dataclass(frozen=True, eq=False)
class RelativeEvaluation:
    """How models did in one split."""

    vectors: Vectors  # All rows
    split: RelativeSplit  # The split
    folds: tuple[RelativeFold, ...]  # Its folds
    seed: int  # Start of all random numbers
    results: tuple[RelativeResult, ...]  # A result for each model
    # Share of the rows of tests whose kernel at its size is among the rows of training as well
    repeated: float

    def best(self) -> RelativeResult:
        """The result with the least MAE, of baselines only if there is no other."""
        return min(self.results, key=lambda each: (each.baseline, each.metrics.mae))


def default_weighting(split: str) -> Weighting:
    """How rows are weighted where nobody says: as published, but by kernel where these or sizes are out."""
    return "kernels" if split in ("leave-kernel-out", "leave-configuration-out") else "rows"


def evaluate_relative(
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: str,
    *,
    weighting: Weighting | None = None,
    baselines: Sequence[str] = BASELINES,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> RelativeEvaluation:
    """Fit models to the rows that each fold leaves, and score them on those that it holds out.

    Nothing of what is held out is used to scale, tune or select: models are given the other rows alone.
    """
    check_seed(seed)
    names = [model.name for model in models]
    if not names or len(set(names)) < len(names):
        raise InputError(f"models: expected at least one, and each once, found {', '.join(names) or 'none'}")
    if not (np.isfinite(vectors.times_s) & (vectors.times_s > 0)).all():
        raise InputError("vectors: expected a time above 0 on each device, found others")
    way = split_named(split)
    weighting = default_weighting(split) if weighting is None else weighting
    row_weights(vectors.observations, weighting)
    folds = way.folds_of(vectors.observations, seed)
    tasks = [FoldTask(model, fold, seed) for model in models for fold in folds]
    done = predict_folds(vectors, tasks, progress=progress, cache=cache, jobs=jobs)
    answers = [
        _Answer.of(vectors, folds, done[place * len(folds) :][: len(folds)], split)
        for place in range(len(models))
    ]
    tested = vectors.observations.rows(answers[0].rows)
    sure = confidences(
        [Scored(name, name in baselines, each.scores) for name, each in zip(names, answers, strict=True)],
        way.resampled(tested),
        row_weights(tested, weighting),
        seed,
    )
    results = tuple(
        _result(vectors, way, name, name in baselines, weighting, answer, each)
        for name, answer, each in zip(names, answers, sure, strict=True)
    )
    return RelativeEvaluation(vectors, way, folds, seed, results, _repeated(vectors, way, folds))


@dataclass(frozen=True, eq=False)
class _Answer:
    """What a model predicted: rows of the test, predictions and scores; and its MAE within training."""

    rows: Integers
    predicted: Reals
    scores: RowScores
    validation_mae: float | None

    @classmethod
    def of(
        cls, vectors: Vectors, folds: Sequence[RelativeFold], done: Sequence[Reals], split: str
    ) -> _Answer:
        tests = 1 if split == PUBLISHED else len(folds)
        rows = np.concatenate([fold.test for fold in folds[:tests]])
        order = np.argsort(rows)
        predicted = np.concatenate(done[:tests])[order]
        within = [
            float(row_scores(vectors.times_s[fold.test], each).absolute_error.mean())
            for fold, each in zip(folds[tests:], done[tests:], strict=True)
        ]
        scores = row_scores(vectors.times_s[rows[order]], predicted)
        return cls(rows[order], predicted, scores, float(np.mean(within)) if within else None)


def _result(
    vectors: Vectors,
    split: RelativeSplit,
    name: str,
    baseline: bool,
    weighting: Weighting,
    answer: _Answer,
    sure: Confidence,
) -> RelativeResult:
    tested = vectors.observations.rows(answer.rows)
    groups = np.array(split.reported(tested))
    return RelativeResult(
        name,
        split.name,
        baseline,
        weighting,
        {each: metrics_of(answer.scores, row_weights(tested, each)) for each in WEIGHTINGS},
        {str(group): _metrics_where(answer.scores, groups == group) for group in np.unique(groups)},
        sure,
        answer.validation_mae,
        answer.rows,
        answer.predicted,
    )


def _metrics_where(scores: RowScores, chosen: Flags) -> RelativeMetrics:
    return metrics_of(scores.where(chosen), np.ones(int(chosen.sum())))


def _repeated(vectors: Vectors, split: RelativeSplit, folds: Sequence[RelativeFold]) -> float:
    rows = vectors.observations
    work = np.array(["/".join(each) for each in zip(rows.application, rows.kernel, rows.size, strict=True)])
    tests = folds[:1] if split.name == PUBLISHED else folds
    found = [np.isin(work[fold.test], work[fold.train]) for fold in tests]
    return float(np.concatenate(found).mean())


LEAST_GROUPS = 3
"""Fewer leave too few when one is held out."""


@dataclass(frozen=True)
class TrainedRelative:
    """A fitted model, its errors on what was left out, and its card."""

    predictor: RelativePredictor
    held_out: HeldOut
    card: RelativeCard


def left_out_split(vectors: Vectors, label: str) -> RelativeSplit:
    """What is left out to tell how good a model is: applications, or kernels where these are too few."""
    found = []
    for split in map(split_named, ("leave-application-out", "leave-kernel-out")):
        count = len(set(split.group(vectors.observations)))
        if count >= LEAST_GROUPS:
            return split
        found.append(str(count))
    raise InputError(
        f"{label}: expected at least {LEAST_GROUPS} applications or kernels with counters, and times on the "
        f"devices, to train and test a model, found {' and '.join(found)}"
    )


def train_relative(
    vectors: Vectors,
    model: RelativeModel,
    *,
    baselines: Sequence[RelativeModel] = (),
    label: str = "dataset",
    level: float = 0.9,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> TrainedRelative:
    """Fit a model to vectors, and measure it with each application left out in turn."""
    check_seed(seed)
    check_jobs(jobs)
    check_level(level)
    split = left_out_split(vectors, label)
    with one_thread("training a model"):
        # First the model itself: what cannot be learned is said at once.
        predictor = model.fit(vectors, seed)
    models = [model, *(each for each in baselines if each.name != model.name)]
    predicted = _left_out(vectors, models, split, seed, progress, cache, jobs)
    held_out = held_out_errors(vectors, predicted[0], split.group(vectors.observations))
    results = [
        _scores(vectors, found, split.name, each.name) for each, found in zip(models, predicted, strict=True)
    ]
    results[0] |= {"coverage": _coverage(held_out, level)}
    observations = vectors.observations
    card = RelativeCard(
        model=model.name,
        seed=seed,
        devices=vectors.devices,
        sources=tuple(sorted(set(observations.source))),
        counters=observations.names,
        configuration=observations.configuration,
        training=_training(vectors, label),
        errors={
            "protocol": split.name,
            "level": level,
            "groups": len(held_out.groups),
            "vectors": len(held_out.log_error),
            "weights": "applications",
            "results": results,
        },
    )
    return TrainedRelative(predictor, held_out, card)


def _left_out(
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: RelativeSplit,
    seed: int,
    progress: Progress | None,
    cache: Path | None,
    jobs: int,
) -> list[Reals]:
    """For each model the vectors that it predicted of what it had not seen, of shape ``(r, d)``."""
    folds = split.folds_of(vectors.observations, seed)
    tasks = [FoldTask(model, fold, seed) for model in models for fold in folds]
    found = predict_folds(vectors, tasks, progress=progress, cache=cache, jobs=jobs)
    predicted = np.full((len(models), *vectors.times_s.shape), np.nan)
    for number, (task, rows) in enumerate(zip(tasks, found, strict=True)):
        predicted[number // len(folds), task.fold.test] = rows
    return list(predicted)


def held_out_errors(vectors: Vectors, predicted: Reals, groups: Sequence[str]) -> HeldOut:
    """Errors of vectors that were predicted without their group.

    Repeats of a kernel at a size and scale on a source count once, with the mean of their errors.
    """
    errors = np.log(relative_to_slowest(predicted)) - np.log(vectors.vector)
    seen = vectors.observations
    keys = [
        (group, source, *work) for group, source, work in zip(groups, seen.source, seen.works, strict=True)
    ]
    cells = sorted(set(keys))
    places = {cell: place for place, cell in enumerate(cells)}
    number = np.array([places[key] for key in keys], dtype=np.int64)
    sums = np.zeros((len(cells), errors.shape[1]))
    np.add.at(sums, number, errors)
    of_groups, group = _numbered([cell[0] for cell in cells])
    of_sources, source = _numbered([cell[1] for cell in cells])
    return HeldOut(sums / np.bincount(number)[:, None], group, source, of_groups, of_sources)


def _numbered(names: Sequence[str]) -> tuple[tuple[str, ...], Integers]:
    known = sorted(set(names))
    return tuple(known), np.array([known.index(name) for name in names], dtype=np.int64)


def _scores(vectors: Vectors, predicted: Reals, split: str, model: str) -> dict[str, Any]:
    """Scores as `crosscast evaluate` has them, where applications weigh the same."""
    weights = row_weights(vectors.observations, "applications")
    found = metrics_of(row_scores(vectors.times_s, predicted), weights)
    return {"model": model, "split": split, **asdict(found)}


def _coverage(held_out: HeldOut, level: float) -> float | None:
    """Share of times relative to another device that are within intervals by the other groups' errors.

    Groups weigh the same.
    """
    d = held_out.log_error.shape[1]
    shares: dict[str, list[float]] = {}
    for errors in map(held_out.of_source, held_out.sources):
        for number, group in enumerate(errors.groups if len(errors.groups) > 1 else ()):
            others, own = errors.without(number), errors.group == number
            inside = [
                np.abs(errors.relative_errors(base)[own]) <= others.reach(level, base) for base in range(d)
            ]
            # Relative to itself, a device is always right.
            shares.setdefault(group, []).append((float(np.mean(inside)) * d - 1) / (d - 1))
    return float(np.mean([np.mean(each) for each in shares.values()])) if shares else None


def _training(vectors: Vectors, label: str) -> dict[str, Any]:
    seen = vectors.observations
    return {
        "dataset": label,
        "runs": len(vectors),
        **seen.counts,
        "names": sorted(set(seen.application)),
        "scales": len(set(seen.scale)),
        "sha256": vectors_digest(vectors),
        "libraries": library_versions(),
    }


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Rows that were held out, each predicted by a model that was fitted without its group."""

    model: str  # Name of the model
    split: str  # What was held out
    # The runs, `m` of them: all, except with the published split, which tests a tenth of them
    observations: Observations
    devices: tuple[str, ...]  # Keys of the devices
    times_s: Reals  # Measured times in seconds, of shape `(m, d)`
    predicted: Reals  # Predicted relative vectors, of shape `(m, d)`


def predictions_of(evaluation: RelativeEvaluation, place: int = 0) -> HeldOutPredictions:
    """What one of the models that were evaluated predicted, by default the first."""
    result = evaluation.results[place]
    tested = evaluation.vectors.rows(result.rows)
    return HeldOutPredictions(
        result.model,
        result.split,
        tested.observations,
        evaluation.vectors.devices,
        tested.times_s,
        result.predicted,
    )


def held_out_predictions(
    vectors: Vectors,
    model: RelativeModel,
    split: str,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> HeldOutPredictions:
    """Predict each run without its group. After an evaluation with the same cache, nothing is fitted
    again.
    """
    found = evaluate_relative(
        vectors, [model], split, baselines=(), seed=seed, progress=progress, cache=cache, jobs=jobs
    )
    return predictions_of(found)

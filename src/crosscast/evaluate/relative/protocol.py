"""Evaluation of models of relative performance: fitted to some rows, scored on others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluate.confidence import Confidence
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.relative.metrics import RelativeMetrics, RowScores, metrics_of, row_scores
from crosscast.evaluate.relative.result import RelativeResult
from crosscast.evaluate.relative.splits import PUBLISHED, RelativeFold, RelativeSplit, split_named
from crosscast.evaluate.relative.sureness import Scored, confidences
from crosscast.evaluate.relative.task import FoldTask
from crosscast.evaluate.relative.weighting import WEIGHTINGS, Weighting, row_weights
from crosscast.evaluate.relative.work import predict_folds
from crosscast.evaluate.seeds import check_seed
from crosscast.predict.relative.model import RelativeModel
from crosscast.predict.relative.observations import Vectors
from crosscast.predict.relative.registry import BASELINES

__all__ = ["RelativeEvaluation", "default_weighting", "evaluate_relative"]


@dataclass(frozen=True, eq=False)
class RelativeEvaluation:
    """How models did in one split.

    Parameters
    ----------
    vectors
        All rows.
    split
        The split.
    folds
        Its folds.
    seed
        Start of all random numbers.
    results
        A result for each model.
    repeated
        Share of the rows of tests whose kernel at its size is among the rows of training as well.
    """

    vectors: Vectors
    split: RelativeSplit
    folds: tuple[RelativeFold, ...]
    seed: int
    results: tuple[RelativeResult, ...]
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

    Parameters
    ----------
    vectors
        All rows.
    models
        The models; their names differ.
    split
        Name of the split: one of `crosscast.evaluate.relative.splits.SPLITS`.
    weighting
        How rows are weighted; by default as `default_weighting` says.
    baselines
        Names of models that others are compared with.
    seed
        Start of all random numbers.
    progress
        Called whenever a fit is done.
    cache
        Folder that keeps predictions of finished folds; nothing is kept by default.
    jobs
        Processes that work at the same time; the results are the same.

    Raises
    ------
    InputError
        If there is no model, or two of a name, no such split or weighting, fewer than two groups to split by,
        or a time that is no positive number; the seed is negative or too large, a model cannot be fitted, or
        the cache cannot be written.
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

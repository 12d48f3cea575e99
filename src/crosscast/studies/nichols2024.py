"""The studies of Nichols et al. 2024, section VIII: source of the counters, held-out groups, and features.

Their tables follow those of the evaluation.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Unpack

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.evaluation import Note, with_baselines
from crosscast.evaluation.loop import RunArguments, one_thread
from crosscast.evaluation.relative.evaluation import (
    PUBLISHED,
    RelativeEvaluation,
    RelativeMetrics,
    evaluate_relative,
    row_scores,
    split_named,
)
from crosscast.evaluation.relative.question import relative_vectors
from crosscast.prediction.relative import RelativeModel, Vectors
from crosscast.prediction.relative.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
from crosscast.prediction.relative.nichols2024 import PublishedXGBoost, TreesOnFeatures, fit_features
from crosscast.report.document import Part, Report, Table
from crosscast.report.fields import percent, score_table, scores_of, table_of, writer_of
from crosscast.report.relative import evaluation_report
from crosscast.results import Tabular


@dataclass(frozen=True)
class BySource:
    """Metrics by model and by the device with the counters (Figures 4 and 5), all rows with equal weight."""

    split: str  # Folds within each source
    sources: tuple[str, ...]
    metrics: Mapping[str, tuple[RelativeMetrics, ...]]  # For each model, metrics by source

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        results = [
            {"model": model, "source": source, **asdict(metrics)}
            for model, of_model in self.metrics.items()
            for source, metrics in zip(self.sources, of_model, strict=True)
        ]
        return {"folds": self.split, "sources": list(self.sources), "results": results}


def by_source(
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: str,
    *,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> BySource:
    """Train and test models on the rows with counters of one device, for each device.

    The paper does not say whether its models are trained on the counters of one machine or of all; its mean
    is the same for each machine either way. Arguments are those of `evaluate_relative`.
    """
    source_of_row = np.array(vectors.observations.source)
    sources = tuple(np.unique(source_of_row).tolist())
    evaluations = [
        evaluate_relative(
            vectors.rows(source_of_row == source), models, split, weighting="rows", seed=seed, **run
        )
        for source in sources
    ]
    by_model = zip(*(evaluation.results for evaluation in evaluations), strict=True)
    metrics = {results[0].model: tuple(result.metrics for result in results) for results in by_model}
    return BySource(split, sources, metrics)


SHUFFLES = 5  # Permutations of each feature in each fold

CAUTION = (
    "Gain says what the trees split at, not what performance depends on: among features that go together it "
    "falls to either, it favours those with many values, and it counts what is learned by heart. The rise of "
    "the error when a feature is shuffled among runs that were held out is of use, not of habit, but it too "
    "is small for each of several features that say the same."
)


@dataclass(frozen=True)
class Importance:
    """Importance of a feature."""

    feature: str
    gain: float  # Mean gain of its splits in a fit to all rows, as a share of the sum over all features
    # Increase of the MAE on held-out rows when it is shuffled; negative where shuffling helps
    rise: float


@dataclass(frozen=True)
class Importances:
    """Importances of a model's features (Figure 8)."""

    model: str
    split: str  # Folds for shuffling
    mae: float  # MAE on held-out rows without shuffling
    features: tuple[Importance, ...]  # Sorted by descending gain

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        return {**asdict(self), "caution": CAUTION}


def importances(
    vectors: Vectors, split: str, *, model: PublishedXGBoost | None = None, seed: int = 0
) -> Importances:
    """Average gains in a fit to all rows, and permutation importances on held-out rows.

    A held-out row gets another row's value of the feature. Rows of one kernel at one size on one device get
    the same value, and donors are drawn from all rows: within one application a feature may hardly vary, and
    shuffling there would have no effect.
    """
    model, observations = model or PublishedXGBoost(), vectors.observations
    rng = np.random.default_rng(seed)
    works = _numbers(list(zip(observations.works, observations.source, strict=True)))
    tested = np.zeros(len(vectors), dtype=np.bool_)
    with one_thread("evaluating models"):
        full_fit = model.fit(vectors, seed)
        names = full_fit.features.names
        errors, shuffled = np.zeros(len(vectors)), np.zeros((len(names), len(vectors)))
        for fold in split_named(split).folds_of(observations, seed):
            if tested[fold.test].any():
                # The published split has further folds within its training rows.
                continue
            tested[fold.test] = True
            fitted, test = model.fit(vectors.rows(fold.train), seed), vectors.rows(fold.test)
            rows, donors = (fitted.features.transform(each) for each in (test.observations, observations))
            errors[fold.test] = _errors(fitted, test.times_s, rows)
            # Features that this fit does not use keep the error.
            shuffled[:, fold.test] = errors[fold.test]
            for column, name in enumerate(fitted.features.names):
                if name in names:
                    permuted = _shuffled(rows, column, donors[:, column], works[fold.test], rng)
                    raised = _errors(fitted, np.tile(test.times_s, (SHUFFLES, 1)), permuted)
                    shuffled[names.index(name), fold.test] = raised.reshape(SHUFFLES, -1).mean(axis=0)
    mae = float(errors[tested].mean())
    rise = shuffled[:, tested].mean(axis=1) - mae
    gain = full_fit.gain / max(float(full_fit.gain.sum()), np.finfo(float).tiny)
    order = np.argsort(-gain, kind="stable")
    features = tuple(Importance(names[column], float(gain[column]), float(rise[column])) for column in order)
    return Importances(model.name, split, mae, features)


def _numbers(works: Sequence[Hashable]) -> Integers:
    """Number the items; equal items get the same number."""
    numbers = {work: number for number, work in enumerate(dict.fromkeys(works))}
    return np.array([numbers[work] for work in works], dtype=np.int64)


def _errors(fitted: TreesOnFeatures, times_s: Reals, rows: Reals) -> Reals:
    return row_scores(times_s, fitted.predict_features(rows))["mae"]


def _shuffled(rows: Reals, column: int, donors: Reals, works: Integers, rng: np.random.Generator) -> Reals:
    """Repeat the rows `SHUFFLES` times with a donor's value in a column; rows of one work share the donor."""
    _, work = np.unique(works, return_inverse=True)
    donor_of_work = rng.integers(len(donors), size=(SHUFFLES, int(work.max()) + 1))
    shuffled = np.tile(rows, (SHUFFLES, 1))
    shuffled[:, column] = donors[donor_of_work[:, work]].ravel()
    return shuffled


COUNTS = (1, 2, 4, 8, 16, 32)  # Numbers of features that are tried, besides all


@dataclass(frozen=True)
class Selection:
    """Metrics by number of features (section VI-B), all rows with equal weight."""

    split: str
    counts: tuple[int, ...]  # Ascending; the last is the number of all features
    metrics: tuple[RelativeMetrics, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        results = zip(self.counts, map(asdict, self.metrics), strict=True)
        return {
            "folds": self.split,
            "results": [{"features": count, **metrics} for count, metrics in results],
        }


def selection(
    vectors: Vectors,
    split: str,
    *,
    counts: Sequence[int] = COUNTS,
    model: PublishedXGBoost | None = None,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> Selection:
    """Refit XGBoost with the features of most gain; other arguments are those of `evaluate_relative`."""
    model = model or PublishedXGBoost()
    total = len(fit_features(vectors.observations).names)
    fewer = [count for count in counts if count < total]
    models = [*(replace(model, selected=count) for count in fewer), model]
    evaluation = evaluate_relative(vectors, models, split, weighting="rows", seed=seed, **run)
    return Selection(split, (*fewer, total), tuple(result.metrics for result in evaluation.results))


HONEST = ("leave-application-out", "leave-kernel-out")
"""Splits of the studies where the evaluation has another: the first that has several groups."""


@dataclass(frozen=True, eq=False)
class RelativeStudies:
    """Studies of section VIII; ``None`` where there is only one group."""

    by_source: BySource | None
    by_scale: RelativeEvaluation | None  # Each scale held out (Figure 6)
    by_application: RelativeEvaluation | None  # Each application held out (Figure 7)
    importances: Importances
    selection: Selection

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        studies: dict[str, object] = {}
        for name, study in vars(self).items():
            content = study and study.to_dict()
            # An evaluation contributes its results only.
            studies[name] = content["results"] if isinstance(study, RelativeEvaluation) else content
        return studies


@dataclass(frozen=True, eq=False)
class RelativeStudy(Tabular):
    """An evaluation, and studies."""

    evaluation: RelativeEvaluation
    studies: RelativeStudies

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each model of the evaluation."""
        return self.evaluation.columns()

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints, without predictions."""
        return {**self.evaluation.to_dict(), "studies": self.studies.to_dict()}


def study_relative(
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: str,
    *,
    label: str = "dataset",
    boosted: PublishedXGBoost | None = None,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> RelativeStudy:
    """Evaluate models, and make the studies; arguments are those of `evaluate_relative`.

    Studies by source, importances and selection use the evaluation's split if it is one of `HONEST`, else the
    first of these that has several groups. Selection and importances use XGBoost, as `boosted` or as
    published, the others the evaluated models.
    """
    evaluate = partial(evaluate_relative, vectors, models, label=label, seed=seed, **run)
    evaluation = evaluate(split)

    def left_out(name: str) -> RelativeEvaluation:
        return evaluation if name == split else evaluate(name)

    rows = vectors.observations
    several = {name: len(set(getattr(rows, name))) > 1 for name in ("source", "scale", "application")}
    honest = split if split in HONEST else HONEST[0 if several["application"] else 1]
    studies = RelativeStudies(
        by_source(vectors, models, honest, seed=seed, **run) if several["source"] else None,
        left_out("leave-scale-out") if several["scale"] else None,
        left_out("leave-application-out") if several["application"] else None,
        importances(vectors, honest, model=boosted, seed=seed),
        selection(vectors, honest, model=boosted, seed=seed, **run),
    )
    return RelativeStudy(evaluation, studies)


def reproduce(
    dataset: Dataset, *, note: Note | None = None, seed: int = 0, **run: Unpack[RunArguments]
) -> RelativeStudy:
    """Evaluate the paper's models, with its random split, and ours, and make the studies."""
    names = [DEFAULT_MODEL, *(name for name in MODELS if name.startswith("published-")), "log-mean"]
    names = with_baselines(names, tuple(MODELS), DEFAULT_MODEL, BASELINES)
    vectors = relative_vectors(dataset, None, None, note)
    return study_relative(vectors, models_named(names), PUBLISHED, label=dataset.label, seed=seed, **run)


_MOST_FEATURES = 20
_mae = writer_of("mae")


def study_report(study: RelativeStudy) -> Report:
    """Tables of the evaluation and of each study."""
    return Report([*evaluation_report(study.evaluation).parts, *_studies(study.studies)])


def _studies(studies: RelativeStudies) -> list[Part]:
    parts: list[Part] = []
    if studies.by_source is not None:
        by_source = studies.by_source
        rows = [
            [model, *(f"{_mae(score.mae)} / {percent(score.same_order)}" for score in metrics)]
            for model, metrics in by_source.metrics.items()
        ]
        caption = f"by source: fitted to and tested on counters of one device, {by_source.split}"
        parts.append(Table(["MAE / same order", *by_source.sources], rows, caption))
    for name, evaluation in (("scale", studies.by_scale), ("application", studies.by_application)):
        if evaluation is not None:
            results = evaluation.results
            rows = [
                [group, *(_mae(result.per_group[group].mae) for result in results)]
                for group in results[0].per_group
            ]
            models = [result.model for result in results]
            parts.append(Table([name, *models], rows, f"by {name}: MAE where it is left out"))
    importances, selection = studies.importances, studies.selection
    features = table_of(
        importances.features[:_MOST_FEATURES],
        {"feature": "feature", "average gain": "gain", "rise of MAE when shuffled": "rise"},
        caption=f"importances of {importances.model}, {importances.split}",
    )
    hidden = len(importances.features) - _MOST_FEATURES
    counts = score_table(
        ["features"],
        [
            ([str(count)], metrics, None)
            for count, metrics in zip(selection.counts, selection.metrics, strict=True)
        ],
        scores_of("mae same_order"),
        caption=f"features of the most gain alone, {selection.split}",
    )
    return [*parts, features, *([f"and {hidden} more"] if hidden > 0 else []), CAUTION, counts]

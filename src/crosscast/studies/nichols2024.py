"""Which device's counters tell the most: a model for the counters of each device (Figures 4 and 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.evaluation.confidence import DRAWS, SHARE
from crosscast.evaluation.processes import Progress, one_thread
from crosscast.evaluation.relative import (
    RelativeEvaluation,
    RelativeMetrics,
    Weighting,
    evaluate_relative,
    row_scores,
    split_named,
)
from crosscast.predict.relative.data import RelativeModel, Vectors
from crosscast.predict.relative.nichols2024 import PublishedXGBoost, TreesPredictor


@dataclass(frozen=True)
class BySource:
    """Metrics by model and source."""

    split: str  # What was left out within each source
    sources: tuple[str, ...]  # Devices that counted
    # For each model, the metrics with each source, all rows weighted the same
    metrics: Mapping[str, tuple[RelativeMetrics, ...]]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as an object of JSON."""
        results = [
            {"model": model, "source": source, **asdict(metrics)}
            for model, of_model in self.metrics.items()
            for source, metrics in zip(self.sources, of_model, strict=True)
        ]
        return {"split": self.split, "sources": list(self.sources), "results": results}


def by_source(
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: str,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> BySource:
    """Evaluate models on the rows that each device counted, with no other rows to learn from.

    Paper 003 does not say whether its models learn from the counters of one machine or of all; its mean
    is the same for each machine either way.
    """
    rows = np.array(vectors.observations.source)
    sources = tuple(str(source) for source in np.unique(rows))
    found = [
        evaluate_relative(
            vectors.rows(rows == source),
            models,
            split,
            weighting="rows",
            seed=seed,
            progress=progress,
            cache=cache,
            jobs=jobs,
        )
        for source in sources
    ]
    return BySource(
        split,
        sources,
        {
            model.name: tuple(each.results[place].metrics for each in found)
            for place, model in enumerate(models)
        },
    )


SHUFFLES = 5
"""How often each feature is shuffled in each fold."""

CAUTION = (
    "Gain says what the trees split at, not what performance depends on: among features that go together it "
    "falls to either, it favours those with many values, and it counts what is learned by heart. The rise of "
    "the error when a feature is shuffled among runs that were held out is of use, not of habit, but it too "
    "is small for each of several features that say the same."
)
"""What to keep in mind, in two sentences."""


@dataclass(frozen=True)
class Importance:
    """How much a feature matters."""

    feature: str  # Its name
    # Average gain of the splits at it, as a share of the sum over all features; in a fit to all rows
    gain: float
    # By how much the MAE of held-out rows rises when it is shuffled: mean over folds and shuffles, rows
    # weighted the same. Less than 0 where shuffling helps
    rise: float


@dataclass(frozen=True)
class Importances:
    """How much the features of a model matter."""

    model: str  # Its name
    split: str  # What was held out for shuffling
    mae: float  # MAE of what was held out without shuffling
    features: tuple[Importance, ...]  # The features, most gain first

    def to_dict(self) -> dict[str, Any]:
        """Everything, as an object of JSON."""
        return {
            "model": self.model,
            "split": self.split,
            "mae": self.mae,
            "caution": CAUTION,
            "features": [asdict(each) for each in self.features],
        }


def importances(
    vectors: Vectors,
    split: str,
    *,
    model: PublishedXGBoost | None = None,
    seed: int = 0,
) -> Importances:
    """Average gains in a fit to all rows, and permutation importances on held-out rows.

    A held-out row is given another row's value of the feature. Rows of the same kernel at the same size on
    the same device get the same, and donors are among all rows: within one application a feature may hardly
    differ, and shuffling there would show nothing.
    """
    model = PublishedXGBoost() if model is None else model
    with one_thread("evaluating models"):
        whole = model.fit(vectors, seed)
        names = whole.features.names
        folds = split_named(split).folds_of(vectors.observations, seed)
        rng = np.random.default_rng(seed)
        errors = np.zeros(len(vectors))
        shuffled = np.zeros((len(names), len(vectors)))
        tested = np.zeros(len(vectors), dtype=np.bool_)
        works = _works(vectors)
        for fold in folds:
            if tested[fold.test].any():
                # Folds within the training rows of the published split.
                continue
            tested[fold.test] = True
            fitted = model.fit(vectors.rows(fold.train), seed)
            test = vectors.rows(fold.test)
            own = fitted.features.transform(test.observations)
            donors = fitted.features.transform(vectors.observations)
            errors[fold.test] = _errors(fitted, test, own)
            # What is no feature of this fit cannot be lost.
            shuffled[:, fold.test] = errors[fold.test]
            for place, name in enumerate(fitted.features.names):
                if name in names:
                    others = _others(donors[:, place], works[fold.test], rng)
                    shuffled[names.index(name), fold.test] = _shuffled(fitted, test, own, place, others)
    rise = shuffled[:, tested].mean(axis=1) - errors[tested].mean()
    gain = whole.gain / max(float(whole.gain.sum()), np.finfo(float).tiny)
    order = np.argsort(-gain, kind="stable")
    return Importances(
        model.name,
        split,
        float(errors[tested].mean()),
        tuple(Importance(str(names[place]), float(gain[place]), float(rise[place])) for place in order),
    )


def _works(vectors: Vectors) -> Integers:
    """A number for each row, the same for rows of a kernel at a size on a device."""
    rows = vectors.observations
    names = list(zip(rows.works, rows.source, strict=True))
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], dtype=np.int64)


def _errors(fitted: TreesPredictor, test: Vectors, rows: Reals) -> Reals:
    return row_scores(test.times_s, fitted.predict_features(rows)).absolute_error


def _others(donors: Reals, works: Integers, rng: np.random.Generator) -> Reals:
    """Values of a feature of other rows, of shape ``(SHUFFLES, rows)``."""
    _, place = np.unique(works, return_inverse=True)
    given = rng.integers(len(donors), size=(SHUFFLES, int(place.max()) + 1))
    return donors[given[:, place]]


def _shuffled(fitted: TreesPredictor, test: Vectors, own: Reals, place: int, others: Reals) -> Reals:
    """Mean error of each row over the shuffles of a feature."""
    rows = np.tile(own, (SHUFFLES, 1))
    rows[:, place] = others.ravel()
    again = test.rows(np.tile(np.arange(len(test)), SHUFFLES))
    means: Reals = _errors(fitted, again, rows).reshape(SHUFFLES, len(test)).mean(axis=0)
    return means


COUNTS = (1, 2, 4, 8, 16, 32)
"""Numbers of features that are tried, as far as there are more."""


@dataclass(frozen=True)
class Selection:
    """Metrics by number of features."""

    split: str  # What was left out
    counts: tuple[int, ...]  # Numbers of features, rising; the last is that of all
    metrics: tuple[RelativeMetrics, ...]  # The metrics with each, all rows weighted the same

    def to_dict(self) -> dict[str, Any]:
        """Everything, as an object of JSON."""
        results = [
            {"features": count, **asdict(each)} for count, each in zip(self.counts, self.metrics, strict=True)
        ]
        return {"split": self.split, "results": results}


def selection(
    vectors: Vectors,
    split: str,
    *,
    counts: Sequence[int] = COUNTS,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> Selection:
    """Fit XGBoost again to the features of the most gain (section VI-B), for several numbers of them."""
    whole = PublishedXGBoost()
    every = len(whole.features.fit(vectors.observations).names)
    fewer = [count for count in counts if count < every]
    found = evaluate_relative(
        vectors,
        [*(PublishedXGBoost(selected=count) for count in fewer), whole],
        split,
        weighting="rows",
        seed=seed,
        progress=progress,
        cache=cache,
        jobs=jobs,
    )
    return Selection(split, (*fewer, every), tuple(result.metrics for result in found.results))


HONEST = ("leave-application-out", "leave-kernel-out")
"""Splits of studies where the protocol is none: the first that has something to split by."""


@dataclass(frozen=True, eq=False)
class RelativeStudies:
    """Studies of section VIII."""

    # Models by the device that counted (Figures 4 and 5); `None` with a single one
    by_source: BySource | None
    by_scale: RelativeEvaluation | None  # Each scale held out (Figure 6); `None` with a single one
    # Each application held out (Figure 7); `None` with a single one
    by_application: RelativeEvaluation | None
    importances: Importances  # Of features (Figure 8)
    selection: Selection  # Fewer features (section VI-B)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as an object of JSON; what there is not is null."""
        return {
            "by_source": None if self.by_source is None else self.by_source.to_dict(),
            "by_scale": _listed(self.by_scale),
            "by_application": _listed(self.by_application),
            "importances": self.importances.to_dict(),
            "selection": self.selection.to_dict(),
        }


def _listed(found: RelativeEvaluation | None) -> list[dict[str, Any]] | None:
    return None if found is None else [result.to_dict() for result in found.results]


@dataclass(frozen=True, eq=False)
class RelativeStudy:
    """An evaluation with what belongs beside it."""

    label: str  # Which dataset
    evaluation: RelativeEvaluation  # The evaluation
    studies: RelativeStudies | None  # The studies, if they were asked for

    @property
    def counts(self) -> dict[str, int]:
        """How much there was to evaluate with."""
        rows = self.evaluation.vectors.observations
        return {
            "rows": len(rows),
            **rows.counts,
            "sources": len(set(rows.source)),
            "devices": len(self.evaluation.vectors.devices),
            "counters": len(rows.names),
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything but predictions, as ``--json`` prints it: what is not known is null."""
        evaluation = self.evaluation
        return {
            "dataset": self.label,
            "target": "relative",
            "protocol": evaluation.split.name,
            "seed": evaluation.seed,
            "devices": list(evaluation.vectors.devices),
            "sources": sorted(set(evaluation.vectors.observations.source)),
            "counts": self.counts,
            "folds": len(evaluation.folds),
            "repeated_share": evaluation.repeated,
            "bootstrap": {"draws": DRAWS, "share": SHARE},
            "results": [result.to_dict() for result in evaluation.results],
            "studies": None if self.studies is None else self.studies.to_dict(),
        }


def study_relative(
    label: str,
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: str,
    *,
    weighting: Weighting | None = None,
    studies: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> RelativeStudy:
    """Evaluate models, and make the studies.

    Studies by source, importances and selection hold out what the protocol holds out if that is one of
    `HONEST`, and else the first of these that has something to split by. All but selection and importances,
    which are of XGBoost, are of the models that are evaluated.
    """

    def evaluated(name: str, way: Weighting | None = None) -> RelativeEvaluation:
        return evaluate_relative(
            vectors, models, name, weighting=way, seed=seed, progress=progress, cache=cache, jobs=jobs
        )

    whole = evaluated(split, weighting)

    def left_out(name: str) -> RelativeEvaluation:
        return whole if name == split else evaluated(name)

    if not studies:
        return RelativeStudy(label, whole, None)
    rows = vectors.observations
    several = {name: len(set(getattr(rows, name))) > 1 for name in ("source", "scale", "application")}
    honest = split if split in HONEST else HONEST[0 if several["application"] else 1]
    sources: BySource | None = None
    if several["source"]:
        sources = by_source(vectors, models, honest, seed=seed, progress=progress, cache=cache, jobs=jobs)
    return RelativeStudy(
        label,
        whole,
        RelativeStudies(
            sources,
            left_out("leave-scale-out") if several["scale"] else None,
            left_out("leave-application-out") if several["application"] else None,
            importances(vectors, honest, seed=seed),
            selection(vectors, honest, seed=seed, progress=progress, cache=cache, jobs=jobs),
        ),
    )

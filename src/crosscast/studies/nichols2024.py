"""The studies of Nichols et al. 2024, section VIII: counters by device, what is left out, and features."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Unpack

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.dataset import Dataset
from crosscast.evaluation.loop import RunArguments, one_thread
from crosscast.evaluation.question import Note, with_baselines
from crosscast.evaluation.relative.evaluation import (
    PUBLISHED,
    RelativeEvaluation,
    evaluate_relative,
    split_named,
)
from crosscast.evaluation.relative.options import Weighting
from crosscast.evaluation.relative.question import relative_vectors
from crosscast.evaluation.relative.scores import RelativeMetrics, row_scores
from crosscast.prediction.relative.data import RelativeModel, Vectors
from crosscast.prediction.relative.features import TreesOnFeatures, fit_features
from crosscast.prediction.relative.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
from crosscast.prediction.relative.nichols2024 import PublishedXGBoost
from crosscast.results import Tabular


@dataclass(frozen=True)
class BySource:
    """Metrics by model and by the device that counted (Figures 4 and 5), all rows weighted the same."""

    split: str  # what was left out within each source
    sources: tuple[str, ...]
    metrics: Mapping[str, tuple[RelativeMetrics, ...]]  # for each model, those with each source

    def to_dict(self) -> dict[str, object]:
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
    **run: Unpack[RunArguments],
) -> BySource:
    """Evaluate models on the rows that each device counted, with no other rows to learn from.

    The paper does not say whether its models learn from the counters of one machine or of all; its mean is
    the same for each machine either way. Arguments are those of `evaluate_relative`.
    """
    rows = np.array(vectors.observations.source)
    sources = tuple(np.unique(rows).tolist())
    found = [
        evaluate_relative(vectors.rows(rows == each), models, split, weighting="rows", seed=seed, **run)
        for each in sources
    ]
    of_models = zip(*(each.results for each in found), strict=True)
    return BySource(split, sources, {each[0].model: tuple(one.metrics for one in each) for each in of_models})


SHUFFLES = 5  # How often each feature is shuffled in each fold

CAUTION = (
    "Gain says what the trees split at, not what performance depends on: among features that go together it "
    "falls to either, it favours those with many values, and it counts what is learned by heart. The rise of "
    "the error when a feature is shuffled among runs that were held out is of use, not of habit, but it too "
    "is small for each of several features that say the same."
)


@dataclass(frozen=True)
class Importance:
    """How much a feature matters."""

    feature: str
    gain: float  # mean gain of the splits at it in a fit to all rows, as a share of the sum over all features
    # By how much the MAE of held-out rows rises when it is shuffled; less than 0 where shuffling helps.
    rise: float


@dataclass(frozen=True)
class Importances:
    """How much the features of a model matter (Figure 8)."""

    model: str
    split: str  # what was held out for shuffling
    mae: float  # of what was held out, without shuffling
    features: tuple[Importance, ...]  # most gain first

    def to_dict(self) -> dict[str, object]:
        """Everything, as an object of JSON."""
        return {**asdict(self), "caution": CAUTION}


def importances(
    vectors: Vectors, split: str, *, model: PublishedXGBoost | None = None, seed: int = 0
) -> Importances:
    """Average gains in a fit to all rows, and permutation importances on held-out rows.

    A held-out row is given another row's value of the feature. Rows of the same kernel at the same size on
    the same device get the same, and donors are among all rows: within one application a feature may hardly
    differ, and shuffling there would show nothing.
    """
    model, seen = model or PublishedXGBoost(), vectors.observations
    rng, works = np.random.default_rng(seed), _numbers(list(zip(seen.works, seen.source, strict=True)))
    tested = np.zeros(len(vectors), dtype=np.bool_)
    with one_thread("evaluating models"):
        whole = model.fit(vectors, seed)
        names = whole.features.names
        errors, shuffled = np.zeros(len(vectors)), np.zeros((len(names), len(vectors)))
        for fold in split_named(split).folds_of(seen, seed):
            if tested[fold.test].any():
                # Folds within the training rows of the published split.
                continue
            tested[fold.test] = True
            fitted, test = model.fit(vectors.rows(fold.train), seed), vectors.rows(fold.test)
            own, donors = (fitted.features.transform(each) for each in (test.observations, seen))
            errors[fold.test] = _errors(fitted, test.times_s, own)
            # What is no feature of this fit cannot be lost.
            shuffled[:, fold.test] = errors[fold.test]
            for place, name in enumerate(fitted.features.names):
                if name in names:
                    rows = _shuffled(own, place, donors[:, place], works[fold.test], rng)
                    found = _errors(fitted, np.tile(test.times_s, (SHUFFLES, 1)), rows)
                    shuffled[names.index(name), fold.test] = found.reshape(SHUFFLES, -1).mean(axis=0)
    mae = float(errors[tested].mean())
    rise = shuffled[:, tested].mean(axis=1) - mae
    gain = whole.gain / max(float(whole.gain.sum()), np.finfo(float).tiny)
    order = np.argsort(-gain, kind="stable")
    features = tuple(Importance(names[place], float(gain[place]), float(rise[place])) for place in order)
    return Importances(model.name, split, mae, features)


def _numbers(works: Sequence[Hashable]) -> Integers:
    """A number for each, the same for equal ones."""
    known = {work: number for number, work in enumerate(dict.fromkeys(works))}
    return np.array([known[work] for work in works], dtype=np.int64)


def _errors(fitted: TreesOnFeatures, times_s: Reals, rows: Reals) -> Reals:
    return row_scores(times_s, fitted.predict_features(rows))["mae"]


def _shuffled(own: Reals, place: int, donors: Reals, works: Integers, rng: np.random.Generator) -> Reals:
    """The rows `SHUFFLES` times, with another row's value of a feature each time; the same for one work."""
    _, work = np.unique(works, return_inverse=True)
    given = rng.integers(len(donors), size=(SHUFFLES, int(work.max()) + 1))
    rows = np.tile(own, (SHUFFLES, 1))
    rows[:, place] = donors[given[:, work]].ravel()
    return rows


COUNTS = (1, 2, 4, 8, 16, 32)  # Numbers of features that are tried, as far as there are more


@dataclass(frozen=True)
class Selection:
    """Metrics by number of features (section VI-B), all rows weighted the same."""

    split: str
    counts: tuple[int, ...]  # rising; the last is that of all features
    metrics: tuple[RelativeMetrics, ...]

    def to_dict(self) -> dict[str, object]:
        """Everything, as an object of JSON."""
        results = zip(self.counts, map(asdict, self.metrics), strict=True)
        return {"split": self.split, "results": [{"features": count, **each} for count, each in results]}


def selection(
    vectors: Vectors,
    split: str,
    *,
    counts: Sequence[int] = COUNTS,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> Selection:
    """Fit XGBoost again to the features of the most gain; the rest is as `evaluate_relative` takes it."""
    whole = PublishedXGBoost()
    every = len(fit_features(vectors.observations).names)
    fewer = [count for count in counts if count < every]
    models = [*(PublishedXGBoost(selected=count) for count in fewer), whole]
    found = evaluate_relative(vectors, models, split, weighting="rows", seed=seed, **run)
    return Selection(split, (*fewer, every), tuple(result.metrics for result in found.results))


# Splits of studies where the protocol is none of them: the first that has something to split by
HONEST = ("leave-application-out", "leave-kernel-out")


@dataclass(frozen=True, eq=False)
class RelativeStudies:
    """Studies of section VIII; ``None`` where there is a single group to leave out."""

    by_source: BySource | None
    by_scale: RelativeEvaluation | None  # each scale held out (Figure 6)
    by_application: RelativeEvaluation | None  # each application held out (Figure 7)
    importances: Importances
    selection: Selection

    def to_dict(self) -> dict[str, object]:
        """Everything, as an object of JSON."""
        found: dict[str, object] = {}
        for name, study in vars(self).items():
            # Of a whole evaluation, its results are the study.
            told = study and study.to_dict()
            found[name] = told["results"] if isinstance(study, RelativeEvaluation) else told
        return found


@dataclass(frozen=True, eq=False)
class RelativeStudy(Tabular):
    """An evaluation with its studies, if they were asked for."""

    evaluation: RelativeEvaluation
    studies: RelativeStudies | None = None

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each model of the evaluation."""
        return self.evaluation.columns()

    def to_dict(self) -> dict[str, object]:
        """Everything but predictions, as ``--json`` prints it."""
        return {**self.evaluation.to_dict(), "studies": self.studies and self.studies.to_dict()}


def study_relative(
    vectors: Vectors,
    models: Sequence[RelativeModel],
    split: str,
    *,
    label: str = "dataset",
    weighting: Weighting | None = None,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> RelativeStudy:
    """Evaluate models, and make the studies; arguments are those of `evaluate_relative`.

    Studies by source, importances and selection hold out what the protocol holds out if that is one of
    `HONEST`, and else the first of these that has something to split by. All but selection and importances,
    which are of XGBoost, are of the models that are evaluated.
    """
    evaluated = partial(evaluate_relative, vectors, models, label=label, seed=seed, **run)
    whole = evaluated(split, weighting=weighting)

    def left_out(name: str) -> RelativeEvaluation:
        return whole if name == split else evaluated(name)

    rows = vectors.observations
    several = {name: len(set(getattr(rows, name))) > 1 for name in ("source", "scale", "application")}
    honest = split if split in HONEST else HONEST[0 if several["application"] else 1]
    found = RelativeStudies(
        by_source(vectors, models, honest, seed=seed, **run) if several["source"] else None,
        left_out("leave-scale-out") if several["scale"] else None,
        left_out("leave-application-out") if several["application"] else None,
        importances(vectors, honest, seed=seed),
        selection(vectors, honest, seed=seed, **run),
    )
    return RelativeStudy(whole, found)


def reproduce(
    dataset: Dataset,
    *,
    devices: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    note: Note | None = None,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> RelativeStudy:
    """The models and the random split of the paper, our model beside them, and the studies."""
    names = [DEFAULT_MODEL, *(name for name in MODELS if name.startswith("published-")), "log-mean"]
    names = with_baselines(names, tuple(MODELS), DEFAULT_MODEL, BASELINES)
    vectors = relative_vectors(dataset, devices, sources, note)
    return study_relative(vectors, models_named(names), PUBLISHED, label=dataset.label, seed=seed, **run)

"""The question of relative performance: times on devices over each other, from one device's counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Unpack, get_args

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.dataset import Dataset
from crosscast.errors import InputError
from crosscast.evaluation import Note, Question, names_of, with_baselines
from crosscast.evaluation.keep import digest, library_versions
from crosscast.evaluation.loop import RunArguments, SeededRun, check_jobs, check_seed, one_thread
from crosscast.evaluation.relative import RelativeEvaluationOptions, RelativeFolds, RelativeTrainingOptions
from crosscast.evaluation.relative.evaluation import (
    HeldOutPredictions,
    RelativeEvaluation,
    RelativeSplit,
    evaluate_relative,
    held_out_predictions,
    split_named,
)
from crosscast.prediction.intervals import check_level
from crosscast.prediction.relative import (
    Observations,
    RelativeModel,
    RelativeResiduals,
    Vectors,
    relative_to_slowest,
)
from crosscast.prediction.relative.artefact import FittedRelative, RelativeCard, TrainedRelativeModel
from crosscast.prediction.relative.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
from crosscast.prediction.relative.observed import devices_left_out, vectors_of
from crosscast.prediction.trained import format_names

LEAST_GROUPS = 3  # Fewer leave too few when one is held out


def held_out_split(vectors: Vectors, label: str) -> RelativeSplit:
    """The split for errors on the card: by application, or by kernel where applications are too few."""
    counts = []
    for split in map(split_named, ("leave-application-out", "leave-kernel-out")):
        count = len(set(split.groups(vectors.observations)))
        if count >= LEAST_GROUPS:
            return split
        counts.append(str(count))
    groups = "applications or kernels with counters, and times on the devices, to train and test a model"
    expected = f"at least {LEAST_GROUPS} {groups}"
    raise InputError.of(where=label, expected=expected, found=" and ".join(counts))


def train_relative(
    vectors: Vectors,
    model: RelativeModel,
    *,
    baselines: Sequence[RelativeModel] = (),
    label: str = "dataset",
    level: float = 0.9,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> TrainedRelativeModel:
    """Fit a model to vectors, and evaluate it with each application held out in turn."""
    check_seed(seed)
    check_jobs(run.get("jobs"))
    check_level(level)
    split = held_out_split(vectors, label)
    with one_thread("training a model"):
        # First the model itself, so that unsuitable data fails at once.
        predictor = model.fit(vectors, seed)
    models = [model, *(each for each in baselines if each.name != model.name)]
    tested = evaluate_relative(vectors, models, split.name, baselines=(), seed=seed, **run).results
    observations = vectors.observations
    residuals = residuals_of(vectors, tested[0].predicted, split.groups(observations))
    results: list[dict[str, object]] = [
        {"model": each.model, "folds": split.name, **asdict(each.by_weighting["applications"])}
        for each in tested
    ]
    results[0] |= {"coverage": _coverage(residuals, level)}
    card = RelativeCard(
        model=model.name,
        seed=seed,
        training={
            "dataset": label,
            "runs": len(vectors),
            **observations.counts,
            "names": sorted(set(observations.application)),
            "scales": len(set(observations.scale)),
            "sha256": digest(vectors),
            "libraries": library_versions(),
        },
        devices=vectors.devices,
        sources=tuple(sorted(set(observations.source))),
        counters=observations.names,
        configuration=observations.configuration,
        errors={
            "folds": split.name,
            "level": level,
            "groups": len(residuals.groups),
            "vectors": len(residuals.log_error),
            "weights": "applications",
            "results": results,
        },
    )
    return TrainedRelativeModel(card, FittedRelative(predictor, residuals))


def residuals_of(vectors: Vectors, predicted: Reals, groups: Sequence[str]) -> RelativeResiduals:
    """Residuals of vectors that were predicted without their group.

    Repeats of a kernel at a size and scale on a source count once, with the mean of their errors.
    """
    errors = np.log(relative_to_slowest(predicted)) - np.log(vectors.vector)
    keys = list(zip(groups, vectors.observations.source, vectors.observations.works, strict=True))
    repeats = {key: index for index, key in enumerate(sorted(set(keys)))}
    number = np.array([repeats[key] for key in keys], dtype=np.int64)
    sums = np.zeros((len(repeats), errors.shape[1]))
    np.add.at(sums, number, errors)
    group, source, _ = zip(*repeats, strict=True)
    return RelativeResiduals.of(group, source, sums / np.bincount(number)[:, None])


def _coverage(residuals: RelativeResiduals, level: float) -> float | None:
    """Share of times relative to another device within intervals from the other groups' errors.

    Groups have equal weights.
    """
    d = residuals.log_error.shape[1]
    shares: dict[str, list[float]] = {}
    for errors in map(residuals.of_source, residuals.sources):
        for number, group in enumerate(errors.groups if len(errors.groups) > 1 else ()):
            tested, others = (errors.rows(mask) for mask in (errors.group == number, errors.group != number))
            inside = [
                np.abs(tested.relative_errors(base)) <= others.half_width(level, base) for base in range(d)
            ]
            # Relative to itself, a device has no error.
            shares.setdefault(group, []).append((float(np.mean(inside)) * d - 1) / (d - 1))
    return float(np.mean([np.mean(each) for each in shares.values()])) if shares else None


_MOST_NAMED = 8


def relative_vectors(
    dataset: Dataset,
    devices: str | Sequence[str] | None,
    sources: str | Sequence[str] | None,
    note: Note | None = None,
) -> Vectors:
    """Runs or profiles with times of their work on several devices; `note` is told the devices left out."""
    vectors = vectors_of(dataset, devices=names_of(devices), sources=names_of(sources))
    left_out = devices_left_out(dataset, vectors) if devices is None and note is not None else ()
    if left_out and note is not None:
        note(
            f"devices without times of all this work are left out: {format_names(left_out, _MOST_NAMED)}; "
            "--devices takes others"
        )
    return vectors


class RelativeQuestion(
    Question[
        Dataset, RelativeEvaluationOptions, RelativeTrainingOptions, RelativeEvaluation, TrainedRelativeModel
    ]
):
    """Ratios of times between devices, learned from counted runs or profiles."""

    name = "relative"
    folds = get_args(RelativeFolds)
    evaluation_options = RelativeEvaluationOptions
    training_options = RelativeTrainingOptions
    all_models = tuple(MODELS)
    best_model = DEFAULT_MODEL

    def evaluate(
        self,
        data: Dataset,
        models: Sequence[str] | None,
        folds: str,
        options: RelativeEvaluationOptions,
        **run: Unpack[SeededRun],
    ) -> RelativeEvaluation:
        """Evaluate models on devices that have times of the same work."""
        chosen = models_named(with_baselines(models, tuple(MODELS), DEFAULT_MODEL, BASELINES))
        vectors = relative_vectors(data, options.devices, options.sources, options.note)
        return evaluate_relative(vectors, chosen, folds, label=data.label, weighting=options.weights, **run)

    def train(
        self,
        data: Dataset,
        model: str,
        options: RelativeTrainingOptions,
        **run: Unpack[SeededRun],
    ) -> TrainedRelativeModel:
        """Train a model, with errors of applications, or kernels, that were held out."""
        return train_relative(
            relative_vectors(data, options.devices, options.sources, options.note),
            models_named([model])[0],
            baselines=models_named(BASELINES),
            label=Path(data.label).name,
            level=options.level,
            **run,
        )


QUESTION = RelativeQuestion()


def held_out_work(
    dataset: Dataset,
    model: str | None,
    folds: str,
    *,
    devices: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    check: Callable[[Observations, Sequence[str]], None] | None = None,
    note: Note | None = None,
    seed: int = 0,
    **run: Unpack[RunArguments],
) -> HeldOutPredictions:
    """Runs with predictions without their group; `check` is called with runs and devices before any fit."""
    name = QUESTION.check_model(dataset, model)
    vectors = relative_vectors(dataset, devices, sources, note)
    if check is not None:
        check(vectors.observations, vectors.devices)
    return held_out_predictions(vectors, models_named([name])[0], folds, seed=seed, **run)

"""The question of relative performance: times on devices over each other, from one device's counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Unpack, get_args

from crosscast.data.dataset import Dataset
from crosscast.evaluation.loop import RunArguments
from crosscast.evaluation.question import Note, Question, names_of, with_baselines
from crosscast.evaluation.relative.evaluation import (
    HeldOutPredictions,
    RelativeEvaluation,
    evaluate_relative,
    held_out_predictions,
)
from crosscast.evaluation.relative.options import (
    RelativeEvaluationOptions,
    RelativeFolds,
    RelativeTrainingOptions,
)
from crosscast.evaluation.relative.training import train_relative
from crosscast.prediction.relative.artefact import TrainedRelativeModel
from crosscast.prediction.relative.data import Observations, Vectors
from crosscast.prediction.relative.models import BASELINES, DEFAULT_MODEL, MODELS, models_named
from crosscast.prediction.relative.observed import devices_left_out, vectors_of
from crosscast.prediction.warnings import format_names

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
        Dataset,
        RelativeEvaluationOptions,
        RelativeTrainingOptions,
        RelativeEvaluation,
        TrainedRelativeModel,
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
        *,
        seed: int,
        **run: Unpack[RunArguments],
    ) -> RelativeEvaluation:
        """Evaluate models on devices that have times of the same work."""
        names = with_baselines(models, tuple(MODELS), DEFAULT_MODEL, BASELINES)
        vectors = relative_vectors(data, options.devices, options.sources, options.note)
        chosen = models_named(names)
        weighting = options.weights
        return evaluate_relative(
            vectors, chosen, folds, label=data.label, weighting=weighting, seed=seed, **run
        )

    def train(
        self,
        data: Dataset,
        model: str,
        options: RelativeTrainingOptions,
        *,
        seed: int,
        **run: Unpack[RunArguments],
    ) -> TrainedRelativeModel:
        """Train a model, with errors of applications, or kernels, that were held out."""
        return train_relative(
            relative_vectors(data, options.devices, options.sources, options.note),
            models_named([model])[0],
            baselines=models_named(BASELINES),
            label=Path(data.label).name,
            level=options.level,
            seed=seed,
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
    """Runs with the predictions of a model that was fitted without their group.

    `check` is called with the runs and the devices before anything is fitted.
    """
    name = QUESTION.check_model(dataset, model)
    vectors = relative_vectors(dataset, devices, sources, note)
    if check is not None:
        check(vectors.observations, vectors.devices)
    return held_out_predictions(vectors, models_named([name])[0], folds, seed=seed, **run)

"""What a model predicts of each run when it has not seen its group: for scheduling, among others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crosscast.arrays import Reals
from crosscast.evaluate.processes import Progress
from crosscast.evaluate.relative.protocol import RelativeEvaluation, evaluate_relative
from crosscast.predict.relative.model import RelativeModel
from crosscast.predict.relative.observations import Observations, Vectors

__all__ = ["HeldOutPredictions", "held_out_predictions", "predictions_of"]


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Rows that were held out, each predicted by a model that was fitted without its group.

    Parameters
    ----------
    model
        Name of the model.
    split
        What was held out.
    observations
        The runs, ``m`` of them: all, except with the published split, which tests a tenth of them.
    devices
        Keys of the devices.
    times_s
        Measured times in seconds, of shape ``(m, d)``.
    predicted
        Predicted relative vectors, of shape ``(m, d)``.
    """

    model: str
    split: str
    observations: Observations
    devices: tuple[str, ...]
    times_s: Reals
    predicted: Reals


def predictions_of(evaluation: RelativeEvaluation, place: int = 0) -> HeldOutPredictions:
    """What one of the models that were evaluated predicted, by default the first.

    Parameters
    ----------
    evaluation
        The evaluation.
    place
        Place of the model's result.
    """
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
    """Predict each run without its group. After an evaluation with the same cache, nothing is fitted again.

    Parameters
    ----------
    vectors, split, seed, progress, cache, jobs
        As `evaluate_relative` has them.
    model
        The model.

    Raises
    ------
    InputError
        As there.
    """
    found = evaluate_relative(
        vectors, [model], split, baselines=(), seed=seed, progress=progress, cache=cache, jobs=jobs
    )
    return predictions_of(found)

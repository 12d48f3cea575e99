"""One fit: a model learns from the rows of one side of a fold, and predicts the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.evaluate.relative.splits import RelativeFold
from crosscast.predict.relative.model import RelativeModel
from crosscast.predict.relative.observations import Vectors

__all__ = ["FoldTask", "predict_fold"]


@dataclass(frozen=True, eq=False)
class FoldTask:
    """What to do.

    Parameters
    ----------
    model
        The model.
    fold
        What is held out.
    seed
        Start of all random numbers.
    """

    model: RelativeModel
    fold: RelativeFold
    seed: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"


def predict_fold(vectors: Vectors, task: FoldTask) -> Reals:
    """Fit the model to the rows of training alone, and let it predict those that are held out.

    Returns
    -------
    array
        Of shape ``(rows of the test, d)``.

    Raises
    ------
    InputError
        If the model cannot be fitted to these rows, or predicts something other than positive numbers.
    """
    try:
        predictor = task.model.fit(vectors.rows(task.fold.train), task.seed)
    except InputError as error:
        raise InputError(f"{task.label}: {error}") from error
    predicted = predictor.predict(vectors.observations.rows(task.fold.test))
    if not (np.isfinite(predicted) & (predicted > 0)).all():
        raise InputError(f"{task.label}: expected positive numbers as predictions, found others")
    return predicted

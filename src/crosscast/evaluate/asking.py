"""Fitting a model to one side of a fold, and asking it about the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.errors import CrosscastError
from crosscast.evaluate.outcome import Outcome
from crosscast.evaluate.probing import probe_sets
from crosscast.evaluate.splits import Fold, Split
from crosscast.predict.grid import Grid
from crosscast.predict.model import Model, Predictor

__all__ = ["Answers", "ask", "known_sets", "outcomes_of"]


@dataclass(frozen=True)
class Answers:
    """Forecasts for the held-out kernels of a fold.

    All are natural logarithms of seconds, of shape ``(s, n, d)`` for ``s`` sets of known times, ``n``
    kernels and all ``d`` devices of the grid.

    Parameters
    ----------
    centre
        Predicted medians.
    low, high
        Limits of the intervals.
    """

    centre: Reals
    low: Reals
    high: Reals


def known_sets(grid: Grid, split: Split, fold: Fold, probes: int, seed: int) -> Flags:
    """Devices whose times are told, of shape ``(s, d)`` for ``s`` sets that are tried.

    Parameters
    ----------
    grid
        All kernels and devices.
    split, fold
        What is held out.
    probes
        Number of devices to measure on; where the split itself says which times are known, that is used.
    seed
        Start of the random numbers, where there are too many sets to try all.
    """
    count = len(grid.devices)
    if split.known_elsewhere:
        known = np.zeros((1, count), dtype=np.bool_)
        known[0, fold.train_devices] = True
        return known
    sets = probe_sets(count, probes, seed)
    known = np.zeros((len(sets), count), dtype=np.bool_)
    for place, chosen in enumerate(sets):
        known[place, list(chosen)] = True
    return known


def ask(
    grid: Grid, fold: Fold, model: Model, knowns: Sequence[Flags], seed: int, level: float
) -> list[Answers]:
    """Fit a model to one side of a fold and let it predict the other.

    The model sees nothing of the held-out side but the profiles and the times that are told.

    Parameters
    ----------
    grid
        All kernels and devices.
    fold
        What is held out.
    model
        The model.
    knowns
        Sets of devices whose times are told, each array of shape ``(s, d)``; an answer for each array.
    seed
        Start of the model's random numbers.
    level
        Probability that the intervals are to hold.

    Raises
    ------
    CrosscastError
        If a forecast is not a time.
    InputError
        If the model cannot be fitted to so little.
    """
    predictor = model.fit(grid.take(fold.train_rows).on(fold.train_devices.tolist()), seed)
    return [_answers(grid, fold, model.name, predictor, known, level) for known in knowns]


def _answers(grid: Grid, fold: Fold, name: str, predictor: Predictor, known: Flags, level: float) -> Answers:
    sets, count = known.shape
    rows = np.tile(fold.test_rows, sets)
    probes = np.where(np.repeat(known, len(fold.test_rows), axis=0), np.exp(grid.log_time[rows]), np.nan)
    forecast = predictor.predict(
        grid.profiles.take(rows),
        _devices(grid, fold),
        probes=probes[:, fold.train_devices] if known.any() else None,
        level=level,
    )
    arrays = (forecast.centre, forecast.low, forecast.high)
    shape = (len(rows), count)
    if any(array.shape != shape for array in arrays):
        raise CrosscastError(
            f"model {name}: expected forecasts of shape {shape}, found {[array.shape for array in arrays]}"
        )
    if not all((array >= 0).all() for array in arrays) or (forecast.centre == 0).any():
        raise CrosscastError(
            f"model {name}, {fold.held_out} held out: expected times as forecasts, found what is none"
        )
    # An interval may begin at 0.
    with np.errstate(divide="ignore"):
        logs = [np.log(array).reshape(sets, len(fold.test_rows), count) for array in arrays]
    return Answers(*logs)


def _devices(grid: Grid, fold: Fold) -> list[str | Device]:
    fitted = set(fold.train_devices.tolist())
    return [device.key if place in fitted else device for place, device in enumerate(grid.devices)]


def outcomes_of(
    grid: Grid, split: Split, folds: Sequence[Fold], answers: Sequence[Answers], knowns: Sequence[Flags]
) -> tuple[Outcome, ...]:
    """Put the answers of all folds together: an outcome for each set of known times.

    Kernels that were not measured on all devices of a set are not in its outcome, nor are those of which it
    leaves no measured time to forecast.

    Parameters
    ----------
    grid
        All kernels and devices.
    split
        What was held out.
    folds, answers, knowns
        Each fold, what was answered and what was told; the number of sets is the same in all.
    """
    outcomes = []
    for place in range(len(knowns[0])):
        parts = [
            _part(grid, split, fold, answer, place, known[place])
            for fold, answer, known in zip(folds, answers, knowns, strict=True)
        ]
        outcomes.append(_joined(parts))
    return tuple(outcomes)


def _part(grid: Grid, split: Split, fold: Fold, answers: Answers, place: int, told: Flags) -> Outcome:
    measured = grid.log_time[fold.test_rows]
    finite = np.isfinite(measured)
    known = told & finite
    scored = np.zeros(measured.shape, dtype=np.bool_)
    scored[:, fold.test_devices] = True
    # A kernel that lacks one of a few probes was not asked as the others were.
    complete = (
        np.ones(len(measured), dtype=np.bool_) if split.known_elsewhere else finite[:, told].all(axis=1)
    )
    # Of a kernel of which no cell is left to forecast, a choice would be none.
    complete &= (scored & finite & ~known).any(axis=1)
    names = [grid.profiles.application[row] for row in fold.test_rows[complete].tolist()]
    return Outcome(
        tuple(names),
        measured[complete],
        answers.centre[place][complete],
        answers.low[place][complete],
        answers.high[place][complete],
        (scored & ~known)[complete],
        known[complete],
        fold.test_rows[complete],
    )


def _joined(parts: Sequence[Outcome]) -> Outcome:
    return Outcome(
        tuple(name for part in parts for name in part.application),
        *(
            np.concatenate([getattr(part, field) for part in parts])
            for field in ("measured", "centre", "low", "high", "scored", "known", "rows")
        ),
    )

"""References for forecasts of times: the noise of single runs, and always the same device."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.dataset import Dataset
from crosscast.data.table import distinct, samples_of
from crosscast.data.views import CELL, of_successful_sessions, run_means
from crosscast.evaluation.time.results import Result
from crosscast.evaluation.time.scores import TimeOutcome
from crosscast.prediction.time.data import Grid

_NOISE, _ONE_RUN = "noise-floor", "one run of each cell"
_RUNS = 25
"""Draws from each cell's runs."""


def noise_floor(dataset: Dataset | None, grid: Grid, seed: int, level: float = 0.9) -> Result:
    """Result of a single run of each cell as a forecast of the cell's median.

    In logarithms, a single run is as far from the median as a perfect forecast of the median is from a single
    run. Runs of each cell are drawn with replacement. The interval around a run has the width of the central
    interval of the cell's runs.
    """
    if dataset is None:
        empty = grid.take(np.arange(0))
        outcomes = [_reference(empty, empty.log_time, empty.log_time, empty.log_time)]
        return Result(_NOISE, _ONE_RUN, 0, level, grid.applications, tuple(outcomes))
    records = of_successful_sessions(dataset.records, dataset.sessions)
    cells, numbers = distinct(records, CELL)
    samples = samples_of(numbers, np.log(run_means(records)))
    row_of = {kernel: row for row, kernel in enumerate(grid.profiles.names)}
    column_of = {device.key: column for column, device in enumerate(grid.devices)}
    cell_indices = [
        (row_of[kernel], column_of[cell["device"]], number)
        for number, cell in enumerate(cells.to_pylist())
        if (kernel := (cell["application"], cell["kernel"], cell["size"])) in row_of
    ]
    rows, columns, indices = np.array(cell_indices, dtype=np.int64).reshape(-1, 3).T

    def to_grid(values: Reals) -> Reals:
        array = np.full(grid.log_time.shape, np.nan)
        array[rows, columns] = values[indices]
        return array

    below = grid.log_time - to_grid(samples.quantile((1 - level) / 2))
    above = to_grid(samples.quantile((1 + level) / 2)) - grid.log_time
    starts = np.cumsum(samples.counts) - samples.counts
    drawn = (np.random.default_rng(seed).random((_RUNS, len(starts))) * samples.counts).astype(np.int64)
    runs = [to_grid(samples.values[starts + offsets]) for offsets in drawn]
    outcomes = [_reference(grid, run, run - above, run + below) for run in runs]
    return Result(_NOISE, _ONE_RUN, 0, level, grid.applications, tuple(outcomes))


def _reference(grid: Grid, centre: Reals, low: Reals, high: Reals, scored: bool = True) -> TimeOutcome:
    """An outcome of all kernels, without known times."""
    flags = np.full(centre.shape, scored), np.zeros(centre.shape, dtype=np.bool_)
    rows = np.arange(len(grid.profiles))
    return TimeOutcome(grid.profiles.application, grid.log_time, centre, low, high, *flags, rows)


def always_the_same(grid: Grid, level: float = 0.9) -> tuple[str, Result] | None:
    """The device with the least mean slowdown over all kernels, and its result; ``None`` without a choice.

    It is chosen by the measured times of all kernels, so no choice that ignores the kernel is better. It
    forecasts no times, so no error is scored.
    """
    candidates = []
    for column in np.flatnonzero(np.isfinite(grid.log_time).all(axis=0)).tolist():
        centre, undefined = np.ones(grid.log_time.shape), np.full(grid.log_time.shape, np.nan)
        centre[:, column] = 0.0
        outcome = _reference(grid, centre, undefined, undefined, scored=False)
        result = Result("always-the-same", "in hindsight", 0, level, grid.applications, (outcome,))
        if result.scores.slowdown_mean is not None:
            candidates.append((result.scores.slowdown_mean, (grid.devices[column].key, result)))
    return min(candidates, key=lambda pair: pair[0])[1] if candidates else None

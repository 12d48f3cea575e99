"""What no model can beat, and what needs no model: the spread of runs, and always the same device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.evaluate.outcome import Outcome
from crosscast.evaluate.protocol import Result, application_names
from crosscast.predict.grid import Grid
from crosscast.tables.arrow import Table
from crosscast.tables.cells import CELL, run_means, sound
from crosscast.tables.dataset import Dataset
from crosscast.tables.keys import distinct
from crosscast.tables.samples import Samples, samples_of

__all__ = ["ALWAYS", "NOISE", "AlwaysTheSame", "always_the_same", "noise_floor"]

NOISE = "noise-floor"
"""Name of the noise floor in tables."""

ALWAYS = "always-the-same"
"""Name of the choice of always the same device in tables."""

_RUNS = 25
"""Runs that are drawn from each cell."""


def noise_floor(dataset: Dataset, grid: Grid, seed: int, level: float = 0.9) -> Result:
    """How a look at one run of each cell does as a forecast of the cell's median.

    In logarithms, a single run is as far from the median as the forecast of a perfect model of the medians
    is from a single run. From each cell runs are drawn, with replacement. The interval around a run is as
    wide as that of the cell's runs, between the quantiles that leave the same share out on both sides.

    Parameters
    ----------
    dataset
        The records.
    grid
        Their grid.
    seed
        Start of the random numbers.
    level
        Probability that the intervals are to hold.
    """
    records = sound(dataset.records, dataset.sessions)
    cells, numbers = distinct(records, CELL)
    samples = samples_of(numbers, np.log(run_means(records)))
    rows, columns, kept = _places(grid, cells)

    def spread(values: Reals) -> Reals:
        array = np.full(grid.log_time.shape, np.nan)
        array[rows, columns] = values[kept]
        return array

    below = grid.log_time - spread(samples.quantile((1 - level) / 2))
    above = spread(samples.quantile((1 + level) / 2)) - grid.log_time
    runs = [spread(run) for run in _drawn(samples, np.random.default_rng(seed))]
    every = np.ones(grid.log_time.shape, dtype=np.bool_)
    outcomes = tuple(_outcome(grid, run, run - above, run + below, every) for run in runs)
    return Result(NOISE, "one run of each cell", 0, level, application_names(grid), outcomes)


def _places(grid: Grid, cells: Table) -> tuple[Integers, Integers, Integers]:
    """Row and column of each cell in the grid, and the numbers of the cells that are in it."""
    row_of = {kernel: row for row, kernel in enumerate(grid.profiles.names)}
    column_of = {device.key: column for column, device in enumerate(grid.devices)}
    found = [
        (row_of[kernel], column_of[cell["device"]], number)
        for number, cell in enumerate(cells.to_pylist())
        if (kernel := (cell["application"], cell["kernel"], cell["size"])) in row_of
    ]
    rows, columns, kept = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return rows, columns, kept


def _drawn(samples: Samples, rng: np.random.Generator) -> Reals:
    """Runs drawn from each cell, of shape ``(runs, cells)``."""
    starts = np.cumsum(samples.counts) - samples.counts
    places = (rng.random((_RUNS, len(starts))) * samples.counts).astype(np.int64)
    drawn: Reals = samples.values[starts + places]
    return drawn


def _outcome(grid: Grid, centre: Reals, low: Reals, high: Reals, scored: Flags) -> Outcome:
    rows = np.arange(len(grid.profiles), dtype=np.int64)
    none = np.zeros(centre.shape, dtype=np.bool_)
    return Outcome(grid.profiles.application, grid.log_time, centre, low, high, scored, none, rows)


@dataclass(frozen=True)
class AlwaysTheSame:
    """The one device that would have been the best to take for all kernels.

    Parameters
    ----------
    device
        Its key.
    result
        How its choice did; without errors, as it forecasts nothing.
    """

    device: str
    result: Result


def always_the_same(grid: Grid, level: float = 0.9) -> AlwaysTheSame | None:
    """Find the device with the least mean slowdown over all kernels; ``None`` if there is no choice.

    It is found with the measured times of all kernels, so it is the best that any choice without a look at
    the kernel can do.

    Parameters
    ----------
    grid
        Kernels and their times; a device on which not all were measured is not considered.
    level
        Level of the result, which has no intervals.
    """
    candidates = []
    for place, device in enumerate(grid.devices):
        if np.isfinite(grid.log_time[:, place]).all():
            result = Result(
                ALWAYS, "in hindsight", 0, level, application_names(grid), (_always(grid, place),)
            )
            slowdown = result.scores.slowdown_mean
            if slowdown is not None:
                candidates.append((slowdown, AlwaysTheSame(device.key, result)))
    return min(candidates, key=lambda pair: pair[0])[1] if candidates else None


def _always(grid: Grid, device: int) -> Outcome:
    """Forecasts that make one device the fastest, and of which no error is scored."""
    shape = grid.log_time.shape
    centre = np.ones(shape)
    centre[:, device] = 0.0
    nothing = np.full(shape, np.nan)
    return _outcome(grid, centre, nothing, nothing, np.zeros(shape, dtype=np.bool_))

"""Energy in place of time, as the paper proposes (section VII): the same forest on log joules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.evaluate.published.headline import NODE_SIZE, TRAINED_SHARE, TRIED
from crosscast.evaluate.published.runs import Runs
from crosscast.predict.cell_trees import Rows, draw_trees
from crosscast.predict.published_forest import device_codes
from crosscast.tables.dataset import Dataset

__all__ = ["Energy", "energy"]

_FEWEST_APPLICATIONS = 3


@dataclass(frozen=True)
class Energy:
    """The forest on energy; errors of logarithms, and relative ones as fractions.

    Parameters
    ----------
    applications, devices, rows
        How many there are; a row is a watched run.
    trees
        Trees of the forest.
    r2, mae_log, mape
        On a random split of rows, trained on a fifth: the paper's way.
    lookup_mape
        The same of the mean of the cell's own rows, which knows no feature.
    held_out_median_ape, held_out_rmse_log
        Leave-application-out, over cells.
    baseline_median_ape, baseline_rmse_log
        The same of each device's mean over the other applications.
    """

    applications: int
    devices: int
    rows: int
    trees: int
    r2: float
    mae_log: float
    mape: float
    lookup_mape: float
    held_out_median_ape: float
    held_out_rmse_log: float
    baseline_median_ape: float
    baseline_rmse_log: float


@dataclass(frozen=True)
class _Watched:
    """Watched runs: their rows for a forest, application of each cell, and device of each cell."""

    rows: Rows
    application: np.ndarray
    device: np.ndarray


def energy(dataset: Dataset, runs: Runs, trees: int, seed: int) -> Energy | None:
    """Fit the forest to the energy of applications at a size; ``None`` where too few were watched.

    The features of an application are the means over its kernels at that size; where one kernel alone was
    watched, that kernel's.

    Parameters
    ----------
    dataset
        The dataset, for its table of energy.
    runs
        Its runs, for the features.
    trees
        Trees of the forest.
    seed
        Start of all random numbers.
    """
    watched = _watched(dataset, runs)
    if watched is None:
        return None
    rows = watched.rows
    order = np.random.default_rng(seed).permutation(len(rows.response))
    trained, tested = np.split(order, [max(1, round(TRAINED_SHARE * len(order)))])
    train, test = rows.take(trained), rows.take(tested)
    error = _predictions(train, trees, seed)[test.cell] - test.response
    known = train.means()
    lookup = np.where(np.isnan(known), train.response.mean(), known)[test.cell] - test.response
    held_out, baseline = _held_out(watched, trees, seed)
    return Energy(
        applications=len(np.unique(watched.application)),
        devices=len(np.unique(watched.device)),
        rows=len(rows.response),
        trees=trees,
        r2=1 - float(np.mean(error**2) / np.var(test.response)),
        mae_log=float(np.mean(np.abs(error))),
        mape=float(np.mean(np.abs(np.expm1(error)))),
        lookup_mape=float(np.mean(np.abs(np.expm1(lookup)))),
        held_out_median_ape=float(np.median(np.abs(np.expm1(held_out)))),
        held_out_rmse_log=float(np.sqrt(np.mean(held_out**2))),
        baseline_median_ape=float(np.median(np.abs(np.expm1(baseline)))),
        baseline_rmse_log=float(np.sqrt(np.mean(baseline**2))),
    )


def _watched(dataset: Dataset, runs: Runs) -> _Watched | None:
    profiles = runs.grid.profiles
    cells: dict[tuple[str, str, str], int] = {}
    features: list[Reals] = []
    numbers: list[int] = []
    joules: list[float] = []
    columns = ("application", "kernel", "size", "device", "energy_j", "runs")
    for application, kernel, size, device, energy_j, count in zip(
        *(dataset.energy.column(name).to_pylist() for name in columns), strict=True
    ):
        of_it = [
            place
            for place in range(len(profiles))
            if (profiles.application[place], profiles.size[place]) == (application, size)
            and kernel in (None, profiles.kernel[place])
        ]
        if not of_it or energy_j <= 0:
            continue
        cell = cells.setdefault((application, size, device), len(cells))
        if cell == len(features):
            features.append(runs.features[of_it].mean(axis=0))
        numbers.append(cell)
        joules.append(energy_j / count)
    names = [application for application, _, _ in cells]
    if len(set(names)) < _FEWEST_APPLICATIONS:
        return None
    keys = sorted({device for _, _, device in cells})
    places = np.array([keys.index(device) for _, _, device in cells])
    cells_of, response = np.array(numbers), np.log(joules)
    codes = device_codes(places[cells_of], response, len(keys))
    rows = Rows(np.column_stack([np.array(features), codes[places]]), cells_of, response)
    return _Watched(rows, np.array(names), places)


def _predictions(rows: Rows, trees: int, seed: int) -> Reals:
    """Mean prediction of the trees for each cell."""
    total = np.zeros(len(rows.features))
    for drawn in draw_trees(rows, trees, tried=TRIED, seed=seed):
        total += drawn.predictions([NODE_SIZE])[0]
    return total / trees


def _held_out(watched: _Watched, trees: int, seed: int) -> tuple[Reals, Reals]:
    """Errors of all cells, each predicted without its application: by the forest, by the device's mean."""
    means = watched.rows.means()
    forest, baseline = np.empty(len(means)), np.empty(len(means))
    for name in np.unique(watched.application):
        test: Flags = watched.application == name
        rows = watched.rows.take(~test[watched.rows.cell])
        forest[test] = _predictions(rows, trees, seed)[test]
        for cell in np.flatnonzero(test):
            others = means[~test & (watched.device == watched.device[cell])]
            baseline[cell] = others.mean() if len(others) else means[~test].mean()
    return forest - means, baseline - means

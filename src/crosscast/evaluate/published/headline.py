"""The paper's headline: a forest on some runs of each cell, tested on the other runs of the same cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.evaluate.published.out_of_bag import OutOfBag
from crosscast.evaluate.published.runs import Runs
from crosscast.predict.cell_trees import Rows, draw_trees
from crosscast.tables.size_order import size_order
from crosscast.units import microseconds

__all__ = ["NODE_SIZE", "TRAINED_SHARE", "TREES", "TRIED", "Headline", "KnownCells", "headline"]

TREES, TRIED, NODE_SIZE = 505, 30, 9
"""Parameters of the paper's final model (section III-C)."""

TRAINED_SHARE = 0.2
"""Share of the rows that the published script trains on."""

_UNITS = {"ns": 1e-3, "us": 1.0, "ms": 1e3}


@dataclass(frozen=True)
class KnownCells:
    """Errors of one predictor on rows whose cells were in training too; relative errors are fractions.

    Parameters
    ----------
    relative_log_cells
        Mean over cells of abs(mean predicted / mean measured - 1), of logarithms of microseconds: the
        paper's 1.2 %.
    relative_log_rows
        The same, row by row.
    mae_log
        Mean over rows of abs(predicted - measured) of the logarithm.
    r2
        Explained share of the variance of the logarithm, over rows.
    mape_cells, median_ape_cells
        Mean and median over cells of abs(predicted / measured - 1), of geometric means of real times.
    mape_rows, median_ape_rows
        The same of real times, row by row.
    """

    relative_log_cells: float
    relative_log_rows: float
    mae_log: float
    r2: float
    mape_cells: float
    median_ape_cells: float
    mape_rows: float
    median_ape_rows: float


@dataclass(frozen=True)
class Headline:
    """The forest and the lookup table on a random split of rows, and what they predict.

    Parameters
    ----------
    trees
        Trees of the forest.
    rows, trained_rows
        Runs in all, and those trained on.
    forest, lookup
        Errors of the forest, and of the mean of the cell's own runs, which knows no feature.
    relative_log_by_unit
        The forest's `relative_log_cells`, if times were in nanoseconds, microseconds or milliseconds
        before their logarithm: the same forest, other percentages.
    predicted, measured
        Mean logarithms of microseconds of each cell's test rows, of shape ``(n, d)`` as lists; not a
        number where there are none.
    misprediction_s
        By size of the problem, the mean over cells of abs(predicted - measured) in seconds, of geometric
        means.
    top1
        Share of kernels whose device with the least predicted time is the fastest.
    pairs_in_order
        Share of all pairs of devices that are predicted in the measured order, over all kernels.
    worst_kernel, worst_error
        The kernel whose relative errors of the logarithm, as in `KnownCells.relative_log_cells`, are the
        greatest on average over its cells, and that average.
    oob_error, oob_r2
        Mean square error and explained variance out of the bag, of the forest on all rows.
    """

    trees: int
    rows: int
    trained_rows: int
    forest: KnownCells
    lookup: KnownCells
    relative_log_by_unit: dict[str, float]
    predicted: list[list[float]]
    measured: list[list[float]]
    misprediction_s: dict[str, float]
    top1: float
    pairs_in_order: float
    worst_kernel: str
    worst_error: float
    oob_error: float
    oob_r2: float


def headline(runs: Runs, trees: int, seed: int) -> Headline:
    """Fit to a random fifth of the rows, as the published script does, and test on the others.

    Parameters
    ----------
    runs
        The runs.
    trees
        Number of trees.
    seed
        Start of all random numbers.
    """
    order = np.random.default_rng(seed).permutation(len(runs))
    trained, tested = np.split(order, [max(1, round(TRAINED_SHARE * len(runs)))])
    train, test = runs.take(trained), runs.take(tested)
    forest = _grown(train.rows(), trees, seed).forest()[0]
    means = train.rows().means()
    lookup = np.where(np.isnan(means), train.log_us.mean(), means)
    cells = test.rows().means()
    shape = (len(runs.features), len(runs.grid.devices))
    predicted, measured = forest.reshape(shape), cells.reshape(shape)
    error = float(_grown(runs.rows(), trees, seed).errors()[0])
    top1, pairs_in_order = _order(predicted, measured)
    worst_kernel, worst_error = _worst(runs, predicted, measured)
    return Headline(
        trees=trees,
        rows=len(runs),
        trained_rows=len(train),
        forest=_errors(forest, test.cell, test.log_us),
        lookup=_errors(lookup, test.cell, test.log_us),
        relative_log_by_unit={
            unit: _relative(forest - np.log(scale), cells - np.log(scale)) for unit, scale in _UNITS.items()
        },
        predicted=np.where(np.isnan(measured), np.nan, predicted).tolist(),
        measured=measured.tolist(),
        misprediction_s=_mispredictions(runs, predicted, measured),
        top1=top1,
        pairs_in_order=pairs_in_order,
        worst_kernel=worst_kernel,
        worst_error=worst_error,
        oob_error=error,
        oob_r2=1 - error / float(np.var(runs.log_us)),
    )


def _grown(rows: Rows, trees: int, seed: int) -> OutOfBag:
    bag = OutOfBag(rows, (NODE_SIZE,))
    for drawn in draw_trees(rows, trees, tried=TRIED, seed=seed):
        bag.add(drawn)
    return bag


def _mispredictions(runs: Runs, predicted: Reals, measured: Reals) -> dict[str, float]:
    seconds = np.abs(np.exp(predicted) - np.exp(measured)) * microseconds(1.0)
    sizes = np.array(runs.grid.profiles.size)
    return {
        size: float(np.nanmean(seconds[sizes == size]))
        for size in sorted(set(sizes.tolist()), key=size_order)
    }


def _worst(runs: Runs, predicted: Reals, measured: Reals) -> tuple[str, float]:
    """The kernel with the greatest mean relative error of the logarithm, and that error."""
    errors = np.abs(predicted - measured) / np.abs(measured)
    kernels = np.array(runs.grid.profiles.kernel)
    means = {name: float(np.nanmean(errors[kernels == name])) for name in runs.kernel_names()}
    worst = max(means, key=lambda name: means[name])
    return worst, means[worst]


def _order(predicted: Reals, measured: Reals) -> tuple[float, float]:
    """Share of kernels whose fastest device is found, and of pairs of devices in the measured order."""
    whole = ~np.isnan(measured).any(axis=1)
    p, m = predicted[whole], measured[whole]
    if len(p) == 0 or p.shape[1] < 2:
        return float("nan"), float("nan")
    first, second = np.triu_indices(p.shape[1], 1)
    same = np.sign(p[:, first] - p[:, second]) == np.sign(m[:, first] - m[:, second])
    return float(np.mean(p.argmin(axis=1) == m.argmin(axis=1))), float(np.mean(same))


def _relative(predicted: Reals, measured: Reals) -> float:
    return float(np.nanmean(np.abs(predicted - measured) / np.abs(measured)))


def _errors(by_cell: Reals, cell: Integers, log_us: Reals) -> KnownCells:
    predicted = by_cell[cell]
    counts = np.bincount(cell, minlength=len(by_cell))
    known = counts > 0
    measured = np.bincount(cell, log_us, minlength=len(by_cell))[known] / counts[known]
    cells, rows = np.abs(np.expm1(by_cell[known] - measured)), np.abs(np.expm1(predicted - log_us))
    square = float(np.mean((predicted - log_us) ** 2))
    return KnownCells(
        relative_log_cells=_relative(by_cell[known], measured),
        relative_log_rows=_relative(predicted, log_us),
        mae_log=float(np.mean(np.abs(predicted - log_us))),
        r2=1 - square / float(np.var(log_us)),
        mape_cells=float(np.mean(cells)),
        median_ape_cells=float(np.median(cells)),
        mape_rows=float(np.mean(rows)),
        median_ape_rows=float(np.median(rows)),
    )

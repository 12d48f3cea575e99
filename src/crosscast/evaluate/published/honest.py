"""The published forest on applications that it has never seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.evaluate.outcome import Outcome
from crosscast.evaluate.scores import scores
from crosscast.evaluate.splits import DEFAULT, split_named
from crosscast.predict.grid import Grid
from crosscast.predict.published_forest import PublishedForest

__all__ = ["Honest", "honest"]


@dataclass(frozen=True)
class Honest:
    """Leave-application-out, one row a cell; relative errors are fractions.

    Parameters
    ----------
    trees
        Trees of each forest.
    median_ape, median_ape_by_application
        Median of abs(predicted / measured - 1) over cells, and the mean over applications of theirs.
    mape
        Mean of the same.
    rmse_log
        Root of the mean square of ln(predicted / measured).
    slowdown_mean
        Measured time on the chosen device over that on the fastest, mean over kernels.
    always_one_slowdown_mean
        The same, if always the device is taken that is fastest on geometric mean over the other
        applications.
    top1
        Share of kernels whose chosen device is the fastest.
    predicted
        Predicted logarithms of seconds of each cell, of shape ``(n, d)`` as lists.
    """

    trees: int
    median_ape: float | None
    median_ape_by_application: float | None
    mape: float | None
    rmse_log: float | None
    slowdown_mean: float | None
    always_one_slowdown_mean: float | None
    top1: float | None
    predicted: list[list[float]]


def honest(grid: Grid, trees: int, seed: int) -> Honest:
    """Hold each application out, and predict it.

    Parameters
    ----------
    grid
        Kernels and their times.
    trees
        Trees of each forest.
    seed
        Start of all random numbers.

    Raises
    ------
    InputError
        If there are fewer than two applications.
    """
    predicted = np.full(grid.log_time.shape, np.nan)
    usual = np.full(grid.log_time.shape, np.nan)
    model = PublishedForest(trees=trees)
    for fold in split_named(DEFAULT).folds(grid):
        train = grid.take(fold.train_rows)
        fitted = model.fit(train, seed)
        predicted[fold.test_rows] = fitted.log_time(grid.profiles.take(fold.test_rows))
        usual[fold.test_rows] = np.nanmean(train.log_time, axis=0)
    found, one = (scores([_outcome(grid, centre)], level=0.9) for centre in (predicted, usual))
    return Honest(
        trees=trees,
        median_ape=found.median_ape,
        median_ape_by_application=found.median_ape_by_application,
        mape=found.mape,
        rmse_log=found.rmse_log,
        slowdown_mean=found.slowdown_mean,
        always_one_slowdown_mean=one.slowdown_mean,
        top1=found.top1,
        predicted=predicted.tolist(),
    )


def _outcome(grid: Grid, centre: Reals) -> Outcome:
    shape = grid.log_time.shape
    return Outcome(
        application=grid.profiles.application,
        measured=grid.log_time,
        centre=centre,
        low=centre,
        high=centre,
        scored=np.ones(shape, dtype=np.bool_),
        known=np.zeros(shape, dtype=np.bool_),
        rows=np.arange(len(grid.profiles)),
    )

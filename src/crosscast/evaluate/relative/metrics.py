"""Scores of predicted relative vectors: the published two, and what choosing by them costs.

For a row with times ``t_j``, vector ``v_j = t_j / max t`` and prediction ``p_j`` over ``d`` devices:

- *absolute error*: mean over j of ``|p_j - v_j|``; its mean over rows is MAE;
- *same order*: 1 where every device has the same rank in both (paper 003, section VI-C), that is
  ``p_i < p_j`` for each pair with ``v_i < v_j``. Devices that truly tie may be predicted in either order;
  devices that are predicted to tie, and truly do not, are in the wrong order;
- *top-1*: 1 where the device of least ``p`` (the first of several) has the least ``t``;
- *regret*: ``t`` of that device over the least ``t``, less 1;
- *log error*: mean over pairs of devices of ``|ln(p_i / p_j) - ln(v_i / v_j)|``; the *typical factor* is the
  exponential of its mean over rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.errors import InputError
from crosscast.predict.relative.observations import relative_to_slowest

__all__ = ["RelativeMetrics", "RowScores", "metrics_of", "row_scores"]


@dataclass(frozen=True, eq=False)
class RowScores:
    """Scores of ``r`` rows, each of shape ``(r,)``: see this module for what they are."""

    absolute_error: Reals
    same_order: Reals
    top1: Reals
    regret: Reals
    log_error: Reals

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.regret)

    def where(self, chosen: Flags) -> RowScores:
        """The scores of some rows."""
        return RowScores(
            self.absolute_error[chosen],
            self.same_order[chosen],
            self.top1[chosen],
            self.regret[chosen],
            self.log_error[chosen],
        )


@dataclass(frozen=True)
class RelativeMetrics:
    """Weighted means over rows, except where the name says otherwise.

    Parameters
    ----------
    rows
        How many rows.
    mae, same_order, top1, regret
        Means.
    median_regret
        Weighted median: the least regret that rows of at least half of the weight do not exceed.
    typical_factor
        Exponential of the mean log error.
    """

    rows: int
    mae: float
    same_order: float
    top1: float
    regret: float
    median_regret: float
    typical_factor: float


def row_scores(times_s: Reals, predicted: Reals) -> RowScores:
    """Score predictions row by row.

    Parameters
    ----------
    times_s
        Measured times in seconds, of shape ``(r, d)``, with at least two devices.
    predicted
        Predicted relative vectors of the same shape, as the model gives them.

    Raises
    ------
    InputError
        If shapes differ, there are fewer than two devices, or something is not a positive finite number.
    """
    if times_s.shape != predicted.shape or times_s.ndim != 2 or times_s.shape[1] < 2:
        raise InputError(
            f"predicted: expected the shape (r, d) of the times, with d at least 2, found {predicted.shape} "
            f"for {times_s.shape}"
        )
    for name, values in (("times_s", times_s), ("predicted", predicted)):
        wrong = ~(np.isfinite(values) & (values > 0))
        if wrong.any():
            raise InputError(f"{name}: expected positive numbers, found {values[wrong][0]}")
    vector = relative_to_slowest(times_s)
    first, second = np.triu_indices(times_s.shape[1], 1)
    order = np.sign(times_s[:, first] - times_s[:, second])
    said = np.sign(predicted[:, first] - predicted[:, second])
    chosen = np.take_along_axis(times_s, predicted.argmin(axis=1)[:, None], axis=1)[:, 0]
    regret = chosen / times_s.min(axis=1) - 1.0
    error = np.log(predicted) - np.log(vector)
    return RowScores(
        np.abs(predicted - vector).mean(axis=1),
        ((order == 0) | (said == order)).all(axis=1).astype(np.float64),
        (regret == 0).astype(np.float64),
        regret,
        np.abs(error[:, first] - error[:, second]).mean(axis=1),
    )


def metrics_of(scores: RowScores, weights: Reals) -> RelativeMetrics:
    """Bring the scores of rows together.

    Parameters
    ----------
    scores
        Of ``r`` rows.
    weights
        What each counts, of shape ``(r,)``: not negative, and some are positive.

    Raises
    ------
    InputError
        If nothing counts.
    """
    if not len(scores) or not weights.sum() > 0:
        raise InputError("scores: expected at least one row that counts, found none")
    return RelativeMetrics(
        len(scores),
        float(np.average(scores.absolute_error, weights=weights)),
        float(np.average(scores.same_order, weights=weights)),
        float(np.average(scores.top1, weights=weights)),
        float(np.average(scores.regret, weights=weights)),
        float(np.quantile(scores.regret, 0.5, weights=weights, method="inverted_cdf")),
        float(np.exp(np.average(scores.log_error, weights=weights))),
    )

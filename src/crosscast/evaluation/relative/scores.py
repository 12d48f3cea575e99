"""Scores of predicted relative vectors: the published two, and the cost of choosing by them.

For a row with times ``t_j``, vector ``v_j = t_j / max t`` and prediction ``p_j`` over ``d`` devices:

- *absolute error*: mean over j of ``|p_j - v_j|``; its mean over rows is MAE;
- *same order*: 1 where every device has the same rank in both (Nichols et al. 2024, section VI-C), that is
  ``p_i < p_j`` for each pair with ``v_i < v_j``. Devices that truly tie may be predicted in either order;
  devices that are predicted to tie, and truly do not, are in the wrong order;
- *top-1*: 1 where the device of least ``p`` (the first of several) has the least ``t``;
- *regret*: ``t`` of that device over the least ``t``, less 1;
- *log error*: mean over pairs of devices of ``|ln(p_i / p_j) - ln(v_i / v_j)|``; the *typical factor* is the
  exponential of its mean over rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.evaluation.time.scores import pair_order
from crosscast.prediction.relative.data import check_times, relative_to_slowest

# Scores ``(r,)`` by name; the absolute error is ``mae``
RowScores = Mapping[str, Reals]


@dataclass(frozen=True)
class RelativeMetrics:
    """Weighted means over rows; `typical_factor` is the exponential of one, `median_regret` a median."""

    rows: int
    mae: float
    same_order: float
    top1: float
    regret: float
    median_regret: float  # weighted: rows of at least half of the weight do not exceed it
    typical_factor: float


# Metrics with intervals, and whether more (1) or less (-1) of them is better
BETTER = {"mae": -1, "same_order": 1, "top1": 1, "regret": -1, "typical_factor": -1}


def row_scores(times_s: Reals, predicted: Reals) -> RowScores:
    """Scores of each row's prediction."""
    if times_s.shape != predicted.shape or times_s.ndim != 2 or times_s.shape[1] < 2:
        expected, found = (
            "the shape (r, d) of the times, d at least 2",
            f"{predicted.shape} for {times_s.shape}",
        )
        raise InputError.of(where="predicted", expected=expected, found=found)
    check_times(times_s, "times_s")
    check_times(predicted, "predicted")
    vector = relative_to_slowest(times_s)
    first, second = np.triu_indices(times_s.shape[1], 1)
    order, predicted_order = pair_order(times_s), pair_order(predicted)
    chosen = np.take_along_axis(times_s, predicted.argmin(axis=1)[:, None], axis=1)[:, 0]
    regret = chosen / times_s.min(axis=1) - 1.0
    error = np.log(predicted) - np.log(vector)
    return {
        "mae": np.abs(predicted - vector).mean(axis=1),
        "same_order": ((order == 0) | (predicted_order == order)).all(axis=1).astype(np.float64),
        "top1": (regret == 0).astype(np.float64),
        "regret": regret,
        "log_error": np.abs(error[:, first] - error[:, second]).mean(axis=1),
    }


def metrics_of(scores: RowScores, weights: Reals) -> RelativeMetrics:
    """Weighted means of the scores of rows with a positive weight."""
    counts = weights > 0
    if not counts.any():
        raise InputError.of(where="scores", expected="at least one row that counts", found="none")
    weights, rows = weights[counts], {name: values[counts] for name, values in scores.items()}
    means = {name: float(np.average(values, weights=weights)) for name, values in rows.items()}
    median = np.quantile(rows["regret"], 0.5, weights=weights, method="inverted_cdf")
    factor = float(np.exp(means.pop("log_error")))
    return RelativeMetrics(len(weights), **means, median_regret=float(median), typical_factor=factor)

"""Scores of forecasts: errors, choice of a device, order of devices, and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from crosscast.evaluate.choice import choices
from crosscast.evaluate.grouped import Grouped, average
from crosscast.evaluate.outcome import Outcome
from crosscast.predict.grid import Flags, Integers, Reals

__all__ = ["HEADLINES", "Scores", "applications_of", "device_scores", "scores", "weighted_scores"]


@dataclass(frozen=True)
class Scores:
    """How good forecasts are; ``None`` where nothing defines a score.

    Errors and intervals are over the held-out cells, choices and orders over kernels at a size. What ends
    in ``by_application`` is the mean over applications of the score within each. Shares and relative
    errors are fractions.

    Parameters
    ----------
    rmse_log, rmse_log_by_application
        Root of the mean square of ln(predicted / measured).
    mae_log
        Mean of abs(ln(predicted / measured)).
    median_ape, median_ape_by_application
        Median of abs(predicted / measured - 1).
    mape, mape_by_application
        Mean of the same.
    top1
        Share of kernels whose chosen device was the fastest.
    slowdown_mean, slowdown_geomean, slowdown_mean_by_application
        Measured time on the chosen device over that on the fastest: mean, geometric mean.
    within_10
        Share of kernels whose chosen device was at most 10 % slower than the fastest.
    kendall_tau
        Kendall's tau-b of predicted and measured times over the devices of a kernel, mean over kernels.
    coverage, coverage_by_application, coverage_worst_application
        Share of cells whose measured time is within the interval; the least of any application.
    width
        Median of the upper over the lower limit.
    interval_score
        Mean of the interval score (Gneiting and Raftery 2007, eq. 43) in natural logarithms.
    """

    rmse_log: float | None = None
    rmse_log_by_application: float | None = None
    mae_log: float | None = None
    median_ape: float | None = None
    median_ape_by_application: float | None = None
    mape: float | None = None
    mape_by_application: float | None = None
    top1: float | None = None
    slowdown_mean: float | None = None
    slowdown_geomean: float | None = None
    slowdown_mean_by_application: float | None = None
    within_10: float | None = None
    kendall_tau: float | None = None
    coverage: float | None = None
    coverage_by_application: float | None = None
    coverage_worst_application: float | None = None
    width: float | None = None
    interval_score: float | None = None

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Scores:
        """Scores by name; what is not finite is ``None``."""
        return cls(**{name: float(value) if np.isfinite(value) else None for name, value in values.items()})


HEADLINES = tuple(field.name for field in fields(Scores))
"""Names of all scores."""


def scores(outcomes: Sequence[Outcome], level: float) -> Scores:
    """Score forecasts.

    Parameters
    ----------
    outcomes
        Forecasts of the same kernels with different times known, of which the scores are averaged; one
        where no time was known.
    level
        Probability that the intervals are to hold.
    """
    names = applications_of(outcomes)
    found = weighted_scores(outcomes, names, np.ones((1, len(names))), level)
    return Scores.of({name: float(values[0]) for name, values in found.items()})


def applications_of(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Names of the applications, sorted."""
    return tuple(sorted({name for outcome in outcomes for name in outcome.application}))


def weighted_scores(
    outcomes: Sequence[Outcome], applications: Sequence[str], weights: Reals, level: float
) -> dict[str, Reals]:
    """All scores, with the applications weighted in ``b`` ways.

    Parameters
    ----------
    outcomes
        As for `scores`.
    applications
        Names of the ``g`` applications.
    weights
        How often each application is there, of shape ``(b, g)``.
    level
        Probability that the intervals are to hold.

    Returns
    -------
    dict
        By name of the score, an array of shape ``(b,)``; not a number where nothing defines it.
    """
    each = []
    for outcome in outcomes:
        places = {name: place for place, name in enumerate(applications)}
        numbers = np.array([places[name] for name in outcome.application], dtype=np.int64)
        cells = _cell_scores(outcome, numbers, weights, level)
        each.append(cells | _row_scores(outcome, numbers, weights))
    return {name: _mean_of_known([scores[name] for scores in each]) for name in HEADLINES}


def device_scores(outcomes: Sequence[Outcome], device: int, level: float) -> Scores:
    """Scores of errors and intervals on one device alone, by its number."""
    names = applications_of(outcomes)
    places = {name: place for place, name in enumerate(names)}
    weights = np.ones((1, len(names)))
    each = [
        _cell_scores(
            outcome.on(device),
            np.array([places[name] for name in outcome.application], dtype=np.int64),
            weights,
            level,
        )
        for outcome in outcomes
    ]
    return Scores.of({name: float(_mean_of_known([found[name] for found in each])[0]) for name in each[0]})


def _mean_of_known(rows: Sequence[Reals]) -> Reals:
    stacked = np.stack(rows)
    known = ~np.isnan(stacked)
    mean = np.full(stacked.shape[1], np.nan)
    np.divide(np.where(known, stacked, 0.0).sum(axis=0), known.sum(axis=0), out=mean, where=known.any(axis=0))
    return mean


def _cell_scores(outcome: Outcome, applications: Integers, weights: Reals, level: float) -> dict[str, Reals]:
    rows, columns = np.nonzero(outcome.counted)
    measured, centre = outcome.measured[rows, columns], outcome.centre[rows, columns]
    low, high = outcome.low[rows, columns], outcome.high[rows, columns]
    groups, count = applications[rows], weights.shape[1]

    def grouped(values: Reals | Flags) -> Grouped:
        return Grouped(values.astype(np.float64), groups, count)

    error = centre - measured
    # A forecast that is off by more than the largest number is off by infinity.
    with np.errstate(over="ignore"):
        ape = grouped(np.abs(np.expm1(error)))
        width = grouped(np.exp(high - low))
    square = grouped(error**2)
    covered = grouped((low <= measured) & (measured <= high))
    missed = np.maximum(low - measured, 0) + np.maximum(measured - high, 0)
    shares = covered.means()
    return {
        "rmse_log": np.sqrt(square.mean(weights)),
        "rmse_log_by_application": average(np.sqrt(square.means()), weights),
        "mae_log": grouped(np.abs(error)).mean(weights),
        "median_ape": ape.median(weights),
        "median_ape_by_application": average(ape.medians(), weights),
        "mape": ape.mean(weights),
        "mape_by_application": average(ape.means(), weights),
        "coverage": covered.mean(weights),
        "coverage_by_application": average(shares, weights),
        "coverage_worst_application": _least(shares, weights),
        "width": width.median(weights),
        "interval_score": grouped(high - low + 2 / (1 - level) * missed).mean(weights),
    }


def _least(of_groups: Reals, weights: Reals) -> Reals:
    there = (weights > 0) & ~np.isnan(of_groups)
    least = np.where(there, of_groups, np.inf).min(axis=1, initial=np.inf)
    return np.where(there.any(axis=1), least, np.nan)


def _row_scores(outcome: Outcome, applications: Integers, weights: Reals) -> dict[str, Reals]:
    made = choices(outcome)

    def grouped(values: Reals) -> Grouped:
        there = ~np.isnan(values)
        return Grouped(values[there], applications[there], weights.shape[1])

    slowdown = grouped(made.slowdown)
    return {
        "top1": grouped(made.fastest).mean(weights),
        "slowdown_mean": slowdown.mean(weights),
        "slowdown_geomean": np.exp(grouped(np.log(made.slowdown)).mean(weights)),
        "slowdown_mean_by_application": average(slowdown.means(), weights),
        "within_10": grouped(made.within_10).mean(weights),
        "kendall_tau": grouped(made.kendall_tau).mean(weights),
    }

"""Scores of forecasts: errors, choice of a device, order of devices, and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from crosscast.arrays import Reals
from crosscast.evaluate.grouped import least
from crosscast.evaluate.outcome import Outcome
from crosscast.evaluate.tally import Tally

__all__ = [
    "HEADLINES",
    "HIGHER_IS_BETTER",
    "LOWER_IS_BETTER",
    "Scores",
    "score_values",
    "scores",
    "tallies_of",
    "weighted_scores",
]


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
    coverage, coverage_over_cells, coverage_worst_application
        Share of an application's cells whose measured time is within the interval, mean over applications, as
        intervals are made to hold on an application never seen; share of all cells; least of any application.
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
    coverage_over_cells: float | None = None
    coverage_worst_application: float | None = None
    width: float | None = None
    interval_score: float | None = None

    @classmethod
    def of(cls, values: Mapping[str, float]) -> Scores:
        """Scores by name; what is not finite is ``None``."""
        return cls(**{name: float(value) if np.isfinite(value) else None for name, value in values.items()})


HEADLINES = tuple(field.name for field in fields(Scores))
"""Names of all scores."""

HIGHER_IS_BETTER = frozenset({"top1", "within_10", "kendall_tau"})
LOWER_IS_BETTER = frozenset(
    name for name in HEADLINES if name not in HIGHER_IS_BETTER and not name.startswith(("coverage", "width"))
)
"""Coverage is good near the level of the intervals, and width is good only with coverage: neither is here."""


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
    names = tuple(sorted({name for outcome in outcomes for name in outcome.application}))
    return weighted_scores(tallies_of(outcomes, names, level), np.ones((1, len(names))))[0]


def tallies_of(outcomes: Sequence[Outcome], applications: Sequence[str], level: float) -> tuple[Tally, ...]:
    """What scores are made of, with the applications in the order in which they will be weighted."""
    return tuple(Tally.of(outcome, applications, level) for outcome in outcomes)


def weighted_scores(tallies: Sequence[Tally], weights: Reals) -> list[Scores]:
    """Scores with the applications weighted in ``b`` ways.

    Parameters
    ----------
    tallies
        What the scores are made of.
    weights
        How often each of the ``g`` applications is there, of shape ``(b, g)``.

    Returns
    -------
    list
        Scores for each weighting.
    """
    values = score_values(tallies, weights)
    return [
        Scores.of({name: float(column[place]) for name, column in values.items()})
        for place in range(len(weights))
    ]


def score_values(tallies: Sequence[Tally], weights: Reals) -> dict[str, Reals]:
    """The same as `weighted_scores`, as arrays of shape ``(b,)`` by name; not a number where undefined."""
    each = [tally.scores(weights) for tally in tallies]
    values = {name: _mean_of_known([found[name] for found in each]) for name in each[0]}
    # The worst application is one application, and not another one for each set of known times.
    coverage = _mean_of_known([tally.covered.means() for tally in tallies])
    return values | {"coverage_worst_application": least(coverage, weights)}


def _mean_of_known(rows: Sequence[Reals]) -> Reals:
    stacked = np.stack(rows)
    known = ~np.isnan(stacked)
    mean = np.full(stacked.shape[1], np.nan)
    np.divide(np.where(known, stacked, 0.0).sum(axis=0), known.sum(axis=0), out=mean, where=known.any(axis=0))
    return mean

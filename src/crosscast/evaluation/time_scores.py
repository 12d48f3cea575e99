"""What was forecast of kernels that were held out, beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.evaluation.confidence import Grouped, average, least


@dataclass(frozen=True)
class Outcome:
    """Forecasts of ``n`` kernels at a size on ``d`` devices, and the measured times.

    All times are natural logarithms of seconds, of shape ``(n, d)``.
    """

    application: tuple[str, ...]  # Application of each kernel, of length `n`
    measured: Reals  # Measured medians; not a number where not measured
    centre: Reals  # Predicted medians
    low: Reals  # Limits of the intervals
    high: Reals
    scored: Flags  # Cells whose errors count: those held out, of shape `(n, d)`
    known: Flags  # Cells whose measured times the model was told, of shape `(n, d)`
    rows: Integers  # Number of each kernel in its grid, of shape `(n,)`

    def __post_init__(self) -> None:
        """Check the shapes."""
        shape = self.measured.shape
        arrays = (self.centre, self.low, self.high, self.scored, self.known)
        if not (
            len(shape) == 2
            and len(self.application) == len(self.rows) == shape[0]
            and all(array.shape == shape for array in arrays)
        ):
            shapes = [array.shape for array in (self.measured, *arrays)]
            raise InputError(
                f"outcome: expected a name a kernel and arrays of one shape (n, d), found "
                f"{len(self.application)} names and shapes {shapes}"
            )

    @property
    def counted(self) -> Flags:
        """Cells whose errors count and that were measured, of shape ``(n, d)``."""
        counted: Flags = self.scored & np.isfinite(self.measured)
        return counted

    def on(self, device: int) -> Outcome:
        """The same with the cells of one device alone counted."""
        scored = np.zeros_like(self.scored)
        scored[:, device] = self.scored[:, device]
        return replace(self, scored=scored)


NEAR = 1.1
"""Slowdown up to which a choice is near the best."""


@dataclass(frozen=True)
class Choices:
    """How the choice of a device went, for each of ``n`` kernels.

    All of shape ``(n,)``, and not a number where fewer than two devices were measured.
    """

    slowdown: Reals  # Measured time on the chosen device over the least measured time
    fastest: Reals  # 1 where the slowdown is 1, or at most `NEAR`, and 0 elsewhere
    within_10: Reals
    # Kendall's tau-b of forecasts and measurements over the devices whose cells are scored; not a number also
    # where either is the same on all of them
    kendall_tau: Reals


def choices(outcome: Outcome) -> Choices:
    """Choose, for each kernel, the device with the least time.

    Times are the predicted ones, or the measured one where the model was told it. Only devices on which
    the kernel was measured can be chosen, as the choice could not be judged otherwise.
    """
    there = np.isfinite(outcome.measured)
    expected = np.where(outcome.known, outcome.measured, outcome.centre)
    chosen = np.argmin(np.where(there & ~np.isnan(expected), expected, np.inf), axis=1)
    least = np.where(there, outcome.measured, np.inf).min(axis=1)
    taken = np.take_along_axis(outcome.measured, chosen[:, None], axis=1)[:, 0]
    slowdown = np.exp(taken - least)
    slowdown[there.sum(axis=1) < 2] = np.nan
    return Choices(slowdown, _flags(slowdown, 1.0), _flags(slowdown, NEAR), _kendall(outcome))


def _flags(slowdown: Reals, most: float) -> Reals:
    return np.where(np.isnan(slowdown), np.nan, slowdown <= most)


def _kendall(outcome: Outcome) -> Reals:
    """Kendall's tau-b of each row.

    `scipy.stats.kendalltau` takes one row at a time, and there are thousands with probes.
    """
    expected = np.where(outcome.counted, outcome.centre, np.nan)
    orders = [_pair_order(times) for times in (expected, np.where(outcome.counted, outcome.measured, np.nan))]
    there = ~np.isnan(orders[0] + orders[1])
    first, second = (np.where(there, order, 0.0) for order in orders)
    agreement = (first * second).sum(axis=1)
    untied = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    tau = np.full(len(agreement), np.nan)
    np.divide(agreement, untied, out=tau, where=untied > 0)
    return tau


def _pair_order(times: Reals) -> Reals:
    """For each row and each pair of devices, -1, 0 or 1 as the first is faster, equal or slower."""
    first, second = np.triu_indices(times.shape[1], 1)
    order: Reals = np.sign(times[:, first] - times[:, second])
    return order


@dataclass(frozen=True)
class Tally:
    """Errors of cells and choices of devices, each with its application."""

    error: Grouped  # ln(predicted / measured) and abs(predicted / measured - 1) of each cell
    ape: Grouped
    # Whether the measured time is within the interval, upper over lower limit, and interval score of each
    # cell
    covered: Grouped
    width: Grouped
    interval_score: Grouped
    slowdown: Grouped  # As `crosscast.evaluation.time_scores.Choices` has them, of the kernels that have them
    fastest: Grouped
    within_10: Grouped
    kendall_tau: Grouped

    @classmethod
    def of(cls, outcome: Outcome, applications: Sequence[str], level: float) -> Tally:
        """Tally an outcome."""
        places = {name: place for place, name in enumerate(applications)}
        numbers = np.array([places[name] for name in outcome.application], dtype=np.int64)
        cells = _cells(outcome, numbers, len(applications), level)
        return cls(**cells, **_choices(outcome, numbers, len(applications)))

    def scores(self, weights: Reals) -> dict[str, Reals]:
        """The values of `crosscast.evaluation.time_scores.Scores` by name, each of shape ``(b,)``.

        Not a number where nothing defines a score. The coverage of the worst application is not there, as
        one outcome does not say which one that is. The weights, how often each application is there, are
        of shape ``(b, g)``.
        """
        return self._error_scores(weights) | self._interval_scores(weights) | self._choice_scores(weights)

    def _error_scores(self, weights: Reals) -> dict[str, Reals]:
        square = self.error.map(np.square)
        return {
            "rmse_log": np.sqrt(square.mean(weights)),
            "rmse_log_by_application": average(np.sqrt(square.means()), weights),
            "mae_log": self.error.map(np.abs).mean(weights),
            "median_ape": self.ape.median(weights),
            "median_ape_by_application": average(self.ape.medians(), weights),
            "mape": self.ape.mean(weights),
            "mape_by_application": average(self.ape.means(), weights),
        }

    def _interval_scores(self, weights: Reals) -> dict[str, Reals]:
        return {
            "coverage": average(self.covered.means(), weights),
            "coverage_over_cells": self.covered.mean(weights),
            "width": self.width.median(weights),
            "interval_score": self.interval_score.mean(weights),
        }

    def _choice_scores(self, weights: Reals) -> dict[str, Reals]:
        return {
            "top1": self.fastest.mean(weights),
            "slowdown_mean": self.slowdown.mean(weights),
            "slowdown_geomean": np.exp(self.slowdown.map(np.log).mean(weights)),
            "slowdown_mean_by_application": average(self.slowdown.means(), weights),
            "within_10": self.within_10.mean(weights),
            "kendall_tau": self.kendall_tau.mean(weights),
        }


def _cells(outcome: Outcome, applications: Integers, count: int, level: float) -> dict[str, Grouped]:
    rows, columns = np.nonzero(outcome.counted)
    measured, centre = outcome.measured[rows, columns], outcome.centre[rows, columns]
    low, high = outcome.low[rows, columns], outcome.high[rows, columns]
    missed = np.maximum(low - measured, 0) + np.maximum(measured - high, 0)
    # A forecast that is off by more than the largest number is off by infinity.
    with np.errstate(over="ignore"):
        values: dict[str, Reals | Flags] = {
            "error": centre - measured,
            "ape": np.abs(np.expm1(centre - measured)),
            "covered": (low <= measured) & (measured <= high),
            "width": np.exp(high - low),
            "interval_score": high - low + 2 / (1 - level) * missed,
        }
    return {
        name: Grouped(each.astype(np.float64), applications[rows], count) for name, each in values.items()
    }


def _choices(outcome: Outcome, applications: Integers, count: int) -> dict[str, Grouped]:
    grouped = {}
    for name, values in vars(choices(outcome)).items():
        there = ~np.isnan(values)
        grouped[name] = Grouped(values[there], applications[there], count)
    return grouped


@dataclass(frozen=True)
class Scores:
    """How good forecasts are; ``None`` where nothing defines a score.

    Errors and intervals are over the held-out cells, choices and orders over kernels at a size. What ends
    in ``by_application`` is the mean over applications of the score within each. Shares and relative
    errors are fractions.
    """

    rmse_log: float | None = None  # Root of the mean square of ln(predicted / measured)
    rmse_log_by_application: float | None = None
    mae_log: float | None = None  # Mean of abs(ln(predicted / measured))
    median_ape: float | None = None  # Median of abs(predicted / measured - 1)
    median_ape_by_application: float | None = None
    mape: float | None = None  # Mean of the same
    mape_by_application: float | None = None
    top1: float | None = None  # Share of kernels whose chosen device was the fastest
    # Measured time on the chosen device over that on the fastest: mean, geometric mean
    slowdown_mean: float | None = None
    slowdown_geomean: float | None = None
    slowdown_mean_by_application: float | None = None
    # Share of kernels whose chosen device was at most 10 % slower than the fastest
    within_10: float | None = None
    # Kendall's tau-b of predicted and measured times over the devices of a kernel, mean over kernels
    kendall_tau: float | None = None
    # Share of an application's cells whose measured time is within the interval, mean over applications, as
    # intervals are made to hold on an application never seen; share of all cells; least of any application
    coverage: float | None = None
    coverage_over_cells: float | None = None
    coverage_worst_application: float | None = None
    width: float | None = None  # Median of the upper over the lower limit
    # Mean of the interval score (Gneiting and Raftery 2007, eq. 43) in natural logarithms
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
    """Score forecasts."""
    names = tuple(sorted({name for outcome in outcomes for name in outcome.application}))
    return weighted_scores(tallies_of(outcomes, names, level), np.ones((1, len(names))))[0]


def tallies_of(outcomes: Sequence[Outcome], applications: Sequence[str], level: float) -> tuple[Tally, ...]:
    """What scores are made of, with the applications in the order in which they will be weighted."""
    return tuple(Tally.of(outcome, applications, level) for outcome in outcomes)


def weighted_scores(tallies: Sequence[Tally], weights: Reals) -> list[Scores]:
    """Scores with the applications weighted in ``b`` ways."""
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

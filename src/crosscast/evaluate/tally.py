"""What the scores of forecasts are made of: a value for each held-out cell, and for each kernel's choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.evaluate.choice import choices
from crosscast.evaluate.grouped import Grouped, average
from crosscast.evaluate.outcome import Outcome

__all__ = ["Tally"]


@dataclass(frozen=True)
class Tally:
    """Errors of cells and choices of devices, each with its application.

    Parameters
    ----------
    error, ape
        ln(predicted / measured) and abs(predicted / measured - 1) of each cell.
    covered, width, interval_score
        Whether the measured time is within the interval, upper over lower limit, and interval score of each
        cell.
    slowdown, fastest, within_10, kendall_tau
        As `crosscast.evaluate.choice.Choices` has them, of the kernels that have them.
    """

    error: Grouped
    ape: Grouped
    covered: Grouped
    width: Grouped
    interval_score: Grouped
    slowdown: Grouped
    fastest: Grouped
    within_10: Grouped
    kendall_tau: Grouped

    @classmethod
    def of(cls, outcome: Outcome, applications: Sequence[str], level: float) -> Tally:
        """Tally an outcome.

        Parameters
        ----------
        outcome
            What was forecast and measured.
        applications
            Names of all applications, in the order in which they are weighted.
        level
            Probability that the intervals are to hold.
        """
        places = {name: place for place, name in enumerate(applications)}
        numbers = np.array([places[name] for name in outcome.application], dtype=np.int64)
        cells = _cells(outcome, numbers, len(applications), level)
        return cls(**cells, **_choices(outcome, numbers, len(applications)))

    def scores(self, weights: Reals) -> dict[str, Reals]:
        """The values of `crosscast.evaluate.scores.Scores` by name, each of shape ``(b,)``.

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

"""Scores of forecasts of kernels that were held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, partial

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.evaluation import JSON_VERSION
from crosscast.evaluation.resampling import (
    DRAWS,
    SHARE,
    Confidence,
    Grouped,
    Scored,
    average,
    confidences,
    least,
)
from crosscast.prediction.intervals import summed
from crosscast.prediction.time import Grid, ProfileBatch
from crosscast.prediction.time.models import BASELINES
from crosscast.results import Tabular, columns_of


@dataclass(frozen=True, eq=False)
class TimeOutcome:
    """Forecasts of ``n`` kernels at a size on ``d`` devices, and the measured times.

    All times are natural logarithms of seconds, of shape ``(n, d)``.
    """

    application: tuple[str, ...]  # Of each kernel
    measured: Reals  # Measured medians; NaN where not measured
    centre: Reals  # Predicted medians
    low: Reals  # Limits of the intervals
    high: Reals
    scored: Flags  # Held-out cells, whose errors count
    known: Flags  # Cells with probes
    rows: Integers  # `(n,)` Row of each kernel in its grid
    # `(n, d)` Of the errors of the kernels of an application on a device; `None` for 1
    correlation: Reals | None = None

    @property
    def counted(self) -> Flags:
        """Mask of the scored and measured cells, of shape ``(n, d)``."""
        return self.scored & np.isfinite(self.measured)

    def on(self, device: int) -> TimeOutcome:
        """The outcome with only the cells of one device scored."""
        scored = np.zeros_like(self.scored)
        scored[:, device] = self.scored[:, device]
        return replace(self, scored=scored)


def of_applications(outcome: TimeOutcome, profiles: ProfileBatch) -> TimeOutcome:
    """Forecasts of applications at a size: totals over all kernels, as often as they are launched.

    Profiles are those of the grid. An application counts on a device where each of its kernels was measured
    and has no probe, and only if the outcome has all its kernels.
    """
    runs = profiles.groups("run")
    run_of = runs[outcome.rows]
    complete = [run for run in np.unique(run_of) if (run_of == run).sum() == (runs == run).sum()]
    usable = np.where(outcome.known | outcome.counted, outcome.measured, np.nan)
    columns: list[list[Reals]] = []
    for run in complete:
        rows = run_of == run
        weights = profiles.invocations[outcome.rows[rows]].astype(np.float64)
        centre, low, high = (each[rows] for each in (outcome.centre, outcome.low, outcome.high))
        within = 1.0 if outcome.correlation is None else outcome.correlation[rows].mean(axis=0)
        measured = summed(weights, usable[rows], usable[rows], usable[rows], 1.0)[0]
        columns.append([measured, *summed(weights, centre, low, high, within)])
    first = [int(np.flatnonzero(run_of == run)[0]) for run in complete]
    d = usable.shape[1]
    known, scored = (
        np.array([mask[run_of == run].all(axis=0) for run in complete], dtype=np.bool_).reshape(-1, d)
        for mask in (outcome.known, outcome.scored)
    )
    measured, centre, low, high = np.array(columns).reshape(-1, 4, d).swapaxes(0, 1)
    names = tuple(outcome.application[row] for row in first)
    return TimeOutcome(names, measured, centre, low, high, scored, known, outcome.rows[first])


def pair_order(times: Reals) -> Reals:
    """For each row and each pair of devices, -1, 0 or 1 as the first is faster, equal or slower."""
    first, second = np.triu_indices(times.shape[1], 1)
    return np.sign(times[:, first] - times[:, second])


NEAR = 1.1
"""Slowdown up to which a choice is near the best."""


def choices(outcome: TimeOutcome) -> dict[str, Reals]:
    """Scores of choosing the device with the least time, for each kernel.

    Times are the predicted ones, or the measured one of a probe. Only devices on which the kernel was
    measured can be chosen, as other choices cannot be scored. Of shape ``(n,)``, and NaN where fewer than two
    devices were measured:

    - slowdown: measured time on the chosen device over the least measured time.
    - fastest, within_10: 1 where the slowdown is 1, or at most `NEAR`, and 0 elsewhere.
    - kendall_tau: Kendall's tau-b of forecasts and measurements over the devices whose cells are scored; also
      NaN where either is the same on all of them.
    """
    measured = np.isfinite(outcome.measured)
    expected = np.where(outcome.known, outcome.measured, outcome.centre)
    chosen = np.argmin(np.where(measured & ~np.isnan(expected), expected, np.inf), axis=1)
    fastest = np.where(measured, outcome.measured, np.inf).min(axis=1)
    chosen_time = np.take_along_axis(outcome.measured, chosen[:, None], axis=1)[:, 0]
    slowdown = np.exp(chosen_time - fastest)
    slowdown[measured.sum(axis=1) < 2] = np.nan
    top1, near = (np.where(np.isnan(slowdown), np.nan, slowdown <= most) for most in (1.0, NEAR))
    return {"slowdown": slowdown, "fastest": top1, "within_10": near, "kendall_tau": _kendall(outcome)}


def _kendall(outcome: TimeOutcome) -> Reals:
    """Kendall's tau-b of each row.

    `scipy.stats.kendalltau` takes one row at a time, and there are thousands with probes.
    """
    times = [np.where(outcome.counted, each, np.nan) for each in (outcome.centre, outcome.measured)]
    orders = [pair_order(each) for each in times]
    defined = ~np.isnan(orders[0] + orders[1])
    first, second = (np.where(defined, order, 0.0) for order in orders)
    untied = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    tau = np.full(len(untied), np.nan)
    np.divide((first * second).sum(axis=1), untied, out=tau, where=untied > 0)
    return tau


Tally = Mapping[str, Grouped]
"""Inputs of scores, by name: errors of cells and scores of choices, each grouped by application."""


def tally_of(outcome: TimeOutcome, applications: Sequence[str], level: float) -> Tally:
    """Tally an outcome, with the applications in the order in which they will be weighted."""
    numbers_by_name = {name: number for number, name in enumerate(applications)}
    numbers = np.array([numbers_by_name[name] for name in outcome.application], dtype=np.int64)
    cells = np.nonzero(outcome.counted)
    arrays = (outcome.measured, outcome.centre, outcome.low, outcome.high)
    measured, centre, low, high = (each[cells] for each in arrays)
    missed = np.maximum(low - measured, 0) + np.maximum(measured - high, 0)
    # An error beyond the largest number is infinite.
    with np.errstate(over="ignore"):
        of_cells = {
            "error": centre - measured,
            "ape": np.abs(np.expm1(centre - measured)),
            "covered": ((low <= measured) & (measured <= high)).astype(np.float64),
            "width": np.exp(high - low),
            "interval_score": high - low + 2 / (1 - level) * missed,
        }
    count = len(applications)
    tally = {name: Grouped(each, numbers[cells[0]], count) for name, each in of_cells.items()}
    for name, values in choices(outcome).items():
        defined = ~np.isnan(values)
        tally[name] = Grouped(values[defined], numbers[defined], count)
    return tally


def _tally_scores(tally: Tally, weights: Reals) -> dict[str, Reals]:
    """The values of `Scores` by name, each of shape ``(b,)``; NaN where nothing defines one.

    The weights, multiplicities of the applications, are of shape ``(b, g)``. The coverage of the worst
    application is not here, as it is that over all outcomes.
    """
    error, ape, slowdown = tally["error"], tally["ape"], tally["slowdown"]
    square = error.map(np.square)
    return {
        "rmse_log": np.sqrt(square.mean(weights)),
        "rmse_log_by_application": average(np.sqrt(square.means()), weights),
        "mae_log": error.map(np.abs).mean(weights),
        "median_ape": ape.median(weights),
        "median_ape_by_application": average(ape.medians(), weights),
        "mape": ape.mean(weights),
        "mape_by_application": average(ape.means(), weights),
        "coverage": average(tally["covered"].means(), weights),
        "coverage_over_cells": tally["covered"].mean(weights),
        "width": tally["width"].median(weights),
        "interval_score": tally["interval_score"].mean(weights),
        "top1": tally["fastest"].mean(weights),
        "slowdown_mean": slowdown.mean(weights),
        "slowdown_geomean": np.exp(slowdown.map(np.log).mean(weights)),
        "slowdown_mean_by_application": average(slowdown.means(), weights),
        "within_10": tally["within_10"].mean(weights),
        "kendall_tau": tally["kendall_tau"].mean(weights),
    }


@dataclass(frozen=True)
class Scores:
    """Scores of forecasts; ``None`` where undefined.

    Errors and intervals are over the held-out cells, choices and orders over kernels at a size. Names that
    end in ``by_application`` are means over applications of the score within each. Shares and relative errors
    are fractions.
    """

    rmse_log: float | None = None  # Root of the mean square of ln(predicted / measured)
    rmse_log_by_application: float | None = None
    mae_log: float | None = None  # Mean of abs(ln(predicted / measured))
    median_ape: float | None = None  # Median of abs(predicted / measured - 1)
    median_ape_by_application: float | None = None
    mape: float | None = None  # Mean of that
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


BETTER: Mapping[str, int] = {
    field.name: 1 if field.name in ("top1", "within_10", "kendall_tau") else -1
    for field in sorted(fields(Scores), key=lambda field: field.name)
    if not field.name.startswith(("coverage", "width"))
}
"""1 where more is better, -1 where less is. Coverage is good near the level of the intervals, and width is
good only with coverage: neither is included."""


def scores(outcomes: Sequence[TimeOutcome], level: float) -> Scores:
    """Score forecasts."""
    names = tuple(sorted({name for outcome in outcomes for name in outcome.application}))
    tallies = [tally_of(outcome, names, level) for outcome in outcomes]
    return weighted_scores(tallies, np.ones((1, len(names))))[0]


def weighted_scores(tallies: Sequence[Tally], weights: Reals) -> list[Scores]:
    """Scores with the applications weighted in ``b`` ways."""
    values = score_values(tallies, weights)
    rows = zip(*(column.tolist() for column in values.values()), strict=True)
    known = [(value if np.isfinite(value) else None for value in row) for row in rows]
    return [Scores(**dict(zip(values, row, strict=True))) for row in known]


def score_values(tallies: Sequence[Tally], weights: Reals) -> dict[str, Reals]:
    """The values of `weighted_scores` as arrays of shape ``(b,)`` by name; NaN where undefined."""
    by_outcome = [_tally_scores(tally, weights) for tally in tallies]
    values = {name: _mean_of_known([scores[name] for scores in by_outcome]) for name in by_outcome[0]}
    # The worst application is the same one for all sets of probes.
    coverage = _mean_of_known([tally["covered"].means() for tally in tallies])
    return values | {"coverage_worst_application": least(coverage, weights)}


def _mean_of_known(rows: Sequence[Reals]) -> Reals:
    stacked = np.stack(rows)
    known = ~np.isnan(stacked)
    mean = np.full(stacked.shape[1], np.nan)
    np.divide(np.where(known, stacked, 0.0).sum(axis=0), known.sum(axis=0), out=mean, where=known.any(axis=0))
    return mean


@dataclass(frozen=True, eq=False)
class Result:
    """Forecasts and scores of one model."""

    model: str
    folds: str
    probes: int  # Number of devices on which each held-out kernel was measured before
    level: float  # Probability that the intervals were to hold
    names: tuple[str, ...]  # Names of all applications, sorted
    outcomes: tuple[TimeOutcome, ...]  # One for each set of measured devices

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """Tallies of the scores, one for each outcome."""
        return tuple(tally_of(outcome, self.names, self.level) for outcome in self.outcomes)

    @cached_property
    def scores(self) -> Scores:
        """Scores, as means over the sets of measured devices."""
        return weighted_scores(self.tallies, np.ones((1, len(self.names))))[0]

    @cached_property
    def applications(self) -> dict[str, Scores]:
        """Scores within each application alone, by its name."""
        return self._weighted(np.eye(len(self.names)))

    @cached_property
    def without(self) -> dict[str, Scores]:
        """Scores over all applications but one, by the name of that one."""
        return self._weighted(1 - np.eye(len(self.names)))

    def _weighted(self, weights: Reals) -> dict[str, Scores]:
        return dict(zip(self.names, weighted_scores(self.tallies, weights), strict=True))

    def on(self, device: int) -> Result:
        """The result on a single device, by index."""
        return replace(self, outcomes=tuple(outcome.on(device) for outcome in self.outcomes))

    def of_applications(self, grid: Grid) -> Result:
        """The result of whole applications at a size, instead of kernels."""
        totals = (of_applications(outcome, grid.profiles) for outcome in self.outcomes)
        return replace(self, outcomes=tuple(totals))

    def to_dict(self, devices: Sequence[Device]) -> dict[str, object]:
        """Scores, also of each application and device; those of devices have no choices."""
        of_choices = ("top1", "slowdown", "within", "kendall")
        on_devices = {device.key: asdict(self.on(index).scores) for index, device in enumerate(devices)}
        return {
            "model": self.model,
            "folds": self.folds,
            "probes": self.probes,
            "sets_of_probes": len(self.outcomes),
            **asdict(self.scores),
            "slowdown_mean_without": {name: each.slowdown_mean for name, each in self.without.items()},
            "applications": {name: asdict(each) for name, each in self.applications.items()},
            "devices": {
                key: {name: value for name, value in scores.items() if not name.startswith(of_choices)}
                for key, scores in on_devices.items()
            },
        }


@dataclass(frozen=True, eq=False)
class TimeEvaluation(Tabular):
    """Results of models of times on a dataset."""

    label: str  # Of the dataset
    grid: Grid  # Times and profiles that folds split
    folds: str  # Their name
    seed: int
    level: float
    results: tuple[Result, ...]  # One for each model and number of probes, in the order of their names
    noise: Result  # One run of a cell as the forecast of its median; without scores for a grid alone
    # The best single device for all kernels, and its result; `None` where there is no choice
    always: tuple[str, Result] | None

    @cached_property
    def confidences(self) -> tuple[Confidence, ...]:
        """Bootstrap intervals over applications of each result's scores."""
        return self._confidences(self.results)

    @cached_property
    def totals(self) -> tuple[Result, ...]:
        """Results of whole applications, with kernels as often as they are launched, for each result."""
        return tuple(each.of_applications(self.grid) for each in self.results)

    @cached_property
    def total_confidences(self) -> tuple[Confidence, ...]:
        """Bootstrap intervals over applications of the scores of each of `totals`."""
        return self._confidences(self.totals)

    def _confidences(self, results: Sequence[Result]) -> tuple[Confidence, ...]:
        scored = []
        for each in results:
            drawn = partial(score_values, each.tallies)
            baseline = each.model in BASELINES
            scored.append(Scored(each.model, baseline, asdict(each.scores), drawn, each.probes))
        return confidences(scored, len(self.grid.applications), BETTER, self.seed)

    @cached_property
    def scored(self) -> list[dict[str, object]]:
        """Scores of each result with their confidence, as objects of JSON."""
        return [
            result.to_dict(self.grid.devices) | confidence.to_dict()
            for result, confidence in zip(self.results, self.confidences, strict=True)
        ]

    @cached_property
    def noise_scores(self) -> dict[str, object]:
        """Scores of `noise`, as an object of JSON."""
        return self.noise.to_dict(self.grid.devices)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of cells, kernels at a size, kernels, applications and devices."""
        return {
            "cells": int((self.grid.runs > 0).sum()),
            "kernels_at_a_size": len(self.grid.profiles),
            "kernels": len(np.unique(self.grid.profiles.groups("kernel"))),
            "applications": len(self.grid.applications),
            "devices": len(self.grid.devices),
        }

    def best(self, probes: int) -> Result | None:
        """The model with the least RMSE at a number of probes; a baseline only if there is no other."""
        ranked = [
            (result.model in BASELINES, score, result)
            for result in self.results
            if result.probes == probes and (score := result.scores.rmse_log) is not None
        ]
        return min(ranked, key=lambda each: each[:2])[2] if ranked else None

    def columns(self) -> Mapping[str, Sequence[object]]:
        """A row for each result: its scores."""
        rows = [
            {"model": each.model, "folds": each.folds, "probes": each.probes, **asdict(each.scores)}
            for each in self.results
        ]
        return columns_of(rows)

    def to_dict(self) -> dict[str, object]:
        """All but the forecasts, as the object that ``--json`` prints; unknown values are null."""
        present = {result.model for result in self.results}
        device, always = self.always or (None, None)
        return {
            "version": JSON_VERSION,
            "dataset": self.label,
            "question": "time",
            "folds": self.folds,
            **self.counts,
            "seed": self.seed,
            "level": self.level,
            "baselines": [name for name in BASELINES if name in present],
            "bootstrap": {"over": "applications", "draws": DRAWS, "share": SHARE},
            "results": self.scored,
            "whole_applications": [
                {"model": total.model, "probes": total.probes, **asdict(total.scores), **confidence.to_dict()}
                for total, confidence in zip(self.totals, self.total_confidences, strict=True)
            ],
            "noise_floor": self.noise_scores,
            "always_the_same": None if always is None else {"device": device, **always.to_dict(())},
        }

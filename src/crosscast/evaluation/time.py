"""How well models predict times that they have not seen: folds by group, their scores, and training.

Folds hold whole groups out, never single cells: kernels of an application resemble each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import combinations, product
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crosscast.arrays import Arrays, Flags, Reals
from crosscast.data.dataset import Dataset, bundled_dataset
from crosscast.data.table import distinct, notes_of, samples_of
from crosscast.data.views import CELL, KERNEL_AT_A_SIZE, run_means, sound
from crosscast.device import Device
from crosscast.errors import CrosscastError, InputError
from crosscast.evaluation.keep import digest, fingerprint
from crosscast.evaluation.loop import (
    Fold,
    check_names,
    check_seed,
    counted_together,
    folds_by_group,
    run_tasks,
)
from crosscast.evaluation.resampling import DRAWS, SHARE, Confidence, Scored, confidences
from crosscast.evaluation.time_scores import (
    BETTER,
    Outcome,
    Scores,
    Tally,
    of_applications,
    score_values,
    tally_of,
    weighted_scores,
)
from crosscast.prediction.intervals import check_level
from crosscast.prediction.time.artefact import TrainedTimeModel, metric_ranges
from crosscast.prediction.time.card import Effect, Range, TimeCard
from crosscast.prediction.time.data import Grid, Toolchain, grid_of
from crosscast.prediction.time.forecast import Model, PointPredictor, Predictor
from crosscast.prediction.time.gaussian import Gaussian, GaussianPredictor
from crosscast.prediction.time.models import BASELINES, DEFAULT_MODEL, model_named
from crosscast.prediction.time.unseen import enough_devices, fit_unseen
from crosscast.results import Tabular

DEFAULT_FOLDS = "leave-application-out"
_KERNEL = "leave-kernel-out"
_DEVICE = "leave-device-out"
_BOTH = "leave-device-and-application-out"
FOLDS = (DEFAULT_FOLDS, _KERNEL, _DEVICE, _BOTH)
"""Names of the ways to hold groups out, each once."""

LEAST_APPLICATIONS = 4
"""Fewer leave too few when one is held out, and one more to tell how sure the rest is."""

_SOURCES = ("prediction", "evaluation/time.py")


class GridFold(NamedTuple):
    """A part of a grid that is held out."""

    kernels: Fold  # That the model is fitted to, and is asked about
    devices: Fold  # That the model is fitted on, and whose cells are scored

    @property
    def held_out(self) -> str:
        """What is held out, for people."""
        return " on ".join(each.held_out for each in self if each.held_out)


def folds_of(grid: Grid, name: str) -> list[GridFold]:
    """The folds of a grid."""
    if name not in FOLDS:
        raise InputError.of(where="folds", expected=f"one of {', '.join(FOLDS)}", found=repr(name))
    kernels, devices = map(np.arange, grid.log_time.shape)
    by_kernel: Sequence[Fold] = [Fold("", kernels, kernels)]
    by_device: Sequence[Fold] = [Fold("", devices, devices)]
    if name == _KERNEL:
        labels = [f"{application}/{kernel}" for application, kernel, _ in grid.profiles.names]
        by_kernel = folds_by_group(name, "kernels", labels, grid.profiles.groups("kernel"))
    elif name != _DEVICE:
        by_kernel = folds_by_group(name, "applications", grid.profiles.application)
    if name in (_DEVICE, _BOTH):
        by_device = folds_by_group(name, "devices", [device.key for device in grid.devices], devices)
    return [GridFold(*both) for both in product(by_kernel, by_device)]


MOST_SETS = 200
"""Sets of devices that are tried at most; where there are more, as many are drawn."""


def probe_sets(devices: int, probes: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Sets of devices to measure on: all there are, or a sample without replacement.

    >>> probe_sets(3, 2, seed=0)
    ((0, 1), (0, 2), (1, 2))
    """
    if not 0 <= probes < devices:
        raise InputError.of(where="probes", expected=f"0 to {devices - 1} of {devices} devices", found=probes)
    if comb(devices, probes) <= MOST_SETS:
        return tuple(combinations(range(devices), probes))
    rng = np.random.default_rng(seed)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < MOST_SETS:
        drawn.add(tuple(sorted(rng.choice(devices, probes, replace=False).tolist())))
    return tuple(sorted(drawn))


@dataclass(frozen=True, eq=False)
class _Pair:
    """A fit without two applications, and its predictions of both.

    Out-of-fold residuals of the fold of either need this one fit.
    """

    model: Gaussian
    held_out: Fold
    seed: int

    @property
    def label(self) -> str:
        return f"{self.model.name}, {self.held_out.held_out} held out"

    @property
    def asks(self) -> list[object]:
        model = [self.model.name, fingerprint(self.model.refitted)]
        return [{"model": model, "residuals": self.held_out.test.tolist(), "seed": self.seed}]

    def run(self, data: Grid, asks: Sequence[int]) -> list[Arrays]:
        predictor = self.model.refitted.fit(data.take(self.held_out.train), self.seed)
        return [{"log_time": predictor.log_time(data.profiles.take(self.held_out.test))}]

    def sound(self, data: Grid, ask: int, arrays: Arrays) -> bool:
        shape = (len(self.held_out.test), len(data.devices))
        return set(arrays) == {"log_time"} and arrays["log_time"].shape == shape


def _residuals(models: Sequence[Gaussian], grid: Grid, seed: int, **how: Any) -> dict[str, tuple[Reals, ...]]:
    """For each model and application, residuals ``(n, d)`` of the others, each without both."""
    groups, names = grid.profiles.groups("application"), grid.applications
    pairs = list(combinations(range(len(names)), 2))
    folds = [Fold.of(f"{names[a]} and {names[b]}", np.isin(groups, (a, b))) for a, b in pairs]
    tasks = [_Pair(model, fold, seed) for model in models for fold in folds]
    answers = iter(run_tasks(tasks, grid, sources=_SOURCES, **how))
    found = {}
    for model in models:
        errors = np.full((len(names), *grid.log_time.shape), np.nan)
        for pair, fold in zip(pairs, folds, strict=True):
            left = grid.log_time[fold.test] - next(answers)[0]["log_time"]
            for out, own in (pair, pair[::-1]):
                errors[out, fold.test[groups[fold.test] == own]] = left[groups[fold.test] == own]
        found[model.name] = tuple(errors)
    return found


@dataclass(frozen=True, eq=False)
class _Task:
    """One fit to one side of a fold, and forecasts of the other side for several sets of known times.

    An answer has the logarithms of ``centre``, ``low`` and ``high`` in seconds, of shape ``(s, n, d)`` for
    ``s`` sets of known times, ``n`` kernels and all ``d`` devices of the grid; and the ``correlation`` of
    errors of an application's kernels, of shape ``(d,)``.
    """

    model: Model
    fold: GridFold
    knowns: Sequence[Flags]  # For each question, devices whose times are known, of shape `(s, d)`
    seed: int
    level: float
    errors: Reals | None = None  # Residuals that the fit needs, of all kernels, where they are known

    @property
    def label(self) -> str:
        return f"{self.model.name}, {self.fold.held_out} held out"

    @property
    def asks(self) -> list[object]:
        fold = self.fold
        return [
            {
                "model": [self.model.name, fingerprint(self.model)],
                "train": [fold.kernels.train.tolist(), fold.devices.train.tolist()],
                "asked": [fold.kernels.test.tolist(), known.astype(int).tolist(), self.level],
                "seed": self.seed,
            }
            for known in self.knowns
        ]

    def run(self, data: Grid, asks: Sequence[int]) -> list[Arrays]:
        # The model sees nothing of the held-out side but the profiles and the known times.
        train = data.take(self.fold.kernels.train).on(self.fold.devices.train.tolist())
        predictor: Predictor
        if self.errors is not None and isinstance(self.model, Gaussian):
            errors = self.errors[self.fold.kernels.train]
            predictor, _ = self.model.fit_with_errors(train, self.seed, None, errors)
        else:
            predictor = self.model.fit(train, self.seed)
        return [self._answer(data, predictor, self.knowns[ask]) for ask in asks]

    def sound(self, data: Grid, ask: int, arrays: Arrays) -> bool:
        shape = (len(self.knowns[ask]), len(self.fold.kernels.test), len(data.devices))
        shapes = dict.fromkeys(("centre", "low", "high"), shape) | {"correlation": shape[2:]}
        return set(arrays) == set(shapes) and all(
            array.shape == shapes[name] and array.dtype == np.float64 and not np.isnan(array).any()
            for name, array in arrays.items()
        )

    def _answer(self, grid: Grid, predictor: Predictor, known: Flags) -> Arrays:
        fold, (sets, d) = self.fold, known.shape
        rows = np.tile(fold.kernels.test, sets)
        told = np.where(np.repeat(known, len(fold.kernels.test), axis=0), np.exp(grid.log_time[rows]), np.nan)
        fitted = set(fold.devices.train.tolist())
        forecast = predictor.predict(
            grid.profiles.take(rows),
            [device.key if place in fitted else device for place, device in enumerate(grid.devices)],
            probes=told[:, fold.devices.train] if known.any() else None,
            level=self.level,
        )
        arrays = {name: getattr(forecast, name) for name in ("centre", "low", "high")}
        for name, array in arrays.items():
            # An interval may begin at 0.
            wrong = ~((array > 0) | ((array == 0) & (name != "centre")))
            if array.shape != (len(rows), d) or wrong.any():
                found = f"{array[wrong][0]:g}" if wrong.any() else f"shape {array.shape}"
                expected = f"times above 0 s of shape {(len(rows), d)} as {name}"
                raise CrosscastError(f"model {self.label}: expected {expected}, found {found}")
        with np.errstate(divide="ignore"):
            logs = {name: np.log(each).reshape(sets, -1, d) for name, each in arrays.items()}
        return {**logs, "correlation": np.full(d, 1.0) * forecast.correlation}


def _outcome(
    grid: Grid, name: str, answered: Sequence[tuple[_Task, Sequence[Arrays]]], ask: int, place: int
) -> Outcome:
    """The answers of all folds for one set of known times.

    Kernels that were not measured on all devices of the set are not in it, nor are those of which it leaves
    no measured time to forecast.
    """
    parts = []
    for task, answers in answered:
        fold, told = task.fold, task.knowns[ask][place]
        measured = grid.log_time[fold.kernels.test]
        finite = np.isfinite(measured)
        known, scored = told & finite, np.zeros(measured.shape, dtype=np.bool_)
        scored[:, fold.devices.test] = True
        # Of a kernel of which no cell is left to forecast, a choice would be none.
        asked = (scored & finite & ~known).any(axis=1)
        if name != _DEVICE:
            # A kernel that lacks one of a few probes was not asked as the others were.
            asked &= finite[:, told].all(axis=1)
        forecast = [answers[ask][each][place] for each in ("centre", "low", "high")]
        within = np.broadcast_to(answers[ask]["correlation"], measured.shape)
        arrays = (measured, *forecast, scored & ~known, known, fold.kernels.test, within)
        parts.append([array[asked] for array in arrays])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    applications = tuple(grid.profiles.application[row] for row in columns[-2].tolist())
    return Outcome(applications, *columns)


@dataclass(frozen=True, eq=False)
class Result:
    """How one model did."""

    model: str
    folds: str
    probes: int  # On how many devices each held-out kernel was measured before the others were predicted
    level: float  # Probability that the intervals were to hold
    names: tuple[str, ...]  # Names of all applications, sorted
    outcomes: tuple[Outcome, ...]  # One for each set of devices that were measured on

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """What the scores are made of, for each outcome."""
        return tuple(tally_of(outcome, self.names, self.level) for outcome in self.outcomes)

    @cached_property
    def scores(self) -> Scores:
        """Scores, as means over the sets of devices that were measured on."""
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
        """The same with the cells of one device alone counted, by its number."""
        return replace(self, outcomes=tuple(outcome.on(device) for outcome in self.outcomes))

    def of_applications(self, grid: Grid) -> Result:
        """The same of whole applications at a size, instead of kernels."""
        return replace(
            self, outcomes=tuple(of_applications(outcome, grid.profiles) for outcome in self.outcomes)
        )

    def to_dict(self, devices: Sequence[Device]) -> dict[str, Any]:
        """Scores, also within applications and on devices alone; devices have none of choices."""
        of_choices = ("top1", "slowdown", "within", "kendall")
        on_devices = {device.key: asdict(self.on(place).scores) for place, device in enumerate(devices)}
        return {
            "model": self.model,
            "split": self.folds,
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
    """How models of times did on a dataset."""

    label: str  # Which dataset
    grid: Grid  # What the models learned from and were asked about
    folds: str  # What was held out
    seed: int
    level: float
    results: tuple[Result, ...]  # One for each model and number of probes, in the order of their names
    noise: Result  # One run of a cell as the forecast of its median; without scores for a grid alone
    # The device that would have been the best to take for all kernels, and how its choice did; `None` where
    # there is no choice
    always: tuple[str, Result] | None

    @cached_property
    def confidences(self) -> tuple[Confidence, ...]:
        """For each result, how far its scores would move with other applications (a bootstrap over these)."""
        return self._confidences(self.results)

    @cached_property
    def totals(self) -> tuple[Result, ...]:
        """For each result, how whole applications are forecast: kernels as often as they are launched."""
        return tuple(each.of_applications(self.grid) for each in self.results)

    @cached_property
    def total_confidences(self) -> tuple[Confidence, ...]:
        """For each of `totals`, how far its scores would move with other applications."""
        return self._confidences(self.totals)

    def _confidences(self, results: Sequence[Result]) -> tuple[Confidence, ...]:
        scored = [
            Scored(
                each.model,
                each.model in BASELINES,
                asdict(each.scores),
                partial(score_values, each.tallies),
                each.probes,
            )
            for each in results
        ]
        return confidences(scored, len(self.grid.applications), BETTER, self.seed)

    @property
    def counts(self) -> dict[str, int]:
        """How many cells, kernels at a size, kernels, applications and devices there are."""
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
        return {name: [row[name] for row in rows] for name in rows[0]}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the forecasts, as the object that ``--json`` prints: what is not known is null."""
        present = {result.model for result in self.results}
        device, always = self.always or (None, None)
        return {
            "protocol": self.folds,
            "dataset": self.label,
            **self.counts,
            "seed": self.seed,
            "level": self.level,
            "baselines": [name for name in BASELINES if name in present],
            "bootstrap": {"over": "applications", "draws": DRAWS, "share": SHARE},
            "results": [
                result.to_dict(self.grid.devices) | confidence.to_dict()
                for result, confidence in zip(self.results, self.confidences, strict=True)
            ],
            "whole_applications": [
                {"model": total.model, "probes": total.probes, **asdict(total.scores), **confidence.to_dict()}
                for total, confidence in zip(self.totals, self.total_confidences, strict=True)
            ],
            "noise_floor": self.noise.to_dict(self.grid.devices),
            "always_the_same": None if always is None else {"device": device, **always.to_dict(())},
        }


def evaluate_time(
    data: Dataset | Grid,
    models: Sequence[Model],
    folds: str = DEFAULT_FOLDS,
    *,
    probes: Sequence[int] = (0,),
    seed: int = 0,
    level: float = 0.9,
    **how: Any,
) -> TimeEvaluation:
    """Fit models to all groups but one, predict that one, for each group; and score the forecasts.

    A grid alone has no single runs, and so no noise floor. With probes, a kernel is measured on so many
    devices and scored on the others; scores are means over all sets of so many devices (at most
    `MOST_SETS`). Where a device is held out, each kernel's times on all others are known. `how` are
    `progress`, `cache` and `jobs` of `run_tasks`.
    """
    check_seed(seed)
    check_level(level)
    check_names([model.name for model in models])
    dataset, grid = (None, data) if isinstance(data, Grid) else (data, grid_of(data))
    counts = list(dict.fromkeys(probes))
    if folds == _DEVICE:
        counts = [len(grid.devices) - 1]
    elif folds == _BOTH and any(probes):
        raise InputError.of(where="probes", expected=f"0 with {folds}", found=max(probes))
    d = len(grid.devices)
    asked = []
    for fold in folds_of(grid, folds):
        told = fold.devices.train.tolist()
        sets = [[told] if folds == _DEVICE else probe_sets(d, count, seed) for count in counts]
        asked.append((fold, [np.array([np.isin(np.arange(d), one) for one in each]) for each in sets]))
    known: dict[str, tuple[Reals, ...]] = {}
    if folds == DEFAULT_FOLDS and len(grid.applications) >= LEAST_APPLICATIONS:
        shared = [model for model in models if isinstance(model, Gaussian)]
        rounds = (len(shared) * comb(len(asked), 2), len(models) * len(asked))
        progress = how.pop("progress", None)
        tell = (None, None) if progress is None else counted_together(progress, rounds)
        known = _residuals(shared, grid, seed, progress=tell[0], **how)
        how["progress"] = tell[1]
    tasks = [
        _Task(model, fold, knowns, seed, level, known[model.name][place] if model.name in known else None)
        for model in models
        for place, (fold, knowns) in enumerate(asked)
    ]
    answers = run_tasks(tasks, grid, sources=_SOURCES, **how)
    results = []
    for number, model in enumerate(models):
        own = slice(number * len(asked), (number + 1) * len(asked))
        answered = list(zip(tasks[own], answers[own], strict=True))
        for ask, count in enumerate(counts):
            places = range(len(asked[0][1][ask]))
            outcomes = tuple(_outcome(grid, folds, answered, ask, place) for place in places)
            results.append(Result(model.name, folds, count, level, grid.applications, outcomes))
    noise, always = noise_floor(dataset, grid, seed, level), always_the_same(grid, level)
    label = "" if dataset is None else dataset.label
    return TimeEvaluation(label, grid, folds, seed, level, tuple(results), noise, always)


_NOISE, _ONE_RUN = "noise-floor", "one run of each cell"
_RUNS = 25
"""Runs that are drawn from each cell."""


def noise_floor(dataset: Dataset | None, grid: Grid, seed: int, level: float = 0.9) -> Result:
    """How a look at one run of each cell does as a forecast of the cell's median.

    In logarithms, a single run is as far from the median as the forecast of a perfect model of the medians
    is from a single run. From each cell runs are drawn, with replacement. The interval around a run is as
    wide as that of the cell's runs, between the quantiles that leave the same share out on both sides.
    """
    if dataset is None:
        none = grid.take(np.arange(0))
        outcomes = [_reference(none, none.log_time, none.log_time, none.log_time)]
        return Result(_NOISE, _ONE_RUN, 0, level, grid.applications, tuple(outcomes))
    records = sound(dataset.records, dataset.sessions)
    cells, numbers = distinct(records, CELL)
    samples = samples_of(numbers, np.log(run_means(records)))
    row_of = {kernel: row for row, kernel in enumerate(grid.profiles.names)}
    column_of = {device.key: column for column, device in enumerate(grid.devices)}
    found = [
        (row_of[kernel], column_of[cell["device"]], number)
        for number, cell in enumerate(cells.to_pylist())
        if (kernel := (cell["application"], cell["kernel"], cell["size"])) in row_of
    ]
    rows, columns, kept = np.array(found, dtype=np.int64).reshape(-1, 3).T

    def put(values: Reals) -> Reals:
        array = np.full(grid.log_time.shape, np.nan)
        array[rows, columns] = values[kept]
        return array

    below = grid.log_time - put(samples.quantile((1 - level) / 2))
    above = put(samples.quantile((1 + level) / 2)) - grid.log_time
    starts = np.cumsum(samples.counts) - samples.counts
    drawn = (np.random.default_rng(seed).random((_RUNS, len(starts))) * samples.counts).astype(np.int64)
    runs = [put(samples.values[starts + places]) for places in drawn]
    outcomes = [_reference(grid, run, run - above, run + below) for run in runs]
    return Result(_NOISE, _ONE_RUN, 0, level, grid.applications, tuple(outcomes))


def _reference(grid: Grid, centre: Reals, low: Reals, high: Reals, scored: bool = True) -> Outcome:
    """An outcome of all kernels, without known times."""
    flags = np.full(centre.shape, scored), np.zeros(centre.shape, dtype=np.bool_)
    rows = np.arange(len(grid.profiles))
    return Outcome(grid.profiles.application, grid.log_time, centre, low, high, *flags, rows)


def always_the_same(grid: Grid, level: float = 0.9) -> tuple[str, Result] | None:
    """The device with the least mean slowdown over all kernels, and how it did; ``None`` without a choice.

    It is found with the measured times of all kernels, so it is the best that any choice without a look at
    the kernel can do. It forecasts nothing, so no error is scored.
    """
    candidates = []
    for place in np.flatnonzero(np.isfinite(grid.log_time).all(axis=0)).tolist():
        centre, nothing = np.ones(grid.log_time.shape), np.full(grid.log_time.shape, np.nan)
        centre[:, place] = 0.0
        outcome = _reference(grid, centre, nothing, nothing, scored=False)
        result = Result("always-the-same", "in hindsight", 0, level, grid.applications, (outcome,))
        if result.scores.slowdown_mean is not None:
            candidates.append((result.scores.slowdown_mean, (grid.devices[place].key, result)))
    return min(candidates, key=lambda pair: pair[0])[1] if candidates else None


_ALIKE = 2.0
_OUTER = 0.1


def effect_of(point: PointPredictor, grid: Grid, others: Grid, toolchain: Toolchain) -> Effect | None:
    """Compare predictions from two profiles of the same launches.

    Launches are taken for the same if application, kernel, size and work-items are, and the instructions
    within a factor of 2: the sizes of a suite have been set anew now and then.
    """
    ours_of, theirs_of = (
        {key: row for row, key in enumerate(zip(each.names, each.metric("work_items").tolist(), strict=True))}
        for each in (grid.profiles, others.profiles)
    )
    shared = [key for key in ours_of if key in theirs_of]
    ours, theirs = (
        each.profiles.take(np.array([rows[key] for key in shared], dtype=np.int64))
        for each, rows in ((grid, ours_of), (others, theirs_of))
    )
    ratio = theirs.metric("total_instruction_count") / ours.metric("total_instruction_count")
    alike = (ratio >= 1 / _ALIKE) & (ratio <= _ALIKE)
    if not alike.any():
        return None
    known = ours.take(alike)
    # How often a kernel was launched is the run's affair, not the compiler's.
    foreign = replace(theirs.take(alike), invocations=known.invocations)
    apart = point.log_time(foreign) - point.log_time(known)
    low, middle, high = np.exp(np.quantile(apart, (_OUTER, 0.5, 1 - _OUTER))).tolist()
    return Effect(toolchain.compiler, toolchain.options, len(known), middle, low, high)


_MOST_PROBES = 2
_ERRORS = ("protocol", "seed", "level", "baselines", "bootstrap", "results", "noise_floor", "always_the_same")
_IN_PARTS = ("applications", "devices", "slowdown_mean_without", "against_baseline")


def train_time(
    dataset: Dataset, model: str = DEFAULT_MODEL, *, seed: int = 0, **how: Any
) -> TrainedTimeModel:
    """Fit a model, and measure it with each application left out in turn; `how` as in `evaluate_time`."""
    made, *baselines = (model_named(name) for name in dict.fromkeys([model, *BASELINES]))
    grid = grid_of(dataset)
    found = len(grid.applications)
    if found < LEAST_APPLICATIONS:
        expected = (
            f"at least {LEAST_APPLICATIONS} applications with profiles and records to train and test a model"
        )
        raise InputError.of(where=dataset.label, expected=expected, found=found)
    probes = range(min(_MOST_PROBES, len(grid.devices) - 1) + 1)
    evaluation = evaluate_time(dataset, [made, *baselines], probes=probes, seed=seed, **how)
    predictor = _fitted(made, grid, seed, evaluation.results[0])
    toolchains = tuple(sorted(set(_toolchains(dataset, grid))))
    # What it changes to profile with the toolchain of the bundled dataset, where that is another one.
    bundled = bundled_dataset()
    others = grid_of(bundled)
    theirs = set(_toolchains(bundled, others))
    is_another = len(theirs) == 1 and not theirs <= set(toolchains)
    effect = effect_of(predictor.point, grid, others, theirs.pop()) if is_another else None
    times = np.exp(grid.log_time[np.isfinite(grid.log_time)])
    card = TimeCard(
        model=model,
        seed=seed,
        training={
            "dataset": Path(dataset.label).name,
            "origin": notes_of(dataset.profiles).get("origin"),
            **evaluation.counts,
            "names": list(grid.applications),
            "records": dataset.records.num_rows,
            "sha256": digest(grid),
        },
        toolchains=toolchains,
        other_toolchains=(effect,) if effect else (),
        devices=grid.devices,
        metrics=metric_ranges(predictor.point, grid.profiles),
        time_s=Range(float(times.min()), float(times.max())),
        errors=_errors(evaluation, model),
    )
    return TrainedTimeModel(card, predictor)


def _fitted(model: Gaussian, grid: Grid, seed: int, result: Result) -> GaussianPredictor:
    """The model fitted to all, with the residuals that its evaluation without probes has found."""
    if model.refit is not None or len(result.outcomes) != 1:
        return model.fit(grid, seed)
    (outcome,) = result.outcomes
    errors = np.full(grid.log_time.shape, np.nan)
    errors[outcome.rows] = outcome.measured - outcome.centre
    unseen = fit_unseen(grid, seed) if enough_devices(grid) else None
    return model.fit_with_errors(grid, seed, unseen, errors)[0]


def _errors(evaluation: TimeEvaluation, model: str) -> dict[str, Any]:
    """What the card says of the evaluation: by application and device of the model alone, to stay small."""

    def whole(result: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in result.items() if name not in _IN_PARTS}

    kept = {name: value for name, value in evaluation.to_dict().items() if name in _ERRORS}
    results = [each if each["model"] == model else whole(each) for each in kept["results"]]
    return {**kept, "results": results, "noise_floor": whole(kept["noise_floor"])}


def _toolchains(dataset: Dataset, grid: Grid) -> Iterator[Toolchain]:
    """What the profiles of the grid's kernels were made with."""
    kernels = set(grid.profiles.names)
    rows, _ = distinct(dataset.profiles, (*KERNEL_AT_A_SIZE, "program"))
    for row in rows.to_pylist():
        if tuple(row[name] for name in KERNEL_AT_A_SIZE) in kernels:
            yield Toolchain.of(json.loads(row["program"] or "{}"))

"""Evaluate models of times on data that they have not seen: folds by group, and tasks.

Folds hold out whole groups, never single cells: errors within an application are correlated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb
from typing import NamedTuple, Unpack

import numpy as np

from crosscast.arrays import Arrays, Flags, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.table import distinct, samples_of
from crosscast.data.views import CELL, of_successful_sessions, run_means
from crosscast.errors import CrosscastError, InputError, expect_known
from crosscast.evaluation.keep import fingerprint
from crosscast.evaluation.loop import (
    Fold,
    FoldTask,
    RunArguments,
    check_names,
    check_seed,
    folds_by_group,
    rounds_of,
    run_tasks,
)
from crosscast.evaluation.time.scores import Result, TimeEvaluation, TimeOutcome
from crosscast.prediction.intervals import check_level
from crosscast.prediction.time import Grid
from crosscast.prediction.time.datasets import grid_of
from crosscast.prediction.time.forecast import Model, PointModel, Predictor

_NOISE, _ONE_RUN = "noise-floor", "one run of each cell"
_RUNS = 25
"""Draws from each cell's runs."""


def noise_floor(dataset: Dataset | None, grid: Grid, seed: int, level: float = 0.9) -> Result:
    """Result of a single run of each cell, drawn with replacement, as a forecast of the cell's median.

    A run is as far from the median as a perfect forecast of it is from the run. The interval around a run has
    the width of the central interval of the cell's runs.
    """
    if dataset is not None:
        records = of_successful_sessions(dataset.records, dataset.sessions)
        cells, numbers = distinct(records, CELL)
        samples = samples_of(numbers, np.log(run_means(records)))
    # The only run of a cell is its median, which says nothing about noise.
    if dataset is None or samples.counts.max(initial=0) < 2:
        empty = grid.take(np.arange(0))
        outcomes = [_reference(empty, empty.log_time, empty.log_time, empty.log_time)]
        return Result(_NOISE, _ONE_RUN, 0, level, grid.applications, tuple(outcomes))
    row_of = {kernel: row for row, kernel in enumerate(grid.profiles.names)}
    column_of = {device.key: column for column, device in enumerate(grid.devices)}
    cell_indices = [
        (row_of[kernel], column_of[cell["device"]], number)
        for number, cell in enumerate(cells.to_pylist())
        if (kernel := (cell["application"], cell["kernel"], cell["size"])) in row_of
    ]
    rows, columns, indices = np.array(cell_indices, dtype=np.int64).reshape(-1, 3).T

    def to_grid(values: Reals) -> Reals:
        array = np.full(grid.log_time.shape, np.nan)
        array[rows, columns] = values[indices]
        return array

    below = grid.log_time - to_grid(samples.quantile((1 - level) / 2))
    above = to_grid(samples.quantile((1 + level) / 2)) - grid.log_time
    starts = np.cumsum(samples.counts) - samples.counts
    drawn = (np.random.default_rng(seed).random((_RUNS, len(starts))) * samples.counts).astype(np.int64)
    runs = [to_grid(samples.values[starts + offsets]) for offsets in drawn]
    outcomes = [_reference(grid, run, run - above, run + below) for run in runs]
    return Result(_NOISE, _ONE_RUN, 0, level, grid.applications, tuple(outcomes))


def _reference(grid: Grid, centre: Reals, low: Reals, high: Reals, scored: bool = True) -> TimeOutcome:
    """An outcome of all kernels, without known times."""
    flags = np.full(centre.shape, scored), np.zeros(centre.shape, dtype=np.bool_)
    rows = np.arange(len(grid.profiles))
    return TimeOutcome(grid.profiles.application, grid.log_time, centre, low, high, *flags, rows)


def always_the_same(grid: Grid, level: float = 0.9) -> tuple[str, Result] | None:
    """The device with the least mean slowdown over all kernels, and its result; ``None`` without a choice.

    It is chosen by the measured times of all kernels, so no choice that ignores the kernel is better. It
    forecasts no times, so no error is scored.
    """
    candidates = []
    for column in np.flatnonzero(np.isfinite(grid.log_time).all(axis=0)).tolist():
        centre, undefined = np.ones(grid.log_time.shape), np.full(grid.log_time.shape, np.nan)
        centre[:, column] = 0.0
        outcome = _reference(grid, centre, undefined, undefined, scored=False)
        result = Result("always-the-same", "in hindsight", 0, level, grid.applications, (outcome,))
        if result.scores.slowdown_mean is not None:
            candidates.append((result.scores.slowdown_mean, (grid.devices[column].key, result)))
    return min(candidates, key=lambda pair: pair[0])[1] if candidates else None


DEFAULT_FOLDS = "leave-application-out"
_KERNEL = "leave-kernel-out"
_DEVICE = "leave-device-out"
_BOTH = "leave-device-and-application-out"
FOLDS = (DEFAULT_FOLDS, _KERNEL, _DEVICE, _BOTH)
"""Names of the folds."""

LEAST_APPLICATIONS = 4
"""Fewer leave too few when one is held out, and one more for out-of-fold residuals."""

_SOURCES = ("prediction", "evaluation/time/evaluation.py")


class GridFold(NamedTuple):
    """Held-out kernels and devices of a grid."""

    kernels: Fold  # In training, and to predict
    devices: Fold  # In training, and to score

    @property
    def held_out(self) -> str:
        """Name of the held-out groups, for people."""
        return " on ".join(each.held_out for each in self if each.held_out)


def folds_of(grid: Grid, name: str) -> list[GridFold]:
    """The folds of a grid."""
    expect_known(name, FOLDS, where="folds")
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
    return [GridFold(*pair) for pair in product(by_kernel, by_device)]


MOST_SETS = 200
"""Most sets of devices; of more, a sample is drawn."""


def probe_sets(devices: int, probes: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Sets of devices to measure on: all, or a sample without replacement.

    >>> probe_sets(3, 2, seed=0)
    ((0, 1), (0, 2), (1, 2))
    """
    if not (isinstance(probes, int | np.integer) and 0 <= probes < devices):
        expected = f"0 to {devices - 1} of {devices} devices"
        raise InputError.of(where="probes", expected=expected, found=repr(probes))
    if comb(devices, probes) <= MOST_SETS:
        return tuple(combinations(range(devices), probes))
    rng = np.random.default_rng(seed)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < MOST_SETS:
        drawn.add(tuple(sorted(rng.choice(devices, probes, replace=False).tolist())))
    return tuple(sorted(drawn))


@dataclass(frozen=True, eq=False)
class _PairTask(FoldTask[PointModel, Fold, Grid]):
    """A fit without two applications, and its predictions of both.

    It gives out-of-fold residuals in the folds of both applications.
    """

    @property
    def cache_keys(self) -> list[object]:
        model = [self.model.name, fingerprint(self.model)]
        return [{"model": model, "residuals": self.fold.test.tolist(), "seed": self.seed}]

    def run(self, data: Grid, queries: Sequence[int]) -> list[Arrays]:
        predictor = self.model.fit(data.take(self.fold.train), self.seed)
        return [{"log_time": predictor.log_time(data.profiles.take(self.fold.test))}]

    def is_valid(self, data: Grid, query: int, arrays: Arrays) -> bool:
        shape = (len(self.fold.test), len(data.devices))
        return set(arrays) == {"log_time"} and arrays["log_time"].shape == shape


def _residuals(
    models: Mapping[str, PointModel], grid: Grid, seed: int, **run: Unpack[RunArguments]
) -> dict[str, tuple[Reals, ...]]:
    """Residuals ``(n, d)`` by model and held-out application: of the others, by fits without both."""
    groups, names = grid.profiles.groups("application"), grid.applications
    pairs = list(combinations(range(len(names)), 2))
    folds = [Fold.of(f"{names[a]} and {names[b]}", np.isin(groups, (a, b))) for a, b in pairs]
    tasks = [_PairTask(model, fold, seed) for model in models.values() for fold in folds]
    answers = iter(run_tasks(tasks, grid, sources=_SOURCES, **run))
    by_model = {}
    for name in models:
        errors = np.full((len(names), *grid.log_time.shape), np.nan)
        for pair, fold in zip(pairs, folds, strict=True):
            residuals = grid.log_time[fold.test] - np.asarray(next(answers)[0]["log_time"], np.float64)
            for out, other in (pair, pair[::-1]):
                errors[out, fold.test[groups[fold.test] == other]] = residuals[groups[fold.test] == other]
        by_model[name] = tuple(errors)
    return by_model


@dataclass(frozen=True, eq=False)
class _TimeTask(FoldTask[Model, GridFold, Grid]):
    """A fit to the training part of a fold, and forecasts of the test part for several sets of probes.

    An answer has the logarithms of ``centre``, ``low`` and ``high`` in seconds, of shape ``(s, n, d)`` for
    ``s`` sets of probes, ``n`` kernels and all ``d`` devices of the grid; and the ``correlation`` of errors
    of an application's kernels, of shape ``(d,)``.
    """

    knowns: Sequence[Flags]  # For each query, sets of devices with probes, of shape `(s, d)`
    level: float
    errors: Reals | None = None  # Out-of-fold residuals of all kernels for the fit, if known already

    @property
    def cache_keys(self) -> list[object]:
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

    def run(self, data: Grid, queries: Sequence[int]) -> list[Arrays]:
        # Of the test part, the model sees only the profiles and the probes.
        train = data.take(self.fold.kernels.train).on(self.fold.devices.train.tolist())
        if self.errors is None:
            predictor = self.model.fit(train, self.seed)
        else:
            residuals = self.errors[self.fold.kernels.train]
            predictor = self.model.fit(train, self.seed, residuals, others=False)
        return [self._answer(data, predictor, self.knowns[query]) for query in queries]

    def is_valid(self, data: Grid, query: int, arrays: Arrays) -> bool:
        shape = (len(self.knowns[query]), len(self.fold.kernels.test), len(data.devices))
        shapes = dict.fromkeys(("centre", "low", "high"), shape) | {"correlation": shape[2:]}
        return set(arrays) == set(shapes) and all(
            array.shape == shapes[name] and array.dtype == np.float64 and not np.isnan(array).any()
            for name, array in arrays.items()
        )

    def _answer(self, grid: Grid, predictor: Predictor, known: Flags) -> Arrays:
        fold, (sets, d) = self.fold, known.shape
        rows = np.tile(fold.kernels.test, sets)
        probes = np.where(
            np.repeat(known, len(fold.kernels.test), axis=0), np.exp(grid.log_time[rows]), np.nan
        )
        forecast = predictor.predict(
            grid.profiles.take(rows),
            grid.devices,
            probes=probes[:, fold.devices.train] if known.any() else None,
            level=self.level,
        )
        arrays = {name: getattr(forecast, name) for name in ("centre", "low", "high")}
        if not (arrays["centre"] > 0).all():
            raise CrosscastError(
                f"model {self.label}: expected times above 0 s, found {arrays['centre'].min():g}"
            )
        # An interval may begin at 0.
        with np.errstate(divide="ignore"):
            logs = {name: np.log(each).reshape(sets, -1, d) for name, each in arrays.items()}
        return {**logs, "correlation": np.full(d, 1.0) * forecast.correlation}


def _outcome(
    grid: Grid, name: str, answered: Sequence[tuple[_TimeTask, Sequence[Arrays]]], query: int, index: int
) -> TimeOutcome:
    """Join the answers of all folds for one set of probes.

    It has only kernels that were measured on all devices of the set, and on another one that is scored.
    """
    parts = []
    for task, answers in answered:
        fold, probed = task.fold, task.knowns[query][index]
        measured = grid.log_time[fold.kernels.test]
        finite = np.isfinite(measured)
        known, scored = probed & finite, np.zeros(measured.shape, dtype=np.bool_)
        scored[:, fold.devices.test] = True
        # Without a cell to forecast, there is no choice to score.
        included = (scored & finite & ~known).any(axis=1)
        if name != _DEVICE:
            # A kernel that lacks one of the probes is not comparable with the others.
            included &= finite[:, probed].all(axis=1)
        forecast = [answers[query][quantity][index] for quantity in ("centre", "low", "high")]
        within = np.broadcast_to(answers[query]["correlation"], measured.shape)
        arrays = (measured, *forecast, scored & ~known, known, fold.kernels.test, within)
        parts.append([array[included] for array in arrays])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    applications = tuple(grid.profiles.application[row] for row in columns[-2].tolist())
    return TimeOutcome(applications, *columns)


def evaluate_time(
    data: Dataset | Grid,
    models: Sequence[Model],
    folds: str = DEFAULT_FOLDS,
    *,
    probes: Sequence[int] = (0,),
    seed: int = 0,
    level: float = 0.9,
    **run: Unpack[RunArguments],
) -> TimeEvaluation:
    """Fit models without each group in turn, predict that group, and score the forecasts.

    Without repeated runs there is no noise floor. `probes` are numbers of devices on which a kernel is
    measured before it is predicted on the others; scores are means over all sets of so many devices (at most
    `MOST_SETS`). Where a device is held out, each kernel's times on all others are probes.
    """
    check_seed(seed)
    check_level(level)
    check_names([model.name for model in models])
    dataset, grid = (None, data) if isinstance(data, Grid) else (data, grid_of(data))
    counts = list(dict.fromkeys(probes))
    if folds == _DEVICE:
        counts = [len(grid.devices) - 1]
    elif folds == _BOTH and any(counts):
        raise InputError.of(where="probes", expected=f"0 with {folds}", found=max(counts))
    d = len(grid.devices)
    queries = []
    for fold in folds_of(grid, folds):
        others = fold.devices.train.tolist()
        sets = [[others] if folds == _DEVICE else probe_sets(d, count, seed) for count in counts]
        queries.append((fold, [np.array([np.isin(np.arange(d), one) for one in each]) for each in sets]))
    residuals: dict[str, tuple[Reals, ...]] = {}
    if folds == DEFAULT_FOLDS and len(grid.applications) >= LEAST_APPLICATIONS:
        sources = {each.name: each.residuals_from for each in models}
        shared = {name: point for name, point in sources.items() if point is not None}
        sizes = (len(shared) * comb(len(queries), 2), len(models) * len(queries))
        before, run = rounds_of(run, sizes)
        residuals = _residuals(shared, grid, seed, **before)
    tasks = [
        _TimeTask(model, fold, seed, knowns, level, errors)
        for model in models
        for (fold, knowns), errors in zip(
            queries, residuals.get(model.name, [None] * len(queries)), strict=True
        )
    ]
    answers = run_tasks(tasks, grid, sources=_SOURCES, **run)
    results = []
    for number, model in enumerate(models):
        of_model = slice(number * len(queries), (number + 1) * len(queries))
        answered = list(zip(tasks[of_model], answers[of_model], strict=True))
        for query, count in enumerate(counts):
            indices = range(len(queries[0][1][query]))
            outcomes = tuple(_outcome(grid, folds, answered, query, index) for index in indices)
            results.append(Result(model.name, folds, count, level, grid.applications, outcomes))
    noise, always = noise_floor(dataset, grid, seed, level), always_the_same(grid, level)
    label = "" if dataset is None else dataset.label
    return TimeEvaluation(label, grid, folds, seed, level, tuple(results), noise, always)

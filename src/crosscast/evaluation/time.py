"""Splits of a grid into what a model learns from and what is held out: always by group, never by cell."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from math import comb
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cache_home import cache_home
from crosscast.device import Device
from crosscast.errors import CrosscastError, InputError
from crosscast.evaluation.cache_folder import (
    cache_key,
    cached_arrays,
    cached_file,
    fingerprint,
    sources_digest,
)
from crosscast.evaluation.processes import Progress, check_jobs, check_seed, done_pieces, one_thread, told
from crosscast.evaluation.time_scores import Outcome, Scores, Tally, tallies_of, weighted_scores
from crosscast.predict.time.data import Grid
from crosscast.predict.time.gaussian import Model, Predictor
from crosscast.tables.whole_file import make_folder


@dataclass(frozen=True)
class Fold:
    """One way to hold a group out."""

    held_out: str  # Name of the group
    train_rows: Integers  # Kernels that the model is fitted to, and those it is asked about
    test_rows: Integers
    train_devices: Integers  # Devices that the model is fitted on, and those whose cells are scored
    test_devices: Integers


@dataclass(frozen=True)
class Split:
    """A way to hold groups out, each once."""

    name: str  # Its name on the command line and in tables
    folds: Callable[[Grid], tuple[Fold, ...]]  # The folds of a grid
    # Whether the kernels that are asked about were measured on all devices that are not held out, and the
    # model is told those times
    known_elsewhere: bool = False
    new_devices: bool = False  # Whether the devices that are scored are not among those of the fit


def _all(count: int) -> Integers:
    return np.arange(count, dtype=np.int64)


def _places(flags: Flags) -> Integers:
    return np.flatnonzero(flags).astype(np.int64)


def _check_groups(split: str, count: int, noun: str) -> None:
    if count < 2:
        raise InputError(f"{split}: expected at least 2 {noun} to split by, found {count}")


def _leave_rows_out(grid: Grid, split: str, by: Literal["application", "kernel"]) -> tuple[Fold, ...]:
    groups = grid.profiles.groups(by)
    _check_groups(split, len(set(groups.tolist())), f"{by}s")
    devices = _all(len(grid.devices))
    folds = []
    for group in range(int(groups.max()) + 1):
        test = _places(groups == group)
        first = int(test[0])
        application, kernel = grid.profiles.application[first], grid.profiles.kernel[first]
        name = application if by == "application" else f"{application}/{kernel}"
        folds.append(Fold(name, _places(groups != group), test, devices, devices))
    return tuple(folds)


def _leave_device_out(grid: Grid, split: str) -> tuple[Fold, ...]:
    devices, rows = _all(len(grid.devices)), _all(len(grid.profiles))
    _check_groups(split, len(devices), "devices")
    return tuple(
        Fold(device.key, rows, rows, devices[devices != place], devices[devices == place])
        for place, device in enumerate(grid.devices)
    )


def _leave_both_out(grid: Grid, split: str) -> tuple[Fold, ...]:
    applications = _leave_rows_out(grid, split, "application")
    devices = _leave_device_out(grid, split)
    return tuple(
        Fold(
            f"{application.held_out} on {device.held_out}",
            application.train_rows,
            application.test_rows,
            device.train_devices,
            device.test_devices,
        )
        for application in applications
        for device in devices
    )


DEFAULT = "leave-application-out"
"""The split that is used where none is named."""

_KERNEL = "leave-kernel-out"
_DEVICE = "leave-device-out"
_BOTH = "leave-device-and-application-out"

SPLITS: Mapping[str, Split] = MappingProxyType(
    {
        split.name: split
        for split in (
            Split(DEFAULT, lambda grid: _leave_rows_out(grid, DEFAULT, "application")),
            Split(_KERNEL, lambda grid: _leave_rows_out(grid, _KERNEL, "kernel")),
            Split(
                _DEVICE,
                lambda grid: _leave_device_out(grid, _DEVICE),
                known_elsewhere=True,
                new_devices=True,
            ),
            Split(_BOTH, lambda grid: _leave_both_out(grid, _BOTH), new_devices=True),
        )
    }
)
"""The splits by name."""


def split_named(name: str) -> Split:
    """A split."""
    if name not in SPLITS:
        raise InputError(f"split: expected one of {', '.join(SPLITS)}, found {name!r}")
    return SPLITS[name]


MOST_SETS = 200
"""Sets of devices that are tried at most; where there are more, as many are drawn."""


def probe_sets(devices: int, probes: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Sets of devices to measure on: all there are, or a sample without replacement.

    >>> probe_sets(3, 2, seed=0)
    ((0, 1), (0, 2), (1, 2))
    """
    if not 0 <= probes < devices:
        raise InputError(f"probes: expected 0 to {devices - 1} of {devices} devices, found {probes}")
    if comb(devices, probes) <= MOST_SETS:
        return tuple(combinations(range(devices), probes))
    rng = np.random.default_rng(seed)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < MOST_SETS:
        drawn.add(tuple(sorted(rng.choice(devices, probes, replace=False).tolist())))
    return tuple(sorted(drawn))


@dataclass(frozen=True)
class Answers:
    """Forecasts for the held-out kernels of a fold.

    All are natural logarithms of seconds, of shape ``(s, n, d)`` for ``s`` sets of known times, ``n``
    kernels and all ``d`` devices of the grid.
    """

    centre: Reals  # Predicted medians
    low: Reals  # Limits of the intervals
    high: Reals


def known_sets(grid: Grid, split: Split, fold: Fold, probes: int, seed: int) -> Flags:
    """Devices whose times are told, of shape ``(s, d)`` for ``s`` sets that are tried."""
    count = len(grid.devices)
    if split.known_elsewhere:
        known = np.zeros((1, count), dtype=np.bool_)
        known[0, fold.train_devices] = True
        return known
    sets = probe_sets(count, probes, seed)
    known = np.zeros((len(sets), count), dtype=np.bool_)
    for place, chosen in enumerate(sets):
        known[place, list(chosen)] = True
    return known


def ask(
    grid: Grid, fold: Fold, model: Model, knowns: Sequence[Flags], seed: int, level: float
) -> list[Answers]:
    """Fit a model to one side of a fold and let it predict the other.

    The model sees nothing of the held-out side but the profiles and the times that are told.
    """
    predictor = model.fit(grid.take(fold.train_rows).on(fold.train_devices.tolist()), seed)
    return [_answers(grid, fold, model.name, predictor, known, level) for known in knowns]


def _answers(grid: Grid, fold: Fold, name: str, predictor: Predictor, known: Flags, level: float) -> Answers:
    sets, count = known.shape
    rows = np.tile(fold.test_rows, sets)
    probes = np.where(np.repeat(known, len(fold.test_rows), axis=0), np.exp(grid.log_time[rows]), np.nan)
    forecast = predictor.predict(
        grid.profiles.take(rows),
        _devices(grid, fold),
        probes=probes[:, fold.train_devices] if known.any() else None,
        level=level,
    )
    arrays = (forecast.centre, forecast.low, forecast.high)
    shape = (len(rows), count)
    if any(array.shape != shape for array in arrays):
        raise CrosscastError(
            f"model {name}: expected forecasts of shape {shape}, found {[array.shape for array in arrays]}"
        )
    if not all((array >= 0).all() for array in arrays) or (forecast.centre == 0).any():
        raise CrosscastError(
            f"model {name}, {fold.held_out} held out: expected times as forecasts, found what is none"
        )
    # An interval may begin at 0.
    with np.errstate(divide="ignore"):
        logs = [np.log(array).reshape(sets, len(fold.test_rows), count) for array in arrays]
    return Answers(*logs)


def _devices(grid: Grid, fold: Fold) -> list[str | Device]:
    fitted = set(fold.train_devices.tolist())
    return [device.key if place in fitted else device for place, device in enumerate(grid.devices)]


def outcomes_of(
    grid: Grid, split: Split, folds: Sequence[Fold], answers: Sequence[Answers], knowns: Sequence[Flags]
) -> tuple[Outcome, ...]:
    """Put the answers of all folds together: an outcome for each set of known times.

    Kernels that were not measured on all devices of a set are not in its outcome, nor are those of which it
    leaves no measured time to forecast.
    """
    outcomes = []
    for place in range(len(knowns[0])):
        parts = [
            _part(grid, split, fold, answer, place, known[place])
            for fold, answer, known in zip(folds, answers, knowns, strict=True)
        ]
        outcomes.append(_joined(parts))
    return tuple(outcomes)


def _part(grid: Grid, split: Split, fold: Fold, answers: Answers, place: int, told: Flags) -> Outcome:
    measured = grid.log_time[fold.test_rows]
    finite = np.isfinite(measured)
    known = told & finite
    scored = np.zeros(measured.shape, dtype=np.bool_)
    scored[:, fold.test_devices] = True
    # A kernel that lacks one of a few probes was not asked as the others were.
    complete = (
        np.ones(len(measured), dtype=np.bool_) if split.known_elsewhere else finite[:, told].all(axis=1)
    )
    # Of a kernel of which no cell is left to forecast, a choice would be none.
    complete &= (scored & finite & ~known).any(axis=1)
    names = [grid.profiles.application[row] for row in fold.test_rows[complete].tolist()]
    return Outcome(
        tuple(names),
        measured[complete],
        answers.centre[place][complete],
        answers.low[place][complete],
        answers.high[place][complete],
        (scored & ~known)[complete],
        known[complete],
        fold.test_rows[complete],
    )


def _joined(parts: Sequence[Outcome]) -> Outcome:
    return Outcome(
        tuple(name for part in parts for name in part.application),
        *(
            np.concatenate([getattr(part, field) for part in parts])
            for field in ("measured", "centre", "low", "high", "scored", "known", "rows")
        ),
    )


_FIELDS = ("centre", "low", "high")
_SOURCES = ("predict", "evaluation/time.py")


def default_folder() -> Path:
    """Folder of the cache: ``crosscast/evaluate`` in ``XDG_CACHE_HOME``, or in ``~/.cache``."""
    return cache_home() / "evaluate"


@dataclass(frozen=True)
class Cache:
    """A folder of forecasts, each under a name made of all that it depends on.

    That is the grid, the model with its parameters, the fold, what was told and asked, the seed, the source
    of `crosscast.predict`, and the versions of the libraries. A model that is no dataclass is known by its
    name and class alone.
    """

    folder: Path  # Where; made if it is not there
    grid: str  # The digest of the grid that the forecasts are of, as `grid_digest` gives it

    def __post_init__(self) -> None:
        """Make the folder."""
        make_folder("cache", self.folder)

    def key(self, model: Model, fold: Fold, known: Flags, seed: int, level: float) -> str:
        """The name of a forecast."""
        facts = {
            "sources": sources_digest(_SOURCES),
            "grid": self.grid,
            "model": [model.name, fingerprint(model)],
            "train": [fold.train_rows.tolist(), fold.train_devices.tolist()],
            "asked": [fold.test_rows.tolist(), known.astype(int).tolist(), level],
            "seed": seed,
        }
        return cache_key(facts)

    def load(self, key: str, shape: tuple[int, int, int]) -> Answers | None:
        """A forecast that was kept, or ``None``; a damaged one is as good as none."""
        arrays = cached_arrays(self._path(key), _FIELDS)
        if any(array.shape != shape or array.dtype != np.float64 for array in arrays.values()):
            return None
        if not arrays or any(np.isnan(array).any() for array in arrays.values()):
            return None
        return Answers(**arrays)

    def save(self, key: str, answers: Answers) -> None:
        """Keep a forecast."""
        path = self._path(key)
        with cached_file(path) as temporary:
            np.savez_compressed(temporary, **{name: getattr(answers, name) for name in _FIELDS})

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


def grid_digest(grid: Grid) -> str:
    """A hash of all that is in a grid."""
    digest = hashlib.sha256()
    devices = [
        [device.key, device.name, device.vendor, device.type, device.series, sorted(device.numbers.items())]
        for device in grid.devices
    ]
    for name, value in sorted({**vars(grid.profiles), **vars(grid), "devices": devices}.items()):
        if isinstance(value, np.ndarray):
            # All that is not a number is the same, whatever its bits.
            array = np.asarray(value, dtype=np.float64)
            digest.update(name.encode() + np.where(np.isnan(array), np.nan, array).tobytes())
        elif name != "profiles":
            digest.update(json.dumps([name, value]).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Task:
    """One fit, and what is asked of it; see `crosscast.evaluation.time.ask` for the fields."""

    model: Model
    fold: Fold
    knowns: tuple[Flags, ...]
    seed: int
    level: float

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.model.name}, {self.fold.held_out} held out"


def run_tasks(
    grid: Grid,
    tasks: Sequence[Task],
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> list[list[Answers]]:
    """Do all tasks that a cache does not know."""
    check_jobs(jobs)
    store = None if cache is None else _Store(Cache(cache, grid_digest(grid)), grid)
    found = [store.load(task) if store else {} for task in tasks]
    left = {
        place: Task(task.model, task.fold, _lacking(task, found[place]), task.seed, task.level)
        for place, task in enumerate(tasks)
        if len(found[place]) < len(task.knowns)
    }
    done = done_pieces(left, _worker, (grid,), jobs, "fitted a model")
    for place, answers in told(done, len(left), lambda place: tasks[place].label, progress):
        numbers = [number for number in range(len(tasks[place].knowns)) if number not in found[place]]
        found[place].update(zip(numbers, answers, strict=True))
        if store:
            store.save(left[place], answers)
    return [[answers[number] for number in sorted(answers)] for answers in found]


def _lacking(task: Task, found: Mapping[int, Answers]) -> tuple[Flags, ...]:
    return tuple(known for number, known in enumerate(task.knowns) if number not in found)


@dataclass(frozen=True)
class _Store:
    """The answers to tasks in a cache."""

    cache: Cache
    grid: Grid

    def load(self, task: Task) -> dict[int, Answers]:
        """Those that are known, by the number of what was told."""
        found = {}
        for number, known in enumerate(task.knowns):
            shape = (len(known), len(task.fold.test_rows), len(self.grid.devices))
            answers = self.cache.load(self._key(task, known), shape)
            if answers is not None:
                found[number] = answers
        return found

    def save(self, task: Task, answers: Sequence[Answers]) -> None:
        for known, answer in zip(task.knowns, answers, strict=True):
            self.cache.save(self._key(task, known), answer)

    def _key(self, task: Task, known: Flags) -> str:
        return self.cache.key(task.model, task.fold, known, task.seed, task.level)


def _worker(grid: Grid) -> Callable[[Task], list[Answers]]:
    return partial(_answer, grid)


def _answer(grid: Grid, task: Task) -> list[Answers]:
    with one_thread("evaluating models"):
        try:
            return ask(grid, task.fold, task.model, task.knowns, task.seed, task.level)
        except InputError as error:
            raise InputError(f"{task.label}: {error}") from error


@dataclass(frozen=True)
class Result:
    """How one model did."""

    model: str  # Its name
    split: str  # Name of the split
    probes: int  # On how many devices each held-out kernel was measured before the others were predicted
    level: float  # Probability that the intervals were to hold
    names: tuple[str, ...]  # Names of all applications, sorted
    # What was forecast and measured; one for each set of devices that were measured on
    outcomes: tuple[Outcome, ...]

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """What the scores are made of, for each outcome."""
        return tallies_of(self.outcomes, self.names, self.level)

    @cached_property
    def scores(self) -> Scores:
        """Scores, as means over the sets of devices that were measured on."""
        return weighted_scores(self.tallies, np.ones((1, len(self.names))))[0]

    @cached_property
    def applications(self) -> dict[str, Scores]:
        """Scores within each application alone, by its name."""
        weights = np.eye(len(self.names))
        return dict(zip(self.names, weighted_scores(self.tallies, weights), strict=True))

    @cached_property
    def without(self) -> dict[str, Scores]:
        """Scores over all applications but one, by the name of that one."""
        weights = 1 - np.eye(len(self.names))
        return dict(zip(self.names, weighted_scores(self.tallies, weights), strict=True))

    def on(self, device: int) -> Result:
        """The same with the cells of one device alone counted, by its number."""
        return replace(self, outcomes=tuple(outcome.on(device) for outcome in self.outcomes))


@dataclass(frozen=True)
class Evaluation:
    """How models did on one split of one grid."""

    grid: Grid  # What they learned from and were asked about
    split: str  # Name of the split
    seed: int  # Start of all random numbers
    level: float  # Probability that the intervals were to hold
    # A result for each model and number of probes, in the order in which they were named
    results: tuple[Result, ...]


def evaluate(
    grid: Grid,
    models: Sequence[Model],
    split: str = DEFAULT,
    *,
    probes: Sequence[int] = (0,),
    seed: int = 0,
    level: float = 0.9,
    progress: Progress | None = None,
    cache: Path | None = None,
    jobs: int = 1,
) -> Evaluation:
    """Fit models to all groups but one, predict that one, for each group; and score the forecasts.

    A kernel that is measured on devices (probes) before the others are predicted is scored on the others;
    all sets of so many devices are tried (at most `crosscast.evaluation.time.MOST_SETS`), and the scores
    averaged over them.
    """
    check_seed(seed)
    _check(models, level)
    chosen = split_named(split)
    folds = chosen.folds(grid)
    counts = _probe_counts(grid, chosen, probes)
    knowns = [[known_sets(grid, chosen, fold, count, seed) for count in counts] for fold in folds]
    tasks = [
        Task(model, fold, tuple(known), seed, level)
        for model in models
        for fold, known in zip(folds, knowns, strict=True)
    ]
    answers = run_tasks(grid, tasks, progress=progress, cache=cache, jobs=jobs)
    names = application_names(grid)
    results = []
    for place, model in enumerate(models):
        of_model = answers[place * len(folds) : (place + 1) * len(folds)]
        for number, count in enumerate(counts):
            outcomes = _outcomes(grid, chosen, folds, of_model, knowns, number)
            results.append(Result(model.name, split, count, level, names, outcomes))
    return Evaluation(grid, split, seed, level, tuple(results))


def _check(models: Sequence[Model], level: float) -> None:
    names = [model.name for model in models]
    if not names or len(set(names)) < len(names):
        raise InputError(f"models: expected at least one, and each once, found {', '.join(names) or 'none'}")
    if not 0 < level < 1:
        raise InputError(f"level: expected a probability between 0 and 1, found {level}")


def application_names(grid: Grid) -> tuple[str, ...]:
    """Names of the applications of a grid, sorted: the order in which scores weight them."""
    return tuple(sorted(set(grid.profiles.application)))


def _probe_counts(grid: Grid, split: Split, probes: Sequence[int]) -> tuple[int, ...]:
    if split.known_elsewhere:
        return (len(grid.devices) - 1,)
    if split.new_devices and any(probes):
        raise InputError(f"probes: expected 0 with {split.name}, found {max(probes)}")
    return tuple(dict.fromkeys(probes))


def _outcomes(
    grid: Grid,
    split: Split,
    folds: Sequence[Fold],
    answers: Sequence[Sequence[Answers]],
    knowns: Sequence[Sequence[Flags]],
    number: int,
) -> tuple[Outcome, ...]:
    return outcomes_of(
        grid, split, folds, [answer[number] for answer in answers], [known[number] for known in knowns]
    )

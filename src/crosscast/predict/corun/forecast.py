"""What models of co-running predict of a mix, and how its time follows from slowdowns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.corun import CoRuns, Solo
from crosscast.errors import InputError
from crosscast.predict.intervals import Residuals
from crosscast.results import Tabular

Mix = tuple[Solo, ...]
"""Isolated runs of the applications that share a device."""


@dataclass(frozen=True, eq=False)
class CoRunPrediction:
    """What is predicted of ``b`` mixes; not a number where a model does not tell."""

    # For each mix, time of a job of each co-runner while all run over its isolated time, (co-runners,)
    slowdown: tuple[Reals, ...]
    time_s: Reals  # (b,), from the common start of a job of each to the end of the last
    power_w: Reals  # (b,), mean power of the device while all run
    fits: Reals  # (b,), probability that the mix fits on the device

    @classmethod
    def nothing(cls, sizes: Sequence[int]) -> CoRunPrediction:
        """All unknown, of mixes of these sizes."""
        unknown = np.full(len(sizes), np.nan)
        return cls(tuple(np.full(size, np.nan) for size in sizes), unknown, unknown.copy(), unknown.copy())


class CoRunPredictor(Protocol):
    """A fitted model."""

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of any sizes."""
        ...


class CoRunModel(Protocol):
    """A kind of model, with its settings."""

    @property
    def name(self) -> str:
        """Name on the command line and in tables."""
        ...

    def fit(self, co_runs: CoRuns, seed: int) -> CoRunPredictor:
        """Fit it: scales, thresholds, tunes and selects with these mixes alone."""
        ...


_SAME = 1e-9
"""Co-runners whose ends are no further apart, as a share of the time, end together."""


@dataclass(frozen=True, eq=False)
class MixTimes:
    """Times of ``b`` mixes; not a number where a time or a slowdown is not known."""

    time_s: Reals  # (b,), from the common start to the end of the last
    overlap: Reals  # (b,), share of that time in which all run


def mix_times(isolated_s: Reals, slowdowns: Reals, slowdowns_left: Callable[[Flags], Reals]) -> MixTimes:
    """Times of ``b`` mixes of ``n`` co-runners from their slowdowns, as one after the other ends.

    `slowdowns_left` is given which of them still run, of shape (b, n), and tells their slowdowns; see
    `remaining_slowdowns`.
    """
    _check_positive("isolated times", isolated_s)
    work, rate = isolated_s.copy(), slowdowns
    running = np.ones(work.shape, dtype=np.bool_)
    elapsed, together = np.zeros(len(work)), np.zeros(len(work))
    while running.any():
        left = running.sum(axis=1)
        if not running.all():
            rate = slowdowns_left(running) if (left > 1).any() else rate
        rate = np.where(running & (left > 1)[:, None], rate, 1.0)
        _check_positive("slowdowns", rate)
        ends = np.where(running, work * rate, np.inf)
        # Of a mix whose co-runners have all ended, no time passes any more. What is not known spreads.
        first = np.where(left > 0, ends.min(axis=1), 0.0)
        elapsed += first
        together = np.where(running.all(axis=1), first, together)
        work = work - first[:, None] / rate
        running = running & (ends > first[:, None] * (1 + _SAME))
    with np.errstate(invalid="ignore"):
        return MixTimes(elapsed, together / elapsed)


def _check_positive(name: str, values: Reals) -> None:
    if (values <= 0).any():
        raise InputError(f"{name}: expected numbers above 0, found {float(np.nanmin(values)):g}")


def remaining_slowdowns(running: Flags, slowdowns_of: Callable[[Integers, Integers], Reals]) -> Reals:
    """Slowdowns of those that still run, where these are two or more; 1 elsewhere.

    `slowdowns_of` is asked once for each subset of co-runners: rows of mixes and places of co-runners in
    them, for slowdowns of shape (rows, places).
    """
    bits = 1 << np.arange(running.shape[1])
    subset = running @ bits
    found = np.ones(running.shape)
    for code in np.unique(subset).tolist():
        places = np.flatnonzero(code & bits)
        if len(places) > 1:
            rows = np.flatnonzero(subset == code)
            found[np.ix_(rows, places)] = slowdowns_of(rows, places)
    return found


def even_slowdown(isolated_s: Reals, times: Reals) -> Reals:
    """Slowdown that all co-runners share, from how long the mix takes, of shape (b,).

    A mix's time alone does not tell who slows down how much. It is taken that all slow down alike, and that
    with fewer of them slowdowns are as `with_fewer` says; 1 where a mix takes no longer than its longest.
    """
    members = isolated_s.shape[1]
    steps = np.diff(np.sort(isolated_s, axis=1), axis=1, prepend=0.0)
    # With k of n ended, (n - 1 - k) / (n - 1) of what the slowdown is above 1 is left.
    shared = steps @ ((members - 1 - np.arange(members)) / (members - 1))
    slowdown: Reals = np.maximum(1.0 + (times - isolated_s.max(axis=1)) / shared, 1.0)
    return slowdown


def with_fewer(slowdown: Reals, members: int, running: int) -> Reals:
    """Slowdown among fewer, where nothing better is known: its part above 1 goes with the others."""
    fewer: Reals = 1.0 + (slowdown - 1.0) * (running - 1.0) / (members - 1)
    return fewer


def pairs_added_up(mixes: int, members: int, slowdowns_of: Callable[[int, int], Reals]) -> Reals:
    """Slowdowns, (mixes, members), if what each other one alone costs adds up, as where they take turns.

    `slowdowns_of` tells those of the pair of two places in all mixes, of shape (mixes, 2).
    """
    added = np.ones((mixes, members))
    for pair in combinations(range(members), 2):
        added[:, pair] += np.maximum(slowdowns_of(*pair) - 1.0, 0.0)
    return added


@dataclass(frozen=True)
class Estimate:
    """A predicted value with its interval, in the unit of the quantity."""

    value: float
    low: float
    high: float
    reached: float  # Probability that the interval has

    def to_dict(self) -> dict[str, float]:
        """As an object of JSON."""
        return {"value": self.value, "low": self.low, "high": self.high, "level": self.reached}


@dataclass(frozen=True)
class MixForecast:
    """What is predicted of one mix; ``None`` where the model does not tell."""

    mix: Mix
    slowdown: tuple[Estimate | None, ...]  # Of each: time of a job while all run over its isolated time
    time_s: Estimate | None  # Time from the common start of a job of each to the end of the last
    serial_s: float | None  # Time of the same jobs one after another
    power_w: Estimate | None  # Mean power of the device while all run
    fits: float | None  # Probability that the mix fits on the device
    memory_bytes: int | None  # Memory that all take together; `None` if it is not known of all
    level: float  # Probability that was asked for
    warnings: tuple[str, ...] = ()  # What makes it doubtful; sentences without a full stop

    @property
    def label(self) -> str:
        """What it is of, for people."""
        return " + ".join(run.name for run in self.mix)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``--json`` prints it; an application that is there twice has its place behind it."""
        return {
            "bag": [
                {"application": run.application, "size": run.size, "time_s": run.time_s} for run in self.mix
            ],
            "time_s": None if self.time_s is None else self.time_s.to_dict(),
            "serial_s": self.serial_s,
            "power_w": None if self.power_w is None else self.power_w.to_dict(),
            "slowdown": {
                name: None if each is None else each.to_dict()
                for name, each in zip(_labels(self.mix), self.slowdown, strict=True)
            },
            "fits": self.fits,
            "memory_bytes": self.memory_bytes,
            "level": self.level,
            "warnings": list(self.warnings),
        }


def _labels(mix: Mix) -> list[str]:
    names = [run.application for run in mix]
    if len(set(names)) < len(names):
        names = [run.name for run in mix]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: place + 1].count(name)})"
        for place, name in enumerate(names)
    ]


@dataclass(frozen=True)
class CoRunForecast(Tabular):
    """What is predicted of several mixes: a sequence of `MixForecast`, and a row for each co-runner.

    Columns: ``mix``, ``co_runner``; ``slowdown`` with ``low`` and ``high``; ``time_s`` of the mix with
    ``time_low_s`` and ``time_high_s``; ``serial_s``, the time of its jobs one after another; ``power_w`` with
    ``power_low_w`` and ``power_high_w``; and ``fits``, the probability that it fits on the device. What the
    model does not tell is not a number.
    """

    mixes: tuple[MixForecast, ...]

    def __len__(self) -> int:
        """Number of mixes."""
        return len(self.mixes)

    def __iter__(self) -> Iterator[MixForecast]:
        """The forecast of each mix."""
        return iter(self.mixes)

    def __getitem__(self, place: int) -> MixForecast:
        """The forecast of one mix."""
        return self.mixes[place]

    def columns(self) -> dict[str, list[Any]]:
        """The table, by column."""
        columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        for each in self.mixes:
            whole = (*_cells(each.time_s), each.serial_s, *_cells(each.power_w), each.fits)
            for run, slowdown in zip(each.mix, each.slowdown, strict=True):
                row = (each.label, run.name, *_cells(slowdown), *whole)
                for name, cell in zip(_COLUMNS, row, strict=True):
                    columns[name].append(math.nan if cell is None else cell)
        return columns


_COLUMNS = (
    *("mix", "co_runner", "slowdown", "low", "high", "time_s", "time_low_s", "time_high_s", "serial_s"),
    *("power_w", "power_low_w", "power_high_w", "fits"),
)


def _cells(value: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if value is None else (value.value, value.low, value.high)


_LEAST, _MOST = 1e-100, 1e100
"""Whatever mixes have is between these, and so limits of its interval are numbers."""


def is_plausible(value: float) -> bool:
    """Whether a value is predicted: what is not a number is not, nor what nothing can have."""
    return _LEAST < value < _MOST


def estimate(
    value: float, residuals: Mapping[str, Residuals], quantity: str, level: float
) -> Estimate | None:
    """A value with an interval by the residuals of its quantity; ``None`` for what is not known."""
    if not is_plausible(value) or quantity not in residuals:
        return None
    factor = math.exp(residuals[quantity].reach(level, math.log(value)))
    return Estimate(value, value / factor, value * factor, level)


def check_profile(run: Solo, device: str) -> None:
    """Refuse an application that a model of a device can say nothing of."""
    if run.device != device:
        raise InputError(
            f"{run.name}: device: expected the profile to be of {device}, whose mixes the model was trained "
            f"on, found {run.device}: profile it there"
        )
    if run.time_s is not None and not is_plausible(run.time_s):
        raise InputError(
            f"{run.name}: time_s: expected a number of seconds that a job may take, found {run.time_s:g}"
        )

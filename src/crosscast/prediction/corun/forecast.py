"""What models of co-running predict of mixes, with intervals, and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from crosscast.arrays import Reals
from crosscast.data.corun import CoRuns, Solo
from crosscast.errors import InputError
from crosscast.prediction.corun.residuals import CoRunResiduals
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.prediction.corun.slowdowns import SlowdownProcess

Mix = tuple[Solo, ...]
"""Isolated runs of the applications that share a device."""


@dataclass(frozen=True, eq=False)
class CoRunPrediction:
    """What is predicted of ``b`` mixes; NaN where a model does not tell."""

    # For each mix, time of a job of each co-runner while all run over its isolated time, (co-runners,)
    slowdown: tuple[Reals, ...]
    time_s: Reals  # (b,), from the common start of a job of each to the end of the last
    power_w: Reals  # (b,), mean power of the device while all run
    fits: Reals  # (b,), probability that the mix fits on the device


def mix_key(mix: Mix) -> tuple[str, ...]:
    """What tells a mix from others, whatever the order of its co-runners."""
    return tuple(sorted(run.qualified_name for run in mix))


def longest_alone(mix: Mix) -> float:
    """Isolated time of the longest co-runner in seconds, 0 if none is known: no mix is over before."""
    return max((run.time_s for run in mix if run.time_s is not None), default=0.0)


def physical(found: CoRunPrediction, mixes: Sequence[Mix], measured: Set[tuple[str, ...]]) -> CoRunPrediction:
    """The same with no slowdown below 1, but in mixes that were measured, and no mix over before its longest.

    Who shares a device is no faster than alone but for noise of measurements, which a forecast has not.
    """
    slowdown, time_s = [], found.time_s.copy()
    for place, (mix, values) in enumerate(zip(mixes, found.slowdown, strict=True)):
        if mix_key(mix) in measured:
            slowdown.append(values)
        else:
            slowdown.append(np.maximum(values, 1.0))
            time_s[place] = np.maximum(time_s[place], longest_alone(mix))
    return replace(found, slowdown=tuple(slowdown), time_s=time_s)


class CoRunPredictor(Protocol):
    """A fitted model."""

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of any sizes."""
        ...

    @property
    def process(self) -> SlowdownProcess | None:
        """The process that learns from further mixes; ``None`` if it does not learn."""
        return None

    def with_process(self, process: SlowdownProcess) -> CoRunPredictor:
        """The same with a process that has learned."""
        return self


class CoRunModel(Protocol):
    """A kind of model, with its settings."""

    @property
    def name(self) -> str:
        """Name on the command line and in tables."""
        ...

    def fit(self, co_runs: CoRuns, seed: int) -> CoRunPredictor:
        """Fit it: scales, thresholds, tunes and selects with these mixes alone."""
        ...

    def refit(self, predictor: CoRunPredictor) -> CoRunModel:
        """What is fitted to parts of the mixes of a predictor: a quicker form if there is one."""
        return self


@dataclass(frozen=True)
class Estimate:
    """A predicted value with its interval, in the unit of the quantity."""

    value: float
    low: float
    high: float
    reached: float  # Probability that the interval has

    def at_least(self, bound: float) -> Estimate:
        """The same with nothing below what it cannot be below; the value itself is not."""
        return replace(self, low=max(self.low, min(self.value, bound)))

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

    def to_dict(self) -> dict[str, object]:
        """Everything, as ``--json`` prints it; an application that is there twice has its place behind it."""
        told = {
            name: each and each.to_dict() for name, each in zip(self.labels(), self.slowdown, strict=True)
        }
        return {
            "bag": [
                {"application": run.application, "size": run.size, "time_s": run.time_s} for run in self.mix
            ],
            "time_s": self.time_s and self.time_s.to_dict(),
            "serial_s": self.serial_s,
            "power_w": self.power_w and self.power_w.to_dict(),
            "slowdown": told,
            "fits": self.fits,
            "memory_bytes": self.memory_bytes,
            "level": self.level,
            "warnings": list(self.warnings),
        }

    def labels(self) -> list[str]:
        """A name for each co-runner, which no other has."""
        names = [run.application for run in self.mix]
        if len(set(names)) < len(names):
            names = [run.name for run in self.mix]
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
    model does not tell is NaN.
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

    def columns(self) -> dict[str, list[object]]:
        """The table, by column."""
        rows = []
        for each in self.mixes:
            whole = (*_cells(each.time_s), each.serial_s, *_cells(each.power_w), each.fits)
            for run, slowdown in zip(each.mix, each.slowdown, strict=True):
                rows.append((each.label, run.name, *_cells(slowdown), *whole))
        return {
            name: [math.nan if row[place] is None else row[place] for row in rows]
            for place, name in enumerate(_COLUMNS)
        }


_COLUMNS = (
    *("mix", "co_runner", "slowdown", "low", "high", "time_s", "time_low_s", "time_high_s", "serial_s"),
    *("power_w", "power_low_w", "power_high_w", "fits"),
)


def _cells(value: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if value is None else (value.value, value.low, value.high)


_LEAST, _MOST = 1e-100, 1e100
"""Whatever mixes have is between these, and so limits of its interval are numbers."""


def is_plausible(value: float) -> bool:
    """Whether a value is predicted: what is NaN is not, nor what nothing can have."""
    return _LEAST < value < _MOST


def estimates(
    values: Reals, residuals: Mapping[str, CoRunResiduals], quantity: str, level: float
) -> tuple[Estimate | None, ...]:
    """Values with intervals by the residuals of their quantity; ``None`` for what is not known."""
    known = (values > _LEAST) & (values < _MOST)
    if quantity not in residuals or not known.any():
        return (None,) * len(values)
    low, high = residuals[quantity].limits(level, np.where(known, values, 1.0))
    return tuple(
        Estimate(value, least, most, level) if there else None
        for value, least, most, there in np.column_stack([values, low, high, known]).tolist()
    )


def check_profile(run: Solo, device: str) -> None:
    """Refuse an application that a model of a device can say nothing of."""
    if run.device != device:
        expected = f"the profile to be of {device}, whose mixes the model was trained on"
        found = f"{run.device}: profile it there"
        raise InputError.of(where=run.name, field="device", expected=expected, found=found)
    if run.time_s is not None and not _LEAST < run.time_s < _MOST:
        expected, found = "a number of seconds that a job may take", f"{run.time_s:g}"
        raise InputError.of(where=run.name, field="time_s", expected=expected, found=found)

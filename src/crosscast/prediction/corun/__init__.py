"""Predictions and forecasts of mixes, the protocols of models that make them, and their residuals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Annotated, Protocol

import numpy as np
from numpy.typing import ArrayLike

from crosscast.arrays import Integers, Reals
from crosscast.data.corun import CoRuns, IsolatedRun
from crosscast.errors import InputError
from crosscast.prediction.intervals import CAUTIOUS, Residuals
from crosscast.prediction.serialization import Array
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.prediction.corun.slowdowns import SlowdownProcess

_LEAST_SHARE = 0.02
"""Least spread over the mean error."""

_FARTHEST = 100.0
"""Largest log half-width of an interval, so that damaged errors give finite limits."""


@dataclass(frozen=True, eq=False)
class CoRunResiduals(Residuals):
    """Out-of-fold residuals of one quantity of mixes; their spread may grow with it, as that of slowdowns."""

    method = CAUTIOUS

    # Number of the mix of each, as residuals of co-runners of one mix are correlated. `None` where not known.
    # A mix that several groups hold out has a number in each
    mix: Annotated[Integers, Array("n", low=0)] | None = None
    # Logarithm of each predicted value; `None` where the spread does not depend on it
    log_value: Annotated[Reals, Array("n")] | None = None

    def half_width(self, level: float, log_value: ArrayLike = 0.0) -> Reals:
        """Half-width of intervals, in logarithms: a quantile of residuals relative to their spread."""
        if level not in self._half_widths:
            known = np.zeros_like(self.log_error) if self.log_value is None else self.log_value
            relative = np.abs(self.log_error) / self.spread(known)
            self._half_widths[level] = float(self.quantile(relative, level))
        half_width = self._half_widths[level] * self.spread(np.asarray(log_value))
        return np.asarray(np.minimum(half_width, _FARTHEST))

    def limits(self, level: float, value: Reals) -> tuple[Reals, Reals]:
        """Limits of intervals around predicted values; lower ones are not below `least`."""
        factor = np.exp(self.half_width(level, np.log(value)))
        return np.maximum(value / factor, np.minimum(value, self.least)), value * factor

    @cached_property
    def least(self) -> float:
        """Least measured value; 0 where the spread does not depend on the value."""
        return 0.0 if self.log_value is None else float(np.exp((self.log_value - self.log_error).min()))

    @cached_property
    def _half_widths(self) -> dict[float, float]:
        """Half-width relative to the spread by level, cached over forecasts."""
        return {}

    def spread(self, log_value: Reals) -> Reals:
        """Spread of residuals up to a common factor: a line over the value's logarithm, constant below 0."""
        start, slope = self._line
        return start + slope * np.maximum(log_value, 0.0)

    @cached_property
    def _line(self) -> tuple[float, float]:
        if self.log_value is None or not self.log_error.any():
            return 1.0, 0.0
        weights, errors = self.weights, np.abs(self.log_error)
        above = np.maximum(self.log_value, 0.0)
        root = np.sqrt(weights)
        design = np.column_stack([root, above * root])
        start, slope = (float(each) for each in np.linalg.lstsq(design, errors * root, rcond=None)[0])
        mean = float(weights @ errors)
        if slope < 0:
            return mean, 0.0
        if start < _LEAST_SHARE * mean:
            # Through the least allowed spread.
            start = _LEAST_SHARE * mean
            squares = float((weights * above) @ above)
            slope = float((weights * above) @ (errors - start)) / squares if squares > 0 else 0.0
        return start, max(slope, 0.0)


Mix = tuple[IsolatedRun, ...]
"""Isolated runs of the applications that share a device."""


@dataclass(frozen=True, eq=False)
class CoRunPrediction:
    """Predictions of ``b`` mixes; NaN where a model does not predict a quantity."""

    # For each mix ``(co-runners,)``: time of a job while all run over its isolated time
    slowdown: tuple[Reals, ...]
    time_s: Reals  # (b,), from the common start of a job of each to the end of the last
    power_w: Reals  # (b,), mean power of the device while all run
    fits: Reals  # (b,), probability that the mix fits on the device


def longest_alone(mix: Mix, slowdowns: Iterable[float] = repeat(1.0)) -> float:
    """Isolated time of the longest co-runner in seconds, a lower limit of the mix's; 0 if none is known."""
    times = (run.time_s and run.time_s * min(each, 1.0) for run, each in zip(mix, slowdowns, strict=False))
    return max((each for each in times if each is not None), default=0.0)


def physical(prediction: CoRunPrediction, mixes: Sequence[Mix]) -> CoRunPrediction:
    """Limit slowdowns to at least 1, which only noise is below, and times to the longest isolated run's."""
    longest = np.array([longest_alone(mix) for mix in mixes])
    slowdown = tuple(np.maximum(values, 1.0) for values in prediction.slowdown)
    return replace(prediction, slowdown=slowdown, time_s=np.maximum(prediction.time_s, longest))


class CoRunPredictor(Protocol):
    """A fitted model."""

    def predict(self, mixes: Sequence[Mix]) -> CoRunPrediction:
        """Predict mixes of any sizes."""
        ...

    @property
    def process(self) -> SlowdownProcess | None:
        """The process that can be conditioned on further mixes; ``None`` if there is none."""
        return None

    def with_process(self, process: SlowdownProcess) -> CoRunPredictor:
        """The predictor with a process that was conditioned on further mixes."""
        return self


class CoRunModel(Protocol):
    """A model with its settings, not fitted."""

    @property
    def name(self) -> str:
        """Name on the command line and in tables."""
        ...

    def fit(self, co_runs: CoRuns, seed: int) -> CoRunPredictor:
        """Fit to mixes; scaling, thresholds, tuning and selection use these mixes only."""
        ...

    def refit(self, predictor: CoRunPredictor) -> CoRunModel:
        """The model for fits to parts of a predictor's mixes: a quicker variant if there is one."""
        return self

    @property
    def is_by_size(self) -> bool:
        """Whether mixes of each size have a predictor of their own."""
        return False


@dataclass(frozen=True)
class Estimate:
    """A predicted value with its interval, in the unit of the quantity."""

    value: float
    low: float
    high: float
    reached: float  # Probability of the interval

    def at_least(self, bound: float) -> Estimate:
        """The estimate with a lower limit of at least `bound`, or of the value if that is less."""
        return replace(self, low=max(self.low, min(self.value, bound)))

    def within(self, factor: float) -> Estimate:
        """The estimate with limits that are no further from the value than by a factor."""
        low, high = max(self.low, self.value / factor), min(self.high, self.value * factor)
        return replace(self, low=low, high=high)

    def to_dict(self) -> dict[str, float]:
        """As an object of JSON."""
        return {"value": self.value, "low": self.low, "high": self.high, "level": self.reached}


@dataclass(frozen=True)
class MixForecast:
    """Forecast of one mix; ``None`` where the model does not predict a quantity."""

    mix: Mix
    slowdown: tuple[Estimate | None, ...]  # Of each co-runner: time of a job while all run over that alone
    time_s: Estimate | None  # Time from the common start of a job of each to the end of the last
    serial_s: float | None  # Time of the same jobs one after another
    power_w: Estimate | None  # Mean power of the device while all run
    fits: float | None  # Probability that the mix fits on the device
    memory_bytes: int | None  # Sum over the co-runners; `None` if one is not known
    level: float  # Requested probability of intervals
    warnings: tuple[str, ...] = ()  # Sentences without a full stop
    # Whether the slowdowns were measured, so that their intervals are those of repeated measurements
    measured: bool = False

    @property
    def label(self) -> str:
        """Name of the mix, for people."""
        return " + ".join(run.name for run in self.mix)

    def to_dict(self) -> dict[str, object]:
        """The forecast, as ``--json`` prints it; applications that occur twice are numbered."""
        slowdowns = {
            name: each and each.to_dict() for name, each in zip(self.labels(), self.slowdown, strict=True)
        }
        runs = [{"application": run.application, "size": run.size, "time_s": run.time_s} for run in self.mix]
        return {
            "mix": runs,
            "time_s": self.time_s and self.time_s.to_dict(),
            "serial_s": self.serial_s,
            "power_w": self.power_w and self.power_w.to_dict(),
            "slowdown": slowdowns,
            "fits": self.fits,
            "memory_bytes": self.memory_bytes,
            "measured": self.measured,
            "level": self.level,
            "warnings": list(self.warnings),
        }

    def labels(self) -> list[str]:
        """A unique name for each co-runner."""
        names = [run.application for run in self.mix]
        if len(set(names)) < len(names):
            names = [run.name for run in self.mix]
        return [
            name if names.count(name) == 1 else f"{name} ({names[: index + 1].count(name)})"
            for index, name in enumerate(names)
        ]


@dataclass(frozen=True)
class CoRunForecast(Tabular):
    """Forecasts of several mixes: a sequence of `MixForecast`, and a row for each co-runner.

    Columns: ``mix``, ``co_runner``; ``slowdown`` with ``low`` and ``high``; ``time_s`` and ``power_w`` of the
    mix with their limits; ``serial_s``, the time of its jobs one after another; and ``fits``, the probability
    that it fits on the device. Quantities that the model does not predict are NaN.
    """

    mixes: tuple[MixForecast, ...]

    def __len__(self) -> int:
        """Number of mixes."""
        return len(self.mixes)

    def __iter__(self) -> Iterator[MixForecast]:
        """The forecast of each mix."""
        return iter(self.mixes)

    def __getitem__(self, index: int) -> MixForecast:
        """The forecast of one mix."""
        return self.mixes[index]

    def columns(self) -> dict[str, list[object]]:
        """The table, by column."""
        rows = []
        for each in self.mixes:
            of_mix = (*_cells(each.time_s), each.serial_s, *_cells(each.power_w), each.fits)
            for run, slowdown in zip(each.mix, each.slowdown, strict=True):
                rows.append((each.label, run.name, *_cells(slowdown), *of_mix))
        return {
            name: [math.nan if row[column] is None else row[column] for row in rows]
            for column, name in enumerate(_COLUMNS)
        }


_COLUMNS = (
    *("mix", "co_runner", "slowdown", "low", "high", "time_s", "time_low_s", "time_high_s", "serial_s"),
    *("power_w", "power_low_w", "power_high_w", "fits"),
)


def _cells(value: Estimate | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if value is None else (value.value, value.low, value.high)


_LEAST, _MOST = 1e-100, 1e100
"""Limits of plausible values, between which limits of intervals are finite."""


def is_plausible(value: float) -> bool:
    """Whether a value is a plausible prediction: not NaN, and within limits."""
    return _LEAST < value < _MOST


def estimates(
    values: Reals, residuals: Mapping[str, CoRunResiduals], quantity: str, level: float
) -> tuple[Estimate | None, ...]:
    """Values with intervals from the residuals of their quantity; ``None`` for unknown values."""
    known = (values > _LEAST) & (values < _MOST)
    if quantity not in residuals or not known.any():
        return (None,) * len(values)
    low, high = residuals[quantity].limits(level, np.where(known, values, 1.0))
    return tuple(
        Estimate(value, least, most, level) if is_known else None
        for value, least, most, is_known in np.column_stack([values, low, high, known]).tolist()
    )


def check_profile(run: IsolatedRun, device: str) -> None:
    """Raise InputError for a run that a model of a device cannot predict."""
    if run.device != device:
        expected = f"the profile to be of {device}, whose mixes the model was trained on"
        found = f"{run.device}: profile it there"
        raise InputError.of(where=run.name, field="device", expected=expected, found=found)
    if run.time_s is not None and not _LEAST < run.time_s < _MOST:
        expected, found = "a number of seconds that a job may take", f"{run.time_s:g}"
        raise InputError.of(where=run.name, field="time_s", expected=expected, found=found)

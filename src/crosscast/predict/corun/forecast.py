"""What models of co-running predict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import Part, kept_integers, kept_names, kept_reals
from crosscast.predict.intervals import group_quantile, group_weights
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns


@dataclass(frozen=True, eq=False)
class CoRunPrediction:
    """What is predicted of ``b`` bags; not a number where a model does not tell."""

    # For each bag, time of a job of each member while the whole bag runs over its time alone, of shape
    # `(members,)`
    slowdown: tuple[Reals, ...]
    # Time from the common start of a job of each member to the end of the last, in seconds, of shape `(b,)`
    time_s: Reals
    power_w: Reals  # Mean power of the device while the whole bag runs, in watts, of shape `(b,)`
    fits: Reals  # Probability that the bag fits on the device, of shape `(b,)`

    @classmethod
    def nothing(cls, sizes: Sequence[int]) -> CoRunPrediction:
        """All unknown, of bags of so many members."""
        unknown = np.full(len(sizes), np.nan)
        return cls(tuple(np.full(size, np.nan) for size in sizes), unknown, unknown.copy(), unknown.copy())


class CoRunPredictor(Part, Protocol):
    """A fitted model."""

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> CoRunPrediction:
        """Predict bags of any sizes."""
        ...


class CoRunModel(Protocol):
    """A kind of model, with its settings."""

    @property
    def name(self) -> str:
        """Name on the command line, and in tables."""
        ...

    def fit(self, co_runs: CoRuns, seed: int) -> CoRunPredictor:
        """Fit it: scales, thresholds, tunes and selects with these bags alone."""
        ...


_SAME = 1e-9
"""Members whose ends are no further apart, as a share of the time, end together."""


@dataclass(frozen=True, eq=False)
class MixTimes:
    """Times of ``b`` bags; not a number where a time or a slowdown is not known."""

    time_s: Reals  # Time from the common start to the end of the last, in seconds, of shape `(b,)`
    overlap: Reals  # Share of that time in which all run, of shape `(b,)`


def mix_time(
    solo_times: Sequence[float], slowdowns_of: Callable[[tuple[int, ...]], Sequence[float]]
) -> tuple[float, float]:
    """Time of one bag, and the share of it in which all run.

    >>> mix_time([1.0, 2.0], lambda running: [2.0, 2.0])
    (3.0, 0.6666666666666666)
    """

    def slowdowns(running: Flags) -> Reals:
        found = np.ones(running.shape)
        places = np.flatnonzero(running[0])
        found[0, places] = slowdowns_of(tuple(places.tolist()))
        return found

    times = np.array([solo_times], dtype=np.float64)
    whole = slowdowns(np.ones(times.shape, dtype=np.bool_)) if times.shape[1] > 1 else np.ones_like(times)
    result = mix_times(times, whole, slowdowns)
    return float(result.time_s[0]), float(result.overlap[0])


def mix_times(solo_times: Reals, slowdowns: Reals, slowdowns_left: Callable[[Flags], Reals]) -> MixTimes:
    """Times of ``b`` bags of ``n`` members each."""
    _check_positive("solo times", solo_times)
    work, rate = solo_times.copy(), slowdowns
    running = np.ones(work.shape, dtype=np.bool_)
    elapsed, together = np.zeros(len(work)), np.zeros(len(work))
    while running.any():
        left = running.sum(axis=1)
        if not running.all():
            rate = slowdowns_left(running) if (left > 1).any() else rate
        rate = np.where(running & (left > 1)[:, None], rate, 1.0)
        _check_positive("slowdowns", rate)
        ends = np.where(running, work * rate, np.inf)
        # Of a bag whose members have all ended, no time passes any more. What is not known spreads.
        first = np.where(left > 0, ends.min(axis=1), 0.0)
        elapsed += first
        together = np.where(running.all(axis=1), first, together)
        work = work - first[:, None] / rate
        running = running & (ends > first[:, None] * (1 + _SAME))
    with np.errstate(invalid="ignore"):
        return MixTimes(elapsed, together / elapsed)


def even_slowdown(solo_times: Reals, times: Reals) -> Reals:
    """Slowdown that all members share in the whole bag, from how long the bag takes.

    A bag's time alone does not tell which member slows down how much. It is taken that all slow down alike,
    and that with fewer members, slowdowns are as `with_fewer` says.
    Of shape ``(b,)``; 1 where a bag takes no longer than its longest member alone.
    """
    members = solo_times.shape[1]
    steps = np.diff(np.sort(solo_times, axis=1), axis=1, prepend=0.0)
    # With k of n ended, (n - 1 - k) / (n - 1) of what the slowdown is above 1 is left.
    shared = steps @ ((members - 1 - np.arange(members)) / (members - 1))
    slowdown: Reals = np.maximum(1.0 + (times - solo_times.max(axis=1)) / shared, 1.0)
    return slowdown


def with_fewer(slowdown: Reals, members: int, running: Reals) -> Reals:
    """Slowdown among fewer members, where nothing better is known: its part above 1 goes with the others."""
    fewer: Reals = 1.0 + (slowdown - 1.0) * (running - 1.0) / (members - 1)
    return fewer


def _check_positive(name: str, values: Reals) -> None:
    if (values <= 0).any():
        raise InputError(f"{name}: expected numbers above 0, found {float(np.nanmin(values)):g}")


_LEAST_SHARE = 0.02
"""Least spread over the mean error."""

_FARTHEST = 100.0
"""An interval that reaches so far says nothing; by damaged errors its limits would be no numbers."""


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Errors of one quantity."""

    log_error: Reals  # Logarithm of the predicted over the true value, of shape `(n,)`, with `n` at least 1
    group: Integers  # Number of the group that was left out, in `groups`, of shape `(n,)`
    groups: tuple[str, ...]  # Names of the groups; each of them has an error
    # Number of the bag of each, of shape `(n,)`: errors of members of one bag belong together. `None` where
    # they do not tell. A bag that several groups leave out has a number in each
    bag: Integers | None = None
    # Logarithm of each predicted value, of shape `(n,)`; `None` where it says nothing of errors
    log_value: Reals | None = None

    def reach(self, level: float, log_value: ArrayLike = 0.0) -> Any:
        """How far an interval reaches to both sides of a prediction, in logarithms.

        By the quantile of `crosscast.predict.intervals.group_quantile` of errors relative to their
        spread.
        """
        if level not in self._reaches:
            relative = np.abs(self.log_error) / self.spread(self._log_values)
            self._reaches[level] = group_quantile(relative, self.group, level)
        return np.minimum(self._reaches[level] * self.spread(np.asarray(log_value)), _FARTHEST)

    def spread(self, log_value: Reals) -> Reals:
        """How large errors are where a value is predicted, up to a factor that is common to all.

        A straight line over the logarithm of the value, level below 0: the more an application is slowed
        down, the less sure it is by how much. Level at 1 where values do not tell.
        """
        start, slope = self._line
        spread: Reals = start + slope * np.maximum(log_value, 0.0)
        return spread

    @property
    def _log_values(self) -> Reals:
        return np.zeros_like(self.log_error) if self.log_value is None else self.log_value

    @cached_property
    def _reaches(self) -> dict[float, float]:
        """Reach relative to the spread by level, for one forecast after the other."""
        return {}

    @cached_property
    def _line(self) -> tuple[float, float]:
        if self.log_value is None or not self.log_error.any():
            return 1.0, 0.0
        weights, errors = group_weights(self.group), np.abs(self.log_error)
        above = np.maximum(self.log_value, 0.0)
        design = np.column_stack([np.ones_like(above), above])
        root = np.sqrt(weights)
        found: list[float] = np.linalg.lstsq(design * root[:, None], errors * root, rcond=None)[0].tolist()
        start, slope = found
        mean = float(weights @ errors)
        if slope < 0:
            return mean, 0.0
        if start < _LEAST_SHARE * mean:
            # Through the least that is allowed: nothing is sure to the last digit.
            start = _LEAST_SHARE * mean
            squares = float((weights * above) @ above)
            slope = float((weights * above) @ (errors - start)) / squares if squares > 0 else 0.0
        return start, max(slope, 0.0)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            "log_error": self.log_error,
            "group": self.group,
            "groups": np.array(self.groups, dtype=np.str_),
            **({} if self.bag is None else {"bag": self.bag}),
            **({} if self.log_value is None else {"log_value": self.log_value}),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> LeftOut:
        """Make it from its arrays."""
        groups = kept_names(state, "groups")
        found = cls(
            kept_reals(state, "log_error", 1),
            kept_integers(state, "group", 1, (0, len(groups))),
            groups,
            kept_integers(state, "bag", 1, (0, 1 << 31)) if "bag" in state else None,
            kept_reals(state, "log_value", 1) if "log_value" in state else None,
        )
        if len(found.group) != len(found.log_error) or len(np.unique(found.group)) < len(groups):
            raise InputError("model: group: expected one for each error, and an error of each, found others")
        if not groups:
            raise InputError("model: groups: expected at least one, found none")
        for name, array in (("bag", found.bag), ("log_value", found.log_value)):
            if array is not None and len(array) != len(found.log_error):
                raise InputError(f"model: {name}: expected one for each error, found others")
        return found


_LEAST, _MOST = 1e-100, 1e100
"""Whatever bags have is between these, and so limits of its interval are numbers."""


@dataclass(frozen=True)
class Estimate:
    """A predicted value with its interval."""

    value: float  # The value and the limits, in the unit of the quantity
    low: float
    high: float
    reached: float  # Probability that the interval has

    def to_dict(self) -> dict[str, float]:
        """As an object of JSON."""
        return {"value": self.value, "low": self.low, "high": self.high, "level": self.reached}


@dataclass(frozen=True)
class CoRunForecast:
    """What is predicted of one bag; ``None`` where the model does not tell."""

    bag: tuple[Solo, ...]  # The applications
    slowdown: tuple[
        Estimate | None, ...
    ]  # Of each: time of a job while the whole bag runs over its time alone
    time_s: Estimate | None  # Time from the common start of a job of each to the end of the last, in seconds
    serial_s: float | None  # Time of the same jobs one after another, in seconds
    power_w: Estimate | None  # Mean power of the device while all run, in watts
    fits: float | None  # Probability that the bag fits on the device
    memory_bytes: int | None  # Memory that the members take together; `None` if it is not known of all
    level: float  # Probability that was asked for
    warnings: tuple[str, ...] = ()  # What makes it doubtful; sentences without a full stop

    @property
    def label(self) -> str:
        """What it is of, for people."""
        return " + ".join(solo.name for solo in self.bag)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``--json`` prints it; what is not known is null.

        An application that is there twice has its place in the bag behind its name.
        """
        return {
            "bag": [
                {"application": solo.application, "size": solo.size, "time_s": solo.time_s}
                for solo in self.bag
            ],
            "time_s": _object(self.time_s),
            "serial_s": self.serial_s,
            "power_w": _object(self.power_w),
            "slowdown": {
                name: _object(each) for name, each in zip(_labels(self.bag), self.slowdown, strict=True)
            },
            "fits": self.fits,
            "memory_bytes": self.memory_bytes,
            "level": self.level,
            "warnings": list(self.warnings),
        }


def _object(value: Estimate | None) -> dict[str, float] | None:
    return None if value is None else value.to_dict()


def _labels(bag: Sequence[Solo]) -> list[str]:
    names = [solo.application for solo in bag]
    if len(set(names)) < len(names):
        names = [solo.name for solo in bag]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: place + 1].count(name)})"
        for place, name in enumerate(names)
    ]


def is_plausible(value: float) -> bool:
    """Whether a value is predicted: what is not a number is not, nor what nothing can have."""
    return _LEAST < value < _MOST


def estimate(value: float, errors: Mapping[str, LeftOut], quantity: str, level: float) -> Estimate | None:
    """A value with an interval by the errors of its quantity; ``None`` for what is not known."""
    if not is_plausible(value) or quantity not in errors:
        return None
    factor = math.exp(errors[quantity].reach(level, math.log(value)))
    return Estimate(value, value / factor, value * factor, level)


def check_profile(solo: Solo, device: str) -> None:
    """Refuse an application that a model of a device can say nothing of."""
    if solo.device != device:
        raise InputError(
            f"{solo.name}: device: expected the profile to be of {device}, whose bags the model was trained "
            f"on, found {solo.device}: profile it there"
        )
    if solo.time_s is not None and not is_plausible(solo.time_s):
        raise InputError(
            f"{solo.name}: time_s: expected a number of seconds that a job may take, found {solo.time_s:g}"
        )

"""Whether a power keeps to a cap."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, NamedTuple, Protocol, get_args, overload

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.predict.configuration.data import Observed, Space, Surfaces, pareto_frontier
from crosscast.predict.configuration.forecast import SurfaceForecast

GUARD = 0.01
"""Share of a cap: what a method may be told less of it, and the tolerance of some scores."""

SLACK = 1e-9
"""Share by which a power may be above a cap, as caps lie on measured powers and arithmetic rounds."""


@overload
def within_cap(power_w: float, power_cap: float, tolerance: float = ...) -> bool: ...


@overload
def within_cap(power_w: Reals, power_cap: Reals | float, tolerance: float = ...) -> Flags: ...


def within_cap(
    power_w: Reals | float, power_cap: Reals | float, tolerance: float = 0.0
) -> Flags | bool | np.bool_:
    """Whether powers keep to caps; one that is not a number does not."""
    return power_w <= power_cap * (1 + tolerance + SLACK)


def step_down(space: Space, number: int, available: Flags, knobs: Sequence[str]) -> int | None:
    """The configuration a notch lower: in the first of the knobs that has one."""
    return _step(space, number, available, knobs, -1)


def step_up(space: Space, number: int, available: Flags, knobs: Sequence[str]) -> int | None:
    """The configuration a notch higher; parameters and result are those of `step_down`."""
    return _step(space, number, available, knobs, 1)


def _step(space: Space, number: int, available: Flags, knobs: Sequence[str], sign: int) -> int | None:
    alike = [_alike(column, column[number]) for column in space.matrix.T]
    fixed = available & (space.device_numbers == space.device_numbers[number])
    for word in space.words:
        own = space.configurations[number].settings.get(word)
        fixed = fixed & [each.settings.get(word) == own for each in space.configurations]
    for knob in knobs:
        if knob not in space.knobs:
            continue
        place = space.knobs.index(knob)
        same = np.logical_and.reduce([fixed, *alike[:place], *alike[place + 1 :]])
        distance = sign * (space.matrix[:, place] - space.matrix[number, place])
        beyond = np.flatnonzero(same & (distance > 0))
        if beyond.size:
            return int(beyond[np.argmin(distance[beyond])])
    return None


def _alike(column: Reals, value: float) -> Flags:
    return np.isnan(column) if np.isnan(value) else column == value


def highest(space: Space, available: Flags, device: str | None = None) -> int:
    """The configuration with all knobs at their maximum, or the one that comes nearest to it.

    That is the one with the highest sum of the ranks of its settings, and the last of several.
    """
    numbers, ranks = _ranked(space, available, device)
    return int(numbers[len(numbers) - 1 - np.argmax(ranks[::-1])])


def lowest(space: Space, available: Flags, device: str | None = None) -> int:
    """The configuration with all knobs at their minimum, or the one that comes nearest; as `highest`."""
    numbers, ranks = _ranked(space, available, device)
    return int(numbers[np.argmin(ranks)])


def _ranked(
    space: Space, available: Flags, device: str | None
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Reals]:
    if not available.any():
        raise InputError("configurations: expected one that may be taken, found none")
    numbers = np.flatnonzero(available)
    if device in space.devices:
        own = available & (space.device_numbers == space.devices.index(device))
        numbers = np.flatnonzero(own) if own.any() else numbers
    ranks = np.zeros(len(numbers))
    for column in space.matrix[numbers].T:
        values, rank = np.unique(column, return_inverse=True)
        ranks += rank / max(len(values) - 1, 1)
    return numbers, ranks


Walk = Generator[int, Observed, None]
"""Yields the number of the configuration to take next, and is sent the run there; it ends when it stays.

A run that is sent is an `Observed` of length 1."""


class Chooser(Protocol):
    """A method that has learned, ready for kernels that it has not seen."""

    def walk(self, observed: Observed, power_cap: float, available: Flags, budget: int) -> Walk:
        """Settle on a configuration for one kernel under one cap."""
        ...


class Method(Protocol):
    """A way to choose configurations, to be compared with others."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Chooser:
        """Learn from training kernels."""
        ...


class Settled(NamedTuple):
    """Where a walk ended."""

    number: int  # The configuration
    changes: int  # How often the configuration was changed after the first: the extra runs


def settle(walk: Walk, run: Callable[[int], Observed], budget: int) -> Settled:
    """Take a walk."""
    number = next(walk)
    for changes in range(budget):
        try:
            number = walk.send(run(number))
        except StopIteration:
            return Settled(number, changes)
    walk.close()
    return Settled(number, budget)


Objective = Literal["performance", "energy", "edp"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

TOLERANCE = 0.02
"""Share of a cap by which a forecast of the method ``model`` may miss it.

It makes choices faster, and more of them go over the cap, most by less than a repeated run differs."""


def merit(time_s: Reals, power_w: Reals, objective: Objective) -> Reals:
    """What is best when greatest: one over time, over energy, or over energy times time."""
    if objective not in OBJECTIVES:
        raise InputError(f"objective: expected one of {', '.join(OBJECTIVES)}, found {objective!r}")
    if objective == "performance":
        return 1 / time_s
    return 1 / (time_s * power_w if objective == "energy" else time_s * time_s * power_w)


def probability_under(
    forecast: SurfaceForecast, power_cap: float, available: Flags, *, tolerance: float = 0.0
) -> Reals:
    """Probability that each configuration keeps to a cap."""
    measured = forecast.power.centre <= power_cap * (1 + SLACK)
    predicted = forecast.power.probability_within(power_cap * (1 + tolerance + SLACK))
    return np.where(forecast.measured, measured, predicted) * available


def select(
    forecast: SurfaceForecast,
    power_cap: float,
    *,
    objective: Objective = "performance",
    confidence: float | None = None,
    tolerance: float = 0.0,
    available: Flags | None = None,
) -> int | None:
    """Select a configuration by a forecast (Bailey et al. 2014, section III-C)."""
    check_cap(power_cap)
    check_confidence(confidence)
    allowed = np.ones(len(forecast.measured), np.bool_) if available is None else available
    within = probability_under(
        forecast, power_cap, allowed, tolerance=tolerance if confidence is None else 0.0
    )
    worth = merit(forecast.time.centre, forecast.power.centre, objective)
    likely = within >= (_MORE_LIKELY_THAN_NOT if confidence is None else confidence)
    likely &= np.isfinite(worth)
    if not likely.any():
        return None
    expected = worth * within if confidence is None else worth
    return int(np.argmax(np.where(likely, expected, -np.inf)))


_MORE_LIKELY_THAN_NOT = 0.5


def check_confidence(confidence: float | None) -> None:
    """Refuse what is no probability; none is as good."""
    if confidence is not None and not (isinstance(confidence, Real) and 0 < confidence < 1):
        raise InputError(f"confidence: expected a probability between 0 and 1, found {confidence!r}")


def check_cap(power_cap: float) -> None:
    """Refuse what is no power."""
    if not isinstance(power_cap, Real):
        raise InputError(f"power cap: expected watts above 0, found {power_cap!r}")
    if not 0 < power_cap < np.inf:
        raise InputError(f"power cap: expected watts above 0, found {power_cap}")


LEVEL = 0.9
"""Probability that intervals hold, unless another is asked for."""


@dataclass(frozen=True)
class Option:
    """A configuration with what is predicted of it."""

    configuration: Configuration  # Which
    time_s: float  # Predicted time in seconds and power in watts, or measured ones
    power_w: float
    time_low_s: float | None  # Intervals of both; `None` if the model does not know how sure it is
    time_high_s: float | None
    power_low_w: float | None
    power_high_w: float | None
    # Probability that it keeps to the cap; `None` if the model does not know how sure it is
    probability_under: float | None
    measured: bool  # Whether the kernel was run there
    relative_performance: float  # Performance over that of the fastest configuration

    def to_dict(self) -> dict[str, Any]:
        """It as a JSON object: what is not known is null."""
        return {
            "configuration": self.configuration.to_dict(),
            "time_s": self.time_s,
            "power_w": self.power_w,
            "low": {"time_s": self.time_low_s, "power_w": self.power_low_w},
            "high": {"time_s": self.time_high_s, "power_w": self.power_high_w},
            "probability_under": self.probability_under,
            "measured": self.measured,
            "relative_performance": self.relative_performance,
        }


@dataclass(frozen=True)
class Choice:
    """A choice under a cap."""

    power_cap: float  # The cap, in watts
    objective: Objective  # What was to be as good as possible
    confidence: float | None  # Probability with which the cap had to be kept, if one was asked for
    level: float  # Probability that the intervals hold
    chosen: Option | None  # What is chosen; `None` if nothing is
    reason: str  # Why nothing is chosen, in one sentence; empty if something is
    frontier: tuple[Option, ...]  # The predicted Pareto frontier, by rising power
    least: Option  # The configuration with the least predicted power

    def to_dict(self) -> dict[str, Any]:
        """It as a JSON object: the chosen option's fields, and the rest; what is not known is null."""
        chosen = dict.fromkeys(self.least.to_dict()) if self.chosen is None else self.chosen.to_dict()
        return {
            "power_cap_w": self.power_cap,
            "objective": self.objective,
            "confidence": self.confidence,
            "level": self.level,
            **chosen,
            "reason": self.reason or None,
            "frontier": [each.to_dict() for each in self.frontier],
            "minimum_power_w": self.least.power_w,
        }


def choice_of(
    forecast: SurfaceForecast,
    space: Space,
    power_cap: float,
    *,
    objective: Objective = "performance",
    confidence: float | None = None,
    level: float = LEVEL,
) -> Choice:
    """Choose a configuration for a kernel, and say what else there is."""
    if not 0 < level < 1:
        raise InputError(f"level: expected a probability between 0 and 1, found {level}")
    if confidence is not None and not forecast.power.errors.size:
        raise InputError("confidence: expected a model that knows how sure it is, found one that does not")
    number = select(forecast, power_cap, objective=objective, confidence=confidence)
    options = _Options(forecast, space, power_cap, level)
    least = options.at(int(np.nanargmin(forecast.power.centre)))
    return Choice(
        power_cap,
        objective,
        confidence,
        level,
        None if number is None else options.at(number),
        "" if number is not None else _reason(options, least, confidence),
        tuple(options.at(int(each)) for each in options.frontier),
        least,
    )


class _Options:
    def __init__(self, forecast: SurfaceForecast, space: Space, power_cap: float, level: float) -> None:
        self.forecast, self.space, self.power_cap = forecast, space, power_cap
        everywhere = np.ones(len(space), np.bool_)
        self.within = probability_under(forecast, power_cap, everywhere)
        tails = ((1 - level) / 2, (1 + level) / 2)
        self.time = [forecast.time.quantile(each) for each in tails]
        self.power = [forecast.power.quantile(each) for each in tails]
        self.frontier = pareto_frontier(forecast.time.centre, forecast.power.centre)

    def at(self, number: int) -> Option:
        forecast = self.forecast
        measured = bool(forecast.measured[number])

        def sure(value: float, errors: int) -> float | None:
            return float(value) if measured or errors else None

        times, powers = forecast.time.errors.size, forecast.power.errors.size
        return Option(
            self.space.configurations[number],
            float(forecast.time.centre[number]),
            float(forecast.power.centre[number]),
            sure(self.time[0][number], times),
            sure(self.time[1][number], times),
            sure(self.power[0][number], powers),
            sure(self.power[1][number], powers),
            sure(self.within[number], powers),
            measured,
            float(np.nanmin(forecast.time.centre) / forecast.time.centre[number]),
        )


def _reason(options: _Options, least: Option, confidence: float | None) -> str:
    cap = options.power_cap
    if confidence is None and least.power_w > cap:
        return (
            f"power cap: expected at least the least predicted power, {least.power_w:.4g} W at "
            f"{least.configuration}; found {cap:g} W, so nothing is chosen"
        )
    surest = options.at(int(np.argmax(options.within)))
    probability = surest.probability_under or 0.0
    if confidence is None:
        return (
            f"power cap: expected one that a configuration is likelier to keep than not, found {cap:g} W, "
            f"which {surest.configuration} keeps with {_percent(probability)}, so nothing is chosen"
        )
    return (
        f"confidence: expected at most {_percent(probability)}, which {surest.configuration} reaches under "
        f"{cap:g} W, found {_percent(confidence)}, so nothing is chosen; the least predicted power is "
        f"{least.power_w:.4g} W at {least.configuration}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"

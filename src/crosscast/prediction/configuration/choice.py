"""Choose a configuration under a power cap by a forecast (Bailey et al. 2014, section III-C)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, get_args

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.data.configuration import Configuration, Objective
from crosscast.errors import InputError, expect_known
from crosscast.prediction.configuration import (
    SLACK,
    ConfigurationSpace,
    SurfaceForecast,
    pareto_frontier,
)
from crosscast.prediction.intervals import check_level, most_level
from crosscast.results import Tabular

if TYPE_CHECKING:
    from crosscast.results import Column


def within_cap(power_w: Reals | float, power_cap: Reals | float, tolerance: float = 0.0) -> Flags:
    """Whether powers keep to caps, as a mask; a power that is NaN does not."""
    return np.asarray(power_w <= power_cap * (1 + tolerance + SLACK))


OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


def merit(time_s: Reals, power_w: Reals, objective: Objective) -> Reals:
    """The maximized objective: one over time, over energy, over energy times time, or over power."""
    if objective in ("performance", "power"):
        return 1 / (time_s if objective == "performance" else power_w)
    return 1 / (time_s * power_w if objective == "energy" else time_s * time_s * power_w)


def probability_under(
    forecast: SurfaceForecast, power_cap: float, available: Flags, *, tolerance: float = 0.0
) -> Reals:
    """Probability ``(c,)`` that each configuration exceeds a cap by at most a relative tolerance.

    Measured powers are taken without noise, as where measurements correct choices.
    """
    measured = forecast.power.centre <= power_cap * (1 + SLACK)
    predicted = forecast.power.probability_within(power_cap * (1 + tolerance + SLACK))
    return np.where(forecast.measured, measured, predicted) * available


def check_choice(
    power_cap: float = 1.0, confidence: float | None = None, objective: str = "performance"
) -> None:
    """Raise InputError unless the cap is above 0 W, confidence within 0 to 1, and the objective known."""
    if not (isinstance(power_cap, Real) and power_cap > 0):
        raise InputError.of(field="power_cap", expected="watts above 0", found=repr(power_cap))
    if confidence is not None and not (isinstance(confidence, Real) and 0 < confidence < 1):
        expected = "a probability between 0 and 1"
        raise InputError.of(field="confidence", expected=expected, found=repr(confidence))
    expect_known(objective, OBJECTIVES, field="objective")


_MORE_LIKELY_THAN_NOT = 0.5


def select(
    forecast: SurfaceForecast,
    power_cap: float,
    *,
    objective: Objective = "performance",
    confidence: float | None = None,
    tolerance: float = 0.0,
    available: Flags | None = None,
    within: Reals | None = None,
) -> int | None:
    """Select the best configuration that keeps to the cap with a confidence, or the best on average.

    `within` are the probabilities of keeping to the cap, if known already. ``None`` if there is no such one.
    """
    check_choice(power_cap, confidence, objective)
    if within is None:
        allowed = np.ones(len(forecast.measured), np.bool_) if available is None else available
        tolerance = tolerance if confidence is None else 0.0
        within = probability_under(forecast, power_cap, allowed, tolerance=tolerance)
    value = merit(forecast.time.centre, forecast.power.centre, objective)
    likely = within >= (_MORE_LIKELY_THAN_NOT if confidence is None else confidence)
    likely &= np.isfinite(value)
    if not likely.any():
        return None
    expected = value * within if confidence is None else value
    return int(np.argmax(np.where(likely, expected, -np.inf)))


_STEP = 0.005
"""Steps of the logarithms of caps that are compared: multiples, which are the same for all caps."""

LEVEL = 0.9
"""Default probability that intervals hold."""

NO_CAP = float("inf")
"""The value for no power cap."""

LIMIT_PROBABILITY = 0.97
"""Probability with which a limit of the slowdown is to be kept.

The least of several with which choices for 140 microbenchmarks, whose kinds were held out, kept to 5 % in
95 % of the cases, with a confidence of 95 % (``python -m benchmarks.clocks titanx.csv --choose-level``). It
is higher than 95 % because the apparently best configuration within the limit tends to be overestimated.
"""


def within_slowdown(forecast: SurfaceForecast, most: float | None, baseline: int) -> Flags:
    """Mask ``(c,)`` of the configurations that are slower than a baseline by at most a share of its time.

    They keep to the limit with `LIMIT_PROBABILITY`; the baseline itself always does, and all without a limit.
    """
    if most is None:
        return np.ones(len(forecast.measured), np.bool_)
    if not (isinstance(most, Real) and 0 <= most < np.inf):
        raise InputError.of(field="max slowdown", expected="a share such as 0.05", found=repr(most))
    limit = float(forecast.time.centre[baseline]) * (1 + most) * (1 + SLACK)
    certain = forecast.time.centre <= limit
    likely = forecast.time.probability_within(limit) >= LIMIT_PROBABILITY
    allowed: Flags = np.where(forecast.measured, certain, likely & certain)
    allowed[baseline] = True
    return allowed


@dataclass(frozen=True)
class Option:
    """A configuration with its forecast."""

    configuration: Configuration
    time_s: float  # Predicted time in seconds and power in watts, or measured ones
    power_w: float
    time_low_s: float | None  # Limits of intervals; `None` if the model has none
    time_high_s: float | None
    power_low_w: float | None
    power_high_w: float | None
    # Probability that it keeps to the cap; `None` if the model has none
    probability_under: float | None
    measured: bool  # Whether the kernel was run there
    relative_performance: float  # Performance over that of the fastest configuration

    def to_dict(self) -> dict[str, object]:
        """The option as a JSON object; unknown values are null."""
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
class Choice(Tabular):
    """A choice under a cap; as a table, the predicted Pareto frontier."""

    power_cap: float  # Watts
    objective: Objective
    confidence: float | None  # Least probability of keeping to the cap, if one was given
    level: float  # Probability that the intervals hold; no more than the model's programs support
    recommended: Option | None  # The choice; `None` if no configuration qualifies
    reason: str  # Why there is no choice, in one sentence; else empty
    frontier: tuple[Option, ...]  # The predicted Pareto frontier, by rising power
    least: Option  # The configuration with the least predicted power
    max_slowdown: float | None = None  # Share by which it may be slower than the baseline; `None` for any
    baseline: Configuration | None = None
    warnings: tuple[str, ...] = ()  # Sentences without a full stop

    def columns(self) -> Mapping[str, Column]:
        """The frontier: configurations with their forecasts."""
        names = Option.__dataclass_fields__
        columns = {name: [getattr(each, name) for each in self.frontier] for name in names}
        recommended = None if self.recommended is None else self.recommended.configuration
        configurations = columns["configuration"]
        return {
            **columns,
            "configuration": list(map(str, configurations)),
            "recommended": [each == recommended for each in configurations],
        }

    def to_dict(self) -> dict[str, object]:
        """The choice as a JSON object, with the recommended option's fields; unknown values are null."""
        recommended = self.recommended
        chosen = dict.fromkeys(self.least.to_dict()) if recommended is None else recommended.to_dict()
        return {
            "power_cap_w": None if self.power_cap == NO_CAP else self.power_cap,
            "objective": self.objective,
            "max_slowdown": self.max_slowdown,
            "baseline": None if self.baseline is None else self.baseline.to_dict(),
            "confidence": self.confidence,
            "level": self.level,
            **chosen,
            "reason": self.reason or None,
            "frontier": [each.to_dict() for each in self.frontier],
            "minimum_power_w": self.least.power_w,
            "warnings": list(self.warnings),
        }


def choice_of(
    forecast: SurfaceForecast,
    space: ConfigurationSpace,
    power_cap: float,
    *,
    objective: Objective = "performance",
    confidence: float | None = None,
    level: float = LEVEL,
    max_slowdown: float | None = None,
    baseline: int = 0,
) -> Choice:
    """Choose a configuration for a kernel, with the alternatives.

    With `max_slowdown` only among those that are slower than the configuration number `baseline` by at most
    that share. The choice is not worse by the objective than those under lower caps, in steps of `_STEP`.
    """
    check_level(level)
    time, power = forecast.time, forecast.power
    # Intervals that are to hold more often than the programs support are no wider.
    level = min(level, most_level(power.programs)) if power.programs else level
    if confidence is not None and not power.errors.size:
        expected = "a model that knows how sure it is"
        raise InputError.of(field="confidence", expected=expected, found="one that does not")
    check_choice(power_cap, confidence, objective)
    within = power.supported_probability(power_cap * (1 + SLACK))
    allowed = within_slowdown(forecast, max_slowdown, baseline)

    def selected(cap: float) -> int | None:
        probability = power.supported_probability(cap * (1 + SLACK)) * allowed
        return select(forecast, cap, objective=objective, confidence=confidence, within=probability)

    number = selected(power_cap)
    if number is not None and confidence is None:
        # A surer one that a higher cap admits may be worse than what is taken under a lower cap.
        value = merit(time.centre, power.centre, objective)
        better = (value > value[number]) & (within * allowed >= _MORE_LIKELY_THAN_NOT)
        if better.any():
            first = math.log(power.quantile(_MORE_LIKELY_THAN_NOT)[better].min())
            for cap in np.exp(_STEP * np.arange(math.ceil(first / _STEP), math.log(power_cap) / _STEP)):
                other = selected(float(cap))
                number = other if other is not None and value[other] > value[number] else number
    intervals = {
        f"{name}_{end}_{unit}": (limit, quantity.errors)
        for name, unit, quantity in (("time", "s", time), ("power", "w", power))
        for end, limit in zip(("low", "high"), quantity.limits(level), strict=True)
    }
    intervals["probability_under"] = (within, power.errors)
    fastest = float(np.nanmin(time.centre))

    def option(number: int) -> Option:
        measured, time_s = bool(forecast.measured[number]), float(time.centre[number])
        known = {
            name: float(values[number]) if measured or errors.size else None
            for name, (values, errors) in intervals.items()
        }
        return Option(
            configuration=space.configurations[number],
            time_s=time_s,
            power_w=float(power.centre[number]),
            measured=measured,
            relative_performance=fastest / time_s,
            **known,
        )

    least = option(int(np.nanargmin(power.centre)))
    frontier = tuple(option(each) for each in pareto_frontier(time.centre, power.centre).tolist())
    chosen = None if number is None else option(number)
    compared, reason = None if max_slowdown is None else space.configurations[baseline], ""
    if chosen is None:
        kept = select(forecast, power_cap, objective=objective, confidence=confidence, within=within)
        if kept is None:
            reason = _reason(power_cap, option(int(np.argmax(within))), least, confidence)
        else:
            reason = (
                f"max slowdown: expected a share that a configuration under {power_cap:g} W keeps relative "
                f"to {compared}, found {100 * (max_slowdown or 0.0):.4g} %, so nothing is chosen; without "
                f"it the best under the cap is {space.configurations[kept]}"
            )
    return Choice(
        power_cap, objective, confidence, level, chosen, reason, frontier, least, max_slowdown, compared
    )


def _reason(cap: float, surest: Option, least: Option, confidence: float | None) -> str:
    """Why no configuration is chosen."""
    lowest = f"the least {'measured' if least.measured else 'predicted'} power"
    if confidence is None and least.power_w > cap:
        return (
            f"power cap: expected at least {lowest}, {least.power_w:.4g} W at {least.configuration}; found "
            f"{cap:g} W, so nothing is chosen"
        )
    # Rounded down, so that what is printed is reached.
    probability = f"{math.floor(1000 * (surest.probability_under or 0.0)) / 10:g} %"
    if confidence is None:
        return (
            f"power cap: expected one that a configuration is likelier to keep than not, found {cap:g} W, "
            f"which {surest.configuration} keeps with {probability}, so nothing is chosen"
        )
    return (
        f"confidence: expected at most {probability}, which {surest.configuration} reaches under "
        f"{cap:g} W, found {100 * confidence:.6g} %, so nothing is chosen; {lowest} is "
        f"{least.power_w:.4g} W at {least.configuration}"
    )

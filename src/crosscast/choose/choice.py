"""What is chosen for one kernel under one cap, what else there is, and how sure all that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.choose.selection import Objective, probability_under, select
from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.predict.configuration.forecast import SurfaceForecast
from crosscast.predict.configuration.frontier import pareto_frontier
from crosscast.predict.configuration.space import Space

__all__ = ["LEVEL", "Choice", "Option", "choice_of"]

LEVEL = 0.9
"""Probability that intervals hold, unless another is asked for."""


@dataclass(frozen=True)
class Option:
    """A configuration with what is predicted of it.

    Parameters
    ----------
    configuration
        Which.
    time_s, power_w
        Predicted time in seconds and power in watts, or measured ones.
    time_low_s, time_high_s, power_low_w, power_high_w
        Intervals of both; ``None`` if the model does not know how sure it is.
    probability_under
        Probability that it keeps to the cap; ``None`` if the model does not know how sure it is.
    measured
        Whether the kernel was run there.
    relative_performance
        Performance over that of the fastest configuration.
    """

    configuration: Configuration
    time_s: float
    power_w: float
    time_low_s: float | None
    time_high_s: float | None
    power_low_w: float | None
    power_high_w: float | None
    probability_under: float | None
    measured: bool
    relative_performance: float

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
    """A choice under a cap.

    Parameters
    ----------
    power_cap
        The cap, in watts.
    objective
        What was to be as good as possible.
    confidence
        Probability with which the cap had to be kept, if one was asked for.
    level
        Probability that the intervals hold.
    chosen
        What is chosen; ``None`` if nothing is.
    reason
        Why nothing is chosen, in one sentence; empty if something is.
    frontier
        The predicted Pareto frontier, by rising power.
    least
        The configuration with the least predicted power.
    """

    power_cap: float
    objective: Objective
    confidence: float | None
    level: float
    chosen: Option | None
    reason: str
    frontier: tuple[Option, ...]
    least: Option

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
    """Choose a configuration for a kernel, and say what else there is.

    Parameters
    ----------
    forecast
        Time and power of the kernel at every configuration.
    space
        The configurations.
    power_cap
        Most power that it may take, in watts.
    objective
        What is to be as good as possible.
    confidence
        Probability with which the cap must be kept; see `crosscast.choose.selection.select`.
    level
        Probability that the intervals are to hold.

    Raises
    ------
    InputError
        If the cap, the objective, the confidence or the level is not what it must be, or a confidence is
        asked of a model that does not know how sure it is.
    """
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

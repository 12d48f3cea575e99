"""Forecasts of bags: time, power, and the slowdown of each member, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosscast.predict.corun.left_out import LeftOut
from crosscast.tables.corun.solo import Solo

__all__ = ["CoRunForecast", "Ranged", "is_told", "ranged"]

_LEAST, _MOST = 1e-100, 1e100
"""Whatever bags have is between these, and so limits of its interval are numbers."""


@dataclass(frozen=True)
class Ranged:
    """A predicted value with its interval.

    Parameters
    ----------
    value, low, high
        The value and the limits, in the unit of the quantity.
    reached
        Probability that the interval has.
    """

    value: float
    low: float
    high: float
    reached: float

    def to_dict(self) -> dict[str, float]:
        """As an object of JSON."""
        return {"value": self.value, "low": self.low, "high": self.high, "level": self.reached}


@dataclass(frozen=True)
class CoRunForecast:
    """What is predicted of one bag; ``None`` where the model does not tell.

    Parameters
    ----------
    bag
        The applications.
    slowdown
        Of each: time of a job while the whole bag runs over its time alone.
    time_s
        Time from the common start of a job of each to the end of the last, in seconds.
    serial_s
        Time of the same jobs one after another, in seconds.
    power_w
        Mean power of the device while all run, in watts.
    fits
        Probability that the bag fits on the device.
    memory_bytes
        Memory that the members take together; ``None`` if it is not known of all.
    level
        Probability that was asked for.
    warnings
        What makes it doubtful; sentences without a full stop.
    """

    bag: tuple[Solo, ...]
    slowdown: tuple[Ranged | None, ...]
    time_s: Ranged | None
    serial_s: float | None
    power_w: Ranged | None
    fits: float | None
    memory_bytes: int | None
    level: float
    warnings: tuple[str, ...] = ()

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


def _object(value: Ranged | None) -> dict[str, float] | None:
    return None if value is None else value.to_dict()


def _labels(bag: Sequence[Solo]) -> list[str]:
    names = [solo.application for solo in bag]
    if len(set(names)) < len(names):
        names = [solo.name for solo in bag]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: place + 1].count(name)})"
        for place, name in enumerate(names)
    ]


def is_told(value: float) -> bool:
    """Whether a value is predicted: what is not a number is not, nor what nothing can have."""
    return _LEAST < value < _MOST


def ranged(value: float, errors: Mapping[str, LeftOut], quantity: str, level: float) -> Ranged | None:
    """A value with an interval by the errors of its quantity; ``None`` for what is not known.

    Parameters
    ----------
    value
        Predicted value; not a number if the model does not tell.
    errors
        Errors on what was left out, by quantity.
    quantity
        Name of the quantity.
    level
        Probability that the interval is to hold.
    """
    if not is_told(value) or quantity not in errors:
        return None
    factor = math.exp(errors[quantity].reach(level, math.log(value)))
    return Ranged(value, value / factor, value * factor, level)

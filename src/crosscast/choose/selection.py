"""Which configuration to take, by a forecast: the best one that keeps to a cap."""

from __future__ import annotations

from numbers import Real
from typing import Literal, get_args

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.choose.limit import SLACK
from crosscast.errors import InputError
from crosscast.predict.configuration.forecast import SurfaceForecast

__all__ = [
    "OBJECTIVES",
    "TOLERANCE",
    "Objective",
    "check_cap",
    "check_confidence",
    "merit",
    "probability_under",
    "select",
]

Objective = Literal["performance", "energy", "edp"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

TOLERANCE = 0.02
"""Share of a cap by which a forecast of the method ``model`` may miss it.

It makes choices faster, and more of them go over the cap, most by less than a repeated run differs."""


def merit(time_s: Reals, power_w: Reals, objective: Objective) -> Reals:
    """What is best when greatest: one over time, over energy, or over energy times time.

    Parameters
    ----------
    time_s, power_w
        Times and powers, of any shape, alike.
    objective
        ``performance``, ``energy`` or ``edp``.

    Raises
    ------
    InputError
        If there is no such objective.
    """
    if objective not in OBJECTIVES:
        raise InputError(f"objective: expected one of {', '.join(OBJECTIVES)}, found {objective!r}")
    if objective == "performance":
        return 1 / time_s
    return 1 / (time_s * power_w if objective == "energy" else time_s * time_s * power_w)


def probability_under(
    forecast: SurfaceForecast, power_cap: float, available: Flags, *, tolerance: float = 0.0
) -> Reals:
    """Probability that each configuration keeps to a cap.

    Parameters
    ----------
    forecast
        What was predicted; what was measured is certain.
    power_cap
        The cap, in watts.
    available
        ``(c,)`` Configurations that may be taken; the others have probability 0.
    tolerance
        Share of the cap by which what was not measured may be above.
    """
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
    """Select a configuration by a forecast (Bailey et al. 2014, section III-C).

    Parameters
    ----------
    forecast
        Time and power of the kernel at every configuration.
    power_cap
        Most power that it may take, in watts.
    objective
        What is to be as good as possible.
    confidence
        Probability with which the cap must be kept; the best configuration that keeps it so is taken. By
        default the one whose objective is best on average is, where it is worth nothing over the cap.
    tolerance
        Share of the cap by which a power that was not measured may be above, without a confidence.
    available
        ``(c,)`` Configurations that may be taken; all by default.

    Returns
    -------
    int or None
        Number of the configuration; ``None`` if none is likely enough to keep to the cap: with a confidence,
        less than that; without one, less likely than not.

    Raises
    ------
    InputError
        If the cap or the confidence is not what it must be.
    """
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
    """Refuse what is no probability; none is as good.

    Raises
    ------
    InputError
        If it is not a number between 0 and 1.
    """
    if confidence is not None and not (isinstance(confidence, Real) and 0 < confidence < 1):
        raise InputError(f"confidence: expected a probability between 0 and 1, found {confidence!r}")


def check_cap(power_cap: float) -> None:
    """Refuse what is no power.

    Raises
    ------
    InputError
        If it is not a finite number above 0.
    """
    if not isinstance(power_cap, Real):
        raise InputError(f"power cap: expected watts above 0, found {power_cap!r}")
    if not 0 < power_cap < np.inf:
        raise InputError(f"power cap: expected watts above 0, found {power_cap}")

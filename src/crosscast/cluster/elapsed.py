"""Times of schedules as people read and write them: minutes, hours, days."""

from __future__ import annotations

import math
import re

from crosscast.errors import InputError
from crosscast.units import format_seconds

__all__ = ["elapsed_unit", "format_elapsed", "parse_elapsed"]

_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_NAMES = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days"}
_FEWEST = 3.0
"""A span has so many of its unit at least."""


def elapsed_unit(span_s: float) -> tuple[float, str]:
    """Seconds of the largest unit of which a span has three, and its name.

    Examples
    --------
    >>> elapsed_unit(100.0), elapsed_unit(86400.0)
    ((1.0, 'seconds'), (3600.0, 'hours'))
    """
    unit = _unit(span_s)
    return _SECONDS[unit], _NAMES[unit]


def _unit(span_s: float) -> str:
    return [unit for unit, seconds in _SECONDS.items() if unit == "s" or span_s >= _FEWEST * seconds][-1]


def format_elapsed(seconds: float) -> str:
    """Write a time for people, with four digits of the unit that `elapsed_unit` takes.

    Examples
    --------
    >>> format_elapsed(75.0), format_elapsed(6370.0), format_elapsed(28_833_600.0)
    ('75 s', '106.2 min', '333.7 d')
    """
    if seconds < 1:
        return format_seconds(seconds)
    unit = _unit(seconds)
    count = seconds / _SECONDS[unit]
    return f"{count:,.0f} {unit}" if count >= 1000 else f"{count:.4g} {unit}"


def parse_elapsed(text: str) -> float:
    """Read a time such as ``3600``, ``90min``, ``36h`` or ``10.5d``, in seconds.

    Raises
    ------
    InputError
        If it is no number of at least 0 with one of these units or none.

    Examples
    --------
    >>> parse_elapsed("2h"), parse_elapsed("30")
    (7200.0, 30.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(s|min|h|d)?", text.strip(), re.ASCII)
    seconds = float(match[1]) * _SECONDS[match[2] or "s"] if match else math.inf
    if not math.isfinite(seconds):
        raise InputError(f"a time must look like 3600, 90min, 36h or 10d, found {text!r}")
    return seconds

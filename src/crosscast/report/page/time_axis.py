"""Logarithmic axes of times, with ticks that people read: 10 µs, 1 ms."""

from __future__ import annotations

import math
from typing import Any

from crosscast.units import format_seconds

__all__ = ["scale_times"]

_ONE_DECADE = 1.2
_TWO_DECADES = 2.2


def scale_times(axis: Any, low: float, high: float, most: int) -> None:
    """Put ticks on an axis that is logarithmic already.

    Parameters
    ----------
    axis
        The axis.
    low, high
        Its ends in seconds.
    most
        Ticks for which there is room.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    decades = math.log10(high / low) if high > low > 0 else 1.0
    within = (1.0, 2.0, 5.0) if decades < _ONE_DECADE else (1.0, 3.0) if decades < _TWO_DECADES else (1.0,)
    axis.set_major_locator(LogLocator(subs=within, numticks=most))
    axis.set_major_formatter(FuncFormatter(lambda seconds, _: format_seconds(seconds)))
    axis.set_minor_locator(NullLocator())

"""Axes of errors that differ by orders of magnitude: logarithms, with percentages beside the ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

__all__ = ["LEAST", "error_scale"]

LEAST = 0.1
"""Errors below it, in per cent, are drawn there: they are all as good as none."""

_STEPS = (1, 2, 5)
_FEW = 1.0
"""Orders of magnitude up to which all steps have a tick."""


def error_scale(axes: Any, errors: Iterable[float]) -> None:
    """Ticks for the ordinate of errors whose decimal logarithms are drawn.

    Parameters
    ----------
    axes
        The axes.
    errors
        All errors that are drawn, in per cent.
    """
    shown = [max(error, LEAST) for error in errors if error == error]
    low, high = math.log10(min(shown)), math.log10(max(shown))
    room = max(0.06 * (high - low), 0.05)
    steps = _STEPS if high - low < 3 * _FEW else (1,)
    ticks = [
        step * 10**power
        for power in range(math.floor(low) - 1, math.ceil(high) + 1)
        for step in steps
        if low - room <= math.log10(step * 10**power) <= high + room
    ]
    axes.set_yticks([math.log10(tick) for tick in ticks], [f"{tick:g}" for tick in ticks])
    axes.set_ylim(low - room, high + room)

"""Axes of errors that differ by orders of magnitude: logarithms, with percentages beside the ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

__all__ = ["LEAST", "error_scale"]

LEAST = 0.1
"""Errors below it, in per cent, are drawn there: they are all as good as none."""

_STEPS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))
"""Where ticks may be within an order of magnitude, from coarse to fine."""

_FEWEST = 4
"""Ticks that are enough."""


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
    ticks: list[float] = []
    for steps in _STEPS:
        if len(ticks) < _FEWEST:
            every = [
                step * 10.0**power
                for power in range(math.floor(low) - 1, math.ceil(high) + 1)
                for step in steps
            ]
            ticks = [tick for tick in every if low - room <= math.log10(tick) <= high + room]
    if len(ticks) < _FEWEST:
        # Over so little, a logarithm is nearly straight.
        from matplotlib.ticker import MaxNLocator

        places = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(10**low, 10**high)
        ticks = [tick for tick in places if tick > 0]
    axes.set_yticks([math.log10(tick) for tick in ticks], [f"{tick:.4g}" for tick in ticks])
    axes.set_ylim(low - room, high + room)

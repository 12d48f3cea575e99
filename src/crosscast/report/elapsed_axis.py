"""Axes of time since the first submission, in the unit that people would take."""

from __future__ import annotations

from typing import Any

from crosscast.units import elapsed_unit

__all__ = ["label_elapsed"]


def label_elapsed(axes: Any, from_s: float, to_s: float) -> float:
    """Set the limits and the label of a horizontal axis of times; return the seconds of its unit.

    Parameters
    ----------
    axes
        The axes of the picture.
    from_s, to_s
        Its ends, in seconds since the first submission.
    """
    unit_s, name = elapsed_unit(to_s)
    axes.set_xlim(from_s / unit_s, max(to_s, from_s + 1e-9) / unit_s)
    axes.set_xlabel(f"time since the first submission, {name}")
    return unit_s

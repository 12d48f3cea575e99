"""Axes of pictures that are logarithmic where values are very different, labelled with plain numbers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from crosscast.arrays import Reals

__all__ = ["WIDE", "logarithmic_axis", "spread_axis"]

WIDE = 30.0
"""Ratio of the greatest to the least value from which on an axis is logarithmic, and labels of decades do."""


def spread_axis(axes: Any, name: Literal["x", "y"], values: Reals) -> None:
    """Make an axis logarithmic if the values are very different, as over small devices and large ones.

    Parameters
    ----------
    axes
        The axes of the picture.
    name
        Which of the two.
    values
        What it shows, above 0; NaN where there is nothing.
    """
    if _wide(values):
        logarithmic_axis(axes, name, values)


def logarithmic_axis(axes: Any, name: Literal["x", "y"], values: Reals) -> None:
    """Make an axis logarithmic, with plain numbers, and more of them where values are not so different.

    Parameters
    ----------
    axes
        The axes of the picture.
    name
        Which of the two.
    values
        What it shows, above 0; NaN where there is nothing.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set(**{f"{name}scale": "log"})
    axis = getattr(axes, f"{name}axis")
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    if not _wide(values):
        axis.set_major_locator(LogLocator(subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))


def _wide(values: Reals) -> bool:
    return bool(np.nanmax(values) > WIDE * np.nanmin(values))

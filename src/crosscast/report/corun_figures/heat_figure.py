"""Errors as a map of numbers (Figures 8 and 13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import heading
from crosscast.report.numbers import NONE

__all__ = ["heat_figure"]

_LIGHT = 0.45
"""Share of the colours up to which they are too light for white numbers."""


def heat_figure(values: Reals, rows: Sequence[str], columns: Sequence[str], *sentences: str) -> Any:
    """A cell for each error, darker for larger ones; one that is not a number is empty.

    Parameters
    ----------
    values
        Errors in per cent, of shape ``(rows, columns)``.
    rows, columns
        Names of the rows and columns.
    sentences
        What it is of.
    """
    widest = max(map(len, rows))
    figure = new_figure(3.0 + 0.075 * widest + 1.0 * len(columns), 2.2 + 0.3 * len(rows))
    axes = figure.subplots()
    known = values[np.isfinite(values)]
    low = float(known.min())
    # What is far off would make all the rest look alike.
    high = max(min(float(known.max()), 3 * float(np.median(known))), low + 1e-3)
    image = axes.imshow(values, cmap="cividis_r", vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if not np.isfinite(value):
            axes.text(column, row, NONE, ha="center", va="center", fontsize=9, color="#777777")
            continue
        colour = "black" if (value - low) / (high - low) < _LIGHT else "white"
        text = f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor", fontsize=9)
    axes.set_yticks(range(len(rows)), rows, fontsize=9)
    axes.spines[:].set_visible(False)
    beyond = "max" if known.max() > high else "neither"
    figure.colorbar(image, ax=axes, label="MAPE, %", pad=0.02, extend=beyond).outline.set_visible(False)
    heading(figure, *sentences)
    return figure

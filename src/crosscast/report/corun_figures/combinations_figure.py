"""Errors with growing features (Figure 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, heading, tidy

__all__ = ["combinations_figure"]


def combinations_figure(errors: Mapping[str, float], title: str) -> Any:
    """A bar for each combination.

    Parameters
    ----------
    errors
        Errors in per cent by name of the combination, in the order of the bars.
    title
        What it is of.
    """
    figure = new_figure(7, 1.7 + 0.42 * len(errors))
    axes = figure.subplots()
    names, values = list(errors), list(errors.values())
    axes.barh(range(len(names)), values, color=BLUE, height=0.62, zorder=2)
    for place, value in enumerate(values):
        axes.text(value + 0.01 * max(values), place, f"{value:.1f}", va="center", fontsize=9)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 1.12 * max(values))
    axes.set_xlabel("MAPE, %")
    tidy(axes)
    axes.grid(visible=False, axis="y")
    heading(figure, title)
    return figure

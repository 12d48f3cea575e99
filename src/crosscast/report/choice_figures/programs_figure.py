"""A metric by program and method (Figures 5, 6, 8 and 9 of Bailey et al. 2014), as a map of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.decide.scores import ChoiceResult
from crosscast.report.canvas import new_figure
from crosscast.report.choice_figures.styles import method_label
from crosscast.report.figure_style import heading

__all__ = ["programs_figure"]

_LIGHT = 0.55
"""Share of the colours from which on they are too light for white numbers."""

_BAR = 6.0
"""Most inches of the bar of colours."""

_LARGE = 100_000
"""From here on numbers are too long for their cells."""


def programs_figure(results: Sequence[ChoiceResult], metric: str, label: str, title: str) -> Any:
    """A row a program, a column a method; what no case defines stays empty.

    Performances over the limit may be many times the oracle's: the colours end at twice the oracle's, the
    numbers do not.

    Parameters
    ----------
    results
        A result for each method.
    metric
        Name of the metric.
    label
        What it is, in percent.
    title
        What the picture is of.
    """
    names = list(results[0].programs)
    values = np.array(
        [[_value(result.programs[name], metric) for result in results] for name in names]
        + [[_value(result.metrics, metric) for result in results]]
    )
    height = 1.9 + 0.29 * len(values)
    figure = new_figure(3.0 + 0.68 * len(results), height)
    axes = figure.subplots()
    low, high = _limits(values)
    image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "black" if (value - low) / (high - low) > _LIGHT else "white"
            text = f"{value:,.0f}" if value < _LARGE else f"{value:.0e}"
            axes.text(column, row, text, ha="center", va="center", fontsize=8.5, color=colour)
    labels = [method_label(result) for result in results]
    axes.set_xticks(range(len(results)), labels, rotation=45, ha="right", rotation_mode="anchor", fontsize=9)
    axes.set_yticks(range(len(values)), [*names, "all programs"], fontsize=9)
    axes.axhline(len(names) - 0.5, color="white", linewidth=3)
    axes.set_facecolor("#f2f2f2")
    axes.spines[:].set_visible(False)
    beyond = "max" if np.nanmax(values, initial=0) > high else "neither"
    bar = figure.colorbar(
        image, ax=axes, label=label, pad=0.02, extend=beyond, shrink=min(1, _BAR / height), anchor=(0, 1)
    )
    bar.outline.set_visible(False)
    heading(figure, title)
    return figure


def _value(metrics: object, name: str) -> float:
    value = getattr(metrics, name)
    return np.nan if value is None else 100 * float(value)


def _limits(values: Reals) -> tuple[float, float]:
    """Ends of the colours; at least a percentage point apart."""
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 100.0
    low, high = float(known.min()), min(float(known.max()), max(200.0, float(known.min())))
    return low, max(high, low + 1)

"""Models by the device that counted: MAE and same order score (Figures 4 and 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import heading
from crosscast.studies.nichols2024 import BySource

__all__ = ["sources_figure"]

_LIGHT = 0.55
"""Share of the colours from which on they are too light for white numbers."""


def sources_figure(found: BySource, metric: str, label: str, title: str) -> Any:
    """A map of numbers: a row a model, a column a source.

    Parameters
    ----------
    found
        The study.
    metric, label
        Name of the metric, and what it is.
    title
        What the picture is of.
    """
    models = list(found.metrics)
    values = np.array([[getattr(each, metric) for each in found.metrics[model]] for model in models])
    figure = new_figure(4.2 + 0.95 * len(found.sources), 2.1 + 0.45 * len(models))
    axes = figure.subplots()
    low, high = float(values.min()), min(float(values.max()), 3 * float(np.median(values)))
    high = max(high, low + 1e-3)
    image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        colour = "black" if (value - low) / (high - low) > _LIGHT else "white"
        text = f"{value:.3f}" if value < 10 else f"{value:,.0f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
    axes.set_xticks(
        range(len(found.sources)), found.sources, rotation=35, ha="right", rotation_mode="anchor", fontsize=9
    )
    axes.set_yticks(range(len(models)), models, fontsize=9)
    axes.spines[:].set_visible(False)
    beyond = "max" if values.max() > high else "neither"
    figure.colorbar(image, ax=axes, label=label, pad=0.02, extend=beyond).outline.set_visible(False)
    heading(figure, title)
    return figure

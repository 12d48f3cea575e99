"""MAE by the number of features (section VI-B)."""

from __future__ import annotations

from typing import Any

from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, heading, tidy
from crosscast.studies.nichols2024 import Selection

__all__ = ["selection_figure"]


def selection_figure(found: Selection, title: str) -> Any:
    """A line over the number of features, on a logarithmic axis.

    Parameters
    ----------
    found
        The study.
    title
        What it is of.
    """
    figure = new_figure(7, 4)
    axes = figure.subplots()
    values = [each.mae for each in found.metrics]
    axes.plot(found.counts, values, "o-", color=BLUE, markersize=6, zorder=3)
    for count, value in zip(found.counts, values, strict=True):
        axes.annotate(
            f"{value:.3f}", (count, value), (0, 7), textcoords="offset points", ha="center", fontsize=8.5
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(found.counts, [str(count) for count in found.counts])
    axes.minorticks_off()
    axes.set_ylim(0, 1.2 * max(values))
    axes.set_xlabel("features of the most gain in the training runs")
    axes.set_ylabel("MAE")
    tidy(axes)
    heading(figure, title)
    return figure

"""Errors by the number of applications at the same time (section 8)."""

from __future__ import annotations

from typing import Any

from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    RED,
    SKY,
    heading,
    legend_below,
    tidy,
)
from crosscast.studies.moolchandani2022 import OWN, SizeStudy

__all__ = ["sizes_figure"]

_COLOURS = (BLUE, RED, GREEN, ORANGE, PINK, SKY, GREY)


def sizes_figure(study: SizeStudy, title: str) -> Any:
    """A line for each model and what it was fitted to, a panel for each quantity.

    Parameters
    ----------
    study
        The study.
    title
        What it is of.
    """
    quantities = list(dict.fromkeys(each.result.quantity for each in study.results))
    figure = new_figure(2.2 + 3.1 * len(quantities), 4.6)
    panels = figure.subplots(1, len(quantities), squeeze=False)[0]
    models = list(dict.fromkeys(each.result.model for each in study.results))
    ways = list(dict.fromkeys(each.fitted_to for each in study.results))
    lines: dict[str, Any] = {}
    for quantity, axes in zip(quantities, panels, strict=True):
        for model in models:
            for way in ways:
                found = [
                    (each.result.bag_size, 100 * (each.result.mape or 0.0))
                    for each in study.results
                    if (each.result.quantity, each.result.model, each.fitted_to) == (quantity, model, way)
                ]
                if not found:
                    continue
                (line,) = axes.plot(
                    *zip(*found, strict=True),
                    marker="os^"[ways.index(way) % 3],
                    linestyle="-" if way == OWN else "--",
                    color=_COLOURS[models.index(model) % len(_COLOURS)],
                )
                lines.setdefault(f"{model}, {way}", line)
        axes.set_xticks(study.sizes)
        axes.set_xlim(study.sizes[0] - 0.3, study.sizes[-1] + 0.3)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("applications at the same time")
        axes.set_title(quantity, fontsize=9.5, loc="left")
        tidy(axes)
    panels[0].set_ylabel("MAPE, %")
    legend_below(figure, list(lines.values()), list(lines), 2)
    heading(figure, title)
    return figure

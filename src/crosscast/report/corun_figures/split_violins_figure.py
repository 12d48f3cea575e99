"""Errors over the combinations of features by both ways of holding out (Figure 15)."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosscast.report.canvas import new_figure
from crosscast.report.corun_figures.log_errors import LEAST, error_scale
from crosscast.report.figure_style import BLUE, ORANGE, heading, legend_below, tidy
from crosscast.studies.moolchandani2022 import SPLITS, CombinationStudy

__all__ = ["split_violins_figure"]

_SIDES = (("low", BLUE), ("high", ORANGE))


def split_violins_figure(study: CombinationStudy, title: str) -> Any:
    """A violin a model: on the left benchmarks are left out, on the right a fifth of the bags at random.

    Parameters
    ----------
    study
        The study.
    title
        What it is of.
    """
    figure = new_figure(8.5, 4.8)
    axes = figure.subplots()
    every: list[float] = []
    handles = []
    for split, (side, colour) in zip(SPLITS, _SIDES, strict=True):
        values = 100 * study.mape(split)
        every += values.ravel().tolist()
        columns = [column[np.isfinite(column)] for column in values.T]
        logs = [np.log10(np.maximum(column, LEAST)) for column in columns]
        parts = axes.violinplot(logs, range(len(study.kinds)), widths=0.8, side=side, showextrema=False)
        for body in parts["bodies"]:
            body.set(facecolor=colour, alpha=0.6, edgecolor=colour, linewidth=0.8)
        handles.append(parts["bodies"][0])
        shift = -0.08 if side == "low" else 0.08
        middles = [float(np.median(each)) for each in logs]
        axes.plot(
            np.arange(len(study.kinds)) + shift,
            middles,
            "_",
            color="black",
            markersize=9,
            markeredgewidth=1.5,
        )
    error_scale(axes, every)
    axes.set_xticks(range(len(study.kinds)), list(study.kinds))
    axes.set_ylabel("MAPE, % (logarithmic)")
    tidy(axes)
    legend_below(figure, handles, [f"{SPLITS[0]} (left)", f"{SPLITS[1]} (right)"], 2)
    heading(figure, title, f"lines: medians of the {len(study.names)} combinations")
    return figure

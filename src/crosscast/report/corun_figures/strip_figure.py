"""Errors of all models with each combination of features (Figures 12 and 14)."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosscast.report.canvas import new_figure
from crosscast.report.corun_figures.kind_styles import KIND_STYLES
from crosscast.report.corun_figures.log_errors import LEAST, error_scale
from crosscast.report.figure_style import heading, legend_below, tidy
from crosscast.studies.moolchandani2022 import CombinationStudy

__all__ = ["strip_figure"]

_APART = 0.07


def strip_figure(study: CombinationStudy, split: str, title: str) -> Any:
    """A mark for each model above each combination.

    Parameters
    ----------
    study
        The study.
    split
        What was held out.
    title
        What it is of.
    """
    values = 100 * study.mape(split)
    figure = new_figure(3.2 + 0.34 * len(study.names), 5.4)
    axes = figure.subplots()
    for place, kind in enumerate(study.kinds):
        style = KIND_STYLES[kind]
        axes.plot(
            np.arange(len(values)) + _APART * (place - (len(study.kinds) - 1) / 2),
            np.log10(np.maximum(values[:, place], LEAST)),
            style.mark,
            color=style.colour,
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.5,
            label=kind,
            zorder=3,
        )
    error_scale(axes, values.ravel().tolist())
    axes.set_xticks(
        range(len(values)), study.names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8.5
    )
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.set_ylabel("MAPE, % (logarithmic)")
    tidy(axes)
    handles, labels = axes.get_legend_handles_labels()
    legend_below(figure, handles, labels, 3 if len(values) < 10 else 6)
    heading(figure, title)
    return figure

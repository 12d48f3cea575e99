"""Errors over the combinations of features, for each benchmark that is left out (Figure 11)."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosscast.report.canvas import new_figure
from crosscast.report.corun_figures.kind_styles import KIND_STYLES
from crosscast.report.corun_figures.log_errors import LEAST, error_scale
from crosscast.report.figure_style import heading, tidy
from crosscast.studies.moolchandani2022 import CombinationStudy

__all__ = ["violins_figure"]


def violins_figure(study: CombinationStudy, title: str) -> Any:
    """A panel a model, and in it a violin a benchmark, as wide as combinations have that error.

    Parameters
    ----------
    study
        The study.
    title
        What it is of.
    """
    groups = {name: 100 * errors for name, errors in study.by_benchmark().items()}
    names = list(groups)
    rows = -(-len(study.kinds) // 2)
    figure = new_figure(max(9.0, 2.5 + 0.6 * len(names)), 0.8 + 2.9 * rows)
    panels = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[len(study.kinds) :]:
        axes.set_visible(False)
    every = np.concatenate([values.ravel() for values in groups.values()])
    for place, (kind, axes) in enumerate(zip(study.kinds, panels, strict=False)):
        logs = [np.log10(np.maximum(_known(groups[name][:, place]), LEAST)) for name in names]
        drawn = [at for at, values in enumerate(logs) if len(values)]
        colour = KIND_STYLES[kind].colour
        parts = axes.violinplot([logs[at] for at in drawn], drawn, widths=0.85, showextrema=False)
        for body in parts["bodies"]:
            body.set(facecolor=colour, alpha=0.45, edgecolor=colour, linewidth=0.8)
        axes.plot(
            drawn,
            [np.median(logs[at]) for at in drawn],
            "_",
            color="black",
            markersize=9,
            markeredgewidth=1.5,
        )
        axes.set_title(kind, fontsize=9.5, loc="left")
        axes.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=8)
        tidy(axes)
    error_scale(panels[0], _known(every).tolist())
    for axes in panels[::2]:
        axes.set_ylabel("MAPE, % (logarithmic)", fontsize=9)
    heading(figure, title, f"lines: medians of the {len(study.names)} combinations")
    return figure


def _known(values: Any) -> Any:
    return values[np.isfinite(values)]

"""Errors over the combinations of features, for each benchmark that is left out (Figure 11)."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosscast.evaluate.corun.studies.combinations import CombinationStudy
from crosscast.predict.corun.published.table_6 import KINDS
from crosscast.report.canvas import new_figure
from crosscast.report.corun_figures.kind_styles import KIND_STYLES
from crosscast.report.corun_figures.log_errors import LEAST, error_scale
from crosscast.report.figure_style import heading, tidy

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
    groups = study.by_benchmark()
    names = list(groups)
    figure = new_figure(max(9.0, 2.5 + 0.6 * len(names)), 9.5)
    panels = figure.subplots(3, 2, sharex=True, sharey=True).ravel()
    every = np.concatenate([values.ravel() for values in groups.values()])
    for place, (kind, axes) in enumerate(zip(KINDS, panels, strict=True)):
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

"""Which features are on the paths of bags through decision trees (Figures 9 and 10)."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, heading, tidy
from crosscast.studies.moolchandani2022 import PathStudy

__all__ = ["path_shares_figure", "path_times_figure"]

_MOST = 25
_CIRCLES, _COLUMNS = 8, 4


def path_shares_figure(study: PathStudy, title: str) -> Any:
    """A bar a feature: the share of the bags on whose path it is.

    Parameters
    ----------
    study
        The paths.
    title
        What it is of.
    """
    order = sorted(range(len(study.features)), key=lambda place: -float(study.share[place]))[:_MOST]
    names = [study.features[place] for place in order]
    values = [100 * float(study.share[place]) for place in order]
    figure = new_figure(7, 1.7 + 0.27 * len(names))
    axes = figure.subplots()
    axes.barh(range(len(names)), values, color=BLUE, height=0.62, zorder=2)
    for place, value in enumerate(values):
        axes.text(value + 1, place, f"{value:.0f}", va="center", fontsize=8.5)
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 108)
    axes.set_xticks([0, 25, 50, 75, 100])
    axes.set_xlabel("bags on whose path it is, %")
    tidy(axes)
    axes.grid(visible=False, axis="y")
    left = len(study.features) - len(names)
    heading(figure, title + (f"; {left} more features not shown" if left else ""))
    return figure


def path_times_figure(study: PathStudy, title: str) -> Any:
    """Bags around a circle, a circle a feature; the radius is how many splits on their paths are at it.

    Parameters
    ----------
    study
        The paths.
    title
        What it is of.
    """
    chosen = study.times[:, :_CIRCLES]
    # Bags with alike paths beside each other.
    order = np.lexsort(chosen.T[::-1])
    angles = np.linspace(0, 2 * np.pi, len(chosen) + 1)
    rows = -(-chosen.shape[1] // _COLUMNS)
    figure = new_figure(2.6 * _COLUMNS, 0.9 + 2.8 * rows)
    most = max(1, int(chosen.max()))
    for place in range(chosen.shape[1]):
        axes = figure.add_subplot(rows, _COLUMNS, place + 1, projection="polar")
        values = chosen[order, place]
        axes.fill_between(angles, 0, np.append(values, values[-1]), step="post", color=BLUE, linewidth=0)
        axes.set_title(study.features[place], fontsize=9.5)
        axes.set_ylim(0, most)
        axes.set_yticks(range(1, most + 1), [str(count) for count in range(1, most + 1)], fontsize=7)
        axes.set_xticks([])
        axes.grid(color="#bbbbbb", linewidth=0.6)
        axes.spines["polar"].set_color("#bbbbbb")
    left = study.times.shape[1] - chosen.shape[1]
    heading(
        figure,
        title + (f"; {left} more features not shown" if left else ""),
        f"around each circle the same {len(chosen):,} bags; radius: splits at the feature on its path",
    )
    return figure

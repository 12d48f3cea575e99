"""Importances of features: average gain (Figure 8), and what shuffling costs."""

from __future__ import annotations

from typing import Any

from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, RED, heading, tidy
from crosscast.studies.nichols2024 import Importances

__all__ = ["importances_figure"]

_MOST = 25


def importances_figure(found: Importances, title: str) -> Any:
    """The features of the most gain, most first, with both importances.

    Parameters
    ----------
    found
        The importances.
    title
        What it is of.
    """
    features = found.features[:_MOST]
    figure = new_figure(10, 1.8 + 0.27 * len(features))
    gains, rises = figure.subplots(1, 2, sharey=True)
    names = [each.feature for each in features]
    gains.barh(names, [100 * each.gain for each in features], color=BLUE, height=0.62, zorder=2)
    gains.set_xlabel("average gain, % of the sum over all features")
    rises.barh(names, [each.rise for each in features], color=RED, height=0.62, zorder=2)
    rises.axvline(0, color="black", linewidth=0.8, zorder=3)
    rises.set_xlabel(f"rise of MAE ({found.mae:.3f}) when shuffled")
    for axes in (gains, rises):
        tidy(axes)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", labelsize=8.5)
        axes.locator_params(axis="x", nbins=5)
    gains.set_ylim(len(names) - 0.4, -0.6)
    more = len(found.features) - len(features)
    heading(
        figure,
        title + (f"; {more} more features not shown" if more else ""),
        "gain is what trees split at, not what performance depends on; features that go together share it",
    )
    return figure

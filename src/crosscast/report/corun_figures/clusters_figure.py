"""Clusters of bags (Figure 4)."""

from __future__ import annotations

from typing import Any

from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, GREEN, RED, heading, legend_below, tidy
from crosscast.report.numbers import percent
from crosscast.studies.corun import Clusters

__all__ = ["CLUSTER_COLOURS", "clusters_figure"]

CLUSTER_COLOURS = (RED, BLUE, GREEN)
_MARKS = ("o", "s", "^")


def clusters_figure(found: Clusters, title: str) -> Any:
    """Fairness over each other feature, the three clusters in colours.

    Parameters
    ----------
    found
        The clusters.
    title
        What it is of.
    """
    panels = len(found.features) - 1
    figure = new_figure(1.5 + 4.2 * panels, 4.8)
    for place, axes in enumerate(figure.subplots(1, panels, sharey=True, squeeze=False)[0], start=1):
        for label, each in enumerate(found.clusters):
            here = found.values[found.labels == label]
            axes.scatter(
                here[:, place],
                here[:, 0],
                s=16,
                marker=_MARKS[label],
                color=CLUSTER_COLOURS[label],
                alpha=0.55,
                linewidths=0,
                label=f"{each.bags:,} bags, {percent(each.share)} of those with {each.application}",
            )
        axes.set_xlabel(found.features[place])
        tidy(axes)
    figure.axes[0].set_ylabel("fairness of the bag")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend_below(figure, handles, labels, 2 if panels > 1 else 1)
    heading(figure, title)
    return figure

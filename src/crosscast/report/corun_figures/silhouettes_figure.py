"""How tight clusters of bags are (Figure 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosscast.report.canvas import new_figure
from crosscast.report.corun_figures.clusters_figure import CLUSTER_COLOURS
from crosscast.report.figure_style import BLUE, GREY, heading, tidy
from crosscast.studies.corun import TIGHT, Clusters

__all__ = ["silhouettes_figure"]


def silhouettes_figure(found: Clusters, title: str) -> Any:
    """The silhouette of each bag among three clusters, and the mean by their number.

    Parameters
    ----------
    found
        The clusters.
    title
        What it is of.
    """
    figure = new_figure(9.5, 4.4)
    each, means = figure.subplots(1, 2)
    start = 0
    gap = max(1, len(found.values) // 50)
    for label, colour in enumerate(CLUSTER_COLOURS):
        values = np.sort(found.silhouettes[found.labels == label])
        places = np.arange(start, start + len(values))
        each.fill_betweenx(places, 0, values, color=colour, linewidth=0, step="mid")
        start += len(values) + gap
    mean = found.scores[len(CLUSTER_COLOURS)]
    each.axvline(mean, color="black", linestyle="--", linewidth=1)
    side = "right" if mean > 0.5 * (found.silhouettes.max() + found.silhouettes.min()) else "left"
    shift = -4 if side == "right" else 4
    each.annotate(
        f"mean {mean:.2f}",
        (mean, 1),
        (shift, -10),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha=side,
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1},
    )
    each.set_yticks([])
    each.set_ylabel("bags, by cluster")
    each.set_xlabel("silhouette of each bag among three clusters")
    counts = list(found.scores)
    scores = [found.scores[count] for count in counts]
    colours = [BLUE if count == found.best else GREY for count in counts]
    means.bar(counts, scores, color=colours, width=0.62, zorder=2)
    for count, score in zip(counts, scores, strict=True):
        means.text(count, max(score, 0) + 0.01, f"{score:.2f}", ha="center", va="bottom", fontsize=8.5)
    means.axhline(TIGHT, color="black", linestyle=":", linewidth=1)
    means.text(
        counts[-1] + 0.5,
        TIGHT + 0.01,
        f"above {TIGHT:g}: tightly bound",
        ha="right",
        va="bottom",
        fontsize=8.5,
    )
    means.set_xticks(counts)
    means.set_ylim(min(0, *scores), max(0.85, 1.1 * max(scores)))
    means.set_xlabel("number of clusters")
    means.set_ylabel("mean silhouette")
    for axes in (each, means):
        tidy(axes)
    heading(figure, title)
    return figure

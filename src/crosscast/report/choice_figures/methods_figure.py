"""Methods beside each other: how often they keep to caps, and how fast they are then (Figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosscast.decide.scores import ChoiceResult
from crosscast.evaluation.confidence import SHARE
from crosscast.report.canvas import new_figure
from crosscast.report.choice_figures.styles import method_label, method_styles
from crosscast.report.figure_style import heading, legend_below, tidy

__all__ = ["methods_figure"]


def methods_figure(results: Sequence[ChoiceResult], title: str) -> Any:
    """A mark a method, with lines as long as what a bootstrap over programs leaves.

    Parameters
    ----------
    results
        A result for each method.
    title
        What it is of.
    """
    figure = new_figure(8, 6.2)
    axes = figure.subplots()
    styles = method_styles(results)
    for result in results:
        share, performance = result.metrics.under_limit_share, result.metrics.under_performance
        if share is None or performance is None:
            continue
        style, sure = styles[result.method], result.sure.intervals
        line = {"color": style.colour, "linewidth": 1, "alpha": 0.35, "zorder": 2}
        if (across := sure.get("under_limit_share")) is not None:
            axes.plot([100 * across.low, 100 * across.high], [100 * performance] * 2, **line)
        if (along := sure.get("under_performance")) is not None:
            axes.plot([100 * share] * 2, [100 * along.low, 100 * along.high], **line)
        axes.plot(
            [100 * share],
            [100 * performance],
            style.mark,
            color=style.colour,
            markerfacecolor=style.face,
            markeredgecolor=style.edge,
            markersize=8,
            markeredgewidth=1.5,
            linestyle="none",
            label=method_label(result),
            zorder=4,
            clip_on=False,
        )
    axes.set_xlabel("cases within the cap, %")
    axes.set_ylabel("performance in these, % of the oracle's")
    tidy(axes)
    handles, labels = axes.get_legend_handles_labels()
    legend_below(figure, handles, labels, 4)
    heading(
        figure,
        f"{title}: hollow marks choose once, filled ones follow what they measure",
        f"lines hold {100 * SHARE:g} % of bootstrap draws of the programs",
    )
    return figure

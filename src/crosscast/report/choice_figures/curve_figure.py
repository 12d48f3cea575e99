"""The score by the number of extra runs that methods may make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosscast.decide.scores import ChoiceResult
from crosscast.report.canvas import new_figure
from crosscast.report.choice_figures.styles import method_label, method_styles
from crosscast.report.figure_style import heading, legend_below, tidy

__all__ = ["curve_figure"]

_LIMITER = "limiter"


def curve_figure(results: Sequence[ChoiceResult], title: str) -> Any:
    """A line a method; the limiter without a model is thicker.

    Parameters
    ----------
    results
        A result for each method.
    title
        What it is of.
    """
    figure = new_figure(8, 6.0)
    axes = figure.subplots()
    styles = method_styles(results)
    for result in results:
        style = styles[result.method]
        scores = [100 * (metrics.score or 0.0) for metrics in result.curve.metrics]
        axes.plot(
            result.curve.budgets,
            scores,
            color=style.colour,
            linestyle=style.dashes,
            linewidth=4 if result.method == _LIMITER else 1.5,
            marker=style.mark,
            markerfacecolor=style.face,
            markeredgecolor=style.edge,
            markersize=5.5,
            label=method_label(result),
            clip_on=False,
            # Those that begin as the limiter does are drawn over it.
            zorder=2 if result.method == _LIMITER else 3,
        )
    axes.set_xlabel("extra runs that are allowed after the first choice")
    axes.set_ylabel("S: performance with violations counting 0, % of the oracle's")
    axes.set_ylim(0, 100)
    axes.set_xticks(results[0].curve.budgets)
    tidy(axes)
    handles, labels = axes.get_legend_handles_labels()
    legend_below(figure, handles, labels, 4)
    heading(figure, title)
    return figure

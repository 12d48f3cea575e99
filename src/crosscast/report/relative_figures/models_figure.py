"""Models beside each other: MAE and same order score (Figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crosscast.evaluation.confidence import SHARE
from crosscast.evaluation.relative import RelativeResult
from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, GREY, heading, tidy

__all__ = ["models_figure"]


def models_figure(results: Sequence[RelativeResult], title: str) -> Any:
    """A bar a model in each of two panels, with lines as long as what a bootstrap over groups leaves.

    Parameters
    ----------
    results
        A result for each model.
    title
        What it is of.
    """
    figure = new_figure(9, 1.7 + 0.42 * len(results))
    panels = figure.subplots(1, 2, sharey=True)
    names = [result.model for result in results]
    colours = [GREY if result.baseline else BLUE for result in results]
    # What is off the scale of the others, such as lines far from what they were fitted to, would hide them.
    ends = (2.5 * sorted(each.metrics.mae for each in results)[len(results) // 2], 1.0)
    for axes, metric, label, end in zip(
        panels,
        ("mae", "same_order"),
        ("MAE (less is better)", "same order (more is better)"),
        ends,
        strict=True,
    ):
        values = [getattr(result.metrics, metric) for result in results]
        axes.barh(names, [min(value, end) for value in values], color=colours, height=0.62, zorder=2)
        limit = min(end, max(values)) if metric == "mae" else end
        for place, (result, value) in enumerate(zip(results, values, strict=True)):
            interval = result.sure.intervals.get(metric)
            right = min(value, end)
            if interval is not None and value <= end:
                high = min(interval.high, end)
                axes.plot([interval.low, high], [place] * 2, color="black", linewidth=1.2, zorder=3)
                right = max(right, high)
            text = f" {value:.3f}" if value <= end else f" {value:,.2f} →"
            axes.text(right, place, text, va="center", fontsize=9)
            limit = max(limit, right)
        axes.set_xlim(0, 1.3 * limit)
        if metric != "mae":
            axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axes.set_xlabel(label)
        tidy(axes)
        axes.grid(visible=False, axis="y")
    panels[0].invert_yaxis()
    heading(figure, title, f"lines hold {100 * SHARE:g} % of bootstrap draws of groups; grey: baselines")
    return figure

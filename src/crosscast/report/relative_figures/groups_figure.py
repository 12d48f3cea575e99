"""MAE of what is left out, group by group (Figures 6 and 7)."""

from __future__ import annotations

from typing import Any

from crosscast.evaluation.relative import RelativeEvaluation
from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, GREY, heading, tidy

__all__ = ["groups_figure"]

_ROOM = 0.12
"""Share of the axis that a number takes."""


def groups_figure(evaluation: RelativeEvaluation, title: str) -> Any:
    """A bar a group for the best model, and a mark for the best baseline.

    Parameters
    ----------
    evaluation
        The evaluation that left each group out.
    title
        What it is of.
    """
    best = evaluation.best()
    baselines = [result for result in evaluation.results if result.baseline and result is not best]
    names = list(best.per_group)
    figure = new_figure(8, 1.9 + 0.3 * len(names))
    axes = figure.subplots()
    values = [best.per_group[name].mae for name in names]
    axes.barh(range(len(names)), values, color=BLUE, height=0.62, zorder=2, label=best.model)
    ends = values
    if baselines:
        rival = min(baselines, key=lambda each: each.metrics.mae)
        others = [rival.per_group[name].mae for name in names]
        axes.plot(
            others,
            range(len(names)),
            "D",
            color=GREY,
            markersize=6.5,
            markeredgecolor="white",
            zorder=3,
            label=rival.model,
            clip_on=False,
        )
        ends = [max(pair) for pair in zip(values, others, strict=True)]
    for place, (value, end) in enumerate(zip(values, ends, strict=True)):
        # Within its bar, as what stands beside a mark would seem to be the mark's.
        fits = value > _ROOM * max(ends)
        at, colour = (0.01 * max(ends), "white") if fits else (end + 0.02 * max(ends), "black")
        axes.text(at, place, f"{value:.3f}", va="center", fontsize=8.5, color=colour)
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_xlim(0, 1.15 * max(ends))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("MAE where it is left out")
    tidy(axes)
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    heading(figure, title)
    return figure

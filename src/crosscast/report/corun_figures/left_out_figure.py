"""Errors of what is left out, one by one (Figure 6)."""

from __future__ import annotations

from typing import Any

from crosscast.evaluation.corun import CoRunResult
from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, GREY, heading, legend_below, tidy

__all__ = ["left_out_figure"]

_ROOM = 0.08
"""Share of the axis that a number takes."""


def left_out_figure(best: CoRunResult, rival: CoRunResult | None, title: str) -> Any:
    """A bar for each group that was left out, and a mark for a baseline.

    Parameters
    ----------
    best
        The model, with errors by group.
    rival
        The baseline, if there is one.
    title
        What it is of.
    """
    groups = {name: 100 * error for name, error in (best.by_group or {}).items()}
    names = sorted(groups, key=lambda name: (-groups[name], name))
    figure = new_figure(8, 2.0 + 0.28 * len(names))
    axes = figure.subplots()
    values = [groups[name] for name in names]
    axes.barh(range(len(names)), values, color=BLUE, height=0.62, zorder=2, label=best.model)
    marks = [float("nan")] * len(names)
    if rival is not None:
        marks = [100 * (rival.by_group or {}).get(name, float("nan")) for name in names]
        axes.plot(
            marks,
            range(len(names)),
            "D",
            color=GREY,
            markersize=6,
            markeredgecolor="white",
            zorder=3,
            label=f"{rival.model} (baseline)",
            clip_on=False,
        )
    limit = 1.15 * max(each for each in (*values, *marks) if each == each)
    for place, (value, mark) in enumerate(zip(values, marks, strict=True)):
        # Within its bar if it is long enough; else beyond, unless it would be over the mark.
        fits = value > _ROOM * limit
        hidden = value - _ROOM * limit / 4 < mark < value + _ROOM * limit
        end = (mark if hidden else value) + 0.015 * limit
        at, colour = (0.01 * limit, "white") if fits else (end, "black")
        axes.text(at, place, f"{value:.1f}", va="center", fontsize=8.5, color=colour)
    if best.mape is not None:
        axes.axvline(100 * best.mape, color="black", linewidth=1, linestyle="--", zorder=4, label="its mean")
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_xlim(0, limit)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("MAPE where it is left out, %")
    tidy(axes)
    axes.grid(visible=False, axis="y")
    handles, labels = axes.get_legend_handles_labels()
    legend_below(figure, handles, labels, 3)
    heading(figure, title)
    return figure

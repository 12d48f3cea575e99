"""Errors of what is left out, one by one (Figure 6)."""

from __future__ import annotations

from typing import Any

from crosscast.evaluate.corun.result import CoRunResult
from crosscast.report.canvas import new_figure
from crosscast.report.figure_style import BLUE, GREY, heading, legend_below, tidy

__all__ = ["left_out_figure"]


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
    groups = best.by_group or {}
    names = sorted(groups, key=lambda name: (-groups[name], name))
    figure = new_figure(8, 2.0 + 0.28 * len(names))
    axes = figure.subplots()
    values = [groups[name] for name in names]
    axes.barh(range(len(names)), values, color=BLUE, height=0.62, zorder=2, label=best.model)
    ends = values
    if rival is not None:
        others = [(rival.by_group or {}).get(name, float("nan")) for name in names]
        axes.plot(
            others,
            range(len(names)),
            "D",
            color=GREY,
            markersize=6,
            markeredgecolor="white",
            zorder=3,
            label=f"{rival.model} (baseline)",
            clip_on=False,
        )
        ends = [max(pair) for pair in zip(values, others, strict=True)]
    limit = 1.15 * max(ends)
    for place, (value, end) in enumerate(zip(values, ends, strict=True)):
        # Within its bar, as what stands beside a mark would seem to be the mark's.
        fits = value > 0.12 * limit
        at, colour = (0.01 * limit, "white") if fits else (end + 0.02 * limit, "black")
        axes.text(at, place, f"{value:.1f}", va="center", fontsize=8.5, color=colour)
    if best.mape is not None:
        axes.axvline(best.mape, color="black", linewidth=1, linestyle="--", zorder=4, label="its mean")
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

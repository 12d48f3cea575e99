"""Makespan and slowdown of each placement (Figures 9 and 10 of Nichols et al. 2024)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from crosscast.cluster.experiment.mean_interval import SHARE, Mean
from crosscast.cluster.experiment.run import Experiment
from crosscast.report.axis_scale import WIDE
from crosscast.report.canvas import new_figure, save_figure
from crosscast.report.figure_style import BLUE, GREY, heading, tidy
from crosscast.report.numbers import plural
from crosscast.report.plain_text import plain_text
from crosscast.units import elapsed_unit

__all__ = ["placement_figure", "write_placement_figure"]


def write_placement_figure(found: Experiment, path: Path, title: str) -> Path:
    """Draw an experiment and write the picture; see `placement_figure`.

    Raises
    ------
    InputError
        If it cannot be written.
    MissingExtraError
        If matplotlib is not installed.
    """
    return save_figure(placement_figure(found, title), path)


def placement_figure(found: Experiment, title: str) -> Any:
    """A bar a placement for the makespan, and one for the average bounded slowdown, with intervals.

    Parameters
    ----------
    found
        The experiment.
    title
        What it is of.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    names = [each.placement for each in found.results]
    figure = new_figure(10, 2.0 + 0.42 * len(names))
    left, right = figure.subplots(1, 2, sharey=True)
    spans = [each.makespan_s for each in found.results]
    unit_s, unit = elapsed_unit(max(each.value for each in spans))
    _bars(left, names, [_in(each, unit_s) for each in spans])
    left.set_xlabel(f"makespan, {unit}")
    if found.least_makespan_s is not None:
        left.axvline(found.least_makespan_s.value / unit_s, color=GREY, linestyle=(0, (4, 2)), linewidth=1.2)
    slowdowns = [each.average_bounded_slowdown for each in found.results]
    _bars(right, names, slowdowns)
    right.set_xlabel("average bounded slowdown")
    values = [each.value for each in slowdowns]
    if max(values) > WIDE * min(values):
        right.set_xscale("log")
        right.set_xlim(left=1)
    left.invert_yaxis()
    seeds = len(found.setup.seeds)
    sure = f"; lines hold {100 * SHARE:g} % over {plural(seeds, 'seed')}" if seeds > 1 else ""
    least = "; dashed: no placement can do better" if found.least_makespan_s is not None else ""
    heading(figure, plain_text(title), f"less is better{sure}{least}")
    return figure


def _in(mean: Mean, unit: float) -> Mean:
    low, high = (None if end is None else end / unit for end in (mean.low, mean.high))
    return Mean(mean.value / unit, low, high)


def _bars(axes: Any, names: list[str], means: list[Mean]) -> None:
    places = np.arange(len(names))
    axes.barh(places, [mean.value for mean in means], height=0.62, color=BLUE, alpha=0.8, zorder=2)
    for place, mean in zip(places, means, strict=True):
        end = mean.value
        if mean.interval is not None:
            axes.plot(mean.interval, [place, place], color="black", linewidth=2, zorder=3)
            end = max(end, mean.interval[1])
        text = f"{mean.value:.3g}" if mean.value < 100 else f"{mean.value:,.0f}"
        axes.annotate(
            text, (end, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8.5
        )
    axes.set_yticks(places, names)
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    tidy(axes)
    axes.grid(visible=False, axis="y")

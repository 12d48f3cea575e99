"""How many jobs wait, over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.cluster.jobs import Reals
from crosscast.cluster.steps import Steps
from crosscast.report.canvas import new_figure, save_figure
from crosscast.report.elapsed_axis import label_elapsed
from crosscast.report.figure_style import BLUE, GREEN, ORANGE, PINK, RED, SKY, heading, legend_below, tidy
from crosscast.report.plain_text import plain_text

__all__ = ["queue_figure", "write_queue_figure"]

_COLOURS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, "#7a6a00")
_DASHES = ("solid", (0, (5, 1.5)), (0, (1, 1.2)))
_DENSE = 4000
"""Parts into which long lines are cut; each keeps its least and its greatest value."""

_WIDE = 30.0
"""Ratio of the longest queues of two lines from which on the axis is logarithmic, but for 0 and 1."""


def write_queue_figure(
    lengths: Mapping[str, Steps], path: Path, title: str, *, origin_s: float, from_s: float, to_s: float
) -> Path:
    """Draw queues and write the picture; see `queue_figure`.

    Raises
    ------
    InputError
        If it cannot be written.
    MissingExtraError
        If matplotlib is not installed.
    """
    return save_figure(queue_figure(lengths, title, origin_s=origin_s, from_s=from_s, to_s=to_s), path)


def queue_figure(
    lengths: Mapping[str, Steps], title: str, *, origin_s: float, from_s: float, to_s: float
) -> Any:
    """A line of steps for each policy or placement.

    Parameters
    ----------
    lengths
        Waiting jobs over time, by the name of what is compared; at least one.
    title
        What it is of.
    origin_s
        Time of the first submission, in seconds.
    from_s, to_s
        What to draw, in seconds since then.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    figure = new_figure(11, 4.4)
    axes = figure.subplots()
    unit_s = label_elapsed(axes, from_s, to_s)
    longest = []
    for place, (name, steps) in enumerate(lengths.items()):
        time_s, count = _within(steps, origin_s + from_s, origin_s + to_s)
        longest.append(float(count.max()))
        axes.plot(
            (time_s - origin_s) / unit_s,
            count,
            drawstyle="steps-post",
            color=_COLOURS[place % len(_COLOURS)],
            linestyle=_DASHES[place // len(_COLOURS) % len(_DASHES)],
            linewidth=1.0,
            label=f"{name} (at most {count.max():,.0f})",
        )
    if max(longest) > _WIDE * max(min(longest), 1.0):
        axes.set_yscale("symlog", linthresh=1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylabel("jobs that wait")
    axes.set_ylim(bottom=0)
    tidy(axes)
    handles, labels = axes.get_legend_handles_labels()
    legend_below(figure, handles, labels, 4)
    heading(figure, plain_text(title))
    return figure


def _within(steps: Steps, from_s: float, to_s: float) -> tuple[Reals, Reals]:
    """Steps between two times, with what is at both ends; only extremes where there are very many."""
    inside = (steps.time_s > from_s) & (steps.time_s < to_s)
    time_s = np.concatenate(([from_s], steps.time_s[inside], [to_s]))
    count = np.concatenate(
        (steps.at(np.array([from_s])), steps.count[inside], steps.at(np.array([to_s])))
    ).astype(np.float64)
    if len(time_s) <= 4 * _DENSE:
        return time_s, count
    cuts = np.unique(np.searchsorted(time_s, np.linspace(from_s, to_s, _DENSE, endpoint=False)))
    least, most = np.minimum.reduceat(count, cuts), np.maximum.reduceat(count, cuts)
    ends = np.append(time_s[cuts[1:]], time_s[-1])
    # The least, then the greatest, each for half of the part: what a line of all steps would fill.
    middle = (time_s[cuts] + ends) / 2
    both_s = np.stack((time_s[cuts], middle), axis=1).ravel()
    return np.append(both_s, to_s), np.append(np.stack((least, most), axis=1).ravel(), count[-1])

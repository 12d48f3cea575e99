"""The timeline of a schedule: which job has which processors, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from crosscast.cluster.jobs import Integers, Reals
from crosscast.cluster.rectangles import Rectangles, rectangles
from crosscast.cluster.schedule import Schedule
from crosscast.errors import InputError
from crosscast.report.canvas import new_figure, save_figure
from crosscast.report.elapsed_axis import label_elapsed
from crosscast.report.figure_style import BLUE, GREEN, ORANGE, PINK, RED, SKY, heading, legend_below
from crosscast.report.plain_text import plain_text
from crosscast.units import format_elapsed

__all__ = ["MOST_JOBS", "Colour", "gantt", "write_gantt"]

Colour = Literal["wait", "user"]

MOST_JOBS = 1_000_000
"""Most jobs of a timeline."""

_EDGED = 1500
"""Up to so many rectangles have edges."""

_NO_WAIT = "#c9ced6"
_OTHERS = "#d5d5d5"
# The palette, and two between.
_USERS = (BLUE, RED, GREEN, ORANGE, PINK, SKY, "#7a6a00", "#332288")
_TICKS = {
    1.0: "1 s",
    10.0: "10 s",
    60.0: "1 min",
    600.0: "10 min",
    3600.0: "1 h",
    21_600.0: "6 h",
    86_400.0: "1 d",
    604_800.0: "1 week",
    2_592_000.0: "30 d",
}


def write_gantt(
    schedule: Schedule, path: Path, title: str, *, colour: Colour = "wait", from_s: float = 0.0, to_s: float
) -> Path:
    """Draw a timeline and write it; see `gantt`.

    Raises
    ------
    InputError
        As `gantt` does, or if it cannot be written.
    MissingExtraError
        If matplotlib is not installed.
    """
    return save_figure(gantt(schedule, title, colour=colour, from_s=from_s, to_s=to_s), path)


def gantt(
    schedule: Schedule, title: str, *, colour: Colour = "wait", from_s: float = 0.0, to_s: float
) -> Any:
    """A panel a machine, a rectangle a job: time across, processors up.

    Parameters
    ----------
    schedule
        The schedule.
    title
        What it is of.
    colour
        Whether colours tell how long jobs waited, or whose they are: the users with the most
        processor-seconds have their own.
    from_s, to_s
        What to draw, in seconds since the first submission.

    Raises
    ------
    InputError
        If no job runs then, too many do, or users are asked for and not known.
    MissingExtraError
        If matplotlib is not installed.
    """
    if colour == "user" and schedule.jobs.user is None:
        raise InputError("colour: expected jobs with users, found none")
    origin_s = float(schedule.jobs.submit_s[0])
    shows = (schedule.end_s > origin_s + from_s) & (schedule.start_s < origin_s + to_s)
    count = int(np.count_nonzero(shows))
    if not count:
        raise InputError(
            f"timeline: expected jobs from {format_elapsed(from_s)} to {format_elapsed(to_s)}, found none"
        )
    if count > MOST_JOBS:
        raise InputError(
            f"timeline: expected at most {MOST_JOBS:,} jobs from {format_elapsed(from_s)} to "
            f"{format_elapsed(to_s)}, found {count:,}: draw a part of it with --from and --to"
        )
    parts = [
        rectangles(schedule, place, origin_s + from_s, origin_s + to_s)
        for place in range(len(schedule.machines))
    ]
    heights = np.array([machine.procs for machine in schedule.machines], dtype=np.float64)
    heights = np.maximum(heights / heights.max(), 0.25)
    figure = new_figure(11, 1.9 + 3.1 * float(heights.sum()))
    panels = figure.subplots(len(parts), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    paint = _by_wait if colour == "wait" else _by_user
    colours = paint(figure, panels, schedule, shows)
    unit_s = label_elapsed(panels[-1], from_s, to_s)
    for axes, part, machine in zip(panels, parts, schedule.machines, strict=True):
        _draw(axes, part, colours, origin_s, unit_s)
        axes.set_ylim(0, machine.procs)
        axes.set_ylabel("processors" if len(parts) == 1 else plain_text(machine.name))
        axes.spines[["top", "right"]].set_visible(False)
    heading(figure, plain_text(title))
    return figure


def _draw(axes: Any, part: Rectangles, colours: Any, origin_s: float, unit_s: float) -> None:
    from matplotlib.collections import PolyCollection

    left, right = (part.start_s - origin_s) / unit_s, (part.end_s - origin_s) / unit_s
    low, high = part.first, part.first + part.procs
    corners = np.stack(
        [np.stack([x, y], axis=1) for x, y in ((left, low), (right, low), (right, high), (left, high))],
        axis=1,
    )
    few = len(part) <= _EDGED
    axes.add_collection(
        PolyCollection(
            list(corners),
            facecolors=colours[part.job],
            edgecolors="white" if few else "none",
            linewidths=0.3 if few else 0,
            # Neighbours of many thousand would let the background through; files of lines would be huge.
            antialiased=few,
            rasterized=not few,
        )
    )


def _by_wait(figure: Any, panels: Any, schedule: Schedule, shows: Any) -> Any:
    """Colours by the logarithm of the wait, with a bar that says which."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, to_rgba

    wait_s: Reals = schedule.wait_s
    longest_s = max(float(wait_s[shows].max()), 10.0)
    scale = ScalarMappable(LogNorm(1.0, longest_s), colormaps["plasma_r"])
    colours = scale.to_rgba(np.clip(wait_s, 1.0, longest_s))
    colours[wait_s < 1.0] = to_rgba(_NO_WAIT)
    bar = figure.colorbar(scale, ax=list(panels), pad=0.015, fraction=0.03, aspect=30)
    ticks = {seconds: text for seconds, text in _TICKS.items() if seconds <= longest_s}
    bar.set_ticks(list(ticks), labels=list(ticks.values()))
    bar.minorticks_off()
    bar.outline.set_visible(False)
    bar.set_label("wait (grey: less than a second)")
    return colours


def _by_user(figure: Any, panels: Any, schedule: Schedule, shows: Any) -> Any:
    """A colour for each of the users with the most processor-seconds, grey for the others."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    user = schedule.jobs.user
    assert user is not None
    work = np.bincount(
        user[shows],
        weights=(schedule.jobs.procs * schedule.ran_s)[shows],
        minlength=len(schedule.jobs.users),
    )
    first: Integers = np.argsort(-work, kind="stable")[: len(_USERS)]
    named = [place for place in first.tolist() if work[place] > 0]
    palette = np.tile(to_rgba(_OTHERS), (len(schedule.jobs.users), 1))
    handles: list[Patch] = []
    for place, name in zip(named, _USERS, strict=False):
        palette[place] = to_rgba(name)
        handles.append(Patch(color=name, label=plain_text(f"user {schedule.jobs.users[place]}")))
    if np.count_nonzero(work) > len(named):
        handles.append(Patch(color=_OTHERS, label=f"{np.count_nonzero(work) - len(named):,} others"))
    legend_below(figure, handles, [str(handle.get_label()) for handle in handles], 9)
    return palette[user]

"""Figures of schedules: timelines, queues, and comparisons of placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster import Schedule
from crosscast.cluster.experiment import SHARE, Experiment, SeedMean
from crosscast.cluster.resources import Rectangles, Steps, rectangles
from crosscast.errors import InputError
from crosscast.report import figures as draw
from crosscast.report.fields import plural, three_digits
from crosscast.units import elapsed_unit, format_elapsed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Colour = Literal["wait", "user"]

MOST_JOBS = 1_000_000
"""Most jobs of a timeline."""

_EDGED = 1500
"""Largest number of rectangles with edges."""

_NO_WAIT = "#c9ced6"
_OTHERS = "#d5d5d5"
_USER_COLOURS = (*draw.COLOURS, draw.INDIGO)
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


def gantt(
    schedule: Schedule, title: str, *, colour: Colour = "wait", from_s: float = 0.0, to_s: float
) -> Figure:
    """Draw a panel for each machine, with a rectangle for each job: processors over time."""
    if colour == "user" and schedule.jobs.user is None:
        raise InputError.of(where="colour", expected="jobs with users", found="none")
    origin_s = float(schedule.jobs.submit_s[0])
    shows = (schedule.end_s > origin_s + from_s) & (schedule.start_s < origin_s + to_s)
    count = int(np.count_nonzero(shows))
    if not count:
        raise InputError.of(
            where="timeline",
            expected=f"jobs from {format_elapsed(from_s)} to {format_elapsed(to_s)}",
            found="none",
        )
    if count > MOST_JOBS:
        raise InputError.of(
            where="timeline",
            field="jobs",
            expected=f"at most {MOST_JOBS:,} from {format_elapsed(from_s)} to {format_elapsed(to_s)}",
            found=f"{count:,}: draw a part of it with --window",
        )
    parts = [
        rectangles(schedule, machine, origin_s + from_s, origin_s + to_s)
        for machine in range(len(schedule.machines))
    ]
    heights = np.array([machine.procs for machine in schedule.machines], dtype=np.float64)
    heights = np.maximum(heights / heights.max(), 0.25)
    figure = draw.new_figure(11, 1.9 + 3.1 * float(heights.sum()))
    grid = figure.subplots(len(parts), 1, sharex=True, squeeze=False, height_ratios=heights)
    panels: list[Axes] = grid[:, 0].tolist()
    paint = _by_wait if colour == "wait" else _by_user
    colours = paint(figure, panels, schedule, shows)
    unit_s = draw.label_elapsed(panels[-1], from_s, to_s)
    for axes, part, machine in zip(panels, parts, schedule.machines, strict=True):
        _draw(axes, part, colours, origin_s, unit_s)
        axes.set_ylim(0, machine.procs)
        axes.set_ylabel("processors" if len(parts) == 1 else draw.plain_text(machine.name))
        axes.spines[["top", "right"]].set_visible(False)
    return draw.titled(figure, draw.plain_text(title))


def _draw(axes: Axes, part: Rectangles, colours: Reals, origin_s: float, unit_s: float) -> None:
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
            # With many rectangles, antialiasing shows the background between them, and vectors are huge.
            antialiased=few,
            rasterized=not few,
        )
    )


def _by_wait(figure: Figure, panels: Sequence[Axes], schedule: Schedule, shows: Flags) -> Reals:
    """Colours by the logarithm of the wait, with a colour bar."""
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


def _by_user(figure: Figure, panels: Sequence[Axes], schedule: Schedule, shows: Flags) -> Reals:
    """Colours of the users with the most processor-seconds; others are grey."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Patch

    user = schedule.jobs.user
    assert user is not None
    occupied = (schedule.jobs.procs * schedule.ran_s)[shows]
    work = np.bincount(user[shows], weights=occupied, minlength=len(schedule.jobs.users))
    first: Integers = np.argsort(-work, kind="stable")[: len(_USER_COLOURS)]
    named = [number for number in first.tolist() if work[number] > 0]
    palette = np.tile(to_rgba(_OTHERS), (len(schedule.jobs.users), 1))
    handles: list[Patch] = []
    for number, colour in zip(named, _USER_COLOURS, strict=False):
        palette[number] = to_rgba(colour)
        handles.append(Patch(color=colour, label=draw.plain_text(f"user {schedule.jobs.users[number]}")))
    if np.count_nonzero(work) > len(named):
        handles.append(Patch(color=_OTHERS, label=f"{np.count_nonzero(work) - len(named):,} others"))
    draw.legend_below(figure, 9, {str(handle.get_label()): handle for handle in handles})
    return palette[user]


_LETTERS = 120
"""Letters that fit into a row of a legend."""
_DENSE = 4000
"""Number of parts into which long lines are divided; each is drawn by its least and greatest value."""


def queue_figure(
    lengths: Mapping[str, Steps],
    title: str,
    *,
    origin_s: float,
    from_s: float,
    to_s: float,
    what: str = "waiting jobs",
    limit: str | None = None,
) -> Figure:
    """Draw a step function for each policy or placement: waiting jobs, or another count.

    The one that is called `limit` is what all others keep to: it is black, and does not take one of the
    colours, so that a policy has the same in each figure.
    """
    figure, axes = draw.one_figure(11, 4.4)
    unit_s = draw.label_elapsed(axes, from_s, to_s)
    longest = []
    order = {name: index for index, name in enumerate(name for name in lengths if name != limit)}
    for name, length in lengths.items():
        index = order.get(name, 0)
        time_s, count = _cut(length, origin_s + from_s, origin_s + to_s)
        longest.append(float(count.max()))
        draw.steps(
            axes,
            (time_s - origin_s) / unit_s,
            count,
            color=draw.BLACK if name == limit else draw.COLOURS[index % len(draw.COLOURS)],
            linestyle=draw.DASHES[index // len(draw.COLOURS) % len(draw.DASHES)],
            linewidth=1.0,
            label=f"{name} (at most {count.max():,.0f})",
        )
    # With very long queues beside short ones the axis is logarithmic, except between 0 and 1.
    if max(longest) > draw.WIDE * max(min(longest), 1.0):
        axes.set_yscale("symlog", linthresh=1)
    else:
        axes.locator_params(axis="y", integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylabel(what)
    # Without a queue, the axis still needs two whole numbers.
    axes.set_ylim(0, max(1.05 * max(longest), 1.0))
    draw.style_axes(axes)
    widest = max(len(str(line.get_label())) for line in axes.get_lines())
    draw.legend_below(figure, min(4, max(1, _LETTERS // widest)))
    return draw.titled(figure, draw.plain_text(title))


def _cut(length: Steps, from_s: float, to_s: float) -> tuple[Reals, Reals]:
    """Steps between two times, with the counts at both ends; long ones are reduced to extremes."""
    inside = (length.time_s > from_s) & (length.time_s < to_s)
    time_s = np.concatenate(([from_s], length.time_s[inside], [to_s]))
    ends = length.at(np.array([from_s, to_s]))
    count = np.concatenate((ends[:1], length.count[inside], ends[1:])).astype(np.float64)
    if len(time_s) <= 4 * _DENSE:
        return time_s, count
    cuts = np.unique(np.searchsorted(time_s, np.linspace(from_s, to_s, _DENSE, endpoint=False)))
    least, most = np.minimum.reduceat(count, cuts), np.maximum.reduceat(count, cuts)
    # The least, then the greatest, each for half of the part, covers what a line of all steps would.
    middle = (time_s[cuts] + np.append(time_s[cuts[1:]], time_s[-1])) / 2
    both_s = np.stack((time_s[cuts], middle), axis=1).ravel()
    return np.append(both_s, to_s), np.append(np.stack((least, most), axis=1).ravel(), count[-1])


def placement_figure(experiment: Experiment, title: str) -> Figure:
    """Draw bars of the makespan and the average bounded slowdown of each placement, with intervals."""
    results = experiment.results
    figure = draw.new_figure(10, 2.0 + 0.42 * len(results))
    left, right = figure.subplots(1, 2, sharey=True)
    unit_s, unit = elapsed_unit(max(result.makespan_s.value for result in results))
    _draw_means(left, {result.placement: result.makespan_s for result in results}, unit_s)
    left.set_xlabel(f"makespan, {unit}")
    bound = experiment.least_makespan_s
    if bound is not None:
        left.axvline(bound.value / unit_s, color=draw.GREY, linestyle=(0, (4, 2)), linewidth=1.2)
    slowdowns = {result.placement: result.average_bounded_slowdown for result in results}
    _draw_means(right, slowdowns, 1.0)
    right.set_xlabel("average bounded slowdown")
    values = [mean.value for mean in slowdowns.values()]
    if max(values) > draw.WIDE * min(values):
        right.set(xscale="log", xlim=(1, 4 * max(values)))
    seeds = len(experiment.setup.seeds)
    lines = f"; lines hold {100 * SHARE:g} % over {plural(seeds, 'seed')}" if seeds > 1 else ""
    dashed = "" if bound is None else "; dashed: no placement can do better"
    return draw.titled(figure, draw.plain_text(title), f"less is better{lines}{dashed}")


def _draw_means(axes: Axes, means: Mapping[str, SeedMean], unit: float) -> None:
    intervals = [mean.interval for mean in means.values()]
    draw.bars(
        axes,
        {name: mean.value / unit for name, mean in means.items()},
        write=three_digits,
        intervals=[None if limits is None else (limits[0] / unit, limits[1] / unit) for limits in intervals],
    )

"""Schedules of a trace by several policies, and experiments with placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crosscast.cluster.experiment import REFERENCES, SHARE, Experiment, Mean
from crosscast.cluster.experiment_jobs import JobTable
from crosscast.cluster.jobs import Integers, Machine, Reals, Schedule
from crosscast.cluster.metrics import Rectangles, Steps, rectangles
from crosscast.cluster.placements import without_choice
from crosscast.cluster.policies import PolicyResult, policy_label
from crosscast.cluster.swf import CleanedJobs, Trace
from crosscast.errors import InputError
from crosscast.report.document import Heading, Part, Report, Table
from crosscast.report.figures import (
    COLOURS,
    DASHES,
    GREY,
    INDIGO,
    WIDE,
    bars,
    heading,
    label_elapsed,
    legend_below,
    new_figure,
    plain_text,
    save_figure,
    steps,
    style_axes,
)
from crosscast.report.numbers import NONE, factor, percent, plural
from crosscast.units import elapsed_unit, format_count, format_elapsed, format_seconds

_USERS = 15
"""Users that a table lists: those with the most jobs."""

_LEGEND = (
    "Makespan: from the first submission to the last end. "
    "Slowdown: mean of max(1, (wait + run) / max(run, 10 s)). "
    "Used: share of the processor-seconds of the makespan. Less is better in all columns before it."
)


def trace_facts(
    trace: Trace, found: CleanedJobs, machines: Sequence[Machine], estimates: str
) -> dict[str, Any]:
    """What was scheduled, for JSON and for people."""
    submit_s = found.jobs.submit_s
    procs, header = sum(machine.procs for machine in machines), trace.header.procs
    notes = found.notes()
    if header is not None and procs != header:
        notes.append(f"the header says {plural(header, 'processor')}: {procs:,} are simulated")
    return {
        "name": trace.label,
        "computer": trace.header.fields.get("Computer"),
        "lines": len(trace),
        "jobs": len(found.jobs),
        "users": len(found.jobs.users) or None,
        "submitted_within_s": float(submit_s[-1] - submit_s[0]),
        "machines": [{"machine": machine.name, "procs": machine.procs} for machine in machines],
        "estimates": estimates,
        "left_out": dict(found.left_out),
        "notes": notes,
    }


def policies_report(
    results: Sequence[PolicyResult], facts: Mapping[str, Any], *, users: bool = False
) -> Report:
    """What was scheduled, a row a policy, and machines and users where that says more."""
    parts: list[Part] = [
        Heading(_subject(facts), 1),
        *(f"  {note}" for note in facts["notes"]),
        "",
        _policies(results),
    ]
    if len(facts["machines"]) > 1:
        parts += [_machines(result) for result in results]
    if users:
        parts += [_users(result) for result in results]
    return Report([*parts, "", _LEGEND])


def slowdown(value: float | None) -> str:
    """A slowdown for people.

    >>> slowdown(1.234), slowdown(12345.6), slowdown(None)
    ('1.23', '12,346', '—')
    """
    if value is None:
        return NONE
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def share(value: float | None) -> str:
    """A share as a percentage with a decimal."""
    return percent(value, 1)


def _subject(facts: Mapping[str, Any]) -> str:
    machines = ", ".join(
        f"{machine['machine']} ({plural(machine['procs'], 'processor')})" for machine in facts["machines"]
    )
    computer = f" of {facts['computer']}" if facts["computer"] else ""
    within = format_elapsed(facts["submitted_within_s"])
    jobs = plural(facts["jobs"], "job")
    return (
        f"{facts['name']}: {jobs}{computer}, submitted within {within}, on {machines}; "
        f"{facts['estimates']} times as estimates"
    )


def _policies(results: Sequence[PolicyResult]) -> Table:
    return Table.of(
        results,
        {
            "policy": lambda each: each.label,
            "makespan": lambda each: each.metrics.makespan_s,
            "slowdown": lambda each: each.metrics.average_bounded_slowdown,
            "mean wait": lambda each: each.metrics.mean_wait_s,
            "median": lambda each: each.metrics.median_wait_s,
            "95 %": lambda each: each.metrics.wait_p95_s,
            "used": lambda each: each.metrics.utilisation,
            "simulated": lambda each: each.simulation_s,
            "jobs/s": lambda each: round(each.metrics.jobs / each.simulation_s),
        },
        formats={**_FORMATS, "median": format_elapsed, "95 %": format_elapsed},
    )


def _machines(result: PolicyResult) -> Table:
    return Table.of(
        result.machines,
        {
            "machine": lambda each: each.machine,
            "processors": lambda each: each.procs,
            "jobs": lambda each: each.jobs,
            "used": lambda each: each.utilisation,
            "mean wait": lambda each: each.mean_wait_s,
            "slowdown": lambda each: each.average_bounded_slowdown,
        },
        caption=f"by machine, {result.label}",
        formats=_FORMATS,
    )


def _users(result: PolicyResult) -> Table:
    listed = sorted(result.users, key=lambda each: -each.jobs)[:_USERS]
    return Table.of(
        listed,
        {
            "user": lambda each: each.user,
            "jobs": lambda each: each.jobs,
            "mean wait": lambda each: each.mean_wait_s,
            "slowdown": lambda each: each.average_bounded_slowdown,
        },
        caption=f"{len(listed)} of {plural(len(result.users), 'user')}, {result.label}: most jobs first",
        formats=_FORMATS,
    )


_FORMATS = {
    "makespan": format_elapsed,
    "slowdown": slowdown,
    "mean wait": format_elapsed,
    "used": share,
    "simulated": format_seconds,
    "jobs/s": format_count,
    "processors": format_count,
    "jobs": format_count,
}


_EXPERIMENT_LEGEND = (
    "Makespan: from the first submission to the last end. vs: over that of user (User+RR) or oracle on the "
    "same jobs, less 1. Slowdown: mean of max(1, (wait + run) / max(run, 10 s)). Used: share of the "
    "processor-seconds of the makespan. Fastest: jobs that ran on a machine where they run fastest. Work: "
    "processor-seconds of all jobs over those that they would take there."
)


def experiment_facts(found: Experiment, table: JobTable) -> dict[str, Any]:
    """What was compared on what, for JSON and for people."""
    setup = found.setup
    user = without_choice(table.types) if "user" in setup.placements else None
    notes = [f"{count:,} left out: {reason}" for reason, count in table.left_out.items()]
    return {
        "name": table.label,
        "types": len(table.types),
        "jobs": found.results[0].jobs,
        "drawn": setup.jobs is not None,
        "seeds": list(setup.seeds),
        "submitted": _submitted(found),
        "interarrival_s": setup.interarrival_s or None,
        "policy": policy_label(setup.policy),
        "estimates": setup.estimates,
        "machines": [
            {"machine": machine.name, "procs": machine.procs, "gpu": machine.has_gpu}
            for machine in table.types.machines
        ],
        "least_makespan_s": None if found.least_makespan_s is None else found.least_makespan_s.value,
        "notes": [*notes, *([user] if user else [])],
    }


def _submitted(found: Experiment) -> str:
    if found.at_once:
        return "at once"
    return "as the trace says" if found.setup.jobs is None else "poisson"


def experiment_report(found: Experiment, facts: Mapping[str, Any]) -> Report:
    """What was compared, a row a placement, and where jobs ran."""
    first, *others = _experiment_subject(facts)
    parts: list[Part] = [Heading(first, 1), *others, *(f"  {note}" for note in facts["notes"]), ""]
    parts += [_placements(found), _placed(found), ""]
    if found.least_makespan_s is not None:
        least = format_elapsed(found.least_makespan_s.value)
        parts.append(f"Lower bound on the makespan of any placement and scheduler: {least}.")
    spent_s = sum(outcome.simulation_s for each in found.results for outcome in each.outcomes)
    jobs = sum(outcome.metrics.jobs for each in found.results for outcome in each.outcomes)
    rate = format_count(round(jobs / spent_s))
    parts.append(f"Simulated {format_count(jobs)} jobs in {format_seconds(spent_s)}: {rate} a second.")
    sure = f" ±: {100 * SHARE:g} % intervals over the seeds." if len(facts["seeds"]) > 1 else ""
    return Report([*parts, _EXPERIMENT_LEGEND + sure])


def _experiment_subject(facts: Mapping[str, Any]) -> list[str]:
    machines = ", ".join(
        f"{machine['machine']} ({machine['procs']:,}{', GPU' if machine['gpu'] else ''})"
        for machine in facts["machines"]
    )
    seeds = facts["seeds"]
    jobs = plural(facts["jobs"], "job")
    if facts["drawn"]:
        chance = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
        jobs += f" drawn with replacement from {plural(facts['types'], 'type')} ({chance})"
    submitted = {
        "at once": "all submitted at once",
        "as the trace says": "submitted when the table says",
        "poisson": f"submitted {format_seconds(facts['interarrival_s'] or 0)} apart on average (Poisson)",
    }[facts["submitted"]]
    return [
        f"{facts['name']}: {jobs}, {submitted}",
        f"on {machines}; {facts['policy']} with {facts['estimates']} estimates",
    ]


def _placements(found: Experiment) -> Table:
    several = len(found.setup.seeds) > 1
    against = [name for name in REFERENCES if any(name in each.against for each in found.results)]
    headings = [
        "placement",
        "makespan",
        *(f"vs {name}, %" for name in against),
        "slowdown",
        "mean wait",
        "used",
    ]
    rows = [
        [
            each.placement,
            f"{format_elapsed(each.makespan_s.value)} {_within(each.makespan_s) if several else ''}".rstrip(),
            *(_difference(each.against.get(name)) for name in against),
            each.average_bounded_slowdown.value,
            each.mean_wait_s,
            each.utilisation,
        ]
        for each in found.results
    ]
    return Table(headings, rows, formats=_FORMATS)


def _within(mean: Mean) -> str:
    if mean.interval is None or mean.value == 0:
        return ""
    return f"± {100 * (mean.interval[1] - mean.value) / mean.value:.1f} %"


def _difference(mean: Mean | None) -> str:
    if mean is None:
        return NONE
    text = f"{100 * mean.value:+.1f}"
    return text if mean.interval is None else f"{text} ± {100 * (mean.interval[1] - mean.value):.1f}"


def _placed(found: Experiment) -> Table:
    """Where jobs ran."""
    rows = []
    for each in found.results:
        shares = [(machine.jobs / each.jobs, machine.utilisation) for machine in each.machines]
        cells = [
            f"{100 * jobs:.0f} / {NONE if used is None else f'{100 * used:.0f}'}" for jobs, used in shares
        ]
        rows.append([each.placement, share(each.on_fastest), factor(each.work_over_least), *cells])
    return Table(
        ["placement", "fastest", "work", *(machine.machine for machine in found.results[0].machines)],
        rows,
        "where jobs ran: on each machine % of the jobs / % of it that was used",
    )


Colour = Literal["wait", "user"]

MOST_JOBS = 1_000_000
"""Most jobs of a timeline."""

_EDGED = 1500
"""Up to so many rectangles have edges."""

_NO_WAIT = "#c9ced6"
_OTHERS = "#d5d5d5"
_USER_COLOURS = (*COLOURS, INDIGO)
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
    """Draw a timeline and write it; see `gantt`."""
    return save_figure(gantt(schedule, title, colour=colour, from_s=from_s, to_s=to_s), path)


def gantt(
    schedule: Schedule, title: str, *, colour: Colour = "wait", from_s: float = 0.0, to_s: float
) -> Any:
    """A panel a machine, a rectangle a job: time across, processors up."""
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
    first: Integers = np.argsort(-work, kind="stable")[: len(_USER_COLOURS)]
    named = [place for place in first.tolist() if work[place] > 0]
    palette = np.tile(to_rgba(_OTHERS), (len(schedule.jobs.users), 1))
    handles: list[Patch] = []
    for place, name in zip(named, _USER_COLOURS, strict=False):
        palette[place] = to_rgba(name)
        handles.append(Patch(color=name, label=plain_text(f"user {schedule.jobs.users[place]}")))
    if np.count_nonzero(work) > len(named):
        handles.append(Patch(color=_OTHERS, label=f"{np.count_nonzero(work) - len(named):,} others"))
    legend_below(figure, 9, {str(handle.get_label()): handle for handle in handles})
    return palette[user]


_DENSE = 4000
"""Parts into which long lines are cut; each keeps its least and its greatest value."""


def write_queue_figure(
    lengths: Mapping[str, Steps], path: Path, title: str, *, origin_s: float, from_s: float, to_s: float
) -> Path:
    """Draw queues and write the picture; see `queue_figure`."""
    return save_figure(queue_figure(lengths, title, origin_s=origin_s, from_s=from_s, to_s=to_s), path)


def queue_figure(
    lengths: Mapping[str, Steps], title: str, *, origin_s: float, from_s: float, to_s: float
) -> Any:
    """A line of steps for each policy or placement."""
    figure = new_figure(11, 4.4)
    axes = figure.subplots()
    unit_s = label_elapsed(axes, from_s, to_s)
    longest = []
    for place, (name, length) in enumerate(lengths.items()):
        time_s, count = _cut(length, origin_s + from_s, origin_s + to_s)
        longest.append(float(count.max()))
        steps(
            axes,
            (time_s - origin_s) / unit_s,
            count,
            color=COLOURS[place % len(COLOURS)],
            linestyle=DASHES[place // len(COLOURS) % len(DASHES)],
            linewidth=1.0,
            label=f"{name} (at most {count.max():,.0f})",
        )
    # Very long queues beside short ones: logarithmic, but for 0 and 1.
    if max(longest) > WIDE * max(min(longest), 1.0):
        axes.set_yscale("symlog", linthresh=1)
    else:
        axes.locator_params(axis="y", integer=True)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_ylabel("waiting jobs")
    # Without a queue, the axis still has two whole numbers.
    axes.set_ylim(0, max(1.05 * max(longest), 1.0))
    style_axes(axes)
    legend_below(figure, 4)
    heading(figure, plain_text(title))
    return figure


def _cut(length: Steps, from_s: float, to_s: float) -> tuple[Reals, Reals]:
    """Steps between two times, with what is at both ends; only extremes where there are very many."""
    inside = (length.time_s > from_s) & (length.time_s < to_s)
    time_s = np.concatenate(([from_s], length.time_s[inside], [to_s]))
    count = np.concatenate(
        (length.at(np.array([from_s])), length.count[inside], length.at(np.array([to_s])))
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


def write_placement_figure(found: Experiment, path: Path, title: str) -> Path:
    """Draw an experiment and write the figure; see `placement_figure`."""
    return save_figure(placement_figure(found, title), path)


def placement_figure(found: Experiment, title: str) -> Any:
    """A bar a placement for the makespan, and one for the average bounded slowdown, with intervals."""
    figure = new_figure(10, 2.0 + 0.42 * len(found.results))
    left, right = figure.subplots(1, 2, sharey=True)
    unit_s, unit = elapsed_unit(max(each.makespan_s.value for each in found.results))
    _draw_means(left, {each.placement: each.makespan_s for each in found.results}, unit_s)
    left.set_xlabel(f"makespan, {unit}")
    if found.least_makespan_s is not None:
        left.axvline(found.least_makespan_s.value / unit_s, color=GREY, linestyle=(0, (4, 2)), linewidth=1.2)
    slowdowns = {each.placement: each.average_bounded_slowdown for each in found.results}
    _draw_means(right, slowdowns, 1.0)
    right.set_xlabel("average bounded slowdown")
    values = [each.value for each in slowdowns.values()]
    if max(values) > WIDE * min(values):
        right.set(xscale="log", xlim=(1, 4 * max(values)))
    seeds = len(found.setup.seeds)
    sure = f"; lines hold {100 * SHARE:g} % over {plural(seeds, 'seed')}" if seeds > 1 else ""
    least = "; dashed: no placement can do better" if found.least_makespan_s is not None else ""
    heading(figure, plain_text(title), f"less is better{sure}{least}")
    return figure


def _draw_means(axes: Any, means: Mapping[str, Mean], unit: float) -> None:
    intervals = [each.interval for each in means.values()]
    bars(
        axes,
        {name: each.value / unit for name, each in means.items()},
        write=lambda value: f"{value:.3g}" if value < 100 else f"{value:,.0f}",
        intervals=[None if each is None else (each[0] / unit, each[1] / unit) for each in intervals],
    )

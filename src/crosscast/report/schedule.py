"""Reports on schedules of a trace by several policies, and on experiments with placements."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from crosscast.report.document import NONE, Heading, Part, Report, Table
from crosscast.report.fields import Column, factor, percent, plural, table_of, value_of
from crosscast.units import format_count, format_elapsed, format_seconds

if TYPE_CHECKING:
    from crosscast.cluster.experiment import Experiment, PlacementSummary, SeedMean
    from crosscast.cluster.metrics import PolicyDifference, PolicyResult

_USERS = 15
"""Largest number of users in a table; those with the most jobs are listed."""

_LEGEND = (
    "Makespan: from the first submission to the last end. "
    "Slowdown: mean of max(1, (wait + run) / max(alone, 10 s)); alone: the run time of a job alone, in its "
    "fastest configuration on its fastest machine. Used: share of the processor-seconds of the makespan."
)
_OVER_REQUEST = "over request"


def policies_report(
    results: Sequence[PolicyResult],
    facts: Mapping[str, Any],
    against: Sequence[tuple[PolicyDifference, PolicyDifference] | None] = (),
    *,
    users: bool = False,
) -> Report:
    """Make a table with a row for each policy, and tables by machine and user where there are several."""
    parts: list[Part] = [
        Heading(_subject(facts), 1),
        *(f"  {note}" for note in facts["notes"]),
        "",
        _policies(results),
    ]
    if "best" in facts:
        parts += ["", f"Best by {facts['best']['objective']}: {facts['best']['policy']}."]
    if len(results) > 1 and any(differences is not None for differences in against):
        parts.append(_against(results, against))
    parts += _optional_tables(results)
    if len(facts["machines"]) > 1:
        parts += [_machines(result) for result in results]
    if len(results) > 1 and any(len(result.sizes) > 1 for result in results):
        parts.append(_sizes(results))
    if users:
        parts += [_users(result) for result in results]
    legend = f"{_LEGEND} Less is better in all columns before it."
    if any(result.over_request is not None for result in results):
        legend += f" {_OVER_REQUEST.capitalize()}: number of jobs that ran longer than requested."
    return Report([*parts, "", legend])


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
    columns: dict[str, Column[PolicyResult]] = {
        "policy": "label",
        "makespan": "metrics.makespan_s",
        "slowdown": "metrics.average_bounded_slowdown",
        "mean wait": "metrics.mean_wait_s",
        "median": "metrics.median_wait_s",
        "95 %": "metrics.wait_p95_s",
        "used": "metrics.utilisation",
        "simulated": "simulation_s",
        "jobs/s": lambda result: round(result.metrics.jobs / result.simulation_s),
    }
    if any(result.over_request is not None for result in results):
        columns[_OVER_REQUEST] = "over_request"
    return table_of(results, columns, formats={"jobs/s": format_count})


def _against(
    results: Sequence[PolicyResult], against: Sequence[tuple[PolicyDifference, PolicyDifference] | None]
) -> Table:
    rows = [
        [result.label, *(_between(value, unit) for value, unit in zip(differences, _UNITS, strict=True))]
        for result, differences in zip(results[1:], against[1:], strict=True)
        if differences is not None
    ]
    caption = f"more than {results[0].label}, with what 95 % of draws of weeks have"
    return Table(["policy", "mean wait", "slowdown"], rows, caption)


_UNITS = ((3600.0, " h"), (1.0, ""))


def _between(difference: PolicyDifference, unit: tuple[float, str]) -> str:
    ends = (difference.value, difference.interval.low, difference.interval.high)
    value, low, high = (end / unit[0] for end in ends)
    return f"{value:+.3g}{unit[1]} ({low:+.3g} to {high:+.3g})"


_OPTIONAL_TABLES = {
    "power": (
        "power of all machines until the latest end: in budget, share of the time; over it, at most, as a "
        "share of the budget",
        {
            "energy": "power.energy_kwh",
            "mean": "power.mean_w",
            "peak": "power.peak_w",
            "in budget": "power.within_budget",
            "over it": "power.over_budget",
            "cost": "power.cost",
            "CO2": "power.carbon_kg",
        },
    ),
    "sharing": (
        "jobs that share: slowed down, of all jobs; mean, time over that alone",
        {
            "slowed down": "sharing.slowed",
            "mean": "sharing.mean_slowdown",
            "more than promised": "sharing.broken_promises",
        },
    ),
    "stopped": (
        "jobs that were stopped for others: lost, of the processor-seconds that all occupied",
        {"stopped runs": "stopped.stopped_runs", "of jobs": "stopped.stopped_jobs", "lost": "stopped.lost"},
    ),
}
"""Caption and columns of the tables of parts that results need not have."""


def _optional_tables(results: Sequence[PolicyResult]) -> Iterator[Table]:
    for part, (caption, columns) in _OPTIONAL_TABLES.items():
        having = [result for result in results if getattr(result, part) is not None]
        shown = {
            heading: path
            for heading, path in columns.items()
            if heading not in ("cost", "CO2") or any(value_of(result, path) is not None for result in having)
        }
        if having:
            yield table_of(having, {"policy": "label", **shown}, caption=caption)


def _machines(result: PolicyResult) -> Table:
    return table_of(
        result.machines,
        {"machine": "machine", "processors": "procs", "jobs": "jobs", "used": "utilisation", **_WAITS},
        caption=f"by machine, {result.label}",
    )


def _sizes(results: Sequence[PolicyResult]) -> Table:
    sizes = [(size.least_procs, size.most_procs) for size in results[0].sizes]
    headings = ["policy", *(f"{most:,}" if least == most else f"{least:,}-{most:,}" for least, most in sizes)]
    rows = [[result.label, *(size.mean_wait_s for size in result.sizes)] for result in results]
    return Table(
        headings, rows, "mean wait by processors", formats=dict.fromkeys(headings[1:], format_elapsed)
    )


def _users(result: PolicyResult) -> Table:
    listed = sorted(result.users, key=lambda user: -user.jobs)[:_USERS]
    fairness = "" if result.fairness is None else f"; Jain's fairness of slowdowns {result.fairness:.2f}"
    several = plural(len(result.users), "user")
    return table_of(
        listed,
        {"user": "user", "jobs": "jobs", **_WAITS},
        caption=f"{len(listed)} of {several}, {result.label}: most jobs first{fairness}",
    )


_WAITS = {"mean wait": "mean_wait_s", "slowdown": "average_bounded_slowdown"}


_EXPERIMENT_LEGEND = (
    f"{_LEGEND} exact: the rule of model with the true times, which is no bound; the least makespan is. "
    "vs: over that of user (User+RR) or exact on the same jobs, less 1. Fastest: jobs that ran on a machine "
    "where they run fastest. Work: processor-seconds of all jobs over those that they would take there."
)


def experiment_report(experiment: Experiment, facts: Mapping[str, Any]) -> Report:
    """Make the table of placements, and the table of where jobs ran."""
    from crosscast.cluster.experiment import REFERENCES, SHARE

    first, *others = _experiment_subject(facts)
    parts: list[Part] = [Heading(first, 1), *others, *(f"  {note}" for note in facts["notes"]), ""]
    parts += [_placements(experiment, REFERENCES), _distribution(experiment), ""]
    if experiment.least_makespan_s is not None:
        least = format_elapsed(experiment.least_makespan_s.value)
        parts.append(f"Lower bound on the makespan of any placement and scheduler: {least}.")
    outcomes = [outcome for result in experiment.results for outcome in result.outcomes]
    spent_s = sum(outcome.simulation_s for outcome in outcomes)
    jobs = sum(outcome.metrics.jobs for outcome in outcomes)
    rate = format_count(round(jobs / spent_s))
    parts.append(f"Simulated {format_count(jobs)} jobs in {format_seconds(spent_s)}: {rate} a second.")
    intervals = f" ±: {100 * SHARE:g} % intervals over the seeds." if len(facts["seeds"]) > 1 else ""
    return Report([*parts, _EXPERIMENT_LEGEND + intervals])


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


def _placements(experiment: Experiment, references: Collection[str]) -> Table:
    several = len(experiment.setup.seeds) > 1
    columns: dict[str, Column[PlacementSummary]] = {
        "placement": "placement",
        "makespan": lambda result: (
            f"{format_elapsed(result.makespan_s.value)} "
            f"{_within(result.makespan_s) if several else ''}".rstrip()
        ),
    }
    for name in references:
        if any(name in result.against for result in experiment.results):
            columns[f"vs {name}, %"] = partial(_against_reference, name)
    columns |= {
        "slowdown": "average_bounded_slowdown.value",
        "mean wait": "mean_wait_s",
        "used": "utilisation",
    }
    return table_of(experiment.results, columns, words=(0,))


def _within(mean: SeedMean) -> str:
    if mean.interval is None or mean.value == 0:
        return ""
    return f"± {100 * (mean.interval[1] - mean.value) / mean.value:.1f} %"


def _against_reference(name: str, result: PlacementSummary) -> str:
    mean = result.against.get(name)
    if mean is None:
        return NONE
    text = f"{100 * mean.value:+.1f}"
    return text if mean.interval is None else f"{text} ± {100 * (mean.interval[1] - mean.value):.1f}"


def _distribution(experiment: Experiment) -> Table:
    """Make the table of where jobs ran."""
    rows = []
    for result in experiment.results:
        shares = [(machine.jobs / result.jobs, machine.utilisation) for machine in result.machines]
        cells = [
            f"{100 * jobs:.0f} / {NONE if used is None else f'{100 * used:.0f}'}" for jobs, used in shares
        ]
        rows.append([result.placement, percent(result.on_fastest, 1), factor(result.work_over_least), *cells])
    return Table(
        ["placement", "fastest", "work", *(machine.machine for machine in experiment.results[0].machines)],
        rows,
        "where jobs ran: on each machine % of the jobs / % of it that was used",
    )

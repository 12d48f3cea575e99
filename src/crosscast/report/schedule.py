"""Schedules of a trace by several policies, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.report.numbers import NONE, factor, plural
from crosscast.report.text import console_of_numbers, number_table, print_table
from crosscast.units import format_count, format_elapsed, format_seconds

if TYPE_CHECKING:
    from crosscast.cluster.experiment import Experiment, Mean
    from crosscast.cluster.metrics import PolicyResult

_USERS = 15
"""Users that a table lists: those with the most jobs."""

_LEGEND = (
    "Makespan: from the first submission to the last end.",
    "Slowdown: mean of max(1, (wait + run) / max(run, 10 s)).",
    "Used: share of the processor-seconds of the makespan. Less is better in all columns before it.",
)


def print_policies(
    results: Sequence[PolicyResult], facts: Mapping[str, Any], stream: TextIO, *, users: bool = False
) -> None:
    """Print what was scheduled, a row a policy, and machines and users where that says more."""
    console = console_of_numbers(stream)
    console.print(Text(_subject(facts), style="bold"), soft_wrap=True)
    for note in facts["notes"]:
        console.print(Text(f"  {note}"), soft_wrap=True)
    console.print()
    console.print(_policies(results))
    if len(facts["machines"]) > 1:
        for result in results:
            print_table(console, f"by machine, {result.label}", _machines(result))
    if users:
        for result in results:
            listed, count = min(_USERS, len(result.users)), len(result.users)
            print_table(
                console,
                f"{listed} of {plural(count, 'user')}, {result.label}: most jobs first",
                _users(result),
            )
    console.print()
    console.print(Text(" ".join(_LEGEND)), soft_wrap=True)


def slowdown(value: float | None) -> str:
    """A slowdown for people.

    >>> slowdown(1.234), slowdown(12345.6), slowdown(None)
    ('1.23', '12,346', '—')
    """
    if value is None:
        return NONE
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def share(value: float | None) -> str:
    """A share of one as a percentage.

    >>> share(0.6912), share(None)
    ('69.1 %', '—')
    """
    return NONE if value is None else f"{100 * value:.1f} %"


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
    table = number_table(
        "policy",
        ("makespan", "slowdown", "mean wait", "median", "95 %", "used", "simulated", "jobs/s"),
    )
    for result in results:
        metrics = result.metrics
        waits = (metrics.mean_wait_s, metrics.median_wait_s, metrics.wait_p95_s)
        table.add_row(
            Text(result.label),
            format_elapsed(metrics.makespan_s),
            slowdown(metrics.average_bounded_slowdown),
            *(format_elapsed(wait_s) for wait_s in waits),
            share(metrics.utilisation),
            format_seconds(result.simulation_s),
            format_count(round(metrics.jobs / result.simulation_s)),
        )
    return table


def _machines(result: PolicyResult) -> Table:
    table = number_table("machine", ("processors", "jobs", "used", "mean wait", "slowdown"))
    for machine in result.machines:
        table.add_row(
            Text(machine.machine),
            format_count(machine.procs),
            format_count(machine.jobs),
            share(machine.utilisation),
            NONE if machine.mean_wait_s is None else format_elapsed(machine.mean_wait_s),
            slowdown(machine.average_bounded_slowdown),
        )
    return table


def _users(result: PolicyResult) -> Table:
    table = number_table("user", ("jobs", "mean wait", "slowdown"))
    for user in sorted(result.users, key=lambda each: -each.jobs)[:_USERS]:
        table.add_row(
            Text(user.user),
            format_count(user.jobs),
            format_elapsed(user.mean_wait_s),
            slowdown(user.average_bounded_slowdown),
        )
    return table


_PLACEMENTS_LEGEND = (
    "Makespan: from the first submission to the last end. vs: over that of user (User+RR) or oracle on the",
    "same jobs, less 1. Slowdown: mean of max(1, (wait + run) / max(run, 10 s)). Used: share of the",
    "processor-seconds of the makespan. Fastest: jobs that ran on a machine where they run fastest. Work:",
    "processor-seconds of all jobs over those that they would take there.",
)


def print_experiment(found: Experiment, facts: Mapping[str, Any], stream: TextIO) -> None:
    """Print what was compared, a row a placement, and where jobs ran."""
    from crosscast.cluster.experiment import SHARE

    console = console_of_numbers(stream)
    for line in _experiment_subject(facts):
        console.print(Text(line, style="bold"), soft_wrap=True)
    for note in facts["notes"]:
        console.print(Text(f"  {note}"), soft_wrap=True)
    console.print()
    console.print(_placements(found))
    where = "where jobs ran: on each machine % of the jobs / % of it that was used"
    print_table(console, where, _experiment_machines(found))
    console.print()
    if found.least_makespan_s is not None:
        least = format_elapsed(found.least_makespan_s.value)
        console.print(
            Text(f"No placement and no scheduler can be done in less than {least}."), soft_wrap=True
        )
    spent_s = sum(outcome.simulation_s for each in found.results for outcome in each.outcomes)
    jobs = sum(outcome.metrics.jobs for each in found.results for outcome in each.outcomes)
    rate = format_count(round(jobs / spent_s))
    console.print(
        Text(f"Simulated {format_count(jobs)} jobs in {format_seconds(spent_s)}: {rate} a second."),
        soft_wrap=True,
    )
    sure = f" ±: {100 * SHARE:g} % intervals over the seeds." if len(facts["seeds"]) > 1 else ""
    console.print(Text(" ".join(_PLACEMENTS_LEGEND) + sure), soft_wrap=True)


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
    from crosscast.cluster.experiment import REFERENCES

    several = len(found.setup.seeds) > 1
    references = [name for name in REFERENCES if any(name in each.against for each in found.results)]
    table = number_table(
        "placement",
        [
            "makespan",
            *(f"vs {name}, %" for name in references),
            *("slowdown", "mean wait", "used"),
        ],
    )
    for each in found.results:
        makespan = format_elapsed(each.makespan_s.value)
        table.add_row(
            Text(each.placement),
            f"{makespan} {_within(each.makespan_s)}" if several else makespan,
            *(_difference(each.against.get(name)) for name in references),
            slowdown(each.average_bounded_slowdown.value),
            format_elapsed(each.mean_wait_s),
            share(each.utilisation),
        )
    return table


def _within(mean: Mean) -> str:
    if mean.interval is None or mean.value == 0:
        return ""
    return f"± {100 * (mean.interval[1] - mean.value) / mean.value:.1f} %"


def _difference(mean: Mean | None) -> str:
    if mean is None:
        return NONE
    text = f"{100 * mean.value:+.1f}"
    return text if mean.interval is None else f"{text} ± {100 * (mean.interval[1] - mean.value):.1f}"


def _experiment_machines(found: Experiment) -> Table:
    table = number_table(
        "placement", ["fastest", "work", *(machine.machine for machine in found.results[0].machines)]
    )
    for each in found.results:
        jobs = (_percent(machine.jobs / each.jobs) for machine in each.machines)
        used = (_percent(machine.utilisation) for machine in each.machines)
        table.add_row(
            Text(each.placement),
            share(each.on_fastest),
            factor(each.work_over_least),
            *(f"{part} / {busy}" for part, busy in zip(jobs, used, strict=True)),
        )
    return table


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{100 * value:.0f}"

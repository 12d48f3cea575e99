"""Schedules of a trace by several policies, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.cluster.experiment.policies import PolicyResult
from crosscast.cluster.machines import Machine
from crosscast.cluster.traces.swf_jobs import CleanedJobs
from crosscast.cluster.traces.trace import Trace
from crosscast.report.console import console_of_numbers
from crosscast.report.number_table import number_table, print_table
from crosscast.report.numbers import NONE, plural
from crosscast.units import format_count, format_elapsed, format_seconds

__all__ = ["print_policies", "share", "slowdown", "trace_facts"]

_USERS = 15
"""Users that a table lists: those with the most jobs."""

_LEGEND = (
    "Makespan: from the first submission to the last end.",
    "Slowdown: mean of max(1, (wait + run) / max(run, 10 s)).",
    "Used: share of the processor-seconds of the makespan. Less is better in all columns before it.",
)


def trace_facts(
    trace: Trace, found: CleanedJobs, machines: Sequence[Machine], estimates: str
) -> dict[str, Any]:
    """What was scheduled, for JSON and for people.

    Parameters
    ----------
    trace
        The trace.
    found
        Its jobs.
    machines
        Where they ran.
    estimates
        What the scheduler knew of their times.
    """
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


def print_policies(
    results: Sequence[PolicyResult], facts: Mapping[str, Any], stream: TextIO, *, users: bool = False
) -> None:
    """Print what was scheduled, a row a policy, and machines and users where that says more.

    Parameters
    ----------
    results
        A result for each policy.
    facts
        What `trace_facts` says.
    stream
        Where to print; colours only on a terminal.
    users
        Whether to print users.
    """
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

    Examples
    --------
    >>> slowdown(1.234), slowdown(12345.6), slowdown(None)
    ('1.23', '12,346', '—')
    """
    if value is None:
        return NONE
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def share(value: float | None) -> str:
    """A share of one as a percentage.

    Examples
    --------
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

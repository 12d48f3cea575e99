"""Placements on drawn workloads, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.cluster.experiment.mean_interval import SHARE, Mean
from crosscast.cluster.experiment.policies import policy_label
from crosscast.cluster.experiment.run import Experiment
from crosscast.cluster.experiment.summary import REFERENCES
from crosscast.cluster.experiment.table import JobTable
from crosscast.cluster.placements.user import without_choice
from crosscast.report.console import console_of_numbers
from crosscast.report.number_table import number_table, print_table
from crosscast.report.numbers import NONE, factor, plural
from crosscast.report.schedules import share, slowdown
from crosscast.units import format_count, format_elapsed, format_seconds

__all__ = ["experiment_facts", "print_experiment"]

_LEGEND = (
    "Makespan: from the first submission to the last end. vs: over that of user (User+RR) or oracle on the",
    "same jobs, less 1. Slowdown: mean of max(1, (wait + run) / max(run, 10 s)). Used: share of the",
    "processor-seconds of the makespan. Fastest: jobs that ran on a machine where they run fastest. Work:",
    "processor-seconds of all jobs over those that they would take there.",
)


def experiment_facts(found: Experiment, table: JobTable) -> dict[str, Any]:
    """What was compared on what, for JSON and for people.

    Parameters
    ----------
    found
        The experiment.
    table
        The types that jobs were drawn from.
    """
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


def print_experiment(found: Experiment, facts: Mapping[str, Any], stream: TextIO) -> None:
    """Print what was compared, a row a placement, and where jobs ran.

    Parameters
    ----------
    found
        The experiment.
    facts
        What `experiment_facts` says.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream)
    for line in _subject(facts):
        console.print(Text(line, style="bold"), soft_wrap=True)
    for note in facts["notes"]:
        console.print(Text(f"  {note}"), soft_wrap=True)
    console.print()
    console.print(_placements(found))
    where = "where jobs ran: on each machine % of the jobs / % of it that was used"
    print_table(console, where, _machines(found))
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
    console.print(Text(" ".join(_LEGEND) + sure), soft_wrap=True)


def _subject(facts: Mapping[str, Any]) -> list[str]:
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


def _machines(found: Experiment) -> Table:
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

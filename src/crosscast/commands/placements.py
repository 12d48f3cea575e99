"""``crosscast simulate placements``: placements of jobs on several machines."""

from __future__ import annotations

import math

from crosscast.cli.cluster import SimulatePlacements
from crosscast.cluster import policy_named, read_machines
from crosscast.cluster.experiment import (
    PUBLISHED_JOBS,
    Setup,
    experiment_facts,
    interarrival_of_load,
    run_experiment,
)
from crosscast.cluster.placements import PLACEMENTS, Workload, read_job_table
from crosscast.cluster.simulate import load_simulator
from crosscast.commands.output import LabelStatus, say, show
from crosscast.commands.simulate import ScheduleFiles
from crosscast.errors import InputError, expect_known
from crosscast.evaluation.executor import spreading
from crosscast.report.schedule import experiment_report
from crosscast.report.schedule_figures import placement_figure

_MOST_SEEDS = 10_000


def placements(options: SimulatePlacements) -> None:
    """Run ``crosscast simulate placements``."""
    chosen = policy_named(options.policy, options.priority, options.backfill)
    files = ScheduleFiles(options.out, options.output)
    seeds = _seeds(options.seed)

    if options.placement is not None:
        expect_known(options.placement, PLACEMENTS, field="placement")
    files.check(len(seeds) * len(options.placement or ()))

    table = read_job_table(
        options.jobs_file,
        read_machines(options.machines),
        options.speeds,
        options.placement,
        predicted=options.estimates == "predicted",
    )
    placement = table.placements if options.placement is None else options.placement
    files.check(len(seeds) * len(placement))
    jobs = PUBLISHED_JOBS if options.jobs is None and table.submit_s is None else options.jobs
    if jobs is None:
        for option, value in (("--arrivals", options.arrivals), ("--seed", seeds[1:] or None)):
            if value is not None:
                raise InputError.of(
                    where=option,
                    problem=(
                        f"{table.label} says when jobs are submitted; leave the option out, or draw --jobs"
                    ),
                )
    interarrival_s = 0.0
    if options.arrivals is not None:
        interarrival_s = _interarrival_s(options.arrivals, table.types)
    load_simulator(len(table.types) if jobs is None else jobs, [chosen], progress=say)
    setup = Setup(placement, jobs, seeds, table.submit_s, interarrival_s, chosen, options.estimates)
    with spreading(options.executor), LabelStatus() as status:
        experiment = run_experiment(
            table.types,
            setup,
            progress=lambda done, total, label: status(f"{done} of {total} simulations: {label}"),
            keep=lambda name, seed, schedule: files.keep(name, schedule) if seed == seeds[0] else None,
        )
    # Lines for each of many seeds could not be told apart.
    figures = files.figures(table.label if len(seeds) == 1 else f"{table.label}, seed {seeds[0]}")
    if files.draws:
        title = f"{table.label}: {experiment.results[0].jobs:,} jobs"
        figures["placements"] = placement_figure(experiment, title)
    facts = experiment_facts(experiment, table.label, table.types, table.left_out)

    files.write()
    show(
        options.output,
        lambda: {"results": [result.to_dict() for result in experiment.results], "workload": facts},
        lambda: experiment_report(experiment, facts),
        lambda: figures,
    )


def _interarrival_s(text: str, types: Workload) -> float:
    """Parse the mean seconds between submissions, or the arriving work as a share of the capacity."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not (0 <= number < math.inf) or (number == 0 and text.endswith("%")):
        raise InputError.of(
            where="--arrivals",
            expected="seconds such as 30, or a share of the machines' capacity such as 90%",
            found=repr(text),
        )
    return interarrival_of_load(types, number / 100) if text.endswith("%") else number


def _seeds(text: str) -> range:
    """Parse a seed, or the first and the last of several."""
    words = text.split(":")
    if len(words) > 2 or not all(map(str.isdecimal, words)):
        raise InputError.of(where="--seed", expected="a seed or a range such as 1:10", found=repr(text))
    first, last = int(words[0]), int(words[-1])
    if not first <= last < first + _MOST_SEEDS:
        raise InputError.of(
            where="--seed",
            expected=f"the last from the first on, at most {_MOST_SEEDS:,} seeds",
            found=repr(text),
        )
    return range(first, last + 1)

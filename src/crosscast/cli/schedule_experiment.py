"""``crosscast schedule --place``: placements compared on jobs whose times on several machines are known."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from crosscast.cli.options import check_file, check_picture, emit, names_in
from crosscast.cli.running import StatusLine
from crosscast.cli.schedule_files import ScheduleFiles, policies_of, prepare_simulator
from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.cluster.experiment_jobs import JobTable


_ESTIMATES = ("exact", "predicted")
_SEED = 0
_MOST_SEEDS = 10_000


@dataclass(frozen=True)
class ExperimentOptions:
    """What was typed; ``None`` or false where nothing was.

    Parameters
    ----------
    policy, queue, backfill, estimates, machines, speeds, place, jobs, seed, seeds, interarrival, load, plot
        As `crosscast.cli.schedule.schedule` has them.
    """

    policy: str = "easy"  # As `crosscast.cli.schedule.schedule` has them
    queue: str | None = None
    backfill: str | None = None
    estimates: str | None = None
    machines: Path | None = None
    speeds: Path | None = None
    place: str | None = None
    jobs: int | None = None
    seed: int | None = None
    seeds: int | None = None
    interarrival: float | None = None
    load: float | None = None
    plot: Path | None = None


def schedule_experiment(path: Path, options: ExperimentOptions, files: ScheduleFiles, *, json: bool) -> None:
    """Read, draw, simulate, print and write.

    Parameters
    ----------
    path
        A table of job types, or a trace of Gavel.
    options
        What to compare.
    files
        What to write.
    json
        Whether to print JSON.

    Raises
    ------
    InputError
        If something of the options or the table is not as expected, or a file cannot be written.
    MissingExtraError
        If an optional part is not installed.
    """
    estimates = _estimates(options.estimates)
    policies = policies_of(options.policy, options.queue, options.backfill)
    if len(policies) > 1:
        raise InputError(f"--policy: expected one for placements to be compared with, found {len(policies)}")
    if options.machines is None:
        raise InputError("--machines is missing: expected a file that says where jobs may run")
    if options.interarrival is not None and options.load is not None:
        raise InputError("--load: --interarrival says this; leave one of the two out")
    seeds = _seeds(options)
    placements = None if options.place is None else names_in("--place", options.place)
    if placements is not None:
        from crosscast.cluster.placements import check_placements

        check_placements(placements)
        files.prepare(len(placements) * len(seeds))
    if options.plot is not None:
        check_file("--plot", options.plot)
        check_picture("--plot", options.plot)
    prepare_simulator()
    from crosscast.cluster.experiment import Setup, interarrival_of_load, run_experiment
    from crosscast.cluster.experiment_jobs import read_job_table
    from crosscast.cluster.jobs import read_machines
    from crosscast.report.schedule import experiment_facts, experiment_report

    table = read_job_table(
        path, read_machines(options.machines), options.speeds, placements, predicted=estimates == "predicted"
    )
    if placements is None:
        placements = table.placements
        files.prepare(len(placements) * len(seeds))
    jobs = _jobs(options, table)
    interarrival_s = options.interarrival or 0.0
    if options.load is not None:
        interarrival_s = interarrival_of_load(table.types, options.load)
    setup = Setup(placements, jobs, seeds, table.submit_s, interarrival_s, policies[0], estimates)
    with StatusLine(sys.stderr) as status:
        begin_s = time.monotonic()

        def progress(done: int, total: int, label: str) -> None:
            if status.is_due(time.monotonic() - begin_s):
                status.show(f"{done} of {total} simulations: {label}")

        found = run_experiment(
            table.types,
            setup,
            progress=progress,
            keep=lambda name, seed, schedule: files.keep(
                name if len(seeds) == 1 else f"{name}, seed {seed}", schedule
            ),
        )
    files.write(table.label)
    if options.plot is not None:
        from crosscast.report.schedule import write_placement_figure

        write_placement_figure(found, options.plot, f"{table.label}: {found.results[0].jobs:,} jobs")
        print(f"wrote {options.plot}", file=sys.stderr)
    facts = experiment_facts(found, table)
    emit(
        json,
        lambda: {"results": [each.to_dict() for each in found.results], "workload": facts},
        lambda: experiment_report(found, facts),
    )


def _estimates(typed: str | None) -> Literal["exact", "predicted"]:
    if typed not in (None, *_ESTIMATES):
        raise InputError(
            f"--estimates: expected {' or '.join(_ESTIMATES)} with a table of jobs, found {typed!r}"
        )
    return "predicted" if typed == "predicted" else "exact"


def _seeds(options: ExperimentOptions) -> range:
    first = _SEED if options.seed is None else options.seed
    count = 1 if options.seeds is None else options.seeds
    if first < 0:
        raise InputError(f"--seed: expected at least 0, found {first}")
    if not 1 <= count <= _MOST_SEEDS:
        raise InputError(f"--seeds: expected 1 to {_MOST_SEEDS:,}, found {count}")
    return range(first, first + count)


def _jobs(options: ExperimentOptions, table: JobTable) -> int | None:
    """How many jobs are drawn; ``None`` if the table's own are taken as they are."""
    from crosscast.cluster.experiment import PUBLISHED_JOBS

    if options.jobs is not None:
        return options.jobs
    if table.submit_s is None:
        return PUBLISHED_JOBS
    for option, value in (("--interarrival", options.interarrival), ("--load", options.load)):
        if value is not None:
            raise InputError(
                f"{option}: {table.label} says when jobs are submitted; leave the option out, or draw --jobs"
            )
    if options.seeds is not None:
        raise InputError(
            f"--seeds: the jobs of {table.label} are taken as they are; leave the option out, or draw --jobs"
        )
    return None

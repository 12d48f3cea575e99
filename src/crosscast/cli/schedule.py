"""``crosscast schedule``: simulate how a cluster works off jobs."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from crosscast.cli.options import Flag, Whole, emit
from crosscast.cli.running import StatusLine
from crosscast.cli.schedule_experiment import ExperimentOptions, schedule_experiment
from crosscast.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosscast.cluster.jobs import Jobs, Machine, Placement
    from crosscast.cluster.swf import Trace


from crosscast.cli.schedule_files import ScheduleFiles, elapsed, policies_of, prepare_simulator, refuse_unused

_ESTIMATES = ("requested", "exact")
_PLACES = ("round-robin", "random", "completion")
"""Placements that need nothing but what a trace has."""


@dataclass(frozen=True)
class TraceOptions:
    """What was typed; ``None`` or false where nothing was.

    Parameters
    ----------
    policy, queue, backfill, estimates, machines, procs, kill, place, seed, users
        As `crosscast.cli.schedule.schedule` has them.
    """

    policy: str = "easy"  # As `crosscast.cli.schedule.schedule` has them
    queue: str | None = None
    backfill: str | None = None
    estimates: str | None = None
    machines: Path | None = None
    procs: int | None = None
    kill: bool = False
    place: str | None = None
    seed: int = 0
    users: bool = False


def schedule_trace(path: Path, options: TraceOptions, files: ScheduleFiles, *, json: bool) -> None:
    """Read, simulate, print and write.

    Parameters
    ----------
    path
        A trace in the Standard Workload Format.
    options
        How to schedule it.
    files
        What to write.
    json
        Whether to print JSON.

    Raises
    ------
    InputError
        If something of the options or the trace is not as expected, or a file cannot be written.
    MissingExtraError
        If an optional part is not installed.
    """
    policies = policies_of(options.policy, options.queue, options.backfill)
    estimates = options.estimates or "requested"
    if estimates not in _ESTIMATES:
        raise InputError(f"--estimates: expected {' or '.join(_ESTIMATES)} with a trace, found {estimates!r}")
    files.prepare(len(policies))
    prepare_simulator()
    from crosscast.cluster.policies import compare_policies, policy_label
    from crosscast.cluster.swf import read_swf
    from crosscast.report.schedule import policies_report, trace_facts

    trace = read_swf(path)
    machines = _machines(trace, options)
    found = trace.jobs("exact" if estimates == "exact" else "requested", "kill" if options.kill else "header")
    _check_width(found.jobs, machines)
    if options.users and found.jobs.user is None:
        raise InputError(f"--users: expected a trace with users, found none in {path}")
    placement = _placement(found.jobs, machines, options)
    facts, label = trace_facts(trace, found, machines, estimates), trace.label
    # Of ten million jobs, the columns that are not simulated are most of the memory.
    del trace
    begin_s = time.monotonic()
    with StatusLine(sys.stderr) as status:

        def progress(text: str) -> None:
            if status.is_due(time.monotonic() - begin_s):
                status.show(text)

        results = compare_policies(
            found.jobs,
            machines,
            policies,
            placement,
            progress=progress,
            keep=lambda policy, schedule: files.keep(policy_label(policy), schedule),
        )
    files.write(label)
    emit(
        json,
        lambda: {"results": [result.to_dict(users=options.users) for result in results], "trace": facts},
        lambda: policies_report(results, facts, users=options.users),
    )


def _machines(trace: Trace, options: TraceOptions) -> Sequence[Machine]:
    """Those of the file, or one with as many processors as were typed, or as the trace says."""
    from crosscast.cluster.jobs import Machine, read_machines

    if options.machines is not None:
        if options.procs is not None:
            raise InputError("--procs: the machines of --machines say this; leave one of the two out")
        return read_machines(options.machines)
    procs = trace.header.procs if options.procs is None else options.procs
    if procs is None:
        raise InputError(
            f"--procs is missing: the header of {trace.label} does not say how many processors there are"
        )
    if procs < 1:
        option = "MaxProcs" if options.procs is None else "--procs"
        raise InputError(f"{option}: expected at least 1, found {procs}")
    return [Machine(trace.label, procs)]


def _check_width(jobs: Jobs, machines: Sequence[Machine]) -> None:
    """Refuse jobs that fit on no machine, before anything is simulated."""
    widest = max(machines, key=lambda machine: machine.procs)
    wide = jobs.procs > widest.procs
    if wide.any():
        import numpy as np

        row = int(np.argmax(wide))
        raise InputError(
            f"job {jobs.number[row]}: expected at most {widest.procs:,} processors, as {widest.name} has, "
            f"found {jobs.procs[row]:,} (too wide: {np.count_nonzero(wide):,} of {len(jobs):,} jobs): "
            "give more with --procs or --machines"
        )


def _placement(jobs: Jobs, machines: Sequence[Machine], options: TraceOptions) -> Placement | None:
    if len(machines) == 1:
        if options.place is not None:
            raise InputError("--place: nothing to choose with one machine; leave the option out")
        return None
    if options.place not in _PLACES:
        found = f"found {options.place!r}" if options.place else "it is missing"
        raise InputError(
            f"--place: expected one of {', '.join(_PLACES)} for a trace on {len(machines)} machines, {found}"
        )
    import numpy as np

    from crosscast.cluster.placements import PLACEMENTS, Workload

    shape = (len(jobs), len(machines))
    workload = Workload(
        jobs,
        machines,
        uses_gpu=np.zeros(len(jobs), dtype=np.bool_),
        predicted_s=np.broadcast_to(jobs.estimate_s, shape),
    )
    return PLACEMENTS[options.place](workload, np.random.default_rng(options.seed))


_TABLES = (".parquet",)


def schedule(
    file: Path,
    /,
    *,
    policy: str = "easy",
    queue: str | None = None,
    backfill: str | None = None,
    estimates: str | None = None,
    machines: Path | None = None,
    procs: Whole | None = None,
    kill: Flag = False,
    users: Flag = False,
    place: str | None = None,
    jobs: Whole | None = None,
    seed: Whole | None = None,
    seeds: Whole | None = None,
    interarrival: float | None = None,
    load: float | None = None,
    speeds: Path | None = None,
    out: Path | None = None,
    swf_out: Path | None = None,
    timeline: Path | None = None,
    colour: Literal["wait", "user"] | None = None,
    queue_length: Path | None = None,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    to: str | None = None,
    plot: Path | None = None,
    json: Flag = False,
) -> None:
    """Simulate how a cluster works off a trace, or compare placements of jobs on several machines.

    On a trace (Standard Workload Format), policies are compared: `--policy fcfs,easy`. On a table of types of
    jobs with their times on several devices (Parquet), placements are, as in section VII of Nichols et al.
    2024: `--place round-robin,random,user,model,oracle`. docs/scheduling.md says what each number means.

    Parameters
    ----------
    file
        A trace, plain or compressed with gzip, or a table of types of jobs.
    policy
        `easy`: jobs may pass the head of the queue if that does not delay it; `fcfs`: none may.
    queue
        Order of the queue: fcfs, lcfs, shortest, longest, narrowest, widest, smallest-area or largest-area,
        by estimated time and processors; several with commas between. By default fcfs.
    backfill
        Order in which jobs are tried that may pass, one of the same. By default fcfs.
    estimates
        What the scheduler takes jobs' times for: `requested` (the default on a trace), `exact` (the default
        elsewhere) or `predicted`.
    machines
        A TOML file with the machines. On a trace by default one, with as many processors as its header says.
    procs
        Processors of the only machine.
    kill
        End jobs when the time that they requested is over, whatever the header says.
    users
        Tell of each user, too.
    place
        Which machine each job goes to: round-robin, random, user, model, oracle, model-near, oracle-near,
        completion or oracle-completion; by default all that the table has enough for.
    jobs
        How many jobs are drawn from the table, with replacement; by default 50,000, or the rows themselves
        where they say when they are submitted.
    seed
        Random seed; by default 0.
    seeds
        How many workloads are drawn, with seeds from there on; by default 1.
    interarrival
        Mean seconds between submissions, a Poisson process; by default all jobs are submitted at once.
    load
        The same as a share of what the machines can do at best.
    speeds
        The file is a trace of Gavel, and this one has the speeds of its types.
    out
        CSV file for the schedule: job, submit, start, end, machine, procs.
    swf_out
        File for the schedule as a trace.
    timeline
        Picture of the schedule: which job has which processors, and when.
    colour
        What the timeline's colours tell: how long jobs waited (the default), or whose they are.
    queue_length
        Picture of how many jobs wait, over time.
    from_
        Time since the first submission at which these pictures begin, such as 3600, 36h or 10d.
    to
        Time at which they end.
    plot
        Picture of makespans and slowdowns of placements.
    json
        Print everything as one JSON object.
    """
    files = ScheduleFiles(
        out, swf_out, timeline, queue_length, elapsed("--from", from_), elapsed("--to", to), colour
    )
    if file.suffix in _TABLES or speeds is not None:
        reason = "nothing to say where placements are compared"
        refuse_unused({"--procs": procs, "--kill": kill, "--users": users}, reason)
        experiment = ExperimentOptions(
            policy,
            queue,
            backfill,
            estimates,
            machines,
            speeds,
            place,
            jobs,
            seed,
            seeds,
            interarrival,
            load,
            plot,
        )
        schedule_experiment(file, experiment, files, json=json)
        return
    given = {
        "--jobs": jobs,
        "--seeds": seeds,
        "--interarrival": interarrival,
        "--load": load,
        "--plot": plot,
        "--seed": seed if place != "random" else None,
    }
    refuse_unused(given, f"nothing to say on a trace, which {file} is taken for")
    trace = TraceOptions(
        policy, queue, backfill, estimates, machines, procs, kill, place, 0 if seed is None else seed, users
    )
    if trace.seed < 0:
        raise InputError(f"--seed: expected at least 0, found {seed}")
    schedule_trace(file, trace, files, json=json)

"""``crosscast schedule``: simulate how a cluster works off jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from crosscast.cli.options import Flag, Whole
from crosscast.cli.schedule_experiment import ExperimentOptions, schedule_experiment
from crosscast.cli.schedule_files import ScheduleFiles
from crosscast.cli.schedule_options import elapsed, refuse_unused
from crosscast.cli.schedule_trace import TraceOptions, schedule_trace
from crosscast.errors import InputError

__all__ = ["schedule"]

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

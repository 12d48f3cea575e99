"""``crosscast schedule`` on a trace: policies compared on the jobs that a cluster had."""

from __future__ import annotations

import json as json_format
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crosscast.cli.progress import StatusLine
from crosscast.cli.schedule_files import ScheduleFiles
from crosscast.cli.schedule_options import policies_of, prepare_simulator
from crosscast.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crosscast.cluster.jobs import Jobs
    from crosscast.cluster.machines import Machine
    from crosscast.cluster.placement import Placement
    from crosscast.cluster.traces.trace import Trace

__all__ = ["TraceOptions", "schedule_trace"]

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

    policy: str = "easy"
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
    from crosscast.cluster.experiment.policies import compare_policies, policy_label
    from crosscast.cluster.traces.swf_reading import read_swf
    from crosscast.report.schedules import print_policies, trace_facts

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
    if json:
        listed = [result.to_dict(users=options.users) for result in results]
        print(json_format.dumps({"results": listed, "trace": facts}, allow_nan=False))
    else:
        print_policies(results, facts, sys.stdout, users=options.users)


def _machines(trace: Trace, options: TraceOptions) -> Sequence[Machine]:
    """Those of the file, or one with as many processors as were typed, or as the trace says."""
    from crosscast.cluster.machines import Machine
    from crosscast.cluster.machines_file import read_machines

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

    from crosscast.cluster.placements.registry import PLACEMENTS
    from crosscast.cluster.placements.workload import Workload

    shape = (len(jobs), len(machines))
    workload = Workload(
        jobs,
        machines,
        uses_gpu=np.zeros(len(jobs), dtype=np.bool_),
        predicted_s=np.broadcast_to(jobs.estimate_s, shape),
    )
    return PLACEMENTS[options.place](workload, np.random.default_rng(options.seed))

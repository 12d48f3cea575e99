"""Writing traces and schedules in the Standard Workload Format."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import starmap
from pathlib import Path

import numpy as np

from crosscast.cluster.jobs import Reals
from crosscast.cluster.number_text import texts_of
from crosscast.cluster.schedule import Schedule
from crosscast.cluster.traces.swf_fields import FIELDS, NAMES
from crosscast.cluster.traces.swf_header import SwfHeader
from crosscast.cluster.traces.swf_jobs import UNKNOWN_USER
from crosscast.cluster.traces.trace import Trace
from crosscast.errors import InputError
from crosscast.tables.whole_file import whole_file

__all__ = ["trace_of", "write_swf"]

_MISSING = "-1"
_LINES = 1 << 15


def write_swf(trace: Trace | Schedule, path: str | Path) -> None:
    """Write a trace, or a schedule as the trace of a cluster that ran it.

    Parameters
    ----------
    trace
        What to write. Of a schedule, `trace_of` tells what the fields are.
    path
        The file, which is there whole or not at all. It is not compressed.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    path = Path(path)
    if isinstance(trace, Schedule):
        trace = trace_of(trace, path.name.removesuffix(".swf"))
    try:
        with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in trace.header.lines())
            file.writelines(_lines(trace))
    except OSError as error:
        raise InputError(f"{path}: cannot write the trace ({error.strerror})") from error


def _lines(trace: Trace) -> Iterator[str]:
    for start in range(0, len(trace), _LINES):
        columns = [
            texts_of(trace.columns[field.name][start : start + _LINES] / field.unit, _MISSING)
            for field in FIELDS
        ]
        yield from starmap(("{} " * (len(FIELDS) - 1) + "{}\n").format, zip(*columns, strict=True))


def trace_of(schedule: Schedule, label: str) -> Trace:
    """The trace of a cluster that ran a schedule.

    The wait and run times are the schedule's, the requested time is the estimate on the machine that ran the
    job, all jobs are complete (status 1), and partition ``i`` is machine ``i``, from 1. Users keep their
    names where these are numbers, else they are numbered from 1. Where a job was submitted before time 0, all
    are moved so that the first is submitted at 0, as the format has no times before.

    Parameters
    ----------
    schedule
        The schedule.
    label
        Name of the trace.
    """
    jobs, count = schedule.jobs, len(schedule.jobs)
    # Times of a job are the same on all machines where there is one column only.
    place = np.minimum(schedule.machine, jobs.estimate_s.shape[1] - 1)
    estimate = jobs.estimate_s[np.arange(count), place]
    procs = jobs.procs.astype(np.float64)
    columns: dict[str, Reals] = {name: np.broadcast_to(np.float64(np.nan), count) for name in NAMES}
    columns |= {
        "job": jobs.number.astype(np.float64),
        "submit_s": jobs.submit_s - min(0.0, float(jobs.submit_s.min(initial=0.0))),
        # No rounding of times makes a job start before it was submitted.
        "wait_s": np.maximum(schedule.wait_s, 0.0),
        "run_s": schedule.ran_s,
        "procs": procs,
        "requested_procs": procs,
        "requested_s": np.where(np.isfinite(estimate), estimate, np.nan),
        "status": np.broadcast_to(np.float64(1), count),
        "user": _user_numbers(schedule),
        "partition": (schedule.machine + 1).astype(np.float64),
    }
    return Trace(label, _header_of(schedule), columns)


def _user_numbers(schedule: Schedule) -> Reals:
    jobs = schedule.jobs
    if jobs.user is None:
        return np.broadcast_to(np.float64(np.nan), len(jobs))
    names = [name for name in jobs.users if name != UNKNOWN_USER]
    are_numbers = all(name.isascii() and name.isdigit() and len(name) <= 15 for name in names)
    # Two names of one number would be one user.
    keep = are_numbers and len(set(map(int, names))) == len(names)
    numbers = [
        np.nan if name == UNKNOWN_USER else float(name) if keep else place
        for place, name in enumerate(jobs.users, start=1)
    ]
    return np.array(numbers, dtype=np.float64)[jobs.user]


def _header_of(schedule: Schedule) -> SwfHeader:
    machines = schedule.machines
    names = [" ".join(machine.name.split()) for machine in machines]
    count = str(len(schedule.jobs))
    return SwfHeader(
        {
            "Version": "2.2",
            "Computer": ", ".join(names),
            "Conversion": "a schedule that Crosscast simulated",
            "MaxJobs": count,
            "MaxRecords": count,
            "Preemption": "No",
            "MaxProcs": str(sum(machine.procs for machine in machines)),
            "MaxPartitions": str(len(machines)),
            "Partition": "\n".join(
                f"{place} {name} ({machine.procs} processors)"
                for place, (name, machine) in enumerate(zip(names, machines, strict=True), start=1)
            ),
        }
    )

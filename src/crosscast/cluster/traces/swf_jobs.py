"""Jobs of a trace that can be simulated, by the conventions of the Parallel Workloads Archive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from crosscast.cluster.jobs import Integers, Jobs, Reals
from crosscast.cluster.traces.swf_header import SwfHeader
from crosscast.errors import InputError

__all__ = ["CANCELLED", "UNKNOWN_USER", "CleanedJobs", "Estimates", "Overruns", "cleaned"]

Estimates = Literal["requested", "exact"]
Overruns = Literal["header", "kill", "run"]

CANCELLED = 5
"""Status of a job that was cancelled, before it started or after."""
_PARTS = (2, 3, 4)
"""Status of a part of a job that was stopped in between: it goes on, it ended, it failed."""
UNKNOWN_USER = "unknown"
"""Name of whoever submitted jobs without a user."""

_Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class CleanedJobs:
    """Jobs of a trace that can be simulated.

    Parameters
    ----------
    jobs
        The ``n`` jobs.
    rows
        Row of each in the columns of the trace, of shape ``(n,)``.
    left_out
        How many lines were left out, by the reason.
    without_request
        How many jobs requested no time, so that their estimate is how long they ran.
    overran
        How many ran longer than they requested.
    killed
        Whether those end at their request.
    too_wide
        How many need more processors than the header says that there are; ``None`` if it says nothing.
    """

    jobs: Jobs
    rows: Integers
    left_out: Mapping[str, int]
    without_request: int
    overran: int
    killed: bool
    too_wide: int | None

    def notes(self) -> list[str]:
        """Sentences about what is not as in the trace; none if there is nothing to say."""
        notes = [f"{count} left out: {reason}" for reason, count in self.left_out.items()]
        if self.without_request:
            notes.append(f"{self.without_request} requested no time: their estimate is how long they ran")
        if self.overran:
            fate = "end at their request" if self.killed else "run on"
            notes.append(f"{self.overran} ran longer than they requested: they {fate}")
        if self.too_wide:
            notes.append(f"{self.too_wide} need more processors than the header says that there are")
        return notes


def cleaned(
    label: str, header: SwfHeader, columns: Mapping[str, Reals], estimates: Estimates, overruns: Overruns
) -> CleanedJobs:
    """Take the jobs out of the columns of a trace; see `crosscast.cluster.traces.trace.Trace.jobs`.

    A job has the processors that it was allocated, else those that it requested, and runs for its run time,
    which may be 0 s (less than half a second). Lines that are no such job are left out, each for the first
    reason that holds: parts of a job that has a line of its own; cancelled before the start; no submit time;
    no processors; no run time.

    Raises
    ------
    InputError
        If an argument is unknown, or no job is left.
    """
    for name, value, known in (
        ("estimates", estimates, get_args(Estimates)),
        ("overruns", overruns, get_args(Overruns)),
    ):
        if value not in known:
            raise InputError(f"{name}: expected one of {', '.join(known)}, found {value!r}")
    run, status = columns["run_s"], columns["status"]
    procs = np.where(columns["procs"] > 0, columns["procs"], columns["requested_procs"])
    reasons: dict[str, _Flags] = {
        "parts of a job that has a line of its own": _parts(columns["job"], status),
        "cancelled before the start": (status == CANCELLED) & ~(run > 0),
        "no submit time": np.isnan(columns["submit_s"]),
        "no processors": ~(procs > 0),
        "no run time": np.isnan(run),
    }
    kept = np.ones(len(run), dtype=np.bool_)
    left_out = {}
    for reason, wrong in reasons.items():
        wrong &= kept
        if count := int(np.count_nonzero(wrong)):
            left_out[reason] = count
            kept &= ~wrong
    if not kept.any():
        found = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        raise InputError(f"trace {label}: expected jobs that ran, found none ({found})")

    rows = np.flatnonzero(kept)

    def taken(column: Reals) -> Reals:
        # Nothing is copied where nothing is left out.
        return np.ascontiguousarray(column) if len(rows) == len(column) else column[rows]

    number, run, procs = taken(columns["job"]), taken(run), taken(procs)
    requested = taken(columns["requested_s"])
    requested = np.where(requested > 0, requested, np.nan)
    overran = run > requested
    killed = overruns == "kill" or (overruns == "header" and header.allow_overuse is False)
    if killed:
        run = np.fmin(run, requested)
    estimate = run if estimates == "exact" else np.where(np.isnan(requested), run, requested)
    user, users = _users(taken(columns["user"]))
    most = header.max_procs
    jobs = Jobs(
        number=np.where(np.isnan(number), rows + 1.0, number).astype(np.int64),
        submit_s=taken(columns["submit_s"]),
        procs=procs.astype(np.int64),
        run_s=run[:, None],
        estimate_s=estimate[:, None],
        user=user,
        users=users,
    )
    return CleanedJobs(
        jobs,
        rows,
        left_out,
        without_request=int(np.count_nonzero(np.isnan(requested))),
        overran=int(np.count_nonzero(overran)),
        killed=killed,
        too_wide=None if most is None else int(np.count_nonzero(jobs.procs > most)),
    )


def _parts(job: Reals, status: Reals) -> _Flags:
    """Lines of parts of jobs of which another line tells as a whole."""
    is_part = np.isin(status, _PARTS)
    if is_part.any():
        is_part &= np.isin(job, job[~is_part])
    return is_part


def _users(numbers: Reals) -> tuple[Integers | None, tuple[str, ...]]:
    known = ~np.isnan(numbers)
    if not known.any():
        return None, ()
    filled = np.where(known, numbers, -1)
    # Without sorting all jobs: a user has many.
    distinct = np.unique(filled)
    names = (UNKNOWN_USER if number < 0 else str(int(number)) for number in distinct.tolist())
    return np.searchsorted(distinct, filled).astype(np.int64, copy=False), tuple(names)

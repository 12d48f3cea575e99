"""Traces of jobs with fields and header of the Standard Workload Format 2.2, and the jobs to simulate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster import Jobs, Schedule
from crosscast.cluster.rules import JobNames
from crosscast.errors import InputError

Kind = Literal["time", "procs", "amount", "number"]
"""Seconds, processors, other measured amounts, and identifiers.

A negative time or number of processors other than −1 is refused; any other negative number counts as
missing. Processors and identifiers are whole numbers.
"""

_KIBIBYTE = 1024


@dataclass(frozen=True)
class SwfField:
    """Field of the Standard Workload Format."""

    name: str  # Name of its column in a `JobTrace`, unit included
    title: str  # Name in the standard, for messages
    kind: Kind
    unit: int = 1  # Units of the column in one unit of the file


FIELDS = (
    SwfField("job", "job number", "number"),
    SwfField("submit_s", "submit time", "time"),
    SwfField("wait_s", "wait time", "time"),
    SwfField("run_s", "run time", "time"),
    SwfField("procs", "allocated processors", "procs"),
    SwfField("cpu_s", "average CPU time", "time"),
    SwfField("memory_bytes", "used memory", "amount", _KIBIBYTE),
    SwfField("requested_procs", "requested processors", "procs"),
    SwfField("requested_s", "requested time", "time"),
    SwfField("requested_memory_bytes", "requested memory", "amount", _KIBIBYTE),
    SwfField("status", "status", "number"),
    SwfField("user", "user", "number"),
    SwfField("group", "group", "number"),
    SwfField("executable", "executable", "number"),
    SwfField("queue", "queue", "number"),
    SwfField("partition", "partition", "number"),
    SwfField("preceding_job", "preceding job", "number"),
    SwfField("think_s", "think time", "time"),
)
"""Fields in the order of the file. Memory is per processor."""

NAMES = tuple(field.name for field in FIELDS)
"""Names of the columns."""


# A colon in an address, http://..., ends no name.
_NAMED = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*):(?:\s+(.*)|)$")
_NUMBER = re.compile(r"\d{1,15}\b")


@dataclass(frozen=True)
class SwfHeader:
    """Header of a trace: fields in its comments."""

    # Texts by the names of the standard (`Computer`, `MaxProcs`, `Note`, ...), in the order of their first
    # lines; a field that is repeated or continued has several lines
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def max_procs(self) -> int | None:
        """Processors of the computer."""
        return self._number("MaxProcs")

    @property
    def allow_overuse(self) -> bool | None:
        """Whether jobs may use more than they requested; ``None`` if the header does not say."""
        word = (self.fields.get("AllowOveruse", "").lower().split() or [""])[0]
        return {"yes": True, "true": True, "no": False, "false": False}.get(word)

    @property
    def procs(self) -> int | None:
        """Size of the computer in the unit of the jobs: processors, else nodes."""
        return self.max_procs or self._number("MaxNodes")

    def _number(self, name: str) -> int | None:
        match = _NUMBER.match(self.fields.get(name, ""))
        return int(match[0]) if match else None

    def lines(self) -> list[str]:
        """Return the comment lines."""
        return [
            f"; {name}: {line}" if line else f"; {name}:"
            for name, text in self.fields.items()
            for line in text.split("\n")
        ]


def header_of(comments: Iterable[str]) -> SwfHeader:
    """Parse comments: ``; Name: text``, and continuation lines of the last name.

    >>> header = header_of(["; MaxProcs: 100", "; Note: cleaned,", ";   by job<=14"])
    >>> header.max_procs, header.fields["Note"], header.allow_overuse
    (100, 'cleaned,\\nby job<=14', None)
    """
    fields: dict[str, list[str]] = {}
    last: list[str] | None = None
    for comment in comments:
        text = comment.strip().removeprefix(";").strip()
        # Control characters could steer a terminal.
        text = "".join(letter if letter.isprintable() else " " for letter in text)
        if match := _NAMED.match(text):
            last = fields.setdefault(match[1], [])
            last.append(match[2] or "")
        elif not text:
            last = None
        elif last is not None:
            last.append(text)
    return SwfHeader({name: "\n".join(lines) for name, lines in fields.items()})


Estimates = Literal["requested", "exact"]
Overruns = Literal["header", "kill"]

CANCELLED = 5
"""Status of a job that was cancelled, before it started or after."""
_PARTS = (2, 3, 4)
"""Status of a part of a job that was stopped in between: it goes on, it ended, it failed."""
UNKNOWN_USER = "unknown"
"""Name of the user of jobs without one."""


@dataclass(frozen=True)
class CleanedJobs:
    """Jobs of a trace that can be simulated."""

    jobs: Jobs  # The `n` jobs
    rows: Integers  # Row of each job in the columns of the trace, of shape `(n,)`
    left_out: Mapping[str, int]  # Number of lines that were left out, by the reason
    without_request: int  # Number of jobs that requested no time: their estimate is the run time
    overran: int  # Number of jobs that ran longer than requested
    killed: bool  # Whether those end at their request
    # Number of jobs that need more processors than the header states; `None` if it states none
    too_wide: int | None

    def notes(self) -> list[str]:
        """Return sentences about differences from the trace."""
        notes = [f"{count} left out: {reason}" for reason, count in self.left_out.items()]
        if self.without_request:
            notes.append(f"{self.without_request} requested no time: their estimate is how long they ran")
        if self.overran:
            fate = "end at their request" if self.killed else "run on"
            notes.append(f"{self.overran} ran longer than they requested: they {fate}")
        if self.too_wide:
            notes.append(f"{self.too_wide:,} of more processors than the header says that there are")
        return notes


@dataclass(frozen=True)
class JobTrace:
    """A trace of ``n`` lines."""

    label: str  # Name for people
    header: SwfHeader
    # The fields of `NAMES`, each of shape `(n,)`, in SI units; NaN where unknown
    columns: Mapping[str, Reals]
    # Names behind the identifiers from 1 of a column, where the trace has them
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.columns[NAMES[0]])

    def jobs(self, estimates: Estimates = "requested", overruns: Overruns = "header") -> CleanedJobs:
        """Return the jobs that can be simulated, and the number of other lines by reason.

        A job has the processors that it was allocated, else those that it requested, and runs for its run
        time, which may be 0 s (less than half a second). Other lines are left out for the first of these
        reasons: part of a job that has a summary line; cancelled before the start; no submit time; no
        processors; no run time.
        """
        columns, header = self.columns, self.header
        procs = np.where(columns["procs"] > 0, columns["procs"], columns["requested_procs"])
        rows, left_out = self._usable(procs)

        def of_jobs(column: Reals) -> Reals:
            # No copy where every line is a job.
            return np.ascontiguousarray(column) if len(rows) == len(column) else column[rows]

        number, run, requested = (of_jobs(columns[name]) for name in ("job", "run_s", "requested_s"))
        requested = np.where(requested > 0, requested, np.nan)
        overran = run > requested
        killed = overruns == "kill" or header.allow_overuse is False
        if killed:
            run = np.fmin(run, requested)
        estimate = run if estimates == "exact" else np.where(np.isnan(requested), run, requested)
        named = self.names_of("user", rows)
        user, users = named.index, tuple(name or UNKNOWN_USER for name in named.names)
        if users and (user < 0).any():
            user, users = user + 1, (UNKNOWN_USER, *users)
        jobs = Jobs(
            number=np.where(np.isnan(number), rows + 1.0, number).astype(np.int64),
            submit_s=of_jobs(columns["submit_s"]),
            procs=of_jobs(procs).astype(np.int64),
            run_s=run[:, None],
            estimate_s=estimate[:, None],
            user=user if users else None,
            users=users,
        )
        max_procs = header.max_procs
        return CleanedJobs(
            jobs,
            rows,
            left_out,
            without_request=int(np.count_nonzero(np.isnan(requested))),
            overran=int(np.count_nonzero(overran)),
            killed=killed,
            too_wide=None if max_procs is None else int(np.count_nonzero(jobs.procs > max_procs)),
        )

    def names_of(self, column: str, rows: Integers) -> JobNames:
        """Names in a column of these rows; where the trace has no names, the identifiers."""
        numbers = self.columns[column][rows]
        known = ~np.isnan(numbers)
        distinct = np.unique(numbers[known])
        texts = self.names.get(column)
        names = tuple(
            texts[number - 1] if texts else str(number) for number in distinct.astype(np.int64).tolist()
        )
        index = np.where(known, np.searchsorted(distinct, np.where(known, numbers, 0)), -1)
        return JobNames(index.astype(np.int64), names)

    def _usable(self, procs: Reals) -> tuple[Integers, dict[str, int]]:
        """Rows of lines that are jobs, and the number of other lines by reason."""
        run, status, job = (self.columns[name] for name in ("run_s", "status", "job"))
        is_part = np.isin(status, _PARTS)
        if is_part.any():
            is_part &= np.isin(job, job[~is_part])
        reasons: dict[str, Flags] = {
            "parts of a job that has a line of its own": is_part,
            "cancelled before the start": (status == CANCELLED) & ~(run > 0),
            "no submit time": np.isnan(self.columns["submit_s"]),
            "no processors": ~(procs > 0),
            "no run time": np.isnan(run),
        }
        usable = np.ones(len(run), dtype=np.bool_)
        left_out = {}
        for reason, excluded in reasons.items():
            if count := int(np.count_nonzero(excluded & usable)):
                left_out[reason] = count
                usable &= ~excluded
        if not usable.any():
            counts = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
            raise InputError.of(
                where=f"trace {self.label}", expected="jobs that ran", found=f"none ({counts})"
            )
        return np.flatnonzero(usable), left_out


def trace_of(schedule: Schedule, label: str) -> JobTrace:
    """Return the trace of a cluster that ran a schedule.

    Wait and run times are those of the schedule, the requested time is the estimate on the machine that ran
    the job, all jobs are complete (status 1), and partition ``i`` is machine ``i``, from 1. Users keep their
    names if all are numbers, else they are numbered from 1. If a job was submitted before time 0, all times
    are shifted so that the first is 0, as the format has no negative times.
    """
    jobs, count = schedule.jobs, len(schedule.jobs)
    estimate = schedule.on_machine(jobs.estimate_s)
    procs = jobs.procs.astype(np.float64)
    columns: dict[str, Reals] = {name: np.broadcast_to(np.float64(np.nan), count) for name in NAMES}
    columns |= {
        "job": jobs.number.astype(np.float64),
        "submit_s": jobs.submit_s - min(0.0, float(jobs.submit_s.min(initial=0.0))),
        # Rounding must not make a job start before its submission.
        "wait_s": np.maximum(schedule.wait_s, 0.0),
        "run_s": schedule.ran_s,
        "procs": procs,
        "requested_procs": procs,
        "requested_s": np.where(np.isfinite(estimate), estimate, np.nan),
        "status": np.broadcast_to(np.float64(1), count),
        "user": _user_numbers(schedule),
        "partition": (schedule.machine + 1).astype(np.float64),
    }
    return JobTrace(label, _header_of(schedule), columns)


def _user_numbers(schedule: Schedule) -> Reals:
    jobs = schedule.jobs
    if jobs.user is None:
        return np.broadcast_to(np.float64(np.nan), len(jobs))
    names = [name for name in jobs.users if name != UNKNOWN_USER]
    are_numbers = all(name.isascii() and name.isdigit() and len(name) <= 15 for name in names)
    # Two spellings of one number would merge two users.
    keeps_names = are_numbers and len(set(map(int, names))) == len(names)
    numbers = [
        np.nan if name == UNKNOWN_USER else float(name) if keeps_names else number
        for number, name in enumerate(jobs.users, start=1)
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
                f"{number} {name} ({machine.procs} processors)"
                for number, (name, machine) in enumerate(zip(names, machines, strict=True), start=1)
            ),
        }
    )

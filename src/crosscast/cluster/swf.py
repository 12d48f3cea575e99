"""Traces in the Standard Workload Format 2.2: their fields, jobs and header, read and written."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, starmap
from pathlib import Path
from typing import BinaryIO, Literal, cast, get_args

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.cluster.jobs import Jobs, Schedule, texts_of
from crosscast.cluster.rules import JobNames
from crosscast.data.files import atomic_file
from crosscast.errors import InputError

Kind = Literal["time", "procs", "amount", "number"]
"""Seconds, processors, anything else that is measured, and numbers that stand for something.

Of times and processors, and of nothing else, negative numbers other than −1 are refused; elsewhere they are
missing, too. Processors and numbers are whole.
"""

_KIBIBYTE = 1024


@dataclass(frozen=True)
class SwfField:
    """A field."""

    name: str  # Name of its column in a `JobTrace`, with the unit that it has there
    title: str  # What the standard calls it, for messages
    kind: Kind  # What its numbers are
    unit: int = 1  # How many of the column's units are one of the file's


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
"""In the order of the file. Memory is per processor."""

NAMES = tuple(field.name for field in FIELDS)
"""Their columns."""


# A colon in an address, http://..., ends no name.
_NAMED = re.compile(r"\s*([A-Za-z][A-Za-z0-9]*):(?:\s+(.*)|)$")
_NUMBER = re.compile(r"\d{1,15}\b")


@dataclass(frozen=True)
class SwfHeader:
    """What the comments of a trace say."""

    # Texts by the names of the standard (`Computer`, `MaxProcs`, `Note`, ...), in the order of their first
    # lines; those that are there more than once, or go on in the next line, have lines
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def max_procs(self) -> int | None:
        """Processors of the computer."""
        return self._number("MaxProcs")

    @property
    def max_nodes(self) -> int | None:
        """Nodes of the computer."""
        return self._number("MaxNodes")

    @property
    def max_run_s(self) -> int | None:
        """Longest run that the system allowed, in seconds."""
        return self._number("MaxRuntime")

    @property
    def unix_start_s(self) -> int | None:
        """When the times of the trace begin, in seconds since 1970 in UTC."""
        return self._number("UnixStartTime")

    @property
    def allow_overuse(self) -> bool | None:
        """Whether jobs may use more than they requested; ``None`` if nothing is said."""
        return {"yes": True, "true": True, "no": False, "false": False}.get(self._word("AllowOveruse"))

    @property
    def preemption(self) -> str | None:
        """``No``, ``Yes``, ``Double`` (a job's parts have lines beside its own) or ``TS`` (time slices)."""
        return self.fields.get("Preemption")

    @property
    def procs(self) -> int | None:
        """What jobs are counted in: processors, else nodes."""
        return self.max_procs or self.max_nodes

    def _word(self, name: str) -> str:
        return (self.fields.get(name, "").lower().split() or [""])[0]

    def _number(self, name: str) -> int | None:
        found = _NUMBER.match(self.fields.get(name, ""))
        return int(found[0]) if found else None

    def lines(self) -> list[str]:
        """The comments, a line each."""
        return [
            f"; {name}: {line}" if line else f"; {name}:"
            for name, text in self.fields.items()
            for line in text.split("\n")
        ]


def header_of(comments: Iterable[str]) -> SwfHeader:
    """Read comments: ``; Name: text``, and lines that go on with the text of the last name.

    >>> header = header_of(["; MaxProcs: 100", "; Note: cleaned,", ";   by job<=14"])
    >>> header.max_procs, header.fields["Note"], header.allow_overuse
    (100, 'cleaned,\\nby job<=14', None)
    """
    fields: dict[str, list[str]] = {}
    last: list[str] | None = None
    for comment in comments:
        text = _printable(comment.strip().removeprefix(";").strip())
        if named := _NAMED.match(text):
            last = fields.setdefault(named[1], [])
            last.append(named[2] or "")
        elif not text:
            last = None
        elif last is not None:
            last.append(text)
    return SwfHeader({name: "\n".join(lines) for name, lines in fields.items()})


def _printable(text: str) -> str:
    """Without what would steer a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


Estimates = Literal["requested", "exact"]
Overruns = Literal["header", "kill", "run"]

CANCELLED = 5
"""Status of a job that was cancelled, before it started or after."""
_PARTS = (2, 3, 4)
"""Status of a part of a job that was stopped in between: it goes on, it ended, it failed."""
UNKNOWN_USER = "unknown"
"""Name of whoever submitted jobs without a user."""


@dataclass(frozen=True)
class CleanedJobs:
    """Jobs of a trace that can be simulated."""

    jobs: Jobs  # The `n` jobs
    rows: Integers  # Row of each in the columns of the trace, of shape `(n,)`
    left_out: Mapping[str, int]  # How many lines were left out, by the reason
    without_request: int  # How many jobs requested no time, so that their estimate is how long they ran
    overran: int  # How many ran longer than they requested
    killed: bool  # Whether those end at their request
    # How many need more processors than the header says that there are; `None` if it says nothing
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


def _parts(job: Reals, status: Reals) -> Flags:
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


@dataclass(frozen=True)
class JobTrace:
    """A trace of ``n`` lines."""

    label: str  # What it is called, for people
    header: SwfHeader  # What its comments say
    # The fields of `crosscast.cluster.swf.NAMES`, each of shape `(n,)`, in SI units; not a
    # number where nothing is known
    columns: Mapping[str, Reals]
    # What the numbers from 1 of some columns stand for, where the trace has names
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the columns."""
        for name in NAMES:
            if name not in self.columns:
                raise InputError(f"trace {self.label}: column {name!r} is missing")
        for name, column in self.columns.items():
            if name not in NAMES:
                raise InputError(f"trace {self.label}: unknown column {name!r}, expected {', '.join(NAMES)}")
            if column.shape != (len(self),):
                found = column.shape[0] if column.ndim == 1 else column.shape
                raise InputError(f"trace {self.label}: {name}: expected {len(self)} numbers, found {found}")

    def __len__(self) -> int:
        """Number of lines."""
        return len(self.columns[NAMES[0]])

    def jobs(self, estimates: Estimates = "requested", overruns: Overruns = "header") -> CleanedJobs:
        """The jobs that a simulation can run, and what became of the others.

        A job has the processors that it was allocated, else those that it requested, and runs for its run
        time, which may be 0 s (less than half a second). Lines that are no such job are left out, each for
        the first reason that holds: parts of a job that has a line of its own; cancelled before the start; no
        submit time; no processors; no run time.
        """
        for name, value, known in (
            ("estimates", estimates, get_args(Estimates)),
            ("overruns", overruns, get_args(Overruns)),
        ):
            if value not in known:
                raise InputError(f"{name}: expected one of {', '.join(known)}, found {value!r}")
        columns, header = self.columns, self.header
        procs = np.where(columns["procs"] > 0, columns["procs"], columns["requested_procs"])
        rows, left_out = self._kept(procs)

        def taken(column: Reals) -> Reals:
            # Nothing is copied where nothing is left out.
            return np.ascontiguousarray(column) if len(rows) == len(column) else column[rows]

        number, run, requested = (taken(columns[name]) for name in ("job", "run_s", "requested_s"))
        requested = np.where(requested > 0, requested, np.nan)
        overran = run > requested
        killed = overruns == "kill" or (overruns == "header" and header.allow_overuse is False)
        if killed:
            run = np.fmin(run, requested)
        estimate = run if estimates == "exact" else np.where(np.isnan(requested), run, requested)
        user, users = _users(taken(columns["user"]))
        if "user" in self.names:
            users = tuple(self.names["user"][int(number) - 1] or UNKNOWN_USER for number in users)
        jobs = Jobs(
            number=np.where(np.isnan(number), rows + 1.0, number).astype(np.int64),
            submit_s=taken(columns["submit_s"]),
            procs=taken(procs).astype(np.int64),
            run_s=run[:, None],
            estimate_s=estimate[:, None],
            user=user,
            users=users,
        )
        most = header.max_procs
        return CleanedJobs(
            jobs,
            rows,
            left_out,
            without_request=int(np.count_nonzero(np.isnan(requested))),
            overran=int(np.count_nonzero(overran)),
            killed=killed,
            too_wide=None if most is None else int(np.count_nonzero(jobs.procs > most)),
        )

    def names_of(self, column: str, rows: Integers) -> JobNames:
        """What each of these rows has in a column: a name, or where the trace has none, the number."""
        numbers = self.columns[column][rows]
        known = ~np.isnan(numbers)
        distinct = np.unique(numbers[known])
        texts = self.names.get(column)
        names = tuple(texts[each - 1] if texts else str(each) for each in distinct.astype(np.int64).tolist())
        place = np.where(known, np.searchsorted(distinct, np.where(known, numbers, 0)), -1)
        return JobNames(place.astype(np.int64), names)

    def _kept(self, procs: Reals) -> tuple[Integers, dict[str, int]]:
        """Rows of the lines that are jobs, and how many of the others there are by the reason."""
        run, status = self.columns["run_s"], self.columns["status"]
        reasons: dict[str, Flags] = {
            "parts of a job that has a line of its own": _parts(self.columns["job"], status),
            "cancelled before the start": (status == CANCELLED) & ~(run > 0),
            "no submit time": np.isnan(self.columns["submit_s"]),
            "no processors": ~(procs > 0),
            "no run time": np.isnan(run),
        }
        kept = np.ones(len(run), dtype=np.bool_)
        left_out = {}
        for reason, wrong in reasons.items():
            if count := int(np.count_nonzero(wrong & kept)):
                left_out[reason] = count
                kept &= ~wrong
        if not kept.any():
            found = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
            raise InputError(f"trace {self.label}: expected jobs that ran, found none ({found})")
        return np.flatnonzero(kept), left_out


_BLOCK = 1 << 20
_LONGEST_LINE = 64 << 10
_MOST_BYTES = 4 << 30
"""Of the text, however little of it a compressed file is."""
_MOST_COMMENTS = 4 << 20
_MOST_JOBS = 1 << 24
_GZIP = b"\x1f\x8b"
_COMMENT = re.compile(rb"^[ \t\r]*(;.*)", re.MULTILINE)
_NO_JOBS = re.compile(rb"^(?:[ \t\r]*(?:;.*)?\n)+", re.MULTILINE)
"""Comments, and lines with nothing in them."""
_OF_NO_NUMBER = re.compile(rb"[^0-9eE.+\- \t\r\n]")
_NUMBER_WORD = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SPACES = re.compile(rb"[ \t\r]+")
_EXACT = 2.0**53
"""Beyond it, numbers are not whole any more."""
_WHOLE = np.array([field.kind in ("procs", "number") for field in FIELDS])
_STRICT = np.array([field.kind in ("time", "procs") for field in FIELDS])
_UNITS = np.array([field.unit for field in FIELDS], dtype=np.float64)


def read_swf(path: str | Path) -> JobTrace:
    """Read a trace, plain or compressed with gzip.

    Parameters
    ----------
    path
        A file in the Standard Workload Format, version 2.2 or older, of at most 16,777,216 lines.

    Returns
    -------
    Trace
        All its lines, with not a number where the file has −1.

    Raises
    ------
    InputError
        If the file cannot be read, has no jobs or too many, a line is not 18 numbers, a time or a number of
        processors is negative but not −1, or a job is submitted before one of a line above. Names the line
        and the field.
    """
    path = Path(path)
    comments: list[str] = []
    columns: list[list[Reals]] = [[] for _ in FIELDS]
    count, passed, last_submit = 0, 0, -np.inf
    for first, text in _blocks(path):
        comments += [_decoded(found.strip()) for found in _COMMENT.findall(text)]
        block = _Block(path, first, text, _NO_JOBS.sub(b"", text))
        passed += len(text) - len(block.jobs)
        if passed > _MOST_COMMENTS:
            raise InputError(f"{path}: expected a line for each job, found {passed} bytes of other lines")
        if not block.jobs:
            continue
        numbers = block.checked(block.numbers(), last_submit)
        last_submit = np.fmax.reduce(numbers[:, 1], initial=last_submit)
        count += len(numbers)
        if count > _MOST_JOBS:
            raise InputError(f"{path}: expected at most {_MOST_JOBS} jobs, found more")
        for column, cells in zip(columns, (numbers * _UNITS).T, strict=True):
            column.append(_lean(cells))
    if not count:
        raise InputError(f"{path}: expected a line for each job, found none")
    # One column after the other, as all parts and all columns would be the trace in memory twice.
    whole = {name: _joined(columns.pop(0)) for name in NAMES}
    return JobTrace(path.name.removesuffix(".gz").removesuffix(".swf"), header_of(comments), whole)


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Whole lines, a mebibyte or so at a time, with the number of the first."""
    total, line, rest = 0, 1, b""
    try:
        with path.open("rb") as plain:
            is_gzip = plain.read(len(_GZIP)) == _GZIP
            plain.seek(0)
            if path.suffix == ".gz" and not is_gzip:
                raise InputError(f"{path}: expected a file compressed with gzip, found something else")
            file = cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if is_gzip else plain
            while piece := file.read(_BLOCK):
                total += len(piece)
                if total > _MOST_BYTES:
                    raise InputError(
                        f"{path}: expected a trace of at most {_MOST_BYTES >> 30} GiB, found more"
                    )
                whole, end, rest = (rest + piece).rpartition(b"\n")
                if len(rest) > _LONGEST_LINE:
                    # Refused here: all of such a file would be one line in memory.
                    place = line + whole.count(b"\n") + len(end)
                    raise InputError(
                        f"{path}: line {place}: expected {len(FIELDS)} numbers, found more than "
                        f"{_LONGEST_LINE >> 10} KiB without an end of line"
                    )
                if end:
                    yield line, whole + end
                    line += whole.count(b"\n") + 1
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot read the trace ({reason})") from error
    if rest:
        yield line, rest + b"\n"


def _decoded(comment: bytes) -> str:
    try:
        return comment.decode("utf-8")
    except UnicodeDecodeError:
        # As older traces are written; any bytes can be read so.
        return comment.decode("latin-1")


@dataclass(frozen=True)
class _Block:
    """Some lines of a trace; which of them is wrong is looked for when one is."""

    path: Path
    first: int  # Number of the first line
    text: bytes
    jobs: bytes  # The lines that are no comments

    def numbers(self) -> Reals:
        """Numbers of all jobs, of shape ``(k, 18)``."""
        # NumPy takes more for spaces and numbers than the format does.
        if not _OF_NO_NUMBER.search(self.jobs):
            try:
                numbers: Reals = np.loadtxt(self.jobs.decode("ascii").splitlines(), comments=None, ndmin=2)
                if numbers.shape[1] == len(FIELDS):
                    return numbers
            except ValueError:
                pass
        return np.array([[float(word) for word in words] for _, words in self._lines()])

    def _lines(self) -> Iterator[tuple[int, list[bytes]]]:
        """Number and words of each job, of which the first that is wrong is refused."""
        for line, text in enumerate(self.text.split(b"\n")[:-1], start=self.first):
            words = [word for word in _SPACES.split(text) if word]
            if not words or words[0].startswith(b";"):
                continue
            for place, word in enumerate(words[: len(FIELDS)]):
                if not _NUMBER_WORD.fullmatch(word):
                    found = repr(word[:40].decode("utf-8", errors="replace"))
                    raise self._error(line, place, "a number", found)
            if len(words) != len(FIELDS):
                raise InputError(
                    f"{self.path}: line {line}: expected {len(FIELDS)} fields, found {len(words)}"
                )
            yield line, words

    def checked(self, numbers: Reals, last_submit: float) -> Reals:
        """Check numbers and take what is missing out of them."""
        negative = numbers < 0
        self._refuse(
            numbers, negative & (numbers != -1) & _STRICT, "at least 0, or -1 where nothing is known"
        )
        self._refuse(numbers, ~(np.abs(numbers) <= _EXACT), "a number of at most 2^53")
        self._refuse(numbers, (numbers != np.floor(numbers)) & _WHOLE & ~negative, "a whole number")
        numbers[negative] = np.nan
        # Only the first of the parts of a job that was stopped in between has a submit time.
        submits = np.fmax.accumulate(np.concatenate(([last_submit], numbers[:, 1])))
        early = numbers[:, 1] < submits[:-1]
        if early.any():
            row = int(np.argmax(early))
            self._refuse(numbers, early[:, None], f"at least {submits[row]:.15g}, as in a line before", 1)
        return numbers

    def _refuse(self, numbers: Reals, wrong: Flags, expected: str, place: int = 0) -> None:
        if wrong.any():
            row, column = (int(index) for index in np.unravel_index(np.argmax(wrong), wrong.shape))
            line, _ = next(islice(self._lines(), row, None))
            raise self._error(line, place + column, expected, f"{numbers[row, place + column]:.15g}")

    def _error(self, line: int, place: int, expected: str, found: str) -> InputError:
        field = f"field {place + 1} ({FIELDS[place].title})"
        return InputError.of(where=f"{self.path}: line {line}", field=field, expected=expected, found=found)


def _lean(cells: Reals) -> Reals:
    """A part of a column, which takes no memory where it is one number (or none) all along."""
    is_one = (np.isnan(cells) if np.isnan(cells[0]) else cells == cells[0]).all()
    return np.broadcast_to(np.float64(cells[0]), len(cells)) if is_one else cells.copy()


def _joined(parts: list[Reals]) -> Reals:
    if all(part.strides == (0,) and np.array_equal(part[:1], parts[0][:1], equal_nan=True) for part in parts):
        return np.broadcast_to(np.float64(parts[0][0]), sum(map(len, parts)))
    return np.concatenate(parts)


_LINES = 1 << 15


def write_swf(trace: JobTrace | Schedule, path: str | Path) -> None:
    """Write a trace, or a schedule as the trace of a cluster that ran it."""
    path = Path(path)
    if isinstance(trace, Schedule):
        trace = trace_of(trace, path.name.removesuffix(".swf"))
    try:
        with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in trace.header.lines())
            file.writelines(_lines(trace))
    except OSError as error:
        raise InputError(f"{path}: cannot write the trace ({error.strerror})") from error


def _lines(trace: JobTrace) -> Iterator[str]:
    for start in range(0, len(trace), _LINES):
        columns = [
            texts_of(trace.columns[field.name][start : start + _LINES] / field.unit, "-1") for field in FIELDS
        ]
        yield from starmap(("{} " * (len(FIELDS) - 1) + "{}\n").format, zip(*columns, strict=True))


def trace_of(schedule: Schedule, label: str) -> JobTrace:
    """The trace of a cluster that ran a schedule.

    The wait and run times are the schedule's, the requested time is the estimate on the machine that ran the
    job, all jobs are complete (status 1), and partition ``i`` is machine ``i``, from 1. Users keep their
    names where these are numbers, else they are numbered from 1. Where a job was submitted before time 0, all
    are moved so that the first is submitted at 0, as the format has no times before.
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
    return JobTrace(label, _header_of(schedule), columns)


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

"""Files of traces: the Standard Workload Format 2.2, read and written, and accounting logs of Slurm, read."""

from __future__ import annotations

import gzip
import itertools
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, starmap
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.cluster import EXACT, Schedule, texts_of
from crosscast.cluster.traces import CANCELLED, FIELDS, NAMES, JobTrace, SwfHeader, header_of, trace_of
from crosscast.data.files import atomic_file
from crosscast.errors import InputError

_BLOCK = 1 << 20
_LONGEST_LINE = 64 << 10
_LONGEST_JOB = 16 << 20
"""Bytes of a line of Slurm's, which may hold the command line and a comment."""
_MOST_BYTES = 4 << 30
"""Limit on the text, also where a compressed file is small."""
_MOST_COMMENTS = 4 << 20
_MOST_JOBS = 1 << 24
_GZIP = b"\x1f\x8b"
_COMMENT = re.compile(rb"^[ \t\r]*(;.*)", re.MULTILINE)
_NO_JOBS = re.compile(rb"^(?:[ \t\r]*(?:;.*)?\n)+", re.MULTILINE)
"""Comments and blank lines."""
_NOT_NUMERIC = re.compile(rb"[^0-9eE.+\- \t\r\n]")
_NUMBER_WORD = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SPACES = re.compile(rb"[ \t\r]+")
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
    JobTrace
        Its lines, with NaN where the file has −1.

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
    count, comment_bytes, last_submit = 0, 0, -np.inf
    for first, text in _blocks(path):
        comments += [_decoded(comment.strip()) for comment in _COMMENT.findall(text)]
        block = _Block(path, first, text, _NO_JOBS.sub(b"", text))
        comment_bytes += len(text) - len(block.jobs)
        if comment_bytes > _MOST_COMMENTS:
            raise InputError.of(
                where=path, expected="a line for each job", found=f"{comment_bytes} bytes of other lines"
            )
        if not block.jobs:
            continue
        numbers = block.checked(block.numbers(), last_submit)
        last_submit = np.fmax.reduce(numbers[:, 1], initial=last_submit)
        count += len(numbers)
        if count > _MOST_JOBS:
            raise InputError.of(where=path, expected=f"at most {_MOST_JOBS} jobs", found="more")
        for column, cells in zip(columns, (numbers * _UNITS).T, strict=True):
            column.append(_lean(cells))
    if not count:
        raise InputError.of(where=path, expected="a line for each job", found="none")
    # Column by column: all blocks and all columns at once would hold the trace in memory twice.
    joined = {name: _joined(columns.pop(0)) for name in NAMES}
    return JobTrace(path.name.removesuffix(".gz").removesuffix(".swf"), header_of(comments), joined)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a trace, plain or compressed with gzip."""
    try:
        with path.open("rb") as plain:
            is_gzip = plain.read(len(_GZIP)) == _GZIP
            plain.seek(0)
            yield cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if is_gzip else plain
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError.of(where=path, problem=f"cannot read the trace ({reason})") from error


def _blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of complete lines, about a mebibyte each, with the number of the first line."""
    total, line, rest = 0, 1, b""
    with opened(path) as file:
        if path.suffix == ".gz" and not isinstance(file, gzip.GzipFile):
            raise InputError.of(where=path, expected="a file compressed with gzip", found="something else")
        while piece := file.read(_BLOCK):
            total += len(piece)
            if total > _MOST_BYTES:
                raise InputError.of(
                    where=path, expected=f"a trace of at most {_MOST_BYTES >> 30} GiB", found="more"
                )
            lines, end, rest = (rest + piece).rpartition(b"\n")
            if len(rest) > _LONGEST_LINE:
                # Refused here, before the whole file is one line in memory.
                long_line = line + lines.count(b"\n") + len(end)
                raise InputError.of(
                    where=path,
                    problem=(
                        f"line {long_line}: expected {len(FIELDS)} numbers, found more than "
                        f"{_LONGEST_LINE >> 10} KiB without an end of line"
                    ),
                )
            if end:
                yield line, lines + end
                line += lines.count(b"\n") + 1
    if rest:
        yield line, rest + b"\n"


def _decoded(comment: bytes) -> str:
    try:
        return comment.decode("utf-8")
    except UnicodeDecodeError:
        # Encoding of older traces; any bytes are valid in it.
        return comment.decode("latin-1")


@dataclass(frozen=True)
class _Block:
    """Block of lines of a trace; a faulty line is searched for only if the block fails a check."""

    path: Path
    first: int  # Number of the first line
    text: bytes
    jobs: bytes  # Lines without comments

    def numbers(self) -> Reals:
        """Return the numbers of all jobs, of shape ``(k, 18)``."""
        # NumPy accepts more separators and numerals than the format does.
        if not _NOT_NUMERIC.search(self.jobs):
            try:
                numbers: Reals = np.loadtxt(self.jobs.decode("ascii").splitlines(), comments=None, ndmin=2)
                if numbers.shape[1] == len(FIELDS):
                    return numbers
            except ValueError:
                pass
        return np.array([[float(word) for word in words] for _, words in self._lines()])

    def _lines(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield line number and words of each job; raise on the first malformed one."""
        for line, text in enumerate(self.text.split(b"\n")[:-1], start=self.first):
            words = [word for word in _SPACES.split(text) if word]
            if not words or words[0].startswith(b";"):
                continue
            for index, word in enumerate(words[: len(FIELDS)]):
                if not _NUMBER_WORD.fullmatch(word):
                    found = repr(word[:40].decode("utf-8", errors="replace"))
                    raise self._error(line, index, "a number", found)
            if len(words) != len(FIELDS):
                raise InputError.of(
                    where=self.path, problem=f"line {line}: expected {len(FIELDS)} fields, found {len(words)}"
                )
            yield line, words

    def checked(self, numbers: Reals, last_submit: float) -> Reals:
        """Check numbers and set missing ones to NaN."""
        negative = numbers < 0
        self._refuse(
            numbers, negative & (numbers != -1) & _STRICT, "at least 0, or -1 where nothing is known"
        )
        self._refuse(numbers, ~(np.abs(numbers) <= EXACT), "a number of at most 2^53")
        self._refuse(numbers, (numbers != np.floor(numbers)) & _WHOLE & ~negative, "a whole number")
        numbers[negative] = np.nan
        # Only the first of the parts of a job that was stopped in between has a submit time.
        submits = np.fmax.accumulate(np.concatenate(([last_submit], numbers[:, 1])))
        early = numbers[:, 1] < submits[:-1]
        if early.any():
            row = int(np.argmax(early))
            self._refuse(numbers, early[:, None], f"at least {submits[row]:.15g}, as in a line before", 1)
        return numbers

    def _refuse(self, numbers: Reals, wrong: Flags, expected: str, first_column: int = 0) -> None:
        if wrong.any():
            row, column = (int(index) for index in np.unravel_index(np.argmax(wrong), wrong.shape))
            line, _ = next(islice(self._lines(), row, None))
            raise self._error(
                line, first_column + column, expected, f"{numbers[row, first_column + column]:.15g}"
            )

    def _error(self, line: int, index: int, expected: str, found: str) -> InputError:
        field = f"field {index + 1} ({FIELDS[index].title})"
        return InputError.of(where=f"{self.path}: line {line}", field=field, expected=expected, found=found)


def _lean(cells: Reals) -> Reals:
    """Part of a column, broadcast from one number where it is constant (or NaN throughout)."""
    is_constant = (np.isnan(cells) if np.isnan(cells[0]) else cells == cells[0]).all()
    return np.broadcast_to(np.float64(cells[0]), len(cells)) if is_constant else cells.copy()


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
    with (
        atomic_file(path, "trace") as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(f"{line}\n" for line in trace.header.lines())
        file.writelines(_lines(trace))


def _lines(trace: JobTrace) -> Iterator[str]:
    for start in range(0, len(trace), _LINES):
        columns = [
            texts_of(trace.columns[field.name][start : start + _LINES] / field.unit, "-1") for field in FIELDS
        ]
        yield from starmap(("{} " * (len(FIELDS) - 1) + "{}\n").format, zip(*columns, strict=True))


_FIRST_BYTES = b"JobID"
"""Start of the first line of a log of Slurm, and of no other trace."""


def read_trace(path: str | Path) -> JobTrace:
    """Read a trace: an accounting log of Slurm if its first line says so, else one in the standard format."""
    path = Path(path)
    with opened(path) as file:
        is_sacct = file.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    return read_sacct(path) if is_sacct else read_swf(path)


def text_lines(path: Path, longest: int = _LONGEST_LINE) -> Iterator[tuple[int, str]]:
    """Yield the lines of a log, plain or compressed with gzip, with their numbers."""
    total = 0
    with opened(path) as file:
        for number in itertools.count(1):
            line = file.readline(longest + 1)
            total += len(line)
            if len(line) > longest or total > _MOST_BYTES:
                what = "line" if len(line) > longest else "file"
                raise InputError.of(
                    where=path, problem=f"line {number}: expected a job, found too long a {what}"
                )
            if not line:
                return
            yield number, line.decode("utf-8", errors="replace").rstrip("\r\n")


_NONE = ("", "Unknown", "None", "N/A")
_NO_LIMIT = ("UNLIMITED", "Partition_Limit")
_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")


def _moment(text: str) -> float:
    if text in _NONE:
        return np.nan
    moment = datetime.fromisoformat(text)
    # Without an offset, as Slurm writes it by default, a log has one throughout.
    return (moment - datetime(1970, 1, 1, tzinfo=UTC if moment.tzinfo else None)).total_seconds()


def _count(text: str) -> float:
    if text in _NONE:
        return np.nan
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return float(text)


def _minutes(text: str) -> float:
    return np.nan if text in _NO_LIMIT else 60 * _count(text)


def _span(text: str) -> float:
    if text in (*_NONE, *_NO_LIMIT):
        return np.nan
    match = _ELAPSED.fullmatch(text)
    if match is None:
        raise ValueError(text)
    days, hours, minutes, seconds = (float(each or 0) for each in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _job(text: str) -> float:
    """Number of the job of an array task such as 12_3, or of a heterogeneous part such as 12+1."""
    return _count(re.split(r"[_+]", text)[0])


def _status(text: str) -> float:
    """Return the status in the standard format, 0 for one of a job that failed or has not ended."""
    return {"COMPLETED": 1.0, "CANCELLED": float(CANCELLED)}.get(text.split(" ")[0], 0.0)


_Readers = Mapping[str, tuple[Callable[[str], float], str]]

_READERS: Mapping[str, _Readers] = {
    "submit_s": {"Submit": (_moment, "a time such as 2024-05-31T13:45:00")},
    "run_s": {"ElapsedRaw": (_count, "whole seconds"), "Elapsed": (_span, "a time such as 1-02:03:04")},
    "procs": dict.fromkeys(
        ("AllocCPUS", "NCPUS", "ReqCPUS", "AllocNodes", "NNodes"), (_count, "a whole number")
    ),
    "status": {"State": (_status, "a state")},
    "job": {"JobID": (_job, "a job's number")},
    "requested_s": {
        "TimelimitRaw": (_minutes, "whole minutes"),
        "Timelimit": (_span, "a time such as 02:00:00"),
    },
}
"""For each column the fields of Slurm that have it, the first of which is taken, and what their texts are."""

_NAMES_IN_SACCT: Mapping[str, str] = {
    "user": "User",
    "group": "Account",
    "executable": "JobName",
    "queue": "QOS",
    "partition": "Partition",
}


def read_sacct(path: str | Path) -> JobTrace:
    """Read what ``sacct --parsable2`` printed, plain or compressed with gzip.

    Needs the fields JobID, Submit, ElapsedRaw or Elapsed, State, and AllocCPUS, NCPUS, ReqCPUS, AllocNodes or
    NNodes, the first of which is the unit of the jobs' size. TimelimitRaw or Timelimit is the requested time;
    User, JobName, Partition, QOS and Account are kept, and all other fields ignored. So are steps of jobs
    (JobID with a dot). Jobs are sorted by submission.

    Raises
    ------
    InputError
        If the file cannot be read, a field is missing, or a value is not as Slurm writes it. Names the line
        and the field.
    """
    path = Path(path)
    table, lines = _sacct_table(path)
    columns = {name: np.full(len(lines), np.nan) for name in NAMES}
    for column, readers in _READERS.items():
        known = [name for name in readers if name in table]
        if known:
            columns[column] = _numbers(path, lines, known[0], table[known[0]], *readers[known[0]])
        elif column != "requested_s":
            expected = f"a field {' or '.join(readers)}"
            raise InputError.of(where=path, expected=expected, found=", ".join(table))
    columns["submit_s"] -= np.fmin.reduce(columns["submit_s"])
    # Jobs that have not ended have no run time yet.
    unfinished = [text.startswith(("RUNNING", "PENDING")) for text in table["State"]]
    columns["run_s"][unfinished] = np.nan
    names: dict[str, tuple[str, ...]] = {}
    for column, name in _NAMES_IN_SACCT.items():
        if name in table:
            names[column] = tuple(dict.fromkeys(table[name]))
            numbers = {text: float(number) for number, text in enumerate(names[column], start=1)}
            columns[column] = np.array([numbers[text] for text in table[name]])
    order = np.argsort(columns["submit_s"], kind="stable")
    label = path.name.removesuffix(".gz").removesuffix(".txt")
    return JobTrace(label, SwfHeader({}), {name: values[order] for name, values in columns.items()}, names)


def _sacct_table(path: Path) -> tuple[dict[str, tuple[str, ...]], list[int]]:
    """Return the texts of each field, and the line of each job, without steps."""
    lines = text_lines(path, _LONGEST_JOB)
    header = next(lines, (0, ""))[1].split("|")
    jobs: dict[int, list[str]] = {}
    for number, text in lines:
        row = text.split("|")
        if len(row) != len(header):
            expected = f"{len(header)} fields"
            raise InputError.of(where=f"{path}:{number}", expected=expected, found=len(row))
        if "JobID" not in header:
            raise InputError.of(where=path, expected="a field JobID", found=", ".join(header))
        if "." not in row[header.index("JobID")]:
            jobs[number] = row
    if not jobs:
        raise InputError.of(where=path, expected="a line for each job", found="none")
    return dict(zip(header, zip(*jobs.values(), strict=True), strict=True)), list(jobs)


def _numbers(
    path: Path, lines: list[int], name: str, texts: Sequence[str], read: Callable[[str], float], expected: str
) -> Reals:
    values = np.empty(len(texts))
    for row, (line, text) in enumerate(zip(lines, texts, strict=True)):
        where = f"{path}:{line}"
        try:
            values[row] = read(text)
        except ValueError:
            raise InputError.of(where=where, field=name, expected=expected, found=repr(text)) from None
        if values[row] > EXACT:
            expected, found = "a number of at most 2^53", f"{values[row]:g}"
            raise InputError.of(where=where, field=name, expected=expected, found=found)
    return values

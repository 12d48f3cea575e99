"""Accounting logs of Slurm, as ``sacct --parsable2`` prints them, read as traces."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import numpy as np

from crosscast.cluster.swf import CANCELLED, NAMES, JobTrace, SwfHeader, opened, read_swf
from crosscast.errors import InputError

_MOST_BYTES = 4 << 30
_LARGEST = 2.0**53
_FIRST_BYTES = b"JobID"
"""Start of the first line of such a log, and of no other trace."""

_ELAPSED = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")
_NONE = ("", "Unknown", "None", "N/A")
_NO_LIMIT = ("UNLIMITED", "Partition_Limit")


def read_trace(path: str | Path) -> JobTrace:
    """Read a trace: an accounting log of Slurm if its first line says so, else one in the standard format."""
    path = Path(path)
    with opened(path) as file:
        is_sacct = file.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    return read_sacct(path) if is_sacct else read_swf(path)


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
    header, rows = _rows(path)
    lines = [line for line, _ in rows]
    table = {name: [row[column] for _, row in rows] for column, name in enumerate(header)}

    def cells(*names: str) -> tuple[str, list[str]]:
        for name in names:
            if name in table:
                return name, table[name]
        raise InputError.of(where=path, expected=f"a field {' or '.join(names)}", found=", ".join(header))

    def numbers(read: Callable[[str], float], expected: str, *names: str) -> np.ndarray:
        name, texts = cells(*names)
        values = np.empty(len(texts))
        for row, text in enumerate(texts):
            try:
                values[row] = read(text)
            except ValueError:
                where = f"{path}:{lines[row]}"
                raise InputError.of(where=where, field=name, expected=expected, found=repr(text)) from None
            if values[row] > _LARGEST:
                raise InputError.of(
                    where=f"{path}:{lines[row]}",
                    field=name,
                    expected="a number of at most 2^53",
                    found=f"{values[row]:g}",
                )
        return values

    submit_s = numbers(_moment, "a time such as 2024-05-31T13:45:00", "Submit")
    columns = {name: np.full(len(rows), np.nan) for name in NAMES}
    columns["submit_s"] = submit_s - np.fmin.reduce(submit_s)
    if "ElapsedRaw" in table:
        columns["run_s"] = numbers(_count, "whole seconds", "ElapsedRaw")
    else:
        columns["run_s"] = numbers(_span, "a time such as 1-02:03:04", "Elapsed")
    columns["procs"] = numbers(
        _count, "a whole number", "AllocCPUS", "NCPUS", "ReqCPUS", "AllocNodes", "NNodes"
    )
    states = np.array([text.split(" ")[0] for text in cells("State")[1]])
    columns["status"] = np.select([states == "COMPLETED", states == "CANCELLED"], [1.0, float(CANCELLED)])
    # Jobs that have not ended have no run time yet.
    columns["run_s"][np.isin(states, ("RUNNING", "PENDING"))] = np.nan
    columns["job"] = numbers(_job, "a job's number", "JobID")
    if "TimelimitRaw" in table:
        columns["requested_s"] = numbers(_minutes, "whole minutes", "TimelimitRaw")
    elif "Timelimit" in table:
        columns["requested_s"] = numbers(_span, "a time such as 02:00:00", "Timelimit")
    names: dict[str, tuple[str, ...]] = {}
    for column, name in _NAMED.items():
        if name in table:
            distinct = {text: number for number, text in enumerate(dict.fromkeys(table[name]), start=1)}
            columns[column] = np.array([float(distinct[text]) for text in table[name]])
            names[column] = tuple(distinct)
    order = np.argsort(columns["submit_s"], kind="stable")
    label = path.name.removesuffix(".gz").removesuffix(".txt")
    return JobTrace(label, SwfHeader({}), {name: values[order] for name, values in columns.items()}, names)


_NAMED: Mapping[str, str] = {
    "user": "User",
    "group": "Account",
    "executable": "JobName",
    "queue": "QOS",
    "partition": "Partition",
}


def _rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the fields, and a row for each job with its line number."""
    rows = []
    header: list[str] | None = None
    for line, row in enumerate(csv.reader(_lines(path), delimiter="|", quoting=csv.QUOTE_NONE), start=1):
        if header is None:
            header = row
        elif len(row) != len(header):
            raise InputError.of(where=f"{path}:{line}", expected=f"{len(header)} fields", found=len(row))
        elif "JobID" not in header:
            raise InputError.of(where=path, expected="a field JobID", found=", ".join(header))
        elif "." not in row[header.index("JobID")]:
            rows.append((line, row))
    if header is None or not rows:
        raise InputError(f"{path}: expected a line for each job, found none")
    return header, rows


def _lines(path: Path) -> Iterator[str]:
    total = 0
    with opened(path) as file:
        for line in file:
            total += len(line)
            if total > _MOST_BYTES:
                raise InputError(f"{path}: expected a log of at most {_MOST_BYTES >> 30} GiB, found more")
            yield line.decode("utf-8", errors="replace")


def _moment(text: str) -> float:
    # Slurm writes no time zone; a log has one throughout.
    return np.nan if text in _NONE else (datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds()


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

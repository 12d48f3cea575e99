"""Reading a history's file, which may come from anywhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from crosscast.errors import InputError
from crosscast.measure.regions.line import MOST_BYTES, from_line, is_begun
from crosscast.measure.regions.run import RegionRun
from crosscast.measure.regions.runs import Runs

__all__ = ["SUFFIX", "check_history", "is_history", "read_history"]

SUFFIX = ".jsonl"
"""Of the name of a file that is a history whatever it begins with."""

_MOST_FILE_BYTES = 1 << 30


def read_history(path: str | Path) -> Runs:
    """Read the runs of a history's file.

    A last line without its end is left out if it is not whole, as a process may be writing it, or was
    stopped while it did.

    Parameters
    ----------
    path
        The file, as `profiled` writes it.

    Returns
    -------
    Runs
        The runs by key: times in seconds, energy in joules, configurations.

    Raises
    ------
    InputError
        If the file cannot be read or is not a history; names the line and the field.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "runs.jsonl"
    ...     _ = file.write_text('{"version":1,"region":"step","started_s":1700000000,"duration_s":0.25}\\n')
    ...     history = read_history(file)
    >>> history.mean_time_s(history.keys("step")[0])
    0.25
    """
    found = Runs()
    for run in _runs(Path(path)):
        found.add(run)
    return found


def is_history(path: Path, what: str) -> bool:
    """Whether a file is to be read as a history: by its name, or as it begins with an object.

    Parameters
    ----------
    path
        The file.
    what
        What it holds, for messages, such as ``samples``.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    if path.suffix == SUFFIX:
        return True
    try:
        with path.open("rb") as file:
            return file.read(1) == b"{"
    except OSError as error:
        raise InputError(f"{path}: cannot read the {what} ({error.strerror})") from error


def check_history(path: Path) -> None:
    """See that runs may be appended to a file: that it is not there, or empty, or begins with one.

    Raises
    ------
    InputError
        If not.
    """
    if path.exists():
        next(_runs(path), None)
    elif not path.parent.is_dir():
        raise InputError(f"{path}: cannot write the history (there is no folder {path.parent})")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{path}: cannot write the history (Permission denied)")


def _runs(path: Path) -> Iterator[RegionRun]:
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: expected a file of runs, found something else")
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) > _MOST_FILE_BYTES:
                raise InputError(f"{path}: expected {_MOST_FILE_BYTES} bytes at most, found {file.tell()}")
            file.seek(0)
            yield from _lines(file, path)
    except OSError as error:
        raise InputError(f"{path}: cannot read the history ({error.strerror})") from error


def _lines(file: BinaryIO, path: Path) -> Iterator[RegionRun]:
    number = 0
    while line := file.readline(MOST_BYTES + 1):
        number += 1
        where = f"{path}, line {number}"
        if len(line) > MOST_BYTES:
            raise InputError(f"{where}: expected {MOST_BYTES} bytes at most, found more")
        try:
            yield from_line(line, where)
        except InputError:
            if line.endswith(b"\n") or not is_begun(line):
                raise

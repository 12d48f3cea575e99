"""The file of a history: a run a line, each a JSON object."""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.fields import STRICT_JSON, Fields
from crosscast.measure.regions.key import (
    MOST_ARGUMENTS,
    MOST_CHARACTERS,
    MOST_PLACE_CHARACTERS,
    MOST_PLACES,
    NOTHING,
    RegionKey,
    RegionRun,
    Runs,
)

VERSION = 1
"""Grows when a field changes its name, type or meaning; the old version gets a reader."""

_BEGIN = f'{{"version":{VERSION},"region":'.encode()

MOST_BYTES = 1 << 20
"""Length of a line."""

MOST_NAME = 200
"""Length of a region's name."""

_MOST_NUMBERS = 1000


def to_line(run: RegionRun) -> str:
    """Write a run as one line, with its end. What a run has not is left out."""
    rest: dict[str, Any] = {"started_s": run.started_s, "duration_s": run.duration_s}
    for name in ("metered_s", "power_w", "failure"):
        if (value := getattr(run, name)) is not None:
            rest[name] = value
    for name in ("energy_j", "powers_w", "counters"):
        if numbers := getattr(run, name):
            rest[name] = dict(numbers)
    return f"{_head(run.key, run.configuration)}{_encode(rest)[1:]}\n"


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@lru_cache(maxsize=1024)
def _head(key: RegionKey, configuration: Configuration | None) -> str:
    """Begin of the line, which is the same for many runs."""
    head: dict[str, Any] = {"version": VERSION, "region": key.name}
    if key.arguments:
        head["arguments"] = key.arguments
    if key.site:
        head["site"] = key.site
    if configuration is not None:
        head |= configuration.to_dict()
    return f"{_encode(head)[:-1]},"


def is_begun(line: bytes) -> bool:
    """Whether this can be the begin of a line that was not written to its end."""
    return line.startswith(_BEGIN) or _BEGIN.startswith(line)


def from_line(line: bytes, where: str) -> RegionRun:
    """Read a run."""
    try:
        found = STRICT_JSON.decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: expected a JSON object, found {_shown(line)} ({error})") from error
    if not isinstance(found, dict):
        raise InputError(f"{where}: expected a JSON object, found {_shown(line)}")
    fields = Fields(found, where)
    fields.require("version", str(VERSION))
    if fields.integer("version", 1) != VERSION:
        raise fields.fail("version", f"{VERSION}, which this Crosscast reads")
    run = RegionRun(
        _key(fields),
        _configuration(fields),
        _needed(fields, "started_s"),
        _needed(fields, "duration_s"),
        _number(fields, "metered_s"),
        _numbers(fields, "energy_j"),
        _numbers(fields, "powers_w"),
        _number(fields, "power_w"),
        _numbers(fields, "counters"),
        _word(fields, "failure"),
    )
    fields.finish()
    return run


def _shown(line: bytes) -> str:
    return repr(line[:60].decode(errors="replace"))


def _key(fields: Fields) -> RegionKey:
    fields.require("region", "the name of the region")
    name = _word(fields, "region")
    arguments = _words(fields, "arguments", MOST_ARGUMENTS, MOST_CHARACTERS)
    site = _words(fields, "site", MOST_PLACES + 1, MOST_PLACE_CHARACTERS)
    return RegionKey(name or "", arguments, site)


def _word(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is not None and len(text) > MOST_NAME:
        raise fields.fail(name, f"{MOST_NAME} characters at most")
    return text


def _words(fields: Fields, name: str, most: int, length: int) -> tuple[str, ...]:
    found = fields.texts(name)
    if len(found) > most or any(len(text) > length for text in found):
        raise fields.fail(name, f"{most} texts of {length} characters at most")
    return found


def _configuration(fields: Fields) -> Configuration | None:
    device, settings = fields.text("device"), fields.take("settings")
    if device is None and settings is None:
        return None
    if device is None or not isinstance(settings, dict):
        raise InputError(f"{fields.where}: expected both device and settings, an object, or none of them")
    try:
        return Configuration(device, settings)
    except InputError as error:
        raise InputError(f"{fields.where}: settings: {error}") from error


def _number(fields: Fields, name: str) -> float | None:
    value = fields.number(name)
    if value is not None and value < 0:
        raise fields.fail(name, "a number of at least 0")
    return value


def _needed(fields: Fields, name: str) -> float:
    fields.require(name, "a number of seconds")
    value = _number(fields, name)
    if value is None:
        raise fields.fail(name, "a number of seconds")
    return float(value)


def _numbers(fields: Fields, name: str) -> Any:
    inner = fields.table(name)
    if inner is None:
        return NOTHING
    found = dict(inner.items())
    if len(found) > _MOST_NUMBERS:
        raise InputError(
            f"{fields.where}: {name}: expected {_MOST_NUMBERS} numbers at most, found {len(found)}"
        )
    for inside, value in found.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not inside or not number or not math.isfinite(value) or value < 0:
            raise inner.fail(inside, "a number of at least 0")
    return found


_PATIENCE_S = 2.0
_PAUSE_S = 0.005


def append(path: Path, lines: bytes) -> None:
    """Append lines in one piece; on a disk that is full, as many whole ones as it takes.

    What a process left at the end that was stopped in the middle of a line is removed; what none can have
    left so stays, as a line of its own.
    """
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        alone = _lock(file)
        end = os.fstat(file).st_size
        tail = _tail(file, end)
        if tail and alone and is_begun(tail) and not _is_whole(tail):
            end -= len(tail)
            os.ftruncate(file, end)
        elif tail:
            lines = b"\n" + lines
        written = 0
        try:
            while written < len(lines):
                written += os.write(file, memoryview(lines)[written:])
        except OSError:
            # The disk is full: whole lines stay, half of one would be in the way of those to come.
            if alone:
                os.ftruncate(file, end + lines.rfind(b"\n", 0, written) + 1)
            raise
    finally:
        # With it goes the lock.
        os.close(file)


def _lock(file: int) -> bool:
    """Lock the file; tell whether that went well, as some file systems have no locks.

    Nobody waits for ever: a process may be stopped while it holds the lock. A single write in append mode
    does not mix with others anyway on local file systems.
    """
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(_PAUSE_S)
        except OSError:
            return False
        else:
            return True


def _tail(file: int, end: int) -> bytes:
    """What follows the end of the last line."""
    if end == 0 or os.pread(file, 1, end - 1) == b"\n":
        return b""
    return os.pread(file, min(end, MOST_BYTES), max(0, end - MOST_BYTES)).rpartition(b"\n")[2]


def _is_whole(tail: bytes) -> bool:
    try:
        from_line(tail, "the last line")
    except InputError:
        return False
    return True


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
    """Whether a file is to be read as a history: by its name, or as it begins with an object."""
    if path.suffix == SUFFIX:
        return True
    try:
        with path.open("rb") as file:
            return file.read(1) == b"{"
    except OSError as error:
        raise InputError(f"{path}: cannot read the {what} ({error.strerror})") from error


def check_history(path: Path) -> None:
    """See that runs may be appended to a file: that it is not there, or empty, or begins with one."""
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

"""The history of regions: runs by key in memory, and a file of them, one JSON object a line."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta

from crosscast.data.configuration import Configuration
from crosscast.data.fields import STRICT_JSON, decode, excerpt
from crosscast.errors import InputError
from crosscast.measure.regions.key import (
    MOST_ARGUMENTS,
    MOST_CHARACTERS,
    MOST_PLACE_CHARACTERS,
    MOST_PLACES,
    NOTHING,
    RegionKey,
    RegionRun,
)

VERSION = 1
"""Grows when a field changes its name, type or meaning; the old version gets a reader."""

_BEGIN = f'{{"version":{VERSION},"region":'.encode()

MOST_BYTES = 1 << 20
"""Length of a line."""

MOST_NAME = 200
"""Length of a region's name."""


class Runs:
    """Runs of regions, in the order in which they ended.

    Every method may be called while other threads record.
    """

    def __init__(self, kept: int | None = None, keys: int | None = None) -> None:
        self._kept = kept
        self._most_keys = keys
        self._lock = threading.RLock()
        self._runs: dict[RegionKey, deque[RegionRun]] = {}

    def __len__(self) -> int:
        """Runs that are kept."""
        with self._lock:
            return sum(map(len, self._runs.values()))

    def add(self, run: RegionRun) -> None:
        """Keep a run."""
        with self._lock:
            runs = self._runs.get(run.key)
            if runs is None:
                if len(self._runs) == self._most_keys:
                    del self._runs[next(iter(self._runs))]
                runs = self._runs[run.key] = deque(maxlen=self._kept)
            runs.append(run)

    def keys(self, name: str | None = None) -> tuple[RegionKey, ...]:
        """Keys of the regions that have runs, in the order of the first; only those of a name, if given."""
        with self._lock:
            return tuple(key for key in self._runs if name is None or key.name == name)

    def runs(
        self, key: RegionKey, configuration: Configuration | None = None, *, failed: bool = False
    ) -> tuple[RegionRun, ...]:
        """Runs of a key."""
        with self._lock:
            found = tuple(self._runs.get(key, ()))
        return tuple(
            run
            for run in found
            if (failed or run.failure is None) and configuration in (None, run.configuration)
        )

    def last(self, key: RegionKey) -> RegionRun | None:
        """The last run of a key that did not fail, if there is one."""
        return next(reversed(self.runs(key)), None)

    def mean_time_s(self, key: RegionKey, configuration: Configuration | None = None) -> float | None:
        """Mean time of the runs that did not fail, in seconds; none without a run."""
        times_s = [run.duration_s for run in self.runs(key, configuration)]
        return sum(times_s) / len(times_s) if times_s else None

    def mean_power_w(self, key: RegionKey, configuration: Configuration | None = None) -> float | None:
        """Mean power of the runs that did not fail and whose power is known, in watts; none without one.

        Runs weigh by their times.
        """
        known = [
            (run.power_w, run.metered_s)
            for run in self.runs(key, configuration)
            if run.power_w is not None and run.metered_s
        ]
        time_s = sum(metered_s for _, metered_s in known)
        return sum(power_w * metered_s for power_w, metered_s in known) / time_s if known else None


_Amount = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0, le=sys.float_info.max)]
_Name = Annotated[str, Meta(min_length=1, max_length=MOST_NAME)]
_Argument = Annotated[str, Meta(max_length=MOST_CHARACTERS)]
_Place = Annotated[str, Meta(max_length=MOST_PLACE_CHARACTERS)]
_Amounts = Annotated[dict[Annotated[str, Meta(min_length=1)], _Amount], Meta(max_length=1000)]


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """What a line holds; the numbers are those of `RegionRun`."""

    version: int
    region: _Name
    started_s: _Amount
    duration_s: _Amount
    arguments: Annotated[tuple[_Argument, ...], Meta(max_length=MOST_ARGUMENTS)] = ()
    site: Annotated[tuple[_Place, ...], Meta(max_length=MOST_PLACES + 1)] = ()
    device: Annotated[str, Meta(min_length=1)] | None = None
    settings: dict[str, object] | None = None
    metered_s: _Amount | None = None
    energy_j: _Amounts = {}
    powers_w: _Amounts = {}
    power_w: _Amount | None = None
    counters: _Amounts = {}
    failure: _Name | None = None


def to_line(run: RegionRun) -> str:
    """Write a run as one line, with its end. What a run has not is left out."""
    rest: dict[str, object] = {"started_s": run.started_s, "duration_s": run.duration_s}
    for name in ("metered_s", "power_w", "failure"):
        if (value := getattr(run, name)) is not None:
            rest[name] = value
    for name in ("energy_j", "powers_w", "counters"):
        if numbers := getattr(run, name):
            rest[name] = dict(numbers)
    return f"{_head(run.key, run.configuration)}{_encode(rest)[1:]}\n"


# Not msgspec's, which would write numbers that are none as null.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@lru_cache(maxsize=1024)
def _head(key: RegionKey, configuration: Configuration | None) -> str:
    """Begin of the line, which is the same for many runs."""
    head: dict[str, object] = {"version": VERSION, "region": key.name}
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
        found, why = STRICT_JSON.decode(line.decode()), ""
    except (ValueError, RecursionError) as error:
        found, why = None, f" ({error})"
    if not isinstance(found, dict):
        begin = line[:60].decode(errors="replace")
        raise InputError(f"{where}: expected a JSON object, found {begin!r}{why}")
    version = found.get("version")
    if type(version) is not int or version != VERSION:
        expected = f"{VERSION}, which this Crosscast reads"
        raise InputError.of(where=where, field="version", expected=expected, found=excerpt(version))
    told = decode(_Line, found, where)
    return RegionRun(
        RegionKey(told.region, told.arguments, told.site),
        _configuration(told, where),
        told.started_s,
        float(told.duration_s),
        told.metered_s,
        told.energy_j or NOTHING,
        told.powers_w or NOTHING,
        told.power_w,
        told.counters or NOTHING,
        told.failure,
    )


def _configuration(line: _Line, where: str) -> Configuration | None:
    if line.device is None and line.settings is None:
        return None
    if line.device is None or line.settings is None:
        raise InputError(f"{where}: expected both device and settings, an object, or none of them")
    try:
        return Configuration.of_values(line.device, line.settings)
    except InputError as error:
        raise InputError(f"{where}: settings: {error}") from error


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

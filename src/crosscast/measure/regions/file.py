"""History of regions: runs by key in memory, and files of runs with one JSON object a line."""

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
    MOST_FRAME_CHARACTERS,
    MOST_FRAMES,
    NOTHING,
    RegionKey,
    RegionRun,
)

VERSION = 1
"""Version of the format; raised when a field changes its name, type or meaning."""

_BEGIN = f'{{"version":{VERSION},"region":'.encode()

MOST_BYTES = 1 << 20
"""Longest line."""

MOST_NAME = 200
"""Longest name of a region, in characters."""


class Runs:
    """Runs of regions, in the order in which they ended.

    All methods are thread-safe.
    """

    def __init__(self, most_runs: int | None = None, keys: int | None = None) -> None:
        self._most_runs = most_runs
        self._most_keys = keys
        self._lock = threading.RLock()
        self._runs: dict[RegionKey, deque[RegionRun]] = {}

    def __len__(self) -> int:
        """Number of runs."""
        with self._lock:
            return sum(map(len, self._runs.values()))

    def add(self, run: RegionRun) -> None:
        """Add a run."""
        with self._lock:
            runs = self._runs.get(run.key)
            if runs is None:
                if len(self._runs) == self._most_keys:
                    del self._runs[next(iter(self._runs))]
                runs = self._runs[run.key] = deque(maxlen=self._most_runs)
            runs.append(run)

    def keys(self, name: str | None = None) -> tuple[RegionKey, ...]:
        """Return the keys with runs, in order of the first run; optionally of one name only."""
        with self._lock:
            return tuple(key for key in self._runs if name is None or key.name == name)

    def runs(
        self, key: RegionKey, configuration: Configuration | None = None, *, failed: bool = False
    ) -> tuple[RegionRun, ...]:
        """Return the runs of a key, optionally of one configuration, by default without failures."""
        with self._lock:
            recorded = tuple(self._runs.get(key, ()))
        return tuple(
            run
            for run in recorded
            if (failed or run.failure is None) and configuration in (None, run.configuration)
        )

    def last(self, key: RegionKey) -> RegionRun | None:
        """Return the last run of a key that did not fail, if any."""
        return next(reversed(self.runs(key)), None)

    def mean_time_s(self, key: RegionKey, configuration: Configuration | None = None) -> float | None:
        """Return the mean time of the runs that did not fail, in seconds; ``None`` without runs."""
        times_s = [run.duration_s for run in self.runs(key, configuration)]
        return sum(times_s) / len(times_s) if times_s else None

    def mean_power_w(self, key: RegionKey, configuration: Configuration | None = None) -> float | None:
        """Return the mean power of the runs that did not fail, in watts; ``None`` without known power.

        Runs are weighted by their times.
        """
        runs = self.runs(key, configuration)
        known = [(r.power_w, r.metered_s) for r in runs if r.power_w is not None and r.metered_s]
        time_s = sum(metered_s for _, metered_s in known)
        return sum(power_w * metered_s for power_w, metered_s in known) / time_s if known else None


_Amount = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0, le=sys.float_info.max)]
_Name = Annotated[str, Meta(min_length=1, max_length=MOST_NAME)]
_Argument = Annotated[str, Meta(max_length=MOST_CHARACTERS)]
_Frame = Annotated[str, Meta(max_length=MOST_FRAME_CHARACTERS)]
_Amounts = Annotated[dict[Annotated[str, Meta(min_length=1)], _Amount], Meta(max_length=1000)]


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of a line, as in `RegionRun`."""

    version: int
    region: _Name
    started_s: _Amount
    duration_s: _Amount
    arguments: Annotated[tuple[_Argument, ...], Meta(max_length=MOST_ARGUMENTS)] = ()
    site: Annotated[tuple[_Frame, ...], Meta(max_length=MOST_FRAMES + 1)] = ()
    device: Annotated[str, Meta(min_length=1)] | None = None
    settings: dict[str, object] | None = None
    metered_s: _Amount | None = None
    energy_j: _Amounts = {}
    powers_w: _Amounts = {}
    power_w: _Amount | None = None
    counters: _Amounts = {}
    failure: _Name | None = None


def to_line(run: RegionRun) -> str:
    """Format a run as a line, with its end; missing fields are left out."""
    rest: dict[str, object] = {"started_s": run.started_s, "duration_s": run.duration_s}
    for name in ("metered_s", "power_w", "failure"):
        if (value := getattr(run, name)) is not None:
            rest[name] = value
    for name in ("energy_j", "powers_w", "counters"):
        if numbers := getattr(run, name):
            rest[name] = dict(numbers)
    return f"{_head(run.key, run.configuration)}{_encode(rest)[1:]}\n"


# msgspec would write NaN as null.
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


@lru_cache(maxsize=1024)
def _head(key: RegionKey, configuration: Configuration | None) -> str:
    """Return the beginning of a line, which many runs share."""
    head: dict[str, object] = {"version": VERSION, "region": key.name}
    if key.arguments:
        head["arguments"] = key.arguments
    if key.site:
        head["site"] = key.site
    if configuration is not None:
        head |= configuration.to_dict()
    return f"{_encode(head)[:-1]},"


def is_begun(line: bytes) -> bool:
    """Whether this may be the beginning of an incomplete line."""
    return line.startswith(_BEGIN) or _BEGIN.startswith(line)


def from_line(line: bytes, where: str) -> RegionRun:
    """Parse a run."""
    try:
        content, reason = STRICT_JSON.decode(line.decode()), ""
    except (ValueError, RecursionError) as error:
        content, reason = None, f" ({error})"
    if not isinstance(content, dict):
        begin = line[:60].decode(errors="replace")
        raise InputError(f"{where}: expected a JSON object, found {begin!r}{reason}")
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        expected = f"{VERSION}, which this Crosscast reads"
        raise InputError.of(where=where, field="version", expected=expected, found=excerpt(version))
    line_ = decode(_Line, content, where)
    key = RegionKey(line_.region, line_.arguments, line_.site)
    powers = line_.energy_j or NOTHING, line_.powers_w or NOTHING, line_.power_w
    what = key, _configuration(line_, where), line_.started_s, float(line_.duration_s), line_.metered_s
    return RegionRun(*what, *powers, line_.counters or NOTHING, line_.failure)


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
    """Append lines at once; on a full disk, as many complete ones as it takes.

    An incomplete line of an interrupted process at the end is removed; any other incomplete end is kept as a
    line.
    """
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        has_lock = _lock(file)
        end = os.fstat(file).st_size
        tail = _tail(file, end)
        if tail and has_lock and is_begun(tail) and not _is_whole(tail):
            end -= len(tail)
            os.ftruncate(file, end)
        elif tail:
            lines = b"\n" + lines
        written = 0
        try:
            while written < len(lines):
                written += os.write(file, memoryview(lines)[written:])
        except OSError:
            # The disk is full: complete lines stay, but a partial one would corrupt later lines.
            if has_lock:
                os.ftruncate(file, end + lines.rfind(b"\n", 0, written) + 1)
            raise
    finally:
        # Closing releases the lock.
        os.close(file)


def _lock(file: int) -> bool:
    """Lock the file; return whether that succeeded, as some file systems have no locks.

    The wait is bounded, as a process may be stopped while it holds the lock. On local file systems, single
    writes in append mode do not interleave even without a lock.
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
    """Return the bytes after the last newline."""
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
"""Suffix of histories; other files are recognised by their content."""

_MOST_FILE_BYTES = 1 << 30


def read_history(path: str | Path) -> Runs:
    """Read the runs of a history's file.

    A last line without its end is left out if it is incomplete, as a process may be writing it, or was
    interrupted.

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
    history = Runs()
    for run in _runs(Path(path)):
        history.add(run)
    return history


def is_history(path: Path, what: str) -> bool:
    """Whether a file is a history: by its suffix, or as it begins with a JSON object."""
    if path.suffix == SUFFIX:
        return True
    try:
        with path.open("rb") as file:
            return file.read(1) == b"{"
    except OSError as error:
        raise InputError(f"{path}: cannot read the {what} ({error.strerror})") from error


def check_history(path: Path) -> None:
    """Raise unless runs may be appended to a file: it must be absent, empty, or begin with a run."""
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

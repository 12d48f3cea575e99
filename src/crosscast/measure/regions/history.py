"""History of a process: runs in memory, appended to a file, if any, as they end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from crosscast.data.configuration import Configuration
from crosscast.measure.regions.file import MOST_BYTES, Runs, append, check_history, to_line
from crosscast.measure.regions.key import RegionKey, RegionRun, say_once
from crosscast.measure.regions.metering import Metering, Pool

MOST_RUNS = 1000
"""Runs of each key that a process keeps in memory."""

_MOST_KEYS = 10_000


class History(Runs):
    """Runs of this process; its file has the runs of all processes that appended to it.

    Each run is in the file once its region is left, however the process ends.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(MOST_RUNS, _MOST_KEYS)
        if path is not None:
            check_history(path)
        self.path = path
        self._writing = threading.Lock()
        self._pools: dict[tuple[RegionKey, Configuration | None, Metering], Pool] = {}

    def pool(self, key: RegionKey, configuration: Configuration | None, metering: Metering) -> Pool:
        """Return the runs with which the power of the next run of a key in a configuration is computed."""
        pool = self._pools.get((key, configuration, metering))
        if pool is None:
            if len(self._pools) >= _MOST_KEYS:
                self._pools.clear()
            pool = self._pools.setdefault((key, configuration, metering), Pool(metering))
        return pool

    def record(self, run: RegionRun) -> None:
        """Add a run, and append it to the file."""
        self.add(run)
        if self.path is not None and (line := _line_of(run)):
            with self._writing:
                self._write(line)

    def _write(self, line: bytes) -> None:
        if self.path is None:
            return
        try:
            append(self.path, line)
        except OSError as error:
            self.path = None
            say_once(f"the history cannot be written from now on: {error.strerror}")


def _line_of(run: RegionRun) -> bytes:
    """Return the line of a run; empty, and logged once, if it cannot be written."""
    try:
        line = to_line(run).encode()
    except (TypeError, ValueError) as error:
        # A custom sensor may give NaN, or types that JSON does not have.
        say_once(f"a run of {run.key.name} cannot be written to the history: {error}")
        return b""
    if len(line) > MOST_BYTES:
        say_once(f"a run of {run.key.name} is too long for the history: {len(line)} bytes")
        return b""
    return line


_IN_MEMORY = History()
_OF_FILES: dict[str, History] = {}
_LOCK = threading.Lock()


def history_of(target: History | str | Path | None) -> History:
    """Return the history of a file, one in each process, or without a file that in memory."""
    if target is None:
        return _IN_MEMORY
    if isinstance(target, History):
        return target
    path = os.path.abspath(target)  # noqa: PTH100 - ten times as fast as Path, in each region
    history = _OF_FILES.get(path)
    if history is None:
        with _LOCK:
            history = _OF_FILES.get(path)
            if history is None:
                history = _OF_FILES[path] = History(Path(path))
    return history

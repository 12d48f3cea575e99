"""The history of a process: its runs in memory, and in a file if it has one."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from weakref import WeakSet

from crosscast.configuration import Configuration
from crosscast.measure.background import Background
from crosscast.measure.regions import ending
from crosscast.measure.regions.appending import append
from crosscast.measure.regions.key import RegionKey
from crosscast.measure.regions.line import MOST_BYTES, to_line
from crosscast.measure.regions.metering import Metering
from crosscast.measure.regions.notice import say_once
from crosscast.measure.regions.power import Pool
from crosscast.measure.regions.reading import check_history
from crosscast.measure.regions.run import RegionRun
from crosscast.measure.regions.runs import Runs

__all__ = ["History", "history_of"]

KEPT = 1000
"""Runs that a process keeps in memory of each key."""

_MOST_KEYS = 10_000
_FLUSH_S = 0.5


class History(Runs):
    """Runs of this process; those in its file are of all processes that ever appended to it.

    The file is written at least every half second while there are runs, at the end of the process, when it
    ends by an exception, and on SIGTERM. A forked process begins a history of its own, in the same file.

    Parameters
    ----------
    path
        File to append to; none keeps the last 1000 runs of each key in memory only.

    Raises
    ------
    InputError
        If the file is there and is not a history, or its folder is not there.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(KEPT, _MOST_KEYS)
        if path is not None:
            check_history(path)
        self.path = path
        self._begin()
        self._background = Background(self.flush, _FLUSH_S, "crosscast history", self._holds)
        _ALL.add(self)

    def _begin(self) -> None:
        self._pending: deque[RegionRun] = deque()
        self._writing = threading.Lock()
        self._pools: dict[tuple[RegionKey, Configuration | None, Metering], Pool] = {}

    def begin_anew(self) -> None:
        """Forget all runs, written or not, as a forked process does: they are its parent's."""
        super().__init__(KEPT, _MOST_KEYS)
        self._begin()

    def pool(self, key: RegionKey, configuration: Configuration | None, metering: Metering) -> Pool:
        """The runs that the power of the next run of a key in a configuration is told with."""
        found = self._pools.get((key, configuration, metering))
        if found is None:
            if len(self._pools) >= _MOST_KEYS:
                self._pools.clear()
            found = self._pools.setdefault((key, configuration, metering), Pool(metering))
        return found

    def record(self, run: RegionRun) -> None:
        """Keep a run, and write it soon."""
        self.add(run)
        if self.path is None:
            return
        self._pending.append(run)
        if ending.is_over():
            self.flush()
        elif self._background.ensure():
            ending.watch(self)
            if not self._background.runs:
                self.flush()

    def flush(self) -> None:
        """Write what is not written yet."""
        with self._writing:
            runs = [self._pending.popleft() for _ in range(len(self._pending))]
            if not runs or self.path is None:
                return
            try:
                append(self.path, b"".join(_whole_lines(runs)))
            except OSError as error:
                self.path = None
                say_once(f"the history cannot be written from now on: {error.strerror}")

    @property
    def being_written(self) -> bool:
        """Whether some thread is writing the file."""
        return self._writing.locked()

    def _holds(self) -> bool:
        return bool(self._pending)


def _whole_lines(runs: Iterable[RegionRun]) -> Iterable[bytes]:
    for run in runs:
        try:
            line = to_line(run).encode()
        except (TypeError, ValueError) as error:
            # Numbers that are none, or of a type that JSON has not, of a sensor that is not ours.
            say_once(f"a run of {run.key.name} cannot be written to the history: {error}")
            continue
        if len(line) <= MOST_BYTES:
            yield line
        else:
            say_once(f"a run of {run.key.name} is too long for the history: {len(line)} bytes")


_ALL: WeakSet[History] = WeakSet()
_IN_MEMORY = History()
_OF_FILES: dict[str, History] = {}
_LOCK = threading.Lock()


def history_of(given: History | str | Path | None) -> History:
    """The history of a file, of which a process has one; that in memory if there is no file.

    Raises
    ------
    InputError
        If the file is there and is not a history, or its folder is not there.
    """
    if given is None:
        return _IN_MEMORY
    if isinstance(given, History):
        return given
    path = os.path.abspath(given)  # noqa: PTH100 - ten times as fast as Path, in each region
    found = _OF_FILES.get(path)
    if found is None:
        with _LOCK:
            found = _OF_FILES.get(path)
            if found is None:
                found = _OF_FILES[path] = History(Path(path))
    return found


def _begin_anew() -> None:
    global _LOCK
    _LOCK = threading.Lock()
    for history in list(_ALL):
        history.begin_anew()


os.register_at_fork(after_in_child=_begin_anew)

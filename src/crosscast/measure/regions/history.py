"""The history of a process: runs in memory and, where it has a file, written until the process ends."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from weakref import WeakSet

from crosscast.configuration import Configuration
from crosscast.measure.regions.file import MOST_BYTES, Runs, append, check_history, to_line
from crosscast.measure.regions.key import RegionKey, RegionRun, say_once
from crosscast.measure.regions.metering import Background, Metering, Pool

_SOON_S = 0.02
KEPT = 1000
"""Runs that a process keeps in memory of each key."""

_MOST_KEYS = 10_000
_FLUSH_S = 0.5

_over = False
"""Whether histories have been written for the last time, as the interpreter ends."""
_process: int | None = None
"""The process that writes its histories at its end."""


def _write_at_end() -> None:
    """Write all histories when this process ends: by itself, by an exception or by SIGTERM.

    A handler for SIGTERM is installed if the program has none. Only the main thread can do that.
    """
    global _process
    if _process is None:
        atexit.register(_end)
    if _process != os.getpid():
        _process = os.getpid()
        # A worker of multiprocessing leaves without atexit.
        library = sys.modules.get("multiprocessing.util")
        if library is not None:
            library.Finalize(None, _write_all, exitpriority=0)
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _write_all() -> None:
    for history in list(_ALL):
        history.flush()


def _end() -> None:
    global _over
    _over = True
    _write_all()


def _terminate(number: int, frame: FrameType | None) -> None:
    if any(history.being_written for history in list(_ALL)):
        # Perhaps by what this has interrupted, which ends only after this does.
        threading.Timer(_SOON_S, os.kill, (os.getpid(), number)).start()
        return
    _write_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class History(Runs):
    """Runs of this process; those in its file are of all processes that ever appended to it.

    The file is written at least every half second while there are runs, at the end of the process, when it
    ends by an exception, and on SIGTERM. A forked process begins a history of its own, in the same file.
    """

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(KEPT, _MOST_KEYS)
        if path is not None:
            check_history(path)
        self.path = path
        self._begin()
        self._background = Background(self.flush, _FLUSH_S, "crosscast history", lambda: bool(self._pending))
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
        if _over:
            self.flush()
        elif self._background.ensure():
            _write_at_end()
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
    """The history of a file, of which a process has one; that in memory if there is no file."""
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

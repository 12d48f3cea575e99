"""Writing histories when the process ends, however it does."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from types import FrameType
from typing import Protocol
from weakref import WeakSet

__all__ = ["Written", "is_over", "watch"]

_SOON_S = 0.02


class Written(Protocol):
    """Something that holds what is not written yet."""

    @property
    def being_written(self) -> bool:
        """Whether some thread is writing it."""

    def flush(self) -> None:
        """Write it."""


_WATCHED: WeakSet[Written] = WeakSet()
_over = False
_process: int | None = None


def watch(history: Written) -> None:
    """Write a history when this process ends: by itself, by an exception or by SIGTERM.

    A handler for SIGTERM is installed if the program has none. Only the main thread can do that.
    """
    global _process
    _WATCHED.add(history)
    if _process is None:
        atexit.register(_end)
    if _process != os.getpid():
        _process = os.getpid()
        _watch_worker()
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def is_over() -> bool:
    """Whether histories have been written for the last time, as the interpreter ends."""
    return _over


def _watch_worker() -> None:
    """Write at the end of a worker of multiprocessing, too, which leaves without atexit."""
    library = sys.modules.get("multiprocessing.util")
    if library is not None:
        library.Finalize(None, _write_all, exitpriority=0)


def _write_all() -> None:
    for history in list(_WATCHED):
        history.flush()


def _end() -> None:
    global _over
    _over = True
    _write_all()


def _terminate(number: int, frame: FrameType | None) -> None:
    if any(history.being_written for history in list(_WATCHED)):
        # Perhaps by what this has interrupted, which ends only after this does.
        threading.Timer(_SOON_S, os.kill, (os.getpid(), number)).start()
        return
    _write_all()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)

"""Something that is done every so often in a thread, and rests while the process forks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakSet


class Background:
    """A thread that runs when it is needed.

    A process that forks does so without the thread: a fork copies the locks that other threads hold, but
    not the threads. Afterwards the parent's thread goes on; the child starts one when it needs it.
    """

    def __init__(
        self, work: Callable[[], None], interval_s: float, name: str, wanted: Callable[[], bool]
    ) -> None:
        self._work = work
        self._wanted = wanted
        self._interval_s = interval_s
        self._name = name
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        _ALL.add(self)

    def ensure(self) -> bool:
        """Start the thread if it does not run; tell whether that was so."""
        if self._thread is not None:
            return False
        with self._lock:
            if self._thread is not None:
                return False
            self._ended = threading.Event()
            thread = threading.Thread(target=self._run, args=(self._ended,), name=self._name, daemon=True)
            # Python starts no threads at its end, and the system only so many.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread
        return True

    @property
    def runs(self) -> bool:
        """Whether there is a thread."""
        return self._thread is not None

    def stop(self) -> bool:
        """End the thread and wait until it has; tell whether it ran."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._ended.set()
        if thread is None or thread is threading.current_thread():
            return False
        thread.join()
        return True

    def forget(self) -> None:
        """Take it that there is no thread, as in a process that was forked."""
        self._lock = threading.Lock()
        self._thread = None

    def _run(self, ended: threading.Event) -> None:
        try:
            self._repeat(ended)
        finally:
            # Work that raises ends the thread: whoever brings more starts another one.
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _repeat(self, ended: threading.Event) -> None:
        while not ended.wait(self._interval_s):
            self._work()
            with self._lock:
                if ended.is_set():
                    return
                # Whoever brings work after this starts a thread; what came before is seen now.
                self._thread = None
                if not self._wanted():
                    return
                self._thread = threading.current_thread()


_ALL: WeakSet[Background] = WeakSet()
_RESTING: list[Background] = []


def _rest() -> None:
    _RESTING[:] = [background for background in list(_ALL) if background.stop()]


def _go_on() -> None:
    for background in _RESTING:
        background.ensure()
    _RESTING.clear()


def _begin_anew() -> None:
    _RESTING.clear()
    for background in list(_ALL):
        background.forget()


os.register_at_fork(before=_rest, after_in_parent=_go_on, after_in_child=_begin_anew)

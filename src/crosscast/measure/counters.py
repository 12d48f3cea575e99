"""CPU counters of this process: what the processor and the kernel count while a block of code runs.

Every thread that exists gets its own counters, and passes them on to those that it starts. On an OpenCL
device that is a CPU they count the kernels, as its threads are threads of this process.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from crosscast.measure.perf_events import Count, LinuxPerf

__all__ = ["EVENTS", "Counters", "Perf", "added_up", "available"]

_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
_L1D, _LLC, _DTLB = 0, 2, 3
"""Caches as the kernel numbers them; of each, what is read is counted."""
_MISSES = 1 << 16


@dataclass(frozen=True)
class _Event:
    """An event of the kernel's list.

    `pair` names the event beside which it is counted at the same times, so that their ratio is right also
    when the processor has too few counters. Larger groups would not be counted at all where they do not fit.
    """

    kind: int
    config: int
    pair: str | None = None
    # A thread is switched and moved inside the kernel: counted in user space, that is 0 at all times.
    kernel_too: bool = False
    scale: int | float = 1


EVENTS = {
    "cycles": _Event(_HARDWARE, 0),
    "instructions": _Event(_HARDWARE, 1, pair="cycles"),
    "cache_references": _Event(_HARDWARE, 2),
    "cache_misses": _Event(_HARDWARE, 3, pair="cache_references"),
    "branches": _Event(_HARDWARE, 4),
    "branch_misses": _Event(_HARDWARE, 5, pair="branches"),
    "l1d_loads": _Event(_CACHE, _L1D),
    "l1d_load_misses": _Event(_CACHE, _L1D | _MISSES, pair="l1d_loads"),
    "llc_loads": _Event(_CACHE, _LLC),
    "llc_load_misses": _Event(_CACHE, _LLC | _MISSES, pair="llc_loads"),
    "dtlb_loads": _Event(_CACHE, _DTLB),
    "dtlb_load_misses": _Event(_CACHE, _DTLB | _MISSES, pair="dtlb_loads"),
    "task_clock_s": _Event(_SOFTWARE, 1, scale=1e-9),
    "page_faults": _Event(_SOFTWARE, 2),
    "context_switches": _Event(_SOFTWARE, 3, kernel_too=True),
    "cpu_migrations": _Event(_SOFTWARE, 4, kernel_too=True),
}
"""The events, by the names that tables use."""

_REASONS = {
    errno.EACCES: "this user may not count it (see kernel.perf_event_paranoid)",
    errno.EPERM: "this user, or this container, may not count it (see kernel.perf_event_paranoid)",
    errno.ENOENT: "this machine has no such counter",
    errno.EOPNOTSUPP: "this machine has no such counter",
    errno.ENODEV: "this machine has no such counter",
    errno.ENOSYS: "this system has no perf events",
    errno.EMFILE: "the process may not open more files (see ulimit -n)",
}

_FILES_KEPT_FREE = 64
"""Files that the code between may open while the counters are open."""


class Perf(Protocol):
    """The system calls that `Counters` makes, as `LinuxPerf` describes them; tests put their own in place."""

    def open(self, kind: int, config: int, thread: int, leader: int, kernel_too: bool) -> int:
        """Open a counter."""

    def enable(self, descriptor: int) -> None:
        """Begin to count."""

    def disable(self, descriptor: int) -> None:
        """Stop counting."""

    def read(self, descriptor: int) -> Count:
        """Read what was counted."""

    def close(self, descriptor: int) -> None:
        """Give the counter back."""


def available(perf: Perf | None = None) -> dict[str, str | None]:
    """Tell of each event why it cannot be counted here; none if it can."""
    with Counters(perf=perf, threads=[os.getpid()]) as counters:
        pass
    return {name: counters.absent.get(name) for name in EVENTS}


class Counters:
    """Count while a ``with`` block runs.

    Threads that start inside the block are counted with those that start them. Threads that start while the
    block is being entered may be missed, so enter it when the work is warmed up.

    Parameters
    ----------
    enabled
        Count at all; else there are neither values nor reasons.
    perf
        System calls to make; those of Linux by default.
    threads
        Numbers of the threads to count; all of this process by default.
    events
        What to count; all events by default.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        perf: Perf | None = None,
        threads: list[int] | None = None,
        events: Collection[str] | None = None,
    ) -> None:
        chosen = EVENTS if events is None else {name: EVENTS[name] for name in EVENTS if name in events}
        self._events = chosen if enabled else {}
        self._perf = perf or LinuxPerf()
        self._threads = threads
        self._opened: dict[str, dict[int, int]] = {}
        self.values: dict[str, int | float] = {}
        """What was counted in the last block, by event: in user space, except what happens in the kernel
        only. Times are in seconds. An event that shared its counter with others is scaled to all the time."""
        self.absent: dict[str, str] = {}
        """Why the other events were not counted, by event."""

    def __enter__(self) -> Self:
        self.values, self.absent = {}, {}
        threads = _own_threads() if self._threads is None else self._threads
        with ExitStack() as undo:
            undo.callback(self._close)
            for name, event in self._events.items():
                self._open_event(name, event, threads)
            for descriptor in self._descriptors():
                self._perf.enable(descriptor)
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for descriptor in self._descriptors():
                self._perf.disable(descriptor)
            for name, opened in self._opened.items():
                self._add_up(name, [self._perf.read(descriptor) for descriptor in opened.values()])
        finally:
            self._close()

    def so_far(self) -> dict[str, list[Count]]:
        """Tell inside of the block what each event's counters hold, one a thread."""
        return {
            name: [self._perf.read(descriptor) for descriptor in opened.values()]
            for name, opened in self._opened.items()
        }

    def _descriptors(self) -> list[int]:
        return [descriptor for opened in self._opened.values() for descriptor in opened.values()]

    def _open_event(self, name: str, event: _Event, threads: list[int]) -> None:
        """Open the event for all threads, or for none and say why."""
        if len(threads) > _room_for_files():
            self.absent[name] = _REASONS[errno.EMFILE]
            return
        leaders = self._opened.get(event.pair or "", {})
        opened = self._opened[name] = {}
        for thread in threads:
            try:
                opened[thread] = self._perf.open(
                    event.kind, event.config, thread, leaders.get(thread, -1), event.kernel_too
                )
            except ProcessLookupError:
                continue  # The thread ended since it was listed.
            except OSError as error:
                self.absent[name] = _REASONS.get(error.errno or 0, str(error))
                self._close(name)
                return

    def _add_up(self, name: str, counts: list[Count]) -> None:
        value = added_up(name, counts)
        if value is None:
            self.absent[name] = "the processor's counters were all taken"
        else:
            self.values[name] = value

    def _close(self, *names: str) -> None:
        for name in names or tuple(self._opened):
            for descriptor in self._opened.pop(name).values():
                self._perf.close(descriptor)


def added_up(name: str, counts: Sequence[Count]) -> int | float | None:
    """Sum of an event over threads; none if the processor's counters were all taken.

    Threads that were never counted are taken to be like the others.
    """
    counted = [count for count in counts if count.running_ns > 0]
    enabled_ns = sum(count.enabled_ns for count in counts)
    counted_ns = sum(count.enabled_ns for count in counted)
    if enabled_ns > 0 and counted_ns == 0:
        return None
    scale = EVENTS[name].scale
    if all(count.running_ns == count.enabled_ns for count in counts):
        return sum(count.value for count in counts) * scale
    scaled = sum(count.value * count.enabled_ns / count.running_ns for count in counted)
    return scaled * enabled_ns / counted_ns * scale


def _own_threads() -> list[int]:
    """Numbers of the threads of this process."""
    try:
        return [int(folder.name) for folder in Path("/proc/self/task").iterdir()]
    except OSError:
        return [os.getpid()]


def _room_for_files() -> int:
    """Files that may be opened and still leave some to others."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        now = sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        now = 0
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit - now - _FILES_KEPT_FREE

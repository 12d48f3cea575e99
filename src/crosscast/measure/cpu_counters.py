"""Counters of the CPU: what Linux's perf events count for the threads of this process, and ratios of it."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import resource
import struct
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_SYSCALL = {"x86_64": 298, "aarch64": 241}
"""Number of perf_event_open, by machine."""

_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 0, 1 << 1, 1 << 5, 1 << 6
_TOTAL_TIME_ENABLED, _TOTAL_TIME_RUNNING = 1 << 0, 1 << 1
_CLOSE_ON_EXEC = 1 << 3
_IOC_ENABLE, _IOC_DISABLE = 0x2400, 0x2401

# The first version of perf_event_attr: type, size, config, period, sample_type, read_format, flags,
# wakeup, breakpoint type and address. Every kernel takes it.
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
_COUNT = struct.Struct("=QQQ")


class CounterValue(NamedTuple):
    """What a counter holds."""

    value: int  # Events seen while the counter ran
    enabled_ns: int  # Time that the thread ran while counting was asked for, in nanoseconds
    running_ns: int  # Part of it in which a counter of the processor was free to count, in nanoseconds


class LinuxPerf:
    """System calls, with no library in between. Every method raises `OSError` with the kernel's reason."""

    def open(self, kind: int, config: int, thread: int, leader: int, kernel_too: bool) -> int:
        """Open a counter for a thread and those that it will start, and give its file descriptor."""
        number = _SYSCALL.get(platform.machine())
        if number is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        flags = _DISABLED | _INHERIT | _EXCLUDE_HYPERVISOR | (0 if kernel_too else _EXCLUDE_KERNEL)
        read_format = _TOTAL_TIME_ENABLED | _TOTAL_TIME_RUNNING
        packed = _ATTRIBUTES.pack(kind, _ATTRIBUTES.size, config, 0, 0, read_format, flags, 0, 0, 0)
        attributes = ctypes.create_string_buffer(packed, len(packed))
        syscall = ctypes.CDLL(None, use_errno=True).syscall
        syscall.restype = ctypes.c_long
        words = (thread, -1, leader, _CLOSE_ON_EXEC)
        descriptor = int(syscall(ctypes.c_long(number), attributes, *map(ctypes.c_long, words)))
        if descriptor < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return descriptor

    def enable(self, descriptor: int) -> None:
        """Begin to count."""
        fcntl.ioctl(descriptor, _IOC_ENABLE, 0)

    def disable(self, descriptor: int) -> None:
        """Stop counting."""
        fcntl.ioctl(descriptor, _IOC_DISABLE, 0)

    def read(self, descriptor: int) -> CounterValue:
        """Read what was counted."""
        return CounterValue(*_COUNT.unpack(os.read(descriptor, _COUNT.size)))

    def close(self, descriptor: int) -> None:
        """Give the counter back."""
        os.close(descriptor)


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


def available(perf: LinuxPerf | None = None) -> dict[str, str | None]:
    """Tell of each event why it cannot be counted here; none if it can."""
    with Counters(perf=perf, threads=[os.getpid()]) as counters:
        pass
    return {name: counters.absent.get(name) for name in EVENTS}


class Counters:
    """Count while a ``with`` block runs.

    Threads that start inside the block are counted with those that start them. Threads that start while the
    block is being entered may be missed, so enter it when the work is warmed up.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        perf: LinuxPerf | None = None,
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
            for name, counts in self.so_far().items():
                value = added_up(name, counts)
                if value is None:
                    self.absent[name] = "the processor's counters were all taken"
                else:
                    self.values[name] = value
        finally:
            self._close()

    def so_far(self) -> dict[str, list[CounterValue]]:
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

    def _close(self, *names: str) -> None:
        for name in names or tuple(self._opened):
            for descriptor in self._opened.pop(name).values():
                self._perf.close(descriptor)


def added_up(name: str, counts: Sequence[CounterValue]) -> int | float | None:
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


_RATIOS = {
    "ipc": (("instructions", "cycles"),),
    # Of loads where the processor tells them apart, as the other levels are.
    "llc_miss": (("llc_load_misses", "llc_loads"), ("cache_misses", "cache_references")),
    "l1_miss": (("l1d_load_misses", "l1d_loads"),),
    "branch_miss": (("branch_misses", "branches"),),
    "dtlb_miss": (("dtlb_load_misses", "dtlb_loads"),),
}
"""Each feature's numerator and denominator; the first that was counted is taken."""


def counter_shares(counters: Mapping[str, float]) -> dict[str, float]:
    """Instructions a cycle, and shares of misses, 0 to 1 (Moolchandani et al. 2022, Table 5).

    A counter that is 0 after a whole job does not count, as on many virtual machines: what it would give
    is left out, as with counters that are not there.

    >>> counter_shares({"instructions": 30.0, "cycles": 20.0, "cache_misses": 0.0, "cache_references": 9.0})
    {'ipc': 1.5}
    """
    found = {}
    for name, ratios in _RATIOS.items():
        for upper, lower in ratios:
            if counters.get(upper) and counters.get(lower):
                value = counters[upper] / counters[lower]
                # Two events that are counted in turns may disagree a little.
                found[name] = value if name == "ipc" else min(value, 1.0)
                break
    return found

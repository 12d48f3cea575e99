"""Properties and state of the host: caches, clock and load; and its CPU counters, by Linux perf events.

Functions take the root of the file system, for tests with a tree of files. Unknown values are `None`.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import re
import resource
import struct
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from crosscast.errors import InputError
from crosscast.units import parse_bytes

_ROOT = Path("/")
_CPUS = "sys/devices/system/cpu"
_BUSY = 0.5
"""Load average from which on a machine counts as busy: half a CPU is noise on a machine with two."""


class HostCaches(NamedTuple):
    """Caches that the first CPU uses, shared ones in total, by columns of the table of devices."""

    l1_bytes: int | None  # Of data
    l2_bytes: int | None
    l3_bytes: int | None


def name() -> str:
    """Return the network name of this machine."""
    return platform.node()


def clock_hz(root: Path = _ROOT) -> float | None:
    """Return the current clock of the fastest CPU, in hertz.

    Idle CPUs clock down, which does not concern a run.
    """
    files = (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_cur_freq")
    now_khz = [float(text) for text in map(text_of, files) if text.isdecimal()]
    if now_khz:
        return max(now_khz) * 1e3
    now_mhz = re.findall(r"^cpu MHz\s*:\s*(\d+(?:\.\d+)?)$", text_of(root / "proc/cpuinfo"), re.MULTILINE)
    return max(map(float, now_mhz)) * 1e6 if now_mhz else None


def cpu_flags(root: Path = _ROOT) -> set[str]:
    """Return the flags of the first CPU in ``/proc/cpuinfo``."""
    line = re.search(r"^flags\s*:(.*)$", text_of(root / "proc/cpuinfo"), re.MULTILINE)
    return set(line[1].split()) if line else set()


def on_battery(root: Path = _ROOT) -> bool:
    """Return whether this machine runs on a battery."""
    supplies = list((root / "sys/class/power_supply").glob("*"))
    return any(
        text_of(supply / "type") == "Battery" and text_of(supply / "status") == "Discharging"
        for supply in supplies
    )


def governor(root: Path = _ROOT) -> str | None:
    """Return the frequency governor of the CPUs, such as ``performance``; several are joined by commas."""
    governors = {text_of(file) for file in (root / _CPUS).glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ",".join(sorted(governors - {""})) or None


def load(root: Path = _ROOT) -> float | None:
    """Return the load average of the last minute."""
    match = _load_average(root)
    return float(match[1]) if match else None


def doubts(root: Path = _ROOT) -> list[str]:
    """Return sentences that speak against measuring now: other programs keep CPUs busy."""
    busy = load(root)
    if busy is None or busy < _BUSY:
        return []
    return [
        f"{busy:.2g} threads of this machine wanted to run, on average of the last minute: other programs "
        "make times longer; measure on a machine with nothing else to do"
    ]


def others_running(root: Path = _ROOT) -> int | None:
    """Count the threads of other processes that run, or wait for a CPU, now."""
    match = _load_average(root)
    if match is None:
        return None
    # The state is the first field after the name, which is in parentheses and may have any character.
    stats = map(text_of, (root / "proc/self/task").glob("*/stat"))
    running = sum(stat.rpartition(")")[2].split()[:1] == ["R"] for stat in stats)
    return max(0, int(match[2]) - running)


def caches(root: Path = _ROOT) -> HostCaches:
    """Return the sizes of the first CPU's caches."""
    sizes = dict(_data_caches(root / _CPUS / "cpu0/cache"))
    return HostCaches(sizes.get("1"), sizes.get("2"), sizes.get("3"))


def text_of(file: Path) -> str:
    """Return what is in a file, without space around it; nothing if it cannot be read."""
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _load_average(root: Path) -> re.Match[str] | None:
    return re.match(r"(\d+\.\d+) \S+ \S+ (\d+)/\d+", text_of(root / "proc/loadavg"))


def _data_caches(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield level and size in bytes of each data or unified cache."""
    for cache in folder.glob("index[0-9]*"):
        if text_of(cache / "type") in ("Data", "Unified"):
            try:
                yield text_of(cache / "level"), parse_bytes(text_of(cache / "size"))
            except InputError:
                continue  # Some virtual machines show a cache without a size.


_SYSCALL = {"x86_64": 298, "aarch64": 241}  # Number of perf_event_open, by machine
_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 0, 1 << 1, 1 << 5, 1 << 6
_TOTAL_TIME_ENABLED, _TOTAL_TIME_RUNNING = 1 << 0, 1 << 1
_CLOSE_ON_EXEC = 1 << 3
_IOC_ENABLE, _IOC_DISABLE = 0x2400, 0x2401

# The first version of perf_event_attr: type, size, config, period, sample_type, read_format, flags,
# wakeup, breakpoint type and address. Every kernel takes it.
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
_COUNT = struct.Struct("=QQQ")


class CounterValue(NamedTuple):
    """Value of a counter."""

    value: int  # Events seen while the counter ran
    enabled_ns: int  # Time that the thread ran while the event was enabled, in nanoseconds
    running_ns: int  # Part of it in which a hardware counter was available, in nanoseconds


class LinuxPerf:
    """System calls of perf events. Every method raises `OSError` with the kernel's reason."""

    def open(self, kind: int, config: int, thread: int, leader: int, kernel_too: bool) -> int:
        """Open a counter for a thread and its future children; return the file descriptor."""
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
        """Start counting."""
        fcntl.ioctl(descriptor, _IOC_ENABLE, 0)

    def disable(self, descriptor: int) -> None:
        """Stop counting."""
        fcntl.ioctl(descriptor, _IOC_DISABLE, 0)

    def read(self, descriptor: int) -> CounterValue:
        """Read the counter."""
        return CounterValue(*_COUNT.unpack(os.read(descriptor, _COUNT.size)))

    def close(self, descriptor: int) -> None:
        """Release the counter."""
        os.close(descriptor)


_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
_L1D, _LLC, _DTLB = 0, 2, 3
"""Numbers of caches in the kernel's interface; reads are counted."""
_MISSES = 1 << 16


@dataclass(frozen=True)
class _Event:
    """A perf event.

    `pair` names the event that is counted at the same times, so that their ratio is right even if the
    processor has too few counters. Larger groups would not be counted at all if they do not fit.
    """

    kind: int
    config: int
    pair: str | None = None
    # Switches and migrations occur inside the kernel, and are always 0 in user space.
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
"""Events by their names in tables."""

_REASONS = {
    errno.EACCES: "this user may not count it (see kernel.perf_event_paranoid)",
    errno.EPERM: "this user, or this container, may not count it (see kernel.perf_event_paranoid)",
    errno.ENOENT: "this machine has no such counter",
    errno.EOPNOTSUPP: "this machine has no such counter",
    errno.ENODEV: "this machine has no such counter",
    errno.ENOSYS: "this system has no perf events",
    errno.EMFILE: "the process may not open more files (see ulimit -n)",
}

_FILES_KEPT_FREE = 64  # Descriptors left for the measured code


def available(perf: LinuxPerf | None = None) -> dict[str, str | None]:
    """Return the reason why each event cannot be counted; ``None`` if it can."""
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
        """Counts of the last block, by event: in user space, except events inside the kernel. Times are in
        seconds. Counts of multiplexed events are scaled to the whole time."""
        self.absent: dict[str, str] = {}  # Reasons for events that were not counted

    def __enter__(self) -> Self:
        self.values, self.absent = {}, {}
        threads = _thread_ids() if self._threads is None else self._threads
        with ExitStack() as undo:
            undo.callback(self._close)
            for name, event in self._events.items():
                self._open_event(name, event, threads)
            for descriptor in self._descriptors():
                self._perf.enable(descriptor)
            undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
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
        """Return the current counters of each event inside of the block, one a thread."""
        return {
            name: [self._perf.read(descriptor) for descriptor in opened.values()]
            for name, opened in self._opened.items()
        }

    def since(self, before: Mapping[str, Sequence[CounterValue]]) -> dict[str, int | float]:
        """Return the counts by event between an earlier reading inside of the block and now."""
        counts = {}
        for name, ends in self.so_far().items():
            pairs = zip(before[name], ends, strict=True)
            steps = [CounterValue(*(now - then for then, now in zip(*pair, strict=True))) for pair in pairs]
            if (value := added_up(name, steps)) is not None:
                counts[name] = value
        return counts

    def _descriptors(self) -> list[int]:
        return [descriptor for opened in self._opened.values() for descriptor in opened.values()]

    def _open_event(self, name: str, event: _Event, threads: list[int]) -> None:
        """Open the event for all threads, or for none with a reason."""
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
    """Return the sum of an event over threads; ``None`` if all hardware counters were taken.

    Threads that were never counted are assumed to be like the others.
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


def _thread_ids() -> list[int]:
    """Return the ids of the threads of this process."""
    try:
        return [int(folder.name) for folder in Path("/proc/self/task").iterdir()]
    except OSError:
        return [os.getpid()]


def _room_for_files() -> int:
    """Return the number of descriptors that counters may use."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        open_files = sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        open_files = 0
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit - open_files - _FILES_KEPT_FREE


_RATIOS = {
    "ipc": (("instructions", "cycles"),),
    # Of loads, if the processor counts these, like the other levels.
    "llc_miss": (("llc_load_misses", "llc_loads"), ("cache_misses", "cache_references")),
    "l1_miss": (("l1d_load_misses", "l1d_loads"),),
    "branch_miss": (("branch_misses", "branches"),),
    "dtlb_miss": (("dtlb_load_misses", "dtlb_loads"),),
}
"""Numerators and denominators of each feature; the first counted pair is used."""


def counter_shares(counters: Mapping[str, float]) -> dict[str, float]:
    """Return instructions a cycle, and miss rates, 0 to 1 (Moolchandani et al. 2022, Table 5).

    A counter that is 0 after a whole job does not work, as in many virtual machines: its features are left
    out, as those of missing counters.

    >>> counter_shares({"instructions": 30.0, "cycles": 20.0, "cache_misses": 0.0, "cache_references": 9.0})
    {'ipc': 1.5}
    """
    shares = {}
    for name, ratios in _RATIOS.items():
        for upper, lower in ratios:
            if counters.get(upper) and counters.get(lower):
                value = counters[upper] / counters[lower]
                # Multiplexed events may be slightly inconsistent.
                shares[name] = value if name == "ipc" else min(value, 1.0)
                break
    return shares

"""The system calls of Linux's perf events that count for one thread, with no library in between."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import struct
from typing import NamedTuple

__all__ = ["Count", "LinuxPerf"]

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


class Count(NamedTuple):
    """What a counter holds.

    Parameters
    ----------
    value
        Events seen while the counter ran.
    enabled_ns
        Time that the thread ran while counting was asked for, in nanoseconds.
    running_ns
        Part of it in which a counter of the processor was free to count, in nanoseconds.
    """

    value: int
    enabled_ns: int
    running_ns: int


class LinuxPerf:
    """Counters of this machine. Every method raises `OSError` with the kernel's reason."""

    def open(self, kind: int, config: int, thread: int, leader: int, kernel_too: bool) -> int:
        """Open a counter for a thread and those that it will start, and give its file descriptor.

        Parameters
        ----------
        kind
            0 for events of the processor, 1 for those of the kernel, 3 for those of caches.
        config
            Number of the event.
        thread
            Number of the thread.
        leader
            Counter beside which this one runs at the same times; -1 for none.
        kernel_too
            Count inside the kernel as well.
        """
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

    def read(self, descriptor: int) -> Count:
        """Read what was counted."""
        return Count(*_COUNT.unpack(os.read(descriptor, _COUNT.size)))

    def close(self, descriptor: int) -> None:
        """Give the counter back."""
        os.close(descriptor)

"""Microbenchmarks of a device, and their backends: OpenCL, or the threads of a CPU without OpenCL."""

from __future__ import annotations

import ctypes
import os
import time
from abc import ABC, abstractmethod
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from crosscast.characterization.toolchain import c_library
from crosscast.data import environment
from crosscast.devices.device_files import GUARDED_ITEMS
from crosscast.errors import EnvironmentFault
from crosscast.kernel import Program
from crosscast.measure import host_state

if TYPE_CHECKING:
    import pyopencl as cl
    from pyopencl.typing import KernelArg

    from crosscast.measure.opencl import OpenCLDevice

FOLDER = Path(__file__).parent
_FIRST_BYTES = 1 << 20
CHAINS = 10
GUARDED = ("guarded_item", "guarded")
"""Kernels behind a condition, of one multiply-add and of several."""
DIVISIONS = ("int32_div", "int64_div")
"""Chains of divisions, for which no CPU has vectors."""
ROWS = (*GUARDED, "fenced")
"""Kernels of straight code, a step of which is a row of work-items."""

_ROW_ITEMS = 1 << 11
_PARTS = 8
"""Parts of an array for each compute unit, so that threads at different rows do not share cache lines."""
IN_A_ROW = 6  # Launches
CHAIN_GROUP = GUARDED_ITEMS


class EmptyLaunch(NamedTuple):
    """Seconds of a launch of an empty kernel; ``None`` where unknown."""

    waited: float | None  # From the call to its start
    busy: float | None  # From its start to its end
    round_trip: float  # From the call to its end on the host


class Backend(ABC):
    """Interface that times the kernels of ``kernels.cl``."""

    id: str
    name: str
    vendor: str = ""  # Empty if unknown, as is the architecture
    series: str = ""
    type: str
    units: int
    items: int  # Work-items that keep the device busy
    group: int
    vector_bytes: int  # Bytes that a work-item moves at once
    lanes: dict[str, int]  # Of a chain, or work-items of a row, by supported kernel
    memory_bytes: int
    last_cache_bytes: int
    numbers: dict[str, float]  # Known properties, by column of the table of devices

    @abstractmethod
    def memory(self, kernel: str, words: int, passes: int) -> float:
        """Return the seconds of a kernel with several passes over an array of `words` words."""

    @abstractmethod
    def chains(self, kernel: str, steps: int) -> float:
        """Return the seconds of a number of steps of chains, or of other work, in each work-item."""

    def groups(self, count: int) -> float | None:
        """Return the seconds of a number of almost empty work-groups; ``None`` if there are none."""
        return None

    @abstractmethod
    def launch(self) -> EmptyLaunch:
        """Launch an empty kernel."""

    def transfer(self, nbytes: int, *, to_device: bool) -> float | None:
        """Return the seconds of a copy between host and device; ``None`` if the device is the host."""
        return None


def _array_bytes(kernel: str, words: int, vector_bytes: int) -> int:
    """Return the bytes of the array of a kernel of `Backend.memory`."""
    word = 4 if kernel == "scattered_words" else vector_bytes
    return words * word * (2 if kernel == "copy_words" else 1)


def _operands(kernel: str) -> tuple[float, float]:
    return (3.0, 7.0) if kernel in ("int32", "int32_add", *DIVISIONS) else (0.999, 0.001)


def _of_threads(seconds: float, started: float, units: int) -> float:
    """Return the seconds of a run on a busy CPU, by the CPU time of its threads."""
    return min(seconds, max((time.process_time() - started) / units, 1e-9))


def _host_numbers(units: int) -> dict[str, float]:
    """Return properties of the CPU from the system."""
    caches = host_state.caches()._asdict()
    return {"cores": float(units)} | {name: float(size) for name, size in caches.items() if size}


class KernelBackend(Backend):
    """Launches the kernels of ``kernels.cl`` on a device, by `_seconds`."""

    _array: Any = None
    _out: Any

    @abstractmethod
    def _grow(self, nbytes: int) -> None:
        """Make the array at least this large."""

    @abstractmethod
    def _seconds(self, kernel: str, items: int, group: int, *args: Any, rows: int = 1) -> float:
        """Return the seconds of a launch, of which rows are a second dimension."""

    def memory(self, kernel: str, words: int, passes: int) -> float:
        """Return the seconds of a kernel on an array, which grows if necessary."""
        self._grow(_array_bytes(kernel, words, self.vector_bytes))
        arguments = (self._array, self._out, np.uint32(words), np.uint32(passes))
        return self._seconds(kernel, self.items, self.group, *arguments)

    def chains(self, kernel: str, steps: int) -> float:
        """Return the seconds of a number of steps in each work-item."""
        x, y = map(np.float32, _operands(kernel))
        if kernel in ROWS:
            arguments = (self._out, np.uint32(_ROW_ITEMS), x, y)
            return self._seconds(kernel, _ROW_ITEMS, CHAIN_GROUP, *arguments, rows=steps)
        factor = self.lanes[kernel] if kernel == "chain" else 1
        arguments = (self._out, np.uint32(steps), x, y)
        return self._seconds(kernel, self.items * factor, self.group * factor, *arguments)

    def groups(self, count: int) -> float | None:
        """Return the seconds of a number of almost empty work-groups."""
        group = 1 if self.type == "cpu" else CHAIN_GROUP
        return self._seconds("one_word", count * group, group, self._out)


class OpenCLBackend(KernelBackend):
    """An OpenCL device."""

    def __init__(self, device: OpenCLDevice) -> None:
        # Imported here: a CPU is measured without OpenCL, too.
        import pyopencl as cl

        from crosscast.measure.opencl import TIMES_COMMANDS, built, opencl_faults

        self._cl, self._faults = cl, opencl_faults
        self.id, self.name, self.type, self.units = device.id, device.name, device.type, device.compute_units
        wide = device.type == "cpu"
        self.group = 1 if wide else 256
        self.items = self.units * (4 if wide else 2048)
        self._busy = wide and bool(host_state.doubts())
        self.vector_bytes = 32 if wide else 16
        handle = device.handle
        extensions = str(handle.extensions).split()
        has_half, has_double = "cl_khr_fp16" in extensions and not wide, "cl_khr_fp64" in extensions
        numbers = 8 if wide else 1
        self.lanes = {"transcendental": 1} | dict.fromkeys(("fp32", "int32", "int32_add"), numbers)
        self.lanes |= {"fp64": 4 if wide else 1} if has_double else {}
        self.lanes |= {"fp16": 2} if has_half else {}
        # In these kernels, a work-item has one chain; the compiler may vectorise over work-items.
        self.lanes |= {"local_words": 1, "atomics": 1, "chain": CHAIN_GROUP if wide else 1}
        self.lanes |= dict.fromkeys(ROWS, _ROW_ITEMS) | dict.fromkeys(DIVISIONS, 1) if wide else {}
        self.memory_bytes = int(handle.global_mem_size)
        cache = int(handle.global_mem_cache_size or 0)
        clock = float(handle.max_clock_frequency or 0) * 1e6 or (
            host_state.clock_hz() or 0.0 if wide else 0.0
        )
        self.numbers = {"clock_hz": clock} if clock else {}
        self.numbers |= _host_numbers(self.units) if wide else {}
        self.last_cache_bytes = max(cache, (host_state.caches().l3_bytes or 0) if wide else 0) or 1 << 22
        known = {"WIDE": wide, "HAS_FP64": has_double, "HAS_FP16": has_half, "CHAIN_GROUP": CHAIN_GROUP}
        known["PARTS"] = _PARTS * self.units
        options = tuple(f"-D{name}={int(value)}" for name, value in known.items())
        path = FOLDER / "kernels.cl"
        with opencl_faults(self.id, "measuring it"):
            self._context = cl.Context([handle])
            self._queue = cl.CommandQueue(self._context, handle, properties=TIMES_COMMANDS)
            self._program = built(
                self._context, device, Program(path.read_bytes(), path=path, options=options)
            )
            size = 4 * max(self.items * 64, _PARTS * self.units * _ROW_ITEMS, 1 << 18)
            self._out = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)
            cl.enqueue_fill_buffer(self._queue, self._out, np.zeros(1, np.uint8), 0, self._out.size)
        self._kernels: dict[str, cl.Kernel] = {}

    def _run(self, kernel: str, items: int, group: int, *args: KernelArg, rows: int = 1) -> cl.Event:
        with self._faults(self.id, "measuring it"):
            if kernel not in self._kernels:
                self._kernels[kernel] = self._cl.Kernel(self._program, kernel)
            size, local = ((items,), (group,)) if rows == 1 else ((items, rows), (group, 1))
            event = self._kernels[kernel](self._queue, size, local, *args)
            event.wait()
        return event

    def _seconds(self, kernel: str, items: int, group: int, *args: KernelArg, rows: int = 1) -> float:
        started = time.process_time()
        event = self._run(kernel, items, group, *args, rows=rows)
        seconds = float(event.profile.end - event.profile.start) * 1e-9
        return _of_threads(seconds, started, self.units) if self._busy else seconds

    def _grow(self, nbytes: int) -> None:
        if self._array is None or self._array.size < nbytes:
            with self._faults(self.id, "measuring it"):
                if self._array is not None:
                    self._array.release()
                self._array = self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, nbytes)
            words = np.uint32(nbytes // self.vector_bytes)
            self._run("write_words", self.items, self.group, self._array, self._out, words, np.uint32(1))

    def launch(self) -> EmptyLaunch:
        """Launch an empty kernel."""
        start = time.perf_counter()
        event = self._run("empty", 1, 1)
        end = time.perf_counter()
        waited = float(event.profile.start - event.profile.queued) * 1e-9
        # Threads of a CPU wake up for the first; the others begin when the one before them ends.
        with self._faults(self.id, "measuring it"):
            others = [self._kernels["empty"](self._queue, (1,), (1,)) for _ in range(IN_A_ROW)]
            self._queue.finish()
        busy = median(float(each.profile.end - each.profile.start) for each in others[1:]) * 1e-9
        return EmptyLaunch(waited if waited > 0 else None, busy if busy > 0 else None, end - start)

    def transfer(self, nbytes: int, *, to_device: bool) -> float | None:
        """Return the seconds of a copy."""
        if self.type == "cpu":
            return None
        host = np.zeros(nbytes, np.uint8)
        buffer = self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, nbytes)
        pair = (buffer, host) if to_device else (host, buffer)
        start = time.perf_counter()
        with self._faults(self.id, "measuring it"):
            self._cl.enqueue_copy(self._queue, *pair).wait()
        return time.perf_counter() - start


_HOST_KERNELS = (
    *("empty", "read_words", "write_words", "copy_words", "scattered_words", "fp32", "fp64"),
    *("int32", "int32_add", "transcendental", "atomics"),
)
"""Kernels in the order of the numbers in host.c."""


class HostBackend(Backend):
    """The CPU of this machine, by threads and without OpenCL."""

    id, type = "host", "cpu"
    group, vector_bytes = 1, 64

    def __init__(self) -> None:
        needs = ("libc.so.6", "libm.so.6", "libpthread.so.0")
        library = ctypes.CDLL(str(c_library([FOLDER / "host.c"], "-O3", "-march=native", needs=needs)))
        self._measure = library.measure
        self._measure.restype = ctypes.c_double
        self._measure.argtypes = [
            *(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64),
            *(ctypes.c_float, ctypes.c_float),
        ]
        self.units = len(os.sched_getaffinity(0))
        self.items = self.units
        self.name = environment.processor()
        self.lanes = {"fp32": 16, "fp64": 8, "int32": 16, "int32_add": 16, "transcendental": 1, "atomics": 1}
        self.memory_bytes = environment.memory_bytes()
        caches, clock = host_state.caches(), host_state.clock_hz()
        self.numbers = _host_numbers(self.units) | ({"clock_hz": clock} if clock else {})
        self.last_cache_bytes = caches.l3_bytes or caches.l2_bytes or 1 << 22
        self._array = np.ones(_FIRST_BYTES, np.uint8)
        self._busy = bool(host_state.doubts())

    def _seconds(self, kernel: str, count: int, passes: int, x: float = 0.999, y: float = 0.001) -> float:
        # Aligned to a cache line, as vectors need.
        address = (self._array.ctypes.data + 63) // 64 * 64
        started = time.process_time()
        seconds = float(self._measure(_HOST_KERNELS.index(kernel), self.units, address, count, passes, x, y))
        if seconds < 0:
            raise EnvironmentFault(
                f"{self.id}: expected the system to start {self.units} threads, found it does not"
            )
        return _of_threads(seconds, started, self.units) if self._busy else seconds

    def memory(self, kernel: str, words: int, passes: int) -> float:
        """Return the seconds of a kernel on an array, which grows if necessary."""
        nbytes = _array_bytes(kernel, words, self.vector_bytes) + 64
        if len(self._array) < nbytes:
            self._array = np.empty(nbytes, np.uint8)
            # By all threads: pages that were never written are all one page of zeros.
            self._seconds("write_words", nbytes // self.vector_bytes - 1, 1)
        return self._seconds(kernel, words, passes)

    def chains(self, kernel: str, steps: int) -> float:
        """Return the seconds of a number of steps in each work-item."""
        return self._seconds(kernel, 0, steps, *_operands(kernel))

    def launch(self) -> EmptyLaunch:
        """Launch an empty kernel."""
        start = time.perf_counter()
        self._seconds("empty", 0, 0)
        return EmptyLaunch(None, None, time.perf_counter() - start)

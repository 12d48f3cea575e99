"""Run a kernel in a child process, so that whatever it does ends there.

Parent and child share files in memory: the kernel's library, the job, a page for progress and faults, the
results, what the kernel prints, and the buffers.
"""

from __future__ import annotations

import math
import mmap
import re
import signal
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.characterization.engine import workers
from crosscast.characterization.engine.arguments import ARGUMENTS_ADDRESS, Memory, Placed, memory_file
from crosscast.characterization.engine.printing import printed
from crosscast.characterization.instrumentation.context import CONSTANTS, Region, words
from crosscast.characterization.instrumentation.instrumented import Instrumented
from crosscast.errors import (
    CrosscastError,
    EnvironmentFault,
    KernelFault,
    KernelTimeout,
    LaunchError,
    UnsupportedError,
)
from crosscast.kernel import Launch

MOST_THREADS = 256


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    groups_done: int
    groups_total: int
    elapsed_s: float


@dataclass(frozen=True)
class Options:
    """How to run, beyond the launch itself."""

    # Threads that run work-groups. Each has counters of its own, as large as the buffers; if not given, two
    # where the buffers are small, otherwise one
    threads: int | None = None
    check_bounds: bool = False  # Check every access
    timeout_s: float = 600.0  # Longest run, in seconds
    # Most memory of buffers and counters, in bytes; what the machine has if not given
    memory_limit: int | None = None
    published: bool = False  # Also compute the published tool's own numbers
    progress: Callable[[Progress], None] | None = None  # Called now and then while the kernel runs

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise LaunchError(f"threads must be from 1 to {MOST_THREADS}, found {self.threads}")
        if self.timeout_s <= 0:
            raise LaunchError(f"the time limit must be positive, found {self.timeout_s} s")
        if self.memory_limit is not None and self.memory_limit < 1:
            raise LaunchError(f"the memory limit must be positive, found {self.memory_limit} bytes")


_BUFFER, _LOCAL, _IMAGE = (CONSTANTS[name] for name in ("BUFFER", "LOCAL", "IMAGE"))


def three(sizes: tuple[int, ...], filler: int) -> tuple[int, int, int]:
    """Sizes in all three dimensions."""
    first, second, third = (*sizes, *[filler] * (3 - len(sizes)))
    return first, second, third


def group_counts(launch: Launch) -> list[int]:
    """Work-groups in each of three dimensions; the last one may be smaller."""
    sizes = zip(three(launch.global_size, 1), three(launch.local_size, 1), strict=True)
    return [-(-global_ // local) for global_, local in sizes]


_WORD = (1 << 64) - 1
_FILES = ("job", "status", "result", "print")
"""Files that a run has beside its buffers."""


def describe_job(launch: Launch, memory: Memory, made: Instrumented, threads: int) -> bytes:
    """Describe a run, as ``struct job`` has it: words, and tables whose places they tell."""
    variables = made.variable_regions()
    regions = [
        *_regions(launch, memory, made),
        *[region for _, region in variables],
    ]  # with room for the latter
    layout = words("job")
    content, end = bytearray(), 8 * len(layout)

    def add(table: bytes) -> int:
        start = end + len(content)
        content.extend(table + bytes(-len(table) % 8))
        return start

    def add_words(table: Iterable[int]) -> int:
        return add(b"".join((word & _WORD).to_bytes(8, "little") for word in table))

    named = [region._replace(start=add(name.encode() + b"\0")) for name, region in variables]
    buffers = [
        (len(_FILES) + number, placed.address - placed.shared.offset, placed.shared.mapped_nbytes)
        for number, placed in enumerate(memory.placed)
    ]
    values = _words(launch, made) | {
        "threads": threads,
        "regions": add_words(chain.from_iterable(regions)),
        "n_regions": len(regions) - len(variables),
        "variables": add_words(chain.from_iterable(named)),
        "n_variables": len(variables),
        "buffers": add_words(chain.from_iterable(buffers)),
        "n_buffers": len(buffers),
        **{f"{name}_file": number for number, name in enumerate(_FILES)},
        "args": add(bytes(memory.packed)),
        "args_bytes": len(memory.packed),
        "args_address": ARGUMENTS_ADDRESS,
        "local_bytes": memory.local_bytes,
        "data_low": memory.low,
        "data_high": memory.high,
        "in_memory": add_words(made.in_memory),
        "n_in_memory": len(made.in_memory),
        "weights": add_words(made.access_weights()),
    }
    return struct.pack(f"<{len(layout)}Q", *(values.get(name, 0) for name in layout)) + content


def _words(launch: Launch, made: Instrumented) -> dict[str, int]:
    """Numbers that the runtime reads by name."""
    sizes = {
        "global": three(launch.global_size, 1),
        "local": three(launch.local_size, 1),
        "offset": three(launch.global_offset or (0,), 0),
        "groups": group_counts(launch),
    }
    words = {f"{name}{d}": value for name, values in sizes.items() for d, value in enumerate(values)}
    return words | {
        "dims": len(launch.global_size),
        "private_bytes": made.private.nbytes,
        "live_bytes": made.live.nbytes,
        "histories": made.histories,
        "rows": made.rows_of_accesses,
        "counters": made.counters,
        "several": int(len(made.segments) > 1),
        "published": int(made.order_counter is not None),
    }


def _regions(launch: Launch, memory: Memory, made: Instrumented) -> list[Region]:
    """Regions of buffers, images and local memory."""
    found = []
    for placed in memory.placed:
        start, nbytes, position = placed.address, placed.shared.nbytes, placed.position
        if placed.place == "image":
            found.append(Region(start, nbytes, placed.shared.data.itemsize, _IMAGE))
            continue
        flags = (made.is_constant(position), position in launch.read_only, made.commutes(position))
        counted = made.is_counted(position), made.scattered.get(made.parameters[position].name, 0)
        granule = made.parameter_granule(position)
        found.append(Region(start, nbytes, granule, _BUFFER, *map(int, (*flags, *counted))))
    for position, offset, nbytes in memory.locals:
        found.append(Region(offset, nbytes, made.parameter_granule(position), _LOCAL))
    return [*found, *made.local_regions()]


_BOUNDS, _DIVERGED, _STACK, _NO_MEMORY, _LANES_MISSING, _ASSERTION, _OUTSIDE = (
    CONSTANTS[name] for name in "BOUNDS DIVERGED STACK NO_MEMORY LANES_MISSING ASSERTION OUTSIDE".split()
)
_NEAR = 1 << 21
_FAR = 1 << 40
_NO_ADDRESS = 1 << 63


@dataclass(frozen=True)
class Fault:
    """What the runtime noted when a kernel failed."""

    kind: int  # Which check, as the runtime numbers them
    signal: int  # Signal number; for a bounds check, 1 if the buffer is read-only
    address: int  # Address accessed
    group: tuple[int, ...]  # Work-group that ran
    site: int  # Place in the program, for a bounds check
    item: int  # Work-item of the group, for a bounds check
    # Two more numbers: bytes accessed and whether it was a write; the segments that work-items went on to; or
    # what stands at `address` if that is a counter, an address of a buffer's or an offset into local memory
    details: tuple[int, int]

    @classmethod
    def from_words(cls, words: Sequence[int]) -> Fault:
        """Read the status page's words."""
        first = CONSTANTS["S_FAULT"]
        kind, signal_, address, x, y, z, site, item, a, b = words[first : CONSTANTS["S_B"] + 1]
        return cls(kind, signal_, address, (x, y, z), site, item, (a, b))


def explain(fault: Fault, launch: Launch, memory: Memory, made: Instrumented) -> str:
    """Sentence that says what failed, where, and on what."""
    dims = len(launch.global_size)
    group = _tuple(fault.group[:dims])
    name = launch.kernel.name
    if fault.kind == _BOUNDS:
        return f"{name}: {_bounds(fault, launch, memory, made)}"
    if fault.kind == _DIVERGED:
        return (
            f"{name}: a barrier was not reached by all work-items of work-group {group}{_barrier_lines(made)}"
        )
    if fault.kind == _LANES_MISSING:
        after = made.segments[fault.details[0]].after
        return (
            f"{name}: {after.where if after else ''}a warp operation was not reached by all lanes that its "
            f"mask names, in work-group {group}"
        )
    if fault.kind == _ASSERTION:
        item = _tuple(_global_id(fault, launch))
        return f"{name}: an assertion in line {made.sites[fault.site]} failed in work-item {item}"
    if fault.kind == _STACK:
        return f"{name}: work-group {group} needs more private memory than the stack of 256 MiB"
    if fault.kind == _NO_MEMORY:
        return f"{name}: no memory for {fault.address} bytes of counters"
    if fault.kind == _OUTSIDE:
        where = _signalled(fault, launch, memory, made)
        return (
            f"{name}: accessed memory that is not its own: {where}; "
            "--check-bounds tells the work-item and the line"
        )
    if fault.signal == signal.SIGFPE:
        return f"{name}: integer division by zero (or the least integer divided by -1) in work-group {group}"
    if fault.signal in (signal.SIGSEGV, signal.SIGBUS):
        return (
            f"{name}: work-group {group} accessed memory that is not its own: "
            f"{_signalled(fault, launch, memory, made)}; "
            "--check-bounds tells the work-item and the line"
        )
    return f"{name}: work-group {group} was stopped by {signal.Signals(fault.signal).name}"


def _tuple(values: Sequence[int]) -> str:
    return str(tuple(values)) if len(values) > 1 else str(values[0])


def _barrier_lines(made: Instrumented) -> str:
    lines = sorted({s.after.line for s in made.segments if s.after is not None and s.after.line})
    if not lines:
        return ""
    return f" (barriers stand in line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))})"


def _bounds(fault: Fault, launch: Launch, memory: Memory, made: Instrumented) -> str:
    line = made.sites[fault.site]
    nbytes, write = fault.details
    item = _tuple(_global_id(fault, launch))
    verb = "write to a read-only buffer" if fault.signal else f"out-of-bounds {'write' if write else 'read'}"
    where = f" in line {line}" if line else ""
    target = _target(fault.address, launch, memory, made)
    return f"{verb} of {nbytes} bytes by work-item {item}{where}: {target}"


def _global_id(fault: Fault, launch: Launch) -> list[int]:
    """Global id of the work-item that faulted."""
    ids, rest = [], fault.item
    offsets = launch.global_offset or (0,) * len(launch.global_size)
    for group, local, size, offset in zip(
        fault.group, launch.local_size, launch.global_size, offsets, strict=False
    ):
        start = group * local
        items = min(local, size - start)  # the last group may be smaller
        ids.append(start + rest % items + offset)
        rest //= items
    return ids


def _signalled(fault: Fault, launch: Launch, memory: Memory, made: Instrumented) -> str:
    """Say what a signal's address is, directly or as the place of an access's counter."""
    if fault.address == _NO_ADDRESS:
        return "an address that no memory can have"
    counted, offset = map(_signed, fault.details)
    address = _signed(fault.address)
    distance = min(_outside_all(address, memory), _outside_all(counted, memory))
    if not memory.local_bytes or distance <= _outside(offset, memory.local_bytes):
        nearer = min(address, counted, key=lambda a: _outside_all(a, memory))
        return _target(nearer, launch, memory, made)
    return f"byte offset {offset} of local memory ({memory.local_bytes} bytes)"


def _outside_all(address: int, memory: Memory) -> int:
    """How far an address is from all buffers and from null."""
    buffers = (_outside(address - p.address, p.shared.nbytes) for p in memory.placed)
    return min([abs(address) if abs(address) < _NEAR else _FAR, *buffers])


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _target(address: int, launch: Launch, memory: Memory, made: Instrumented) -> str:
    if abs(address) < _NEAR:
        nulls = [p for p, a in enumerate(launch.args) if a is None and made.is_pointer(p)]
        which = f", argument {nulls[0]} ({made.names[nulls[0]]})" if len(nulls) == 1 else ""
        return f"byte offset {address} from a null pointer{which}"

    def away(placed: Placed) -> int:
        return _outside(address - placed.address, placed.shared.nbytes)

    nearest = min(memory.placed, key=away, default=None)
    if nearest is None or away(nearest) > _FAR:
        return f"address {address:#x} is in no buffer"
    return (
        f"byte offset {address - nearest.address} of buffer {made.names[nearest.position]!r} "
        f"(argument {nearest.position}, {nearest.shared.nbytes} bytes)"
    )


def _outside(distance: int, nbytes: int) -> int:
    """How far outside a buffer an offset is; 0 inside."""
    return -distance if distance < 0 else max(0, distance - nbytes + 1)


_REPORT_S = 0.2
_STATUS_WORDS = CONSTANTS["S_DONE"]
_WORDS_A_THREAD = 8
_STATUS_BYTES = 8 * (_STATUS_WORDS + _WORDS_A_THREAD * MOST_THREADS)
_FAULT, _RUN_NS, _REDUCE_NS, _OVERFLOW, _CPU_NS, _REDUCE_CPU_NS = (
    CONSTANTS[f"S_{name}"] for name in "FAULT RUN_NS REDUCE_NS OVERFLOW CPU_NS REDUCE_CPU_NS".split()
)
"""Words of the status page."""


@dataclass(frozen=True)
class RunResult:
    """What a run left."""

    words: npt.NDArray[np.uint64]  # Records of what was counted
    run_s: float  # Seconds that running took, and that its threads computed, added up
    cpu_s: float
    reduce_s: float  # Seconds that adding up the counters took, and of CPU time
    reduce_cpu_s: float
    printed: str  # What the kernel printed
    overflow: bool  # A counter may have overflowed


def run_in_child(
    launch: Launch, memory: Memory, made: Instrumented, library: bytes, options: Options, threads: int
) -> RunResult:
    """Run a launch."""
    with (
        memory_file("crosscast-kernel", library) as library_fd,
        memory_file("crosscast-job", describe_job(launch, memory, made, threads)) as job_fd,
        memory_file("crosscast-status", nbytes=_STATUS_BYTES) as status_fd,
        memory_file("crosscast-result") as result_fd,
        memory_file("crosscast-printf") as print_fd,
        memory_file("crosscast-stderr") as stderr_fd,
        mmap.mmap(status_fd, _STATUS_BYTES) as status,
    ):
        files = [job_fd, status_fd, result_fd, print_fd, *(placed.shared.fd for placed in memory.placed)]
        code = _execute(
            {"library_fd": library_fd, "stderr_fd": stderr_fd, "files": files},
            [library_fd, stderr_fd, *files],
            _Watch(launch, options, threads, status),
        )
        words = _read_status(status, _STATUS_WORDS)
        if code:
            errors = Path(f"/proc/self/fd/{stderr_fd}").read_text(errors="replace").strip()
            raise _failure(code, errors, words, launch, memory, made)
        return RunResult(
            words=np.fromfile(f"/proc/self/fd/{result_fd}", np.uint64),
            run_s=words[_RUN_NS] / 1e9,
            cpu_s=words[_CPU_NS] / 1e9,
            reduce_s=words[_REDUCE_NS] / 1e9,
            reduce_cpu_s=words[_REDUCE_CPU_NS] / 1e9,
            printed=printed(Path(f"/proc/self/fd/{print_fd}").read_bytes(), made.lowering.print_calls),
            overflow=bool(words[_OVERFLOW]),
        )


def _read_status(status: mmap.mmap, count: int) -> list[int]:
    return [int(word) for word in np.frombuffer(status, np.uint64, count)]


@dataclass(frozen=True)
class _Watch:
    """Watches a child while it runs."""

    launch: Launch
    options: Options
    threads: int
    status: mmap.mmap

    def wait(self, worker: workers.Worker) -> int:
        """Wait for the run to end; report progress, and raise where it takes too long."""
        start = time.perf_counter()
        while True:
            left = start + self.options.timeout_s - time.perf_counter()
            code = worker.wait(max(0, min(left, _REPORT_S)))
            if code is not None:
                return code
            elapsed = time.perf_counter() - start
            if elapsed > self.options.timeout_s:
                raise KernelTimeout(
                    f"{self.launch.kernel.name}: did not end within {self.options.timeout_s:g} s "
                    "(the time limit)"
                )
            if self.options.progress and elapsed >= _REPORT_S:
                self.options.progress(self._progress(elapsed))

    def _progress(self, elapsed_s: float) -> Progress:
        words = _read_status(self.status, _STATUS_WORDS + _WORDS_A_THREAD * self.threads)
        done = sum(words[_STATUS_WORDS::_WORDS_A_THREAD])
        return Progress(done, math.prod(group_counts(self.launch)), elapsed_s)


def _execute(job: dict[str, Any], descriptors: list[int], watch: _Watch) -> int:
    """Run a job in a child, and return its exit code."""
    try:
        return workers.run("kernel", job, descriptors, watch.wait)
    except OSError as error:
        raise EnvironmentFault(
            f"{watch.launch.kernel.name}: the process that runs kernels is gone ({error})"
        ) from error


def _failure(
    code: int, errors: str, words: list[int], launch: Launch, memory: Memory, made: Instrumented
) -> CrosscastError:
    name = launch.kernel.name
    if words[_FAULT]:
        return KernelFault(explain(Fault.from_words(words), launch, memory, made))
    if code < 0:
        return KernelFault(f"{name}: the process that ran the kernel was killed by signal {-code}")
    if undefined := re.search(r"undefined symbol: (\S+)", errors):
        # Such as what looks like one of LLVM's intrinsics, and is none.
        return UnsupportedError(
            f"unresolved function {undefined[1]!r}: neither the program nor OpenCL C defines it"
        )
    detail = f": {errors.splitlines()[-1]}" if errors else ""
    return EnvironmentFault(f"{name}: the process that runs kernels failed to start (code {code}{detail})")

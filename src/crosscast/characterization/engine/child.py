"""Run a kernel in a child process, so that whatever it does ends there.

Parent and child share files in memory: the kernel's library, the job, a page for progress and faults, the
results, what the kernel prints, and the buffers.
"""

from __future__ import annotations

import itertools
import math
import mmap
import re
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from crosscast.characterization.engine import workers
from crosscast.characterization.engine.arguments import (
    ARGUMENTS_ADDRESS,
    Memory,
    group_counts,
    memory_file,
    three,
)
from crosscast.characterization.engine.layout import CONSTANTS, AccessSite, MemoryRegion, ResultLayout, words
from crosscast.characterization.engine.messages import Faults, printed
from crosscast.errors import (
    CrosscastError,
    EnvironmentFault,
    KernelFault,
    KernelTimeout,
    LaunchError,
    UnsupportedError,
)
from crosscast.kernel import Image, Launch

MOST_THREADS = CONSTANTS["MOST_THREADS"]


@dataclass(frozen=True)
class Progress:
    """Progress of a run."""

    groups_done: int
    groups_total: int
    elapsed_s: float


@dataclass(frozen=True)
class Options:
    """Options of a run, beyond the launch."""

    # Threads that run work-groups. Each has separate counters, as large as the buffers; by default two if the
    # buffers are small, otherwise one
    threads: int | None = None
    check_bounds: bool = False  # Check every access
    timeout_s: float = 600.0  # Time limit of a run, in seconds
    # Most memory of buffers and counters, in bytes; by default that of the machine
    memory_limit: int | None = None
    # Compile OpenCL C as drivers do, at -O3, and not at the level of the published metrics: for forecasts
    optimize: bool = False
    published: bool = False  # Also compute the numbers of the published tool
    host_time: bool = False  # Also measure the kernel's uninstrumented time on this machine
    progress: Callable[[Progress], None] | None = None  # Called repeatedly while the kernel runs
    # Work-groups to run, spread over the launch, from which counts are extrapolated; "auto": some if all
    # would take too long or too much memory
    sample_groups: int | Literal["all", "auto"] = "all"
    # So many of the first work-groups alone, along each dimension: counts are of these
    first_groups: tuple[int, int, int] | None = None
    note: Callable[[str], None] | None = None  # Called with sentences on memory and on sampling
    trial: bool = False  # Buffers do not change, and the kernel is built quickly even if it may run for long

    def __post_init__(self) -> None:
        if not isinstance(self.sample_groups, str) and self.sample_groups < 1:
            raise LaunchError(f"work-groups to sample must be at least 1, found {self.sample_groups}")
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise LaunchError(f"threads must be from 1 to {MOST_THREADS}, found {self.threads}")
        if self.timeout_s <= 0:
            raise LaunchError(f"the time limit must be positive, found {self.timeout_s} s")
        if self.memory_limit is not None and self.memory_limit < 1:
            raise LaunchError(f"the memory limit must be positive, found {self.memory_limit} bytes")


class HostTime(NamedTuple):
    """Uninstrumented time of the work-groups of a launch on this machine, on one thread."""

    time_s: float  # The shortest of the repeats, in seconds
    repeats: int


@dataclass(frozen=True)
class RunResult:
    """Result of a run."""

    words: npt.NDArray[np.uint64]  # Records of counts
    run_s: float  # Seconds of the run, and CPU time of its threads
    cpu_s: float
    reduce_s: float  # Seconds of the reduction of counters, and its CPU time
    reduce_cpu_s: float
    printed: str  # Output of the kernel
    overflow: bool  # A counter may have overflowed
    host: HostTime | None  # `None` if not requested or not available


SPOILT = "what the kernel left cannot be read, as it wrote to memory that is not its own"
_STATUS_WORDS, _WORDS_A_THREAD = CONSTANTS["S_DONE"], 8
_STATUS_BYTES = 8 * (_STATUS_WORDS + _WORDS_A_THREAD * MOST_THREADS)
_FILES = ("job", "status", "result", "print")
"""Files of a run beside its buffers."""
_REPORT_S = 0.2
_PAGE = CONSTANTS["PAGE"]
_MOST_NATIVE_S = 10.0
"""Longest uninstrumented run; longer ones are left out."""


@dataclass(frozen=True)
class Run:
    """A run of a launch."""

    launch: Launch
    memory: Memory
    layout: ResultLayout
    options: Options
    threads: int
    # Ranges of work-groups, ends excluded, if not all run
    pieces: Sequence[tuple[int, int]] = ()
    is_too_slow: Callable[[Progress], bool] | None = None  # Whether to give up
    waiting: str = ""  # That work-groups wait for each other, and where

    def run(self, library: bytes) -> RunResult | None:
        """Run it in a child; return ``None`` if it was given up."""
        with (
            memory_file("crosscast-kernel", library) as library_fd,
            memory_file("crosscast-job", self._job()) as job_fd,
            memory_file("crosscast-status", nbytes=_STATUS_BYTES) as status_fd,
            memory_file("crosscast-result") as result_fd,
            memory_file("crosscast-printf") as print_fd,
            memory_file("crosscast-stderr") as stderr_fd,
            mmap.mmap(status_fd, _STATUS_BYTES) as status,
        ):
            files = [job_fd, status_fd, result_fd, print_fd, *(p.shared.fd for p in self.memory.placed)]
            descriptors = [stderr_fd, library_fd, *files]
            code = workers.run("kernel", descriptors, lambda worker: self._wait(worker, status))
            status_words = _read_status(status, _STATUS_WORDS)
            if code is None:
                return None
            if code:
                raise self._failure(code, _content(stderr_fd).decode(errors="replace").strip(), status_words)
            try:
                text = printed(_content(print_fd), self.layout.print_calls)
            except (ValueError, LookupError, OverflowError) as error:
                raise KernelFault(f"{self.launch.kernel.name}: {SPOILT} ({error})") from error
            return RunResult(
                words=np.fromfile(f"/proc/self/fd/{result_fd}", np.uint64),
                run_s=status_words[CONSTANTS["S_RUN_NS"]] / 1e9,
                cpu_s=status_words[CONSTANTS["S_CPU_NS"]] / 1e9,
                reduce_s=status_words[CONSTANTS["S_REDUCE_NS"]] / 1e9,
                reduce_cpu_s=status_words[CONSTANTS["S_REDUCE_CPU_NS"]] / 1e9,
                printed=text,
                overflow=bool(status_words[CONSTANTS["S_OVERFLOW"]]),
                host=_host_time(status_words),
            )

    def _job(self) -> bytes:
        """Return the run as ``struct job``: words, and tables with their offsets in words."""
        launch, memory, layout = self.launch, self.memory, self.layout
        job, content = words("job"), bytearray()

        def add(table: bytes) -> int:
            start = 8 * len(job) + len(content)
            content.extend(table + bytes(-len(table) % 8))
            return start

        def add_words(rows: Sequence[object]) -> int:
            return add(np.array(rows, np.int64).tobytes())

        def table(name: str, rows: Sequence[object]) -> dict[str, int]:
            return {name: add_words(rows), f"n_{name}": len(rows)}

        named = [region._replace(start=add(name.encode() + b"\0")) for name, region in layout.variables]
        regions = self._regions()
        buffers = [
            (
                len(_FILES) + number,
                placed.address - placed.shared.offset,
                placed.shared.mapped_nbytes,
                placed.kind == "image" or layout.parameters[placed.position].is_written,
            )
            for number, placed in enumerate(memory.placed)
        ]
        values = {
            "threads": self.threads,
            "regions": add_words([*regions, *named]),  # with room for the variables
            "n_regions": len(regions),
            **table("variables", named),
            **table("buffers", buffers),
            **{f"{name}_file": number for number, name in enumerate(_FILES)},
            "args": add(bytes(memory.packed)),
            "args_bytes": len(memory.packed),
            "args_address": ARGUMENTS_ADDRESS,
            "local_bytes": memory.local_bytes,
            "data_low": memory.low,
            "data_high": memory.high,
            **table("in_memory", layout.histories_in_memory),
            **table("repeated", layout.histories_repeated),
            "alike": layout.groups_alike,
            "weights": add_words(layout.access_weights()),
            "dims": len(launch.global_size),
            "private_bytes": layout.private_bytes,
            "live_bytes": layout.live_bytes,
            "histories": layout.histories,
            "strided": layout.strided,
            "counters": layout.counters,
            "several": layout.has_several_segments,
            "published": layout.order_counter is not None,
            **self._sub_groups(table),
            **table("pieces", self.pieces),
            "keeps_buffers": bool(self.pieces) or self.options.trial,
            "most_instructions": math.prod(launch.global_size) * layout.most_instructions,
            "native_ns": int(1e9 * min(_MOST_NATIVE_S, self.options.timeout_s / 4)),
            # The content of the program's variables is not restored between repeats.
            "native_once": layout.writes_variables,
        }
        for name, sizes in (
            ("global", three(launch.global_size, 1)),
            ("local", three(launch.local_size, 1)),
            ("offset", three(launch.global_offset, 0)),
            ("groups", group_counts(launch)),
        ):
            values |= {f"{name}{d}": size for d, size in enumerate(sizes)}
        return struct.pack(f"<{len(job)}Q", *(values.get(name, 0) for name in job)) + content

    def _sub_groups(self, table: Callable[[str, Sequence[object]], dict[str, int]]) -> dict[str, int]:
        layout, groups = self.layout, self.layout.sub_groups
        # The sampled lines must not depend on a buffer's offset in its page.
        starts_of = {placed.position: placed.address % _PAGE for placed in self.memory.placed}
        terms = [form.terms for form in groups.forms]
        starts = itertools.accumulate(map(len, terms), initial=0)
        sites = [(site.flags, *self._width(site), starts_of.get(site.buffer, 0)) for site in groups.sites]
        return {
            **table("sites", sites),
            **table("recorded", groups.recorded),
            "n_once": groups.once,
            "n_streams": groups.streams,
            "stream_words": groups.stream_words,
            "segments": len(groups.alike),
            **table("segment_weights", groups.totals),
            "n_columns": len(groups.columns),
            "narrow": layout.counts_fit_32_bits,
            **table("forms", [(start, len(each)) for start, each in zip(starts, terms, strict=False)]),
            **table("terms", [term for each in terms for term in each]),
            "at_group_end": layout.compares_items,
            **table("instructions", layout.instruction_weights()),
        }

    def _width(self, site: AccessSite) -> tuple[int, int]:
        """Return the bytes of an access, and the logarithm of its alignment."""
        nbytes = site.nbytes or self._texel_bytes(site.buffer)
        return nbytes, site.shift if site.nbytes else nbytes.bit_length() - 1

    def _texel_bytes(self, position: int) -> int:
        """Return the bytes of a texel of an argument; 1 if the image is unknown."""
        image = self.launch.args[position] if position >= 0 else None
        return image.channels * image.array.itemsize if isinstance(image, Image) else 1

    def _regions(self) -> list[MemoryRegion]:
        memory, layout, regions = self.memory, self.layout, []
        for placed in memory.placed:
            start, nbytes, position = placed.address, placed.shared.nbytes, placed.position
            if placed.kind == "image":
                texel = self._texel_bytes(position)
                regions.append(
                    MemoryRegion(start, nbytes, 1, CONSTANTS["IMAGE"], read_bytes=texel, write_bytes=texel)
                )
                continue
            read_only = int(position in self.launch.read_only)
            region = layout.parameters[position].region
            regions.append(region._replace(start=start, size=nbytes, read_only=read_only))
        for position, offset, nbytes in memory.locals:
            region = layout.parameters[position].region
            regions.append(region._replace(start=offset, size=nbytes))
        return [*regions, *layout.local_regions]

    def _wait(self, worker: workers.Worker, status: mmap.mmap) -> int | None:
        """Wait for the run to end; report progress, give up, or raise at the time limit."""
        start, limit = time.perf_counter(), self.options.timeout_s
        total = sum(end - first for first, end in self.pieces) or math.prod(group_counts(self.launch))
        while True:
            remaining_s = start + limit - time.perf_counter()
            code = worker.wait(max(0, min(remaining_s, _REPORT_S)))
            if code is not None:
                return code
            elapsed = time.perf_counter() - start
            if elapsed > limit:
                advice, name = self._advice(), self.launch.kernel.name
                raise KernelTimeout(f"{name}: did not end within {limit:g} s (the time limit){advice}")
            status_words = _read_status(status, _STATUS_WORDS + _WORDS_A_THREAD * self.threads)
            progress = Progress(sum(status_words[_STATUS_WORDS::_WORDS_A_THREAD]), total, elapsed)
            if self.is_too_slow and self.is_too_slow(progress):
                return None
            if self.options.progress and elapsed >= _REPORT_S:
                self.options.progress(progress)

    def _advice(self) -> str:
        """Return the end of the sentence on the time limit."""
        if self.waiting:
            return f"; {self.waiting}, but run one after another: one must not wait for a later one"
        return "" if self.pieces else "; --sample-groups runs some of its work-groups"

    def _failure(self, code: int, errors: str, status_words: Sequence[int]) -> CrosscastError:
        name = self.launch.kernel.name
        if status_words[CONSTANTS["S_FAULT"]]:
            faults = Faults(self.launch, self.memory, self.layout)
            return KernelFault(f"{name}: {faults.sentence(status_words)}")
        if code < 0:
            return KernelFault(f"{name}: the process that ran the kernel was killed by signal {-code}")
        if undefined := re.search(r"undefined symbol: (\S+)", errors):
            # For example a name that looks like an LLVM intrinsic, but is none.
            return UnsupportedError.of(
                where=f"unresolved function {undefined[1]!r}",
                problem="neither the program nor OpenCL C defines it",
            )
        detail = f": {errors.splitlines()[-1]}" if errors else ""
        return EnvironmentFault(
            f"{name}: the process that runs kernels failed to start (code {code}{detail})"
        )


def _host_time(status_words: Sequence[int]) -> HostTime | None:
    repeats = status_words[CONSTANTS["S_NATIVE_REPEATS"]]
    return HostTime(status_words[CONSTANTS["S_NATIVE_NS"]] / 1e9, repeats) if repeats else None


def _content(fd: int) -> bytes:
    return Path(f"/proc/self/fd/{fd}").read_bytes()


def _read_status(status: mmap.mmap, count: int) -> list[int]:
    return [int(word) for word in np.frombuffer(status, np.uint64, count)]

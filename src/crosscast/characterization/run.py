"""Run one launch: compile, instrument, execute in a child process, read the counts, make the profile."""

from __future__ import annotations

import base64
import functools
import json
import mmap
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast import environment
from crosscast.characterization import frontend, inline, runtime_objects
from crosscast.characterization.arguments import ARGUMENTS_ADDRESS, Memory, lay_out, same_buffers
from crosscast.characterization.codegen import build_library
from crosscast.characterization.counts import Counts, read_results
from crosscast.characterization.faults import Fault, explain
from crosscast.characterization.instrument import instrument
from crosscast.characterization.instrumented import Instrumented, Switches
from crosscast.characterization.metrics import compute_metrics
from crosscast.characterization.printf import render
from crosscast.characterization.published import published_metrics
from crosscast.errors import EnvironmentFault, KernelFault, KernelTimeout, LaunchError
from crosscast.kernel import Kernel, Launch
from crosscast.profile import Profile

__all__ = ["Options", "Progress", "characterize_launch"]

_POLL_S = 0.002
_REPORT_S = 0.2
_LIBRARIES = ("libm.so.6", "libc.so.6")
_MOST_THREADS = 256
_MOST_STACK_BYTES = 255 << 20
_WORDS_DONE = 16
_WORDS_A_THREAD = 8
_STATUS_BYTES = 8 * (_WORDS_DONE + _WORDS_A_THREAD * _MOST_THREADS)
_MOST_FOR_TWO_THREADS = 64 << 20
"""Bytes of buffers up to which a second set of counters is taken for granted."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    groups_done: int
    groups_total: int
    elapsed_s: float


@dataclass(frozen=True)
class Options:
    """How to run, beyond the launch itself.

    Parameters
    ----------
    threads
        Threads that run work-groups. Each has counters of its own, as large as the buffers; if not
        given, two where the buffers are small, otherwise one.
    check_bounds
        Check every access.
    timeout_s
        Longest run, in seconds.
    memory_limit
        Most memory of buffers and counters, in bytes; what the machine has if not given.
    published
        Also compute the published tool's own numbers.
    progress
        Called now and then while the kernel runs.
    """

    threads: int | None = None
    check_bounds: bool = False
    timeout_s: float = 600.0
    memory_limit: int | None = None
    published: bool = False
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= _MOST_THREADS:
            raise LaunchError(f"threads must be from 1 to {_MOST_THREADS}, found {self.threads}")
        if self.timeout_s <= 0:
            raise LaunchError(f"the time limit must be positive, found {self.timeout_s} s")
        if self.memory_limit is not None and self.memory_limit < 1:
            raise LaunchError(f"the memory limit must be positive, found {self.memory_limit} bytes")


@dataclass(frozen=True)
class _Built:
    made: Instrumented
    library: bytes
    instrument_s: float


@functools.lru_cache(maxsize=64)
def _build(kernel: Kernel, switches: Switches) -> _Built:
    start = time.perf_counter()
    module = frontend.load(kernel.program).module
    flat = inline.flatten(module, frontend.find_kernel(kernel.program, kernel.name))
    made = instrument(module, flat, switches)
    library = build_library(module, flat, made, switches)
    return _Built(made, library, time.perf_counter() - start)


def characterize_launch(launch: Launch, *, invocation: int = 0, options: Options) -> Profile:
    """Run one launch and return its profile; arrays among the arguments hold the output afterwards.

    Parameters
    ----------
    launch
        What to run.
    invocation
        Number of the launch, for the profile.
    options
        How to run it.

    Raises
    ------
    LaunchError
        If the arguments do not fit.
    CompileError
        If the program does not compile.
    UnsupportedError
        If it uses something that cannot be characterized.
    KernelFault
        If the kernel fails, or takes too long.
    """
    runtime_objects.start()
    program = frontend.load(launch.kernel.program)
    parameters = frontend.parameters(launch.kernel.program, launch.kernel.name)
    switches = _switches(launch, options)
    built = _build(launch.kernel, switches)
    threads = _threads(launch, options, built)
    before: dict[int, bytes] | None = None
    while True:
        memory = lay_out(launch, parameters, built.made.local.nbytes)
        _check_memory(launch, memory, built, threads, options)
        before = _snapshot(memory, built.made) if before is None else _restore(memory, before)
        run = _run(launch, memory, built, options, threads)
        start = time.perf_counter()
        counts = read_results(run.words, built.made)
        if counts.conflict:
            # Work-groups that communicate must run in the defined order, one after another.
            threads = 1
            continue
        if run.overflow and not switches.checked:
            # One work-group alone could fill a counter: let each look out for itself.
            switches = replace(switches, checked=True)
            built = _build(launch.kernel, switches)
            continue
        break
    _copy_back(memory)
    groups = int(np.prod([-(-g // l) for g, l in zip(launch.global_size, launch.local_size, strict=True)]))
    metrics = compute_metrics(counts, groups)
    rows: tuple[Any, ...] = ()
    if options.published:
        lines = [line for _, line in program.module.branches]
        items = int(np.prod(launch.local_size))
        rows = published_metrics(counts, metrics, built.made, lines, items)
    metrics_s = run.reduce_s + time.perf_counter() - start
    return Profile(
        kernel=launch.kernel.name,
        invocation=invocation,
        metrics=metrics,
        timing_s={
            "compile": program.compile_s,
            "instrument": built.instrument_s,
            "run": run.run_s,
            "run_cpu": run.cpu_s,
            "metrics": metrics_s,
        },
        launch=_summary(launch, parameters, threads),
        program={
            "path": str(launch.kernel.program.path) if launch.kernel.program.path else None,
            "form": launch.kernel.program.form,
            "sha256": launch.kernel.program.sha256,
            "compiler": program.compiler,
            "standard": launch.kernel.program.standard,
            "options": list(launch.kernel.program.options),
        },
        environment=environment.facts(),
        printed=run.printed,
        published=rows,
    )


def _three(sizes: tuple[int, ...], filler: int) -> tuple[int, int, int]:
    first, second, third = (*sizes, *[filler] * (3 - len(sizes)))
    return first, second, third


def _switches(launch: Launch, options: Options) -> Switches:
    uniform = all(g % l == 0 for g, l in zip(launch.global_size, launch.local_size, strict=True))
    return Switches(
        local_size=_three(launch.local_size, 1),
        uniform=uniform,
        check_bounds=options.check_bounds,
        published=options.published,
        small_ids=_largest_id(launch) < 1 << 31,
        same=same_buffers(launch),
    )


def _largest_id(launch: Launch) -> int:
    offsets = launch.global_offset or (0,) * len(launch.global_size)
    return max(size + offset for size, offset in zip(launch.global_size, offsets, strict=True)) - 1


def _threads(launch: Launch, options: Options, built: _Built) -> int:
    """Threads to use: by default two, where that keeps memory within three times the buffers."""
    groups = int(np.prod([-(-g // l) for g, l in zip(launch.global_size, launch.local_size, strict=True)]))
    if built.made.lowering.ordered:
        return 1
    wanted = options.threads
    if wanted is None:
        nbytes = sum(a.nbytes for a in launch.args if isinstance(a, np.ndarray))
        wanted = min(2, len(os.sched_getaffinity(0))) if nbytes <= _MOST_FOR_TWO_THREADS else 1
    return min(wanted, groups)


def _check_memory(launch: Launch, memory: Memory, built: _Built, threads: int, options: Options) -> None:
    name = launch.kernel.name
    if built.made.private.stack_bytes > _MOST_STACK_BYTES:
        raise KernelFault(
            f"{name}: a work-item needs {built.made.private.stack_bytes} bytes of private memory, "
            f"over the limit of {_MOST_STACK_BYTES} bytes"
        )
    private = built.made.private.nbytes * int(np.prod(launch.local_size)) * threads
    needed = memory.nbytes * (1 + threads) + private
    limit = options.memory_limit or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > limit:
        raise LaunchError(
            f"{name}: buffers of {memory.nbytes} bytes, their counters and {private} bytes of private memory "
            f"on {threads} threads need {needed} bytes, over the memory limit of {limit} bytes"
        )


def _summary(launch: Launch, parameters: Any, threads: int) -> dict[str, Any]:
    arguments = []
    for parameter, argument in zip(parameters, launch.args, strict=True):
        entry: dict[str, Any] = {"name": parameter.name, "type": parameter.type_name, "kind": parameter.kind}
        array = getattr(argument, "array", argument)
        if isinstance(array, np.ndarray) and parameter.kind != "value":
            entry["nbytes"] = int(array.nbytes)
            entry["shape"] = list(array.shape)
        elif parameter.kind == "local":
            entry["nbytes"] = int(getattr(argument, "nbytes", 0))
        elif isinstance(argument, np.generic) and argument.dtype.names is None:
            entry["value"] = argument.item()
        arguments.append(entry)
    return {
        "global_size": list(launch.global_size),
        "local_size": list(launch.local_size),
        "global_offset": list(launch.global_offset or (0,) * len(launch.global_size)),
        "threads": threads,
        "arguments": arguments,
    }


def _snapshot(memory: Memory, made: Instrumented) -> dict[int, bytes]:
    """Content of the buffers that a run would change for good, should it have to be run again."""
    return {
        placed.position: placed.shared.data.tobytes()
        for placed in memory.placed
        if placed.copied_from is None and made.is_written(placed.position)
    }


def _restore(memory: Memory, before: dict[int, bytes]) -> dict[int, bytes]:
    for placed in memory.placed:
        if placed.position in before:
            placed.shared.data[:] = np.frombuffer(before[placed.position], np.uint8)
    return before


def _copy_back(memory: Memory) -> None:
    for placed in memory.placed:
        array = placed.copied_from
        if array is not None and array.flags.writeable:
            array[...] = placed.shared.data.view(array.dtype).reshape(array.shape)


@dataclass(frozen=True)
class _Run:
    words: Any
    run_s: float
    reduce_s: float
    printed: str
    overflow: bool
    cpu_s: float


@contextmanager
def _memory_file(name: str, content: bytes = b"", nbytes: int = 0) -> Iterator[int]:
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        if nbytes:
            os.truncate(fd, nbytes)
        view = memoryview(content)
        while view:
            view = view[os.write(fd, view) :]
        yield fd
    finally:
        os.close(fd)


def _run(launch: Launch, memory: Memory, built: _Built, options: Options, threads: int) -> _Run:
    with (
        _memory_file("crosscast-kernel", built.library) as library_fd,
        _memory_file("crosscast-status", nbytes=_STATUS_BYTES) as status_fd,
        _memory_file("crosscast-result") as result_fd,
        _memory_file("crosscast-printf") as print_fd,
        mmap.mmap(status_fd, _STATUS_BYTES) as status,
    ):
        job = _job(launch, memory, built.made, threads)
        job["library_fd"], job["status_fd"] = library_fd, status_fd
        job["words"] |= {"result_fd": result_fd, "print_fd": print_fd}
        descriptors = [library_fd, status_fd, result_fd, print_fd, *(p.shared.fd for p in memory.placed)]
        _supervise(launch, memory, built.made, job, descriptors, status, options)
        words = np.frombuffer(status, np.uint64, 16).tolist()
        return _Run(
            np.fromfile(f"/proc/self/fd/{result_fd}", np.uint64),
            words[11] / 1e9,
            words[12] / 1e9,
            _printed(Path(f"/proc/self/fd/{print_fd}").read_bytes(), built.made),
            bool(words[13]),
            words[14] / 1e9,
        )


def _job(launch: Launch, memory: Memory, made: Instrumented, threads: int) -> dict[str, Any]:
    sizes = {
        "global": _three(launch.global_size, 1),
        "local": _three(launch.local_size, 1),
        "offset": _three(launch.global_offset or (0,), 0),
    }
    groups = [-(-g // l) for g, l in zip(sizes["global"], sizes["local"], strict=True)]
    words = {f"{name}{d}": value for name, values in sizes.items() for d, value in enumerate(values)}
    words |= {f"groups{d}": value for d, value in enumerate(groups)}
    words |= {
        "dims": len(launch.global_size),
        "private_bytes": made.private.nbytes,
        "live_bytes": made.live.nbytes,
        "histories": made.histories,
        "counters": made.counters,
        "several": int(len(made.segments) > 1),
        "published": int(made.order_counter is not None),
    }
    return {
        "threads": threads,
        "libraries": list(_LIBRARIES),
        "buffers": [
            {
                "fd": p.shared.fd,
                "address": p.address - p.shared.offset,
                "nbytes": p.shared.mapped_nbytes,
            }
            for p in memory.placed
        ],
        "regions": _regions(launch, memory, made),
        "variables": made.variable_regions(),
        "arguments": base64.b64encode(bytes(memory.packed)).decode(),
        "arguments_address": ARGUMENTS_ADDRESS,
        "local_bytes": memory.local_bytes,
        "data_low": memory.low,
        "data_high": memory.high,
        "in_memory": made.in_memory,
        "weights": made.access_weights(),
        "words": words,
    }


def _regions(launch: Launch, memory: Memory, made: Instrumented) -> list[list[int]]:
    """Regions of buffers, images and local memory: start, size, granule, place, and three flags."""
    found = []
    for placed in memory.placed:
        if placed.place == "image":
            granule = placed.shared.data.itemsize
            found.append([placed.address, placed.shared.nbytes, granule, 3, 0, 0, 0])
            continue
        granule, commutes = made.parameter_granule(placed.position), made.commutes(placed.position)
        read_only = int(placed.position in launch.read_only)
        constant = int(made.is_constant(placed.position))
        found.append(
            [placed.address, placed.shared.nbytes, granule, 0, constant, read_only, int(commutes)]
        )
    for position, offset, nbytes in memory.locals:
        found.append([offset, nbytes, made.parameter_granule(position), 2, 0, 0, 0])
    return [*found, *made.local_regions()]


def _supervise(
    launch: Launch,
    memory: Memory,
    made: Instrumented,
    job: dict[str, Any],
    descriptors: list[int],
    status: mmap.mmap,
    options: Options,
) -> None:
    """Start the child, wait for it, and turn its failures into sentences."""
    worker = Path(__file__).with_name("worker.py")
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", str(worker)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=descriptors,
        start_new_session=True,
        env={},
    )
    try:
        assert child.stdin is not None
        child.stdin.write(json.dumps(job).encode())
        child.stdin.close()
        _wait(launch, child, job, status, options)
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        errors = child.stderr.read().decode(errors="replace").strip() if child.stderr else ""
        if child.stderr:
            child.stderr.close()
    if child.returncode == 0:
        return
    words = np.frombuffer(status, np.uint64, _WORDS_DONE).tolist()
    if words[1]:
        raise KernelFault(explain(Fault.from_words(words), launch, memory, made))
    if child.returncode < 0:
        raise KernelFault(
            f"{launch.kernel.name}: the process that ran the kernel was killed by signal {-child.returncode}"
        )
    raise EnvironmentFault(
        f"{launch.kernel.name}: the process that runs kernels failed to start"
        f" (code {child.returncode}{': ' + errors.splitlines()[-1] if errors else ''})"
    )


def _wait(
    launch: Launch,
    child: subprocess.Popen[bytes],
    job: dict[str, Any],
    status: mmap.mmap,
    options: Options,
) -> None:
    total = job["words"]["groups0"] * job["words"]["groups1"] * job["words"]["groups2"]
    start = reported = time.perf_counter()
    pause = _POLL_S
    while child.poll() is None:
        try:
            child.wait(pause)
        except subprocess.TimeoutExpired:
            pause = min(2 * pause, 0.05)
        now = time.perf_counter()
        if now - start > options.timeout_s:
            raise KernelTimeout(
                f"{launch.kernel.name}: did not end within {options.timeout_s:g} s (the time limit)"
            )
        if options.progress and now - reported >= _REPORT_S:
            reported = now
            words = np.frombuffer(status, np.uint64, _WORDS_DONE + _WORDS_A_THREAD * job["threads"])
            done = int(words[_WORDS_DONE::_WORDS_A_THREAD].sum())
            del words
            options.progress(Progress(done, total, now - start))


_STRING, _VALUE = 1, 0


def _printed(data: bytes, made: Instrumented) -> str:
    """Text of all printf calls, from the records that the runtime wrote."""
    texts = []
    position = 0

    def word() -> int:
        nonlocal position
        position += 8
        return int.from_bytes(data[position - 8 : position], "little")

    def take(length: int) -> bytes:
        nonlocal position
        position += length
        return data[position - length : position]

    while position < len(data):
        call, count, length = word(), word(), word()
        format_string = take(length)
        values = []
        for type_ in made.lowering.print_calls[call][1:count]:
            kind, length = word(), word()
            content = take(length)
            plain = re.sub(r" addrspace\(\d+\)", "", type_)
            values.append((plain, content if kind == _STRING else content))
        texts.append(render(format_string, values))
    return "".join(texts)

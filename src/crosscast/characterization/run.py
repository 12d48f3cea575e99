"""Run one launch: compile, instrument, execute in a child process, read the counts, make the profile."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosscast import environment
from crosscast.characterization import frontend, ir
from crosscast.characterization.cuda.adapt import adapt_kernel
from crosscast.characterization.cuda.compiler import wave_size
from crosscast.characterization.cuda.variables import pack, set_variables, unset_variables
from crosscast.characterization.engine import runtime_objects
from crosscast.characterization.engine.arguments import (
    Memory,
    copy_back,
    lay_out,
    restore,
    same_buffers,
    snapshot,
)
from crosscast.characterization.engine.child import (
    SPOILT,
    HostTime,
    Options,
    Progress,
    Run,
    RunResult,
    group_counts,
    three,
)
from crosscast.characterization.engine.codegen import build_library, kernel_ir
from crosscast.characterization.engine.counts import Counts, read_results
from crosscast.characterization.engine.sub_group_counts import WIDTHS
from crosscast.characterization.frontend import Frontend
from crosscast.characterization.instrumentation import inline, instruction_kinds
from crosscast.characterization.instrumentation.context import Switches
from crosscast.characterization.instrumentation.driver import instrument
from crosscast.characterization.instrumentation.hoisting import hoist_ids
from crosscast.characterization.instrumentation.instrumented import Instrumented
from crosscast.characterization.launch_geometry import launch_geometry
from crosscast.characterization.metrics import compute_metrics, published_metrics
from crosscast.errors import KernelFault, LaunchError
from crosscast.kernel import Argument, Kernel, Launch, Parameter, Program
from crosscast.profile import Profile
from crosscast.results import spelled

__all__ = ["Options", "Progress", "characterize_launch"]


MOST_WORK_ITEMS = (1 << 31) - 1
"""More than that run for minutes at the least: a smaller launch tells the same of a kernel."""
_MOST_STACK_BYTES = 255 << 20
_MOST_FOR_TWO_THREADS = 64 << 20
"""Bytes of buffers up to which a second set of counters is taken for granted."""
_MOST_STREAM_BYTES = 1 << 30
"""For the addresses that a work-group leaves, of all accesses."""


@dataclass(frozen=True)
class _Built:
    made: Instrumented
    library: bytes
    instrument_s: float
    unset: tuple[str, ...]  # Variables that the kernel reads and nothing sets


@functools.lru_cache(maxsize=64)
def _build(kernel: Kernel, switches: Switches, *, host_time: bool = False) -> _Built:
    start = time.perf_counter()
    module, made, unset = _instrument(kernel, switches)
    native = ""
    if host_time and not made.by_turns:
        native = kernel_ir(*_instrument(kernel, replace(switches, counts=False, check_bounds=False))[:2])
    library = build_library(module, made, native)
    return _Built(made, library, time.perf_counter() - start, unset)


def _instrument(kernel: Kernel, switches: Switches) -> tuple[ir.Module, Instrumented, tuple[str, ...]]:
    """The module and the instrumented kernel, and the names of variables that it reads and nothing sets."""
    loaded = frontend.load(kernel.program, kernel.name)
    module = loaded.module
    unset: tuple[str, ...] = ()
    flat = inline.flatten(module, frontend.find_kernel(kernel.program, kernel.name))
    if kernel.program.is_cuda:
        module = adapt_kernel(module, flat, switches.shared)
        declared = loaded.compiled.variables if loaded.compiled else ()
        unset = tuple(unset_variables(flat, module, switches.variables))
        module = set_variables(module, flat, declared, kernel, switches.variables)
    if kernel.program.form not in ("llvm-ir", "bitcode") and not switches.published:
        hoist_ids(flat)
    return module, instrument(module, flat, switches), unset


@dataclass
class _Clock:
    """Adds up the time of blocks."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def __enter__(self) -> None:
        self.wall_s -= time.perf_counter()
        self.cpu_s -= time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.wall_s += time.perf_counter()
        self.cpu_s += time.thread_time()


def characterize_launch(launch: Launch, *, invocation: int = 0, options: Options) -> Profile:
    """Run one launch and return its profile; arrays among the arguments hold the output afterwards."""
    runtime_objects.start()
    program = frontend.load(launch.kernel.program, launch.kernel.name)
    ran, clock = _run(launch, options)
    counts, result = ran.counts, ran.result
    with clock:
        metrics = compute_metrics(counts, math.prod(group_counts(launch)))
        described = _describe_launch(launch, ran)
        lines = [line for _, line in program.module.branches]
        published = (
            published_metrics(counts, metrics, ran.built.made, lines, math.prod(launch.local_size))
            if options.published
            else ()
        )
    return Profile(
        kernel=launch.kernel.name,
        invocation=invocation,
        metrics=metrics,
        timing_s={
            "compile": program.compile_s,
            "instrument": ran.built.instrument_s,
            "run": result.run_s,
            "run_cpu": result.cpu_s,
            "metrics": result.reduce_s + clock.wall_s,
            "metrics_cpu": result.reduce_cpu_s + clock.cpu_s,
        },
        launch=described,
        program=_describe_program(launch.kernel.program, program),
        environment=environment.facts(),
        printed=result.printed,
        published=published,
        instructions=dict(sorted(counts.classes.items())),
    )


def _describe_launch(launch: Launch, ran: _Ran) -> dict[str, Any]:
    """Sizes, arguments, and what was done, for a verdict on it (docs/metrics.md): operations and bytes."""
    parameters = frontend.parameters(launch.kernel.program, launch.kernel.name)
    geometry = launch_geometry(launch, ran.built.made)
    return {
        "global_size": list(launch.global_size),
        "local_size": list(launch.local_size),
        "global_offset": list(launch.global_offset or (0,) * len(launch.global_size)),
        **({} if launch.shared is None else {"shared_bytes": launch.shared}),
        **({"variables": sorted(launch.variables)} if launch.variables else {}),
        **({"unset_variables": list(ran.built.unset)} if ran.built.unset else {}),
        "threads": ran.threads,
        **({} if ran.result.host is None else {"host": _describe_host(ran.result.host)}),
        "arguments": [_describe(p, a) for p, a in zip(parameters, launch.args, strict=True)],
        "sub_groups": _sub_groups(geometry, ran),
        **({"sub_groups_estimated": True} if ran.counts.sub_groups.overflow else {}),
        "access_patterns": {
            **ran.counts.sub_groups.patterns(ran.built.made.sub_groups),
            "vectorized": ran.built.made.in_step,
        },
        "reuse": ran.counts.sub_groups.reuse_bytes(
            _distinct_lines(ran.counts),
            [n for (space, _), n in ran.counts.distinct.items() if space != "local"],
        ),
        "distinct_bytes": _distinct(ran.counts),
        "geometry": geometry,
        "instructions": instruction_kinds.describe(ran.counts.kinds),
        "path": ran.built.made.dependences.longest(_of_longest(ran.counts, ran.built.made))._asdict(),
        "work": {
            **dict(sorted(ran.counts.work.items())),
            "instructions": dict(sorted(ran.counts.classes.items())),
        },
    }


def _describe_host(host: HostTime) -> dict[str, Any]:
    """The kernel's time on this machine, as it runs without counting, and what ran it."""
    return {
        "time_s": host.time_s,
        "repeats": host.repeats,
        "threads": 1,
        "cpu": environment.facts()["processor"],
        "compiler": f"llvmlite {environment.version_of('llvmlite')}",
    }


def _sub_groups(geometry: Mapping[str, Any], ran: _Ran) -> dict[str, dict[str, int]]:
    counts = ran.counts
    return counts.sub_groups.by_width(
        ran.built.made.sub_groups,
        counts.instructions - counts.opcodes["phi"],
        [geometry[f"sub_groups_{width}"] for width in WIDTHS],
    )


def _distinct(counts: Counts) -> dict[str, dict[str, int]]:
    """Distinct bytes read and written by memory."""
    found: dict[str, dict[str, int]] = {}
    for (space, side), nbytes in sorted(counts.distinct.items()):
        if nbytes:
            found.setdefault(space, {})[side] = nbytes
    return found


def _distinct_lines(counts: Counts) -> dict[str, int]:
    """Lines of global memory in which accesses begin, by size."""
    local = max(counts.distinct["local", "read"], counts.distinct["local", "written"])
    return {
        str(1 << bits): sum(counts.addresses[bits].values()) - -(-local // (1 << bits)) for bits in (6, 7)
    }


def _of_longest(counts: Counts, made: Instrumented) -> dict[str, int]:
    """How often the longest work-item executed each block."""
    if counts.sub_groups.longest[0]:
        return counts.sub_groups.executions_of_longest(made.sub_groups, made.blocks)
    # All are alike.
    items = sum(counts.totals.values())
    return {label: -(-n // items) for label, n in counts.executions.items()}


def _describe(parameter: Parameter, argument: Argument) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": parameter.name, "type": parameter.type_name, "kind": parameter.kind}
    array = getattr(argument, "array", argument)
    if isinstance(array, np.ndarray) and parameter.kind != "value":
        entry |= {"nbytes": int(array.nbytes), "shape": list(array.shape)}
    elif parameter.kind == "local":
        entry["nbytes"] = int(getattr(argument, "nbytes", 0))
    elif isinstance(argument, np.generic) and argument.dtype.names is None:
        entry["value"] = spelled(argument.item())
    return entry


def _describe_program(program: Program, compiled: Frontend) -> dict[str, Any]:
    """Where a program comes from, and what compiled it how."""
    return {
        "path": str(program.path) if program.path else None,
        "form": program.form,
        "sha256": program.sha256,
        "compiler": compiled.compiler,
        "standard": program.standard,
        "options": list(program.options),
    }


@dataclass(frozen=True)
class _Ran:
    """A run whose counts are right."""

    built: _Built
    threads: int
    result: RunResult
    counts: Counts


def _run(launch: Launch, options: Options) -> tuple[_Ran, _Clock]:
    """Run a launch, again where the counts of a run would not be right; the time to read them."""
    parameters = frontend.parameters(launch.kernel.program, launch.kernel.name)
    _check_sizes(launch)
    switches = _switches(launch, options)
    built = _build(launch.kernel, switches, host_time=options.host_time)
    threads = wanted = _threads(launch, options, built)
    before: dict[int, bytes] | None = None
    while True:
        memory = lay_out(launch, parameters, built.made.local.nbytes, built.made.is_accessed)
        _check_memory(launch, memory, built, threads, options)
        if before is None:
            before = snapshot(memory, built.made.is_written)
        else:
            restore(memory, before)
        result = Run(launch, memory, built.made, options, threads).run(built.library)
        clock = _Clock()
        with clock:
            try:
                counts = read_results(result.words, built.made)
            except (ValueError, LookupError, OverflowError, TypeError) as error:
                raise KernelFault(f"{launch.kernel.name}: {SPOILT} ({error})") from error
        if not counts.instructions:
            raise KernelFault(f"{launch.kernel.name}: no instruction was executed")
        if counts.conflict:
            # Work-groups that communicate must run in the defined order, one after another.
            threads = 1
        elif result.overflow and not switches.checked:
            # One work-group alone could fill a counter: let each look out for itself.
            switches = replace(switches, checked=True)
            built = _build(launch.kernel, switches, host_time=options.host_time)
        elif switches.stream_words < (words := _stream_words(counts, built)):
            # Work-items of long loops leave more addresses than there was room for.
            threads, switches = 1, replace(switches, stream_words=words)
            built = _build(launch.kernel, switches, host_time=options.host_time)
        else:
            copy_back(memory)
            # What was wanted, as whether threads got in each other's way depends on chance.
            return _Ran(built, wanted, result, counts), clock


def _stream_words(counts: Counts, built: _Built) -> int:
    """Room that the addresses of the longest work-group need at one access; 0 if all would need too much."""
    words = 1 << (counts.sub_groups.overflow - 1).bit_length() if counts.sub_groups.overflow else 0
    return words if 8 * words * built.made.sub_groups.streams <= _MOST_STREAM_BYTES else 0


def _switches(launch: Launch, options: Options) -> Switches:
    offsets = three(launch.global_offset, 0)
    sizes = list(zip(three(launch.global_size, 1), three(launch.local_size, 1), offsets, strict=True))
    return Switches(
        local_size=three(launch.local_size, 1),
        uniform=all(global_ % local == 0 for global_, local, _ in sizes),
        check_bounds=options.check_bounds,
        published=options.published,
        small_ids=max(global_ + offset for global_, _, offset in sizes) <= 1 << 31,
        same=same_buffers(launch),
        cuda=launch.kernel.program.is_cuda,
        shared=launch.shared,
        variables=pack(launch.variables, launch.kernel.name),
        warp=wave_size(launch.kernel.program),
    )


def _threads(launch: Launch, options: Options, built: _Built) -> int:
    """Threads to use: by default two, where that keeps memory within three times the buffers."""
    made = built.made
    if made.lowering.ordered or made.sharing.overlapping:
        return 1
    wanted = options.threads
    if wanted is None:
        nbytes = sum(a.nbytes for a in launch.args if isinstance(a, np.ndarray))
        # Threads that update the same memory mostly wait for each other.
        two = nbytes <= _MOST_FOR_TWO_THREADS and not made.sharing.commuting
        wanted = min(2, len(os.sched_getaffinity(0))) if two else 1
    return min(wanted, math.prod(group_counts(launch)))


def _check_sizes(launch: Launch) -> None:
    items = math.prod(launch.global_size)
    if items > MOST_WORK_ITEMS:
        raise LaunchError(
            f"{launch.kernel.name}: a launch that is characterized has at most {MOST_WORK_ITEMS} work-items "
            f"(2^31 - 1), found {items} ({' x '.join(map(str, launch.global_size))})"
        )
    required = frontend.required_local_size(launch.kernel.program, launch.kernel.name)
    if required is not None and required != three(launch.local_size, 1):
        raise LaunchError(
            f"{launch.kernel.name}: the kernel requires work-groups of {required} work-items "
            f"(reqd_work_group_size), found {launch.local_size}"
        )


def _check_memory(launch: Launch, memory: Memory, built: _Built, threads: int, options: Options) -> None:
    name = launch.kernel.name
    if built.made.private.stack_bytes > _MOST_STACK_BYTES:
        raise KernelFault(
            f"{name}: a work-item needs {built.made.private.stack_bytes} bytes of private memory, "
            f"over the limit of {_MOST_STACK_BYTES} bytes"
        )
    private = built.made.private.nbytes * math.prod(launch.local_size) * threads
    needed = memory.nbytes * (1 + threads) + private
    limit = options.memory_limit or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > limit:
        raise LaunchError(
            f"{name}: buffers of {memory.nbytes} bytes, their counters and {private} bytes of private memory "
            f"on {threads} threads need {needed} bytes, over the memory limit of {limit} bytes"
        )

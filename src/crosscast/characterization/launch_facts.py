"""Facts of a launch in a profile: arguments, counts, and occupancy of a device's compute units.

Registers of a work-item on AMD GPUs, and how many spill, are as LLVM's backend for these GPUs allocates them.
AMD's compilers are built on LLVM, and llvmlite has their backend. The unoptimized IR of a program is
rewritten for their target, optimized and compiled for an RDNA 2 GPU, and the registers are read from the
assembly. No device is needed. On NVIDIA GPUs, ptxas allocates registers, which is not part of LLVM.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.characterization import toolchain
from crosscast.characterization.engine import llvm
from crosscast.characterization.engine.child import HostTime, RunResult
from crosscast.characterization.engine.counts import Counts
from crosscast.characterization.engine.layout import ResultLayout
from crosscast.characterization.frontend import LoadedKernel, LoadedProgram, load
from crosscast.characterization.instrumentation import instruction_kinds
from crosscast.characterization.instrumentation.plan import Plan
from crosscast.characterization.sampling import Box
from crosscast.data import environment
from crosscast.data.launch_counts import SUB_GROUPS
from crosscast.errors import CrosscastError
from crosscast.kernel import Argument, Kernel, Launch, Local, Parameter, Program
from crosscast.results import spelled

_PROCESSOR = "gfx1030"
_LARGEST_GROUP = {"cuda": 1024, "hip": 1024, "opencl-c": 256}
"""Largest work-group that compilers allow for by default, in work-items, by form of the program.

It bounds the registers of a work-item. ``reqd_work_group_size`` and ``__launch_bounds__`` take its place.
"""
_BOUNDS = "-DCROSSCAST_LAUNCH_BOUNDS"
"""Keeps ``__launch_bounds__`` in the IR, elsewhere left out: bounds may need headers that are missing."""

_LIBRARY = Path(__file__).parent / "builtins" / "amdgcn.ll"
_LAYOUT = (
    "e-m:e-p:64:64-p1:64:64-p2:32:32-p3:32:32-p4:64:64-p5:32:32-p6:32:32-p7:160:256:256:32-p8:128:128:128:48"
    "-p9:192:256:256:32-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024"
    "-v2048:2048-n32:64-S32-A5-G1-ni:7:8:9"
)
_HEADER = f'target datalayout = "{_LAYOUT}"\ntarget triple = "amdgcn-amd-amdhsa"\n'
_ADDRESS_SPACES = {0: 5, 2: 4, 4: 0}  # AMD's numbers by SPIR's, where they differ
# A quoted string is matched first, so that the word in it is not taken for a type.
_POINTER = re.compile(r'"[^"\n]*"|(?<![\w.%@$-])ptr\b(?![\w.])(?: addrspace\((\d+)\))?')
_INTRINSIC_SPACE = re.compile(r"(?<=\.p)\d+(?=[.(])")
_CONSTANT_SPACE = re.compile(r"^(@[^\n]*? addrspace\()2(?=\) )", re.MULTILINE)
_ALLOCA = re.compile(r"= alloca [^\n!]*[^\n!, ]")
_METADATA = re.compile(r"^\s+#dbg_.*\n|,? !(?:dbg|srcloc|tbaa|alias\.scope|noalias) !\d+", re.MULTILINE)
_PRINTF = re.compile(r"(?<== )[a-z]* ?call [^\n]*@printf\([^\n]*|^declare [^\n]*@printf\(.*\n", re.MULTILINE)
_BY_VALUE = re.compile(r"byval\([^)]*\) ")
_DROPPED = re.compile(r"^(?:target |@llvm\.).*\n", re.MULTILINE)


@dataclass(frozen=True)
class AmdRegisters:
    """Vector registers of 32 bits that a work-item of a kernel needs, and instructions of its code."""

    registers: int
    spilled: int  # Registers that spill to private memory
    moves: int  # Loads and stores of private memory: of spilled registers, and of arrays that stay there
    moves_in_loops: int
    floating: int  # Additions, multiplications and multiply-adds of floating-point numbers
    floating_in_loops: int


@functools.lru_cache(maxsize=256)
def amd_registers(loaded: LoadedKernel) -> AmdRegisters | None:
    """Compile a kernel for an AMD GPU, and return its registers.

    ``None`` if the program has no source, or LLVM cannot compile it for this target, as with images.
    """
    program, compiled, symbol = loaded.kernel.program, loaded.program.compiled, loaded.function.name
    if program.form not in _LARGEST_GROUP:
        return None
    spir = toolchain.compile_opencl_unoptimized(program) if compiled is None else compiled.unoptimized
    library = _HEADER + _LIBRARY.read_text(encoding="utf-8")
    ir = _HEADER + for_amd(spir, symbol, _largest_group(loaded))
    try:
        return AmdRegisters(**llvm.amd_registers(ir, library, symbol, _PROCESSOR))
    except llvm.LLVMRefusedError:
        return None


def _largest_group(loaded: LoadedKernel) -> int:
    if loaded.required_local_size:
        return math.prod(loaded.required_local_size)
    return _launch_bound(loaded.kernel, loaded.function.name) or _LARGEST_GROUP[loaded.kernel.program.form]


def _launch_bound(kernel: Kernel, symbol: str) -> int | None:
    program = kernel.program
    if not program.is_cuda or b"__launch_bounds__" not in program.content:
        return None
    try:
        loaded = load(replace(program, options=(*program.options, _BOUNDS)), kernel.name)
    except CrosscastError:
        return None
    text = loaded.compiled.unoptimized if loaded.compiled is not None else ""
    annotated = re.search(rf'ptr @"?{re.escape(symbol)}"? to [^}}]*(@\.args[.\d]*) \}}', text)
    if annotated is None:
        return None
    bound = re.search(rf"^{annotated[1]} = [^\n{{]*\{{[^\n{{]*\{{ i\d+ (\d+)", text, re.MULTILINE)
    return int(bound[1]) if bound else None


def for_amd(text: str, symbol: str, largest_group: int) -> str:
    """Rewrite the IR of a SPIR module for AMD GPUs, without the target's header.

    Only the kernel `symbol` stays a kernel. Calls of ``printf`` return 0, and debug information and aliasing
    metadata are dropped. Functions are compiled for work-groups of up to `largest_group` work-items.
    """
    text = _DROPPED.sub("", _METADATA.sub("", text))
    text = _PRINTF.sub(lambda match: "" if match[0].startswith("declare") else "add i32 0, 0", text)
    text = _POINTER.sub(_amd_pointer, text)
    text = _INTRINSIC_SPACE.sub(lambda match: str(_amd_space(match[0])), text)
    text = _ALLOCA.sub(r"\g<0>, addrspace(5)", _CONSTANT_SPACE.sub(r"\g<1>4", text))
    name = rf'@(?:{re.escape(symbol)}|"{re.escape(symbol)}")\('
    text = re.sub(rf"^define [^@\n]*?spir_kernel [^@\n]*{name}.*", _as_kernel, text, flags=re.MULTILINE)
    text = text.replace("spir_kernel ", "").replace("spir_func ", "")
    group_bound = f'"amdgpu-flat-work-group-size"="1,{largest_group}"'
    return re.sub(r"^attributes #\d+ = \{", rf"\g<0> {group_bound}", text, flags=re.MULTILINE)


def _as_kernel(line: re.Match[str]) -> str:
    # A structure passed by value is read through its pointer, so the argument is only that pointer.
    return _BY_VALUE.sub("", line[0]).replace("spir_kernel", "amdgpu_kernel")


def _amd_pointer(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else f"ptr addrspace({_amd_space(match[1] or 0)})"


def _amd_space(spir_space: str | int) -> int:
    return _ADDRESS_SPACES.get(int(spir_space), int(spir_space))


_USUAL_REGISTERS = 64


@dataclass(frozen=True)
class Built:
    """A kernel that counts, in IR or compiled for this machine."""

    loaded: LoadedKernel
    plan: Plan
    layout: ResultLayout
    unset: tuple[str, ...]  # Variables that the kernel reads and nothing sets
    instrument_s: float
    text: str  # Its IR
    library_symbols: frozenset[str]
    native: str  # IR that counts nothing; empty if that is not wanted
    library: bytes = b""


@dataclass
class Clock:
    """Sums the time of ``with`` blocks."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def __enter__(self) -> None:
        self.wall_s -= time.perf_counter()
        self.cpu_s -= time.thread_time()

    def __exit__(self, *_: object) -> None:
        self.wall_s += time.perf_counter()
        self.cpu_s += time.thread_time()


@dataclass(frozen=True)
class Ran:
    """A completed run with valid counts."""

    built: Built
    threads: int
    result: RunResult
    counts: Counts
    clock: Clock  # Of reading its counts and computing metrics
    box: Box | None  # The work-groups that ran; `None` for all
    beyond: Mapping[str, tuple[int, int]]  # Bytes read before and behind buffers, by parameter
    # Buffers and variables with atomics, by address and size
    atomic_memory: frozenset[tuple[int, int]]


def describe_launch(launch: Launch, ran: Ran) -> dict[str, object]:
    """Describe sizes, arguments, operations and bytes of a launch (docs/metrics.md)."""
    plan, layout, counts = ran.built.plan, ran.built.layout, ran.counts
    geometry = launch_geometry(launch, ran.built, ran.box)
    beyond = {name: {"before": before, "behind": behind} for name, (before, behind) in ran.beyond.items()}
    return {
        "global_size": list(launch.global_size),
        "local_size": list(launch.local_size),
        "global_offset": list(launch.global_offset or (0,) * len(launch.global_size)),
        **({} if launch.shared is None else {"shared_bytes": launch.shared}),
        **({"variables": sorted(launch.variables)} if launch.variables else {}),
        **({"unset_variables": list(ran.built.unset)} if ran.built.unset else {}),
        **({} if plan.waiting is None else {"groups_wait": plan.waiting.where}),
        "threads": ran.threads,
        **({} if ran.result.host is None else {"host": _describe_host(ran.result.host)}),
        "arguments": [_describe(p, a) for p, a in zip(ran.built.loaded.parameters, launch.args, strict=True)],
        "sub_groups": _sub_groups(geometry, ran),
        **({"sub_groups_estimated": True} if counts.sub_groups.overflow else {}),
        "access_patterns": {
            **counts.sub_groups.patterns(layout.sub_groups),
            "vectorized": plan.facts.vectorized,
        },
        "work_item": counts.sub_groups.walks(layout.sub_groups),
        "reuse": {
            **counts.sub_groups.reuse_bytes(
                _distinct_lines(counts), [n for (space, _), n in counts.distinct.items() if space != "local"]
            ),
            "channel_share": counts.channel_share,
        },
        "distinct_bytes": _distinct(ran),
        **({"read_beyond": beyond} if beyond else {}),
        "geometry": geometry,
        "instructions": instruction_kinds.describe(counts.kinds),
        "path": plan.facts.dependences.longest(_executions_of_longest(counts, layout))._asdict(),
        "work": {
            **dict(sorted(counts.work.items())),
            "instructions": dict(sorted(counts.classes.items())),
        },
    }


def _describe_host(host: HostTime) -> dict[str, object]:
    """Describe the kernel's uninstrumented time on this machine, with CPU and compiler."""
    return {
        "time_s": host.time_s,
        "repeats": host.repeats,
        "threads": 1,
        "cpu": environment.facts()["processor"],
        "compiler": f"llvmlite {environment.version_of('llvmlite')}",
    }


def _sub_groups(geometry: Mapping[str, Any], ran: Ran) -> dict[str, dict[str, int]]:
    counts = ran.counts
    return counts.sub_groups.by_width(
        ran.built.layout.sub_groups,
        counts.instructions - counts.opcodes["phi"],
        [geometry[f"sub_groups_{width}"] for width in SUB_GROUPS],
    )


def _distinct(ran: Ran) -> dict[str, dict[str, int]]:
    """Return distinct bytes read and written by memory, and of buffers with atomics those written.

    Of these also the lines of 128 bytes, and the `most` accesses of an address, where an atomic counts twice.
    """
    by_space: dict[str, dict[str, int]] = {}
    for (space, side), nbytes in sorted(ran.counts.distinct.items()):
        if nbytes:
            by_space.setdefault(space, {})[side] = nbytes
    if updated := sum(ran.counts.distinct_of[key][1] for key in ran.atomic_memory):
        most = max(ran.counts.most_of[key] for key in ran.atomic_memory)
        lines = sum(ran.counts.distinct_of[key][3] for key in ran.atomic_memory)
        by_space["atomics"] = {"written": updated, "lines": lines, "most": most}
    return by_space


def _distinct_lines(counts: Counts) -> dict[str, int]:
    """Return the number of lines of global memory in which accesses begin, by size."""
    local = max(counts.distinct["local", "read"], counts.distinct["local", "written"])
    return {
        str(1 << bits): sum(counts.addresses[bits].values()) - -(-local // (1 << bits)) for bits in (6, 7)
    }


def _executions_of_longest(counts: Counts, layout: ResultLayout) -> dict[str, int]:
    """Return the executions of each block by the longest work-item."""
    if counts.sub_groups.longest[0]:
        return counts.sub_groups.executions_of_longest(layout.sub_groups, layout.blocks)
    # All work-items are alike.
    items = sum(counts.totals.values())
    return {label: -(-n // items) for label, n in counts.executions.items()}


def _describe(parameter: Parameter, argument: Argument) -> dict[str, object]:
    entry: dict[str, object] = {"name": parameter.name, "type": parameter.type_name, "kind": parameter.kind}
    array = getattr(argument, "array", argument)
    if isinstance(array, np.ndarray) and parameter.kind != "value":
        entry |= {"nbytes": int(array.nbytes), "shape": list(array.shape)}
    elif parameter.kind == "local":
        entry["nbytes"] = int(getattr(argument, "nbytes", 0))
    elif isinstance(argument, np.generic) and argument.dtype.names is None:
        entry["value"] = spelled(argument.item())
    return entry


def describe_program(program: Program, compiled: LoadedProgram) -> dict[str, object]:
    """Describe the origin of a program and its compilation."""
    return {
        "path": str(program.path) if program.path else None,
        "form": program.form,
        "sha256": program.sha256,
        "compiler": compiled.compiler,
        "standard": program.standard,
        "options": list(program.options),
    }


def launch_geometry(launch: Launch, built: Built, box: Box | None = None) -> dict[str, Any]:
    """Describe what limits the work-groups of a launch, or of a box, that a compute unit holds at once.

    See docs/metrics.md.
    """
    groups, facts = group_shapes(launch, box), built.plan.facts
    dynamic = launch.shared or 0
    # Dynamic shared memory is a variable, if the kernel uses it.
    static = facts.local_bytes - (dynamic if facts.uses_dynamic_memory else 0)
    arguments = sum(argument.nbytes for argument in launch.args if isinstance(argument, Local))
    return {
        "groups": sum(groups.values()),
        "group_items": math.prod(map(min, launch.global_size, launch.local_size)),
        **{
            f"sub_groups_{size}": sum(n * -(-items // size) for items, n in groups.items())
            for size in SUB_GROUPS
        },
        "local_bytes": {"static": static, "arguments": arguments + dynamic},
        "registers": facts.registers,
        "kept_values": facts.kept_values,
        "code": facts.code,
        "private_bytes": facts.private_bytes,
        **_on_amd(built),
    }


def _on_amd(built: Built) -> dict[str, object]:
    """Registers on AMD's GPUs of a kernel that may need more than the usual."""
    if max(built.plan.facts.registers, built.plan.facts.kept_values) <= _USUAL_REGISTERS:
        return {}
    registers = amd_registers(built.loaded)
    return {} if registers is None else {"amd": asdict(registers)}


def group_shapes(launch: Launch, box: Box | None = None) -> dict[int, int]:
    """Return the number of work-groups by their number of work-items: the last ones may be smaller."""
    extents = []
    for number, (global_size, local_size) in enumerate(
        zip(launch.global_size, launch.local_size, strict=True)
    ):
        groups = -(-global_size // local_size)
        first, count = (0, groups) if box is None else (box.first[number], box.size[number])
        remainder = global_size % local_size if first + count == groups else 0
        full = count - (remainder > 0)
        extents.append([(local_size, full), (remainder, 1)] if remainder else [(local_size, full)])
    shapes: dict[int, int] = {}
    for corner in itertools.product(*extents):
        items = math.prod(size for size, _ in corner)
        if number := math.prod(n for _, n in corner):
            shapes[items] = shapes.get(items, 0) + number
    return shapes

"""Instrumentation plan of a flattened kernel, which is immutable once made."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import AccessSite
from crosscast.characterization.frontend import parameter_names
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClass,
    PointerClasses,
    accesses_of,
    address_space,
)
from crosscast.characterization.instrumentation.branch_code import plan_branches
from crosscast.characterization.instrumentation.builtin_calls import SharedNames, find_sharing, is_barrier
from crosscast.characterization.instrumentation.code import InstrumentationOptions, Names
from crosscast.characterization.instrumentation.dependence_path import Dependences
from crosscast.characterization.instrumentation.instruction_kinds import kind_of, mark_indexing
from crosscast.characterization.instrumentation.memory_layout import (
    LiveMemory,
    LocalVariables,
    PrivateArrays,
    copy_structures,
)
from crosscast.characterization.instrumentation.registers import (
    kept_values,
    mark_local_loads,
    most_live,
    private_bytes,
)
from crosscast.characterization.instrumentation.segments import Segment, Segments, cut
from crosscast.characterization.instrumentation.sub_groups import number_sites


@dataclass(frozen=True)
class KernelFacts:
    """Facts of a kernel in a profile, independent of the launch; see docs/metrics.md."""

    registers: int  # Most live values, in 32-bit units, and those that a device's compiler keeps
    kept_values: int
    code: int  # Instructions
    private_bytes: int  # Private arrays and structures of a work-item
    local_bytes: int  # Variables in local memory, without the space between them
    uses_dynamic_memory: bool  # One of them is in CUDA's dynamic shared memory
    vectorized: bool  # The loop over work-items can be vectorized
    dependences: Dependences


@dataclass(frozen=True)
class Plan:
    """Segments of a kernel, its counters, and their layout."""

    options: InstrumentationOptions
    sizes: Mapping[str, tuple[int, int]]  # Size and alignment of types
    parameters: Sequence[ir.FunctionParameter]  # Those of the kernel, and behind them its local variables
    source_names: Sequence[str]  # Names of the kernel's parameters in the program
    variables: Mapping[str, ir.GlobalVariable]
    used: frozenset[str]  # Values that some instruction uses
    classes: PointerClasses
    sites: Sequence[AccessSite]  # Static accesses
    sharing: SharedNames
    segments: Sequence[Segment]
    # Their numbers in the order of the program, if work-items may be at different cuts; else empty
    warp_order: Sequence[int]
    local: LocalVariables
    private: PrivateArrays
    live: LiveMemory
    counters: int  # Of entries into segments and of edges
    columns: Mapping[int, int]  # Column of each counter that is kept for each work-item
    alike: Mapping[int, int]  # Index of each counter that is equal for all work-items of a group
    copied: frozenset[int]  # Sites in several segments
    # For published conventions: number of the history of each source line that several branches share
    line_branches: Mapping[int, int]
    histories: int
    names: int  # Number of names given
    facts: KernelFacts

    @functools.cached_property
    def counts_fit_32_bits(self) -> bool:
        """Whether the counts of one run of a segment fit 32 bits.

        Each run must be short, and no piece of a work-item may continue across a run.
        """
        cuts = [segment.after for segment in self.segments if segment.after is not None]
        loops = any(segment.loops for segment in self.segments)
        return not loops and not self.per_warp and all(map(is_barrier, cuts))

    @property
    def count_type(self) -> str:
        """LLVM type in which a segment counts."""
        return "i32" if self.counts_fit_32_bits else "i64"

    @property
    def same_length(self) -> bool:
        """Whether all work-items are known to run the same number of instructions."""
        return not (self.has_several_segments or self.per_warp or self.segments[0].counters)

    @property
    def per_warp(self) -> bool:
        """Whether work-items may be at different cuts."""
        return bool(self.warp_order)

    @property
    def has_several_segments(self) -> bool:
        """Whether there is more than one segment."""
        return len(self.segments) > 1

    @property
    def compares_items(self) -> bool:
        """Whether work-items of a group are compared at their ends."""
        return self.has_several_segments or bool(self.columns)

    def follows_uniform(self, number: int) -> bool:
        """Whether a segment follows one that ran once for all work-items."""
        return any(segment.once and number in segment.exits.values() for segment in self.segments)

    def barrier_before(self, number: int) -> bool:
        """Whether there is a barrier before a segment."""
        after = self.segments[number].after
        return after is not None and is_barrier(after)

    def class_of(self, access: MemoryAccess) -> PointerClass:
        """Return the class of an access's pointer."""
        return self.classes.of(access.pointer, access.pointer_type)


def make_plan(module: ir.Module, function: ir.Function, options: InstrumentationOptions) -> Plan:
    """Plan the instrumentation of a flattened kernel, which is modified."""
    sizes, variables, names = module.sizes, module.globals, Names()
    source_names = parameter_names(function)
    structures = [p.name for p in function.parameters if p.structure]
    copy_structures(function, sizes)
    arguments = [parameter.name for parameter in function.parameters]
    local = LocalVariables(function, variables.values(), names)
    for instruction in function.instructions():
        accesses = accesses_of(instruction, sizes)
        instruction.accesses = [a for a in accesses if address_space(a.pointer_type)]
    same = [[arguments[position] for position in group] for group in options.same]
    classes = PointerClasses(function, variables.values(), same)
    sites = number_sites(function, classes)
    for instruction in function.instructions():
        instruction.kind = kind_of(instruction, classes, sizes)
    mark_indexing(function)
    mark_local_loads(function, sizes, joins=options.cuda)
    facts = {
        "registers": most_live(function, sizes),
        "kept_values": kept_values(function, sizes),
        "code": sum(len(block.instructions) for block in function.blocks.values()),
        "private_bytes": private_bytes(function, sizes, structures),
    }
    dependences = Dependences(function)
    used = frozenset(name for i in function.instructions() for name in i.uses())
    sharing = find_sharing(function, classes, used)
    cuts = cut(function, sizes, may_end_early=options.cuda)
    segments = cuts.segments
    private = PrivateArrays(segments, sizes)
    counters, copies = len(segments), Counter[int]()
    columns: dict[int, int] = {}
    alike: dict[int, int] = {}
    if options.counts:
        counters = _plan_counters(cuts)
        columns, alike = _plan_executions(cuts)
        copies.update(
            access.site
            for segment in segments
            for block in segment.blocks.values()
            for i in block.instructions
            for access in i.accesses
        )
    line_branches = _shared_lines(module, segments) if options.published else {}
    return Plan(
        options=options,
        sizes=sizes,
        parameters=function.parameters,
        source_names=source_names,
        variables=variables,
        used=used,
        classes=classes,
        sites=sites,
        sharing=sharing,
        segments=segments,
        warp_order=cuts.warp_order,
        local=local,
        private=private,
        live=LiveMemory(cuts.carried),
        counters=counters,
        columns=columns,
        alike=alike,
        copied=frozenset(site for site, n in copies.items() if n > 1),
        line_branches=line_branches,
        histories=len(module.branches) + len(line_branches),
        names=names.given,
        facts=KernelFacts(
            **facts,
            local_bytes=sum(local.sizes.values()),
            uses_dynamic_memory=any(
                v.address_space == 3 and " external " in v.text for v in variables.values()
            ),
            vectorized=cuts.in_step,
            dependences=dependences,
        ),
    )


def _plan_counters(cuts: Segments) -> int:
    """Choose edges to count, and the recording of branches; return the number of counters."""
    flows = [segment.successors() for segment in cuts.segments]
    inner, counters = [], len(cuts.segments)
    for segment, flow in zip(cuts.segments, flows, strict=True):
        segment.loops = graph.find_loops(flow)
        segment.order = graph.positions(flow, segment.entry, segment.loops)
        inner.append(graph.innermost(segment.loops))
        depth = {label: loop.depth for label, loop in inner[-1].items()}
        segment.placement = graph.place_counters(flow, segment.entry, set(segment.exits), depth)
        segment.first_counter = counters
        counters += len(segment.placement.counted)
    branches = plan_branches(cuts.segments, inner, cuts.uniform, per_warp=bool(cuts.warp_order))
    for segment, planned in zip(cuts.segments, branches, strict=True):
        segment.branches = planned
    return counters


def _plan_executions(cuts: Segments) -> tuple[dict[int, int], dict[int, int]]:
    """Choose the counts that are kept for each work-item, and those equal for all of a group."""
    columns: dict[int, int] = {}
    alike: dict[int, int] = {}
    for segment in cuts.segments:
        chosen = columns if cuts.warp_order else alike
        chosen[segment.number] = len(chosen)
    for segment in cuts.segments:
        chosen = alike if segment.once else columns
        for counter in segment.counters:
            chosen[counter] = len(chosen)
    return columns, alike


def _shared_lines(module: ir.Module, segments: Sequence[Segment]) -> dict[int, int]:
    """Number the histories of source lines with several branches, behind those of the branches."""
    branches = {block.terminator.branch for segment in segments for block in segment.blocks.values()}
    count = Counter(module.branches[branch][1] for branch in branches if branch is not None)
    shared = sorted(line for line, n in count.items() if n > 1)
    return {line: len(module.branches) + k for k, line in enumerate(shared)}

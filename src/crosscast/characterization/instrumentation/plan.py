"""Instrumentation plan of a flattened kernel, which is immutable once made.

It includes the memory layout of values, variables and arrays of work-items.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import MAX_ITEMS, AccessSite
from crosscast.characterization.frontend import parameter_names
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClass,
    PointerClasses,
    accesses_of,
    address_space,
    type_bytes,
)
from crosscast.characterization.instrumentation.branch_code import plan_branches
from crosscast.characterization.instrumentation.builtin_calls import is_barrier
from crosscast.characterization.instrumentation.code import Code, InstrumentationOptions, Names, Scopes
from crosscast.characterization.instrumentation.dependence_path import Dependences
from crosscast.characterization.instrumentation.inline import copy_structure
from crosscast.characterization.instrumentation.instruction_kinds import kind_of
from crosscast.characterization.instrumentation.marks import (
    mark_divisions,
    mark_indexing,
    mark_joined,
    mark_short_products,
    mark_uniform_atomics,
)
from crosscast.characterization.instrumentation.registers import (
    LinearForms,
    blocks_in_turn,
    kept_values,
    loads_behind_stores,
    mark_lanes,
    mark_local_loads,
    most_live,
    private_bytes,
)
from crosscast.characterization.instrumentation.segments import Carried, Segment, Segments, cut
from crosscast.characterization.instrumentation.sharing import SharedNames, find_sharing, waiting_load
from crosscast.characterization.instrumentation.sub_groups import number_sites

UNIFORM_STEP = 256
"""Bytes between the entering and the leaving copy of a uniform value."""

Sizes = Mapping[str, tuple[int, int]]

_LINE = 64
_VARIABLE_ALIGNMENT = 1024


def _rounded(nbytes: int, unit: int) -> int:
    return -(-nbytes // unit) * unit


class LiveMemory:
    """Memory of values that live across barriers: an array per value, with an element per work-item.

    A uniform value has one element per work-group, in two copies: the entering copy must not change while the
    segment runs, so the leaving value is stored apart, and the driver copies it.
    """

    def __init__(self, carried: Iterable[Carried]) -> None:
        self.nbytes = _LINE  # the first line has the count per work-item of a segment that ran once
        self.offsets: dict[str, int] = {}
        for value in carried:
            self.offsets[value.name] = self.nbytes
            self.nbytes += _rounded(value.nbytes * MAX_ITEMS, _LINE) + _LINE + UNIFORM_STEP

    def load(self, value: Carried, result: str, code: Code, scopes: Scopes) -> None:
        """Load a value, under the name `result`."""
        address, scope = self._address(value, code, scopes, leaving=False)
        code.do(f"{result} = load {value.type}, ptr {address}{scope}")

    def save(self, value: Carried, slot: str | None, code: Code, scopes: Scopes) -> None:
        """Save a value, from its stack slot if it has one."""
        address, scope = self._address(value, code, scopes, leaving=True)
        code.store(value.type, code.load(value.type, slot) if slot else value.name, address, scope)

    def _address(self, value: Carried, code: Code, scopes: Scopes, *, leaving: bool) -> tuple[str, str]:
        offset, index, direction = self.offsets[value.name], "%cc.wi", ""
        if value.uniform:
            offset, index = offset + leaving * UNIFORM_STEP, "0"
            direction = "out" if leaving else "in"
        address = code.at(code.at("%cc.live", offset), index, f"[{value.nbytes} x i8]")
        return address, scopes.attach(f"live{value.name}{direction}")


class LocalVariables:
    """Local variables of a kernel, each at an offset in the local memory of the thread.

    A module-level variable has one address, but every thread runs another work-group. So local
    variables become parameters, and constant expressions on them instructions.
    """

    def __init__(self, function: ir.Function, variables: Iterable[ir.GlobalVariable], names: Names) -> None:
        self._unique = names.unique
        self.nbytes = 0
        self.sizes: dict[str, int] = {}  # Bytes of each, by the name of its parameter
        self._parameters: dict[str, str] = {}
        used = {name for i in function.instructions() for name in i.symbols}
        for variable in variables:
            if variable.address_space == 3 and variable.name in used:
                name = self._parameters[variable.name] = f"%cc.var{len(self.sizes)}"
                function.parameters.append(ir.FunctionParameter("ptr addrspace(3)", name, offset=self.nbytes))
                self.sizes[name] = variable.nbytes
                self.nbytes += _rounded(max(variable.nbytes, 1), _VARIABLE_ALIGNMENT)
        if self._parameters:
            self._replace(function)

    def _replace(self, function: ir.Function) -> None:
        for block in function.blocks.values():
            block.instructions = [part for i in block.instructions for part in self._expand(i)]
        for block in function.blocks.values():
            for phi in block.phis():
                phi.incoming = [
                    (self._at_end(function.blocks[label], ir.Operand(phi.type, value)), label)
                    for value, label in phi.incoming
                ]

    def _at_end(self, block: ir.Block, operand: ir.Operand) -> str:
        value, steps = self._value(operand)
        block.instructions[-1:-1] = steps
        return value

    def _expand(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """Return an instruction, preceded by those that compute its addresses."""
        if "@" not in instruction.text:
            return [instruction]
        replacements = {operand.value: self._value(operand) for operand in instruction.operands}
        instruction.rename(lambda name: replacements[name][0] if name in replacements else name)
        return [*(step for _, steps in replacements.values() for step in steps), instruction]

    def _value(self, operand: ir.Operand) -> tuple[str, list[ir.Instruction]]:
        """Return the replacement of an operand, and the instructions that compute it."""
        if operand.value in self._parameters:
            return self._parameters[operand.value], []
        expression = operand.constant_expression
        if expression is None or self._parameters.keys().isdisjoint(ir.SYMBOL.findall(operand.value)):
            return operand.value, []
        expression.result = self._unique("x")
        return expression.result, self._expand(expression)


class PrivateArrays:
    """Private arrays and structures of a work-item.

    In a kernel of one segment they are stack slots. With several segments, an array may outlive the
    function of its segment, so that they are in memory of the work-group.
    """

    def __init__(self, segments: Sequence[Segment], sizes: Sizes) -> None:
        self.stack_bytes = 0
        """Bytes of one work-item on the stack."""
        self.nbytes = 0
        """Bytes of one work-item that live across barriers."""
        offsets: dict[str, int] = {}
        for segment in segments:
            blocks = segment.blocks.values()
            for array in [*(i for block in blocks for i in block.instructions), *segment.recompute]:
                if array.opcode != "alloca" or not array.result:
                    continue
                nbytes = type_bytes(array.operands[0].type, sizes)
                if len(segments) == 1:
                    self.stack_bytes += nbytes
                    continue
                if array.result not in offsets:
                    offsets[array.result] = self.nbytes
                    self.nbytes += _rounded(nbytes, _LINE)
                array.text = f"getelementptr i8, ptr %cc.mine, i64 {offsets[array.result]}"

    def prologue(self) -> list[str]:
        """Return instructions that compute the start of the work-item's arrays."""
        if not self.nbytes:
            return []
        return [
            f"%cc.mine.at = mul i64 %cc.wi, {self.nbytes}",
            "%cc.mine = getelementptr i8, ptr %cc.private, i64 %cc.mine.at",
        ]


def copy_structures(function: ir.Function, sizes: Sizes) -> None:
    """Give each work-item a copy of a structure that is passed by value."""
    copies: list[ir.Instruction] = []
    for position, parameter in enumerate(function.parameters):
        if type_ := parameter.structure:
            argument = f"%cc.given{position}"
            copies += copy_structure(type_, parameter.name, argument, sizes[type_][0])
            function.parameters[position] = ir.FunctionParameter("ptr", argument)
    function.entry.instructions[:0] = copies


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
    repeated_branches: frozenset[int]  # They have the same outcomes in all work-groups
    groups_alike: bool  # All branches do
    histories: int
    names: int  # Number of names given
    facts: KernelFacts
    waiting: ir.Instruction | None  # A load by which a work-group waits for another one

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

    @functools.cached_property
    def histories_repeated(self) -> frozenset[int]:
        """The histories that are the same in all work-groups, and folded at the ends of segments."""
        others = {branch for segment in self.segments for branch in segment.recorded("run", "each")}
        return self.repeated_branches - others

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
    repeated, groups_alike, repeated_branches = None, False, frozenset[int]()
    if options.uniform:
        repeated = graph.find_repeated(function.blocks, function.flow, [p.name for p in function.parameters])
        groups_alike, repeated_branches = _repeated_branches(function, repeated)
    sites = number_sites(function, classes, repeated)
    for instruction in function.instructions():
        instruction.kind = kind_of(instruction, classes, sizes)
    mark_indexing(function)
    mark_divisions(function)
    mark_short_products(function)
    mark_joined(function)
    mark_uniform_atomics(function)
    sums = LinearForms(function, sizes)
    mark_local_loads(sums)
    mark_lanes(function)
    facts = {
        "registers": most_live(function, sizes),
        "kept_values": kept_values(sums),
        "code": sum(len(block.instructions) for block in function.blocks.values()),
        "private_bytes": private_bytes(function, sizes, structures),
    }
    dependences = Dependences(function, *blocks_in_turn(sums, classes), loads_behind_stores(sums, classes))
    used = frozenset(name for i in function.instructions() for name in i.uses())
    sharing = find_sharing(function, classes, used)
    waiting = waiting_load(function)
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
        repeated_branches=frozenset() if cuts.warp_order or options.published else repeated_branches,
        groups_alike=groups_alike and not cuts.warp_order,
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
        waiting=waiting,
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
    entries = columns if cuts.warp_order else alike
    entries.update((segment.number, index) for index, segment in enumerate(cuts.segments))
    for segment in cuts.segments:
        chosen = alike if segment.once else columns
        for counter in segment.counters:
            chosen[counter] = len(chosen)
    return columns, alike


def _repeated_branches(function: ir.Function, repeated: graph.Uniformity) -> tuple[bool, frozenset[int]]:
    """Return whether all work-groups go the same way, and the branches with the same outcomes in all."""
    ends = [block for block in function.blocks.values() if block.terminator.uses()]
    others = {end.terminator.branch for end in ends if not repeated.decides_for_all(end)}
    return not others, frozenset(
        n for end in ends if (n := end.terminator.branch) is not None and n not in others
    )


def _shared_lines(module: ir.Module, segments: Sequence[Segment]) -> dict[int, int]:
    """Number the histories of source lines with several branches, behind those of the branches."""
    branches = {block.terminator.branch for segment in segments for block in segment.blocks.values()}
    count = Counter(module.branches[branch][1] for branch in branches if branch is not None)
    shared = sorted(line for line, n in count.items() if n > 1)
    return {line: len(module.branches) + k for k, line in enumerate(shared)}

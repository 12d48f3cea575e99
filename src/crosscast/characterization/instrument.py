"""From a kernel's IR to LLVM IR for this machine that runs a work-group and counts what it does.

Each segment of the kernel becomes a function of one work-item; `driver` calls it in a loop over the
work-items of a group. Counters are stack slots that LLVM keeps in registers across that loop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from crosscast.characterization import context, graph, ir
from crosscast.characterization.accesses import MemoryAccess, accesses_of, scalar_bytes
from crosscast.characterization.builtin_calls import Lowering
from crosscast.characterization.counting_loops import CountedApart, find_apart
from crosscast.characterization.frontend import byval_type
from crosscast.characterization.histories import BranchPlan, plan_branches
from crosscast.characterization.pointers import PointerClass, PointerClasses, address_space
from crosscast.characterization.prelude import Scopes
from crosscast.characterization.inline import builtin_name, parse_call
from crosscast.characterization.barriers import is_barrier
from crosscast.characterization.regions import cut
from crosscast.characterization.segments import Segment, Segments, slot_name
from crosscast.characterization.sharing import Sharing, find_sharing
from crosscast.characterization.widening import Widening
from crosscast.errors import UnsupportedError

__all__ = ["BlockCosts", "Instrumented", "Instrumenter", "Site", "Switches", "instrument"]

UNIFORM_STEP = 256
"""Bytes between what enters a segment and what leaves it, for a uniform value."""


@dataclass(frozen=True)
class Switches:
    """What to instrument, beyond the metrics.

    Parameters
    ----------
    local_size
        Work-items of a group, three numbers.
    uniform
        Every work-group is full.
    check_bounds
        Check every access against its buffer.
    published
        Also record what only the published tool's conventions need.
    small_ids
        All global ids fit 31 bits, so that LLVM can see through conversions to ``int``.
    checked
        Let counters of 4 bytes spill before they overflow.
    same
        Groups of positions of arguments that are the same buffer.
    """

    local_size: tuple[int, int, int]
    uniform: bool = True
    check_bounds: bool = False
    published: bool = False
    checked: bool = False
    small_ids: bool = True
    same: tuple[tuple[int, ...], ...] = ()


@dataclass
class BlockCosts:
    """What one execution of a block costs, and how to know how often it ran.

    Parameters
    ----------
    executions
        Coefficient of each counter in the number of executions.
    opcodes
        Executed instructions by opcode.
    widths
        Executed instructions by width of the result.
    reads, writes
        Access events by address space.
    plain
        Load and store instructions by address space.
    private
        Load and store instructions to private memory.
    branch
        Static branch at its end, ``None`` if there is none.
    barriers
        Barriers hit.
    """

    executions: dict[int, int]
    opcodes: Counter[str] = field(default_factory=Counter)
    widths: Counter[int] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    plain: Counter[str] = field(default_factory=Counter)
    private: int = 0
    branch: int | None = None
    barriers: int = 0


@dataclass(frozen=True)
class Site:
    """A place in the program that can fault: what is accessed there."""

    line: int
    root: str
    write: bool
    nbytes: int


@dataclass
class Instrumented:
    """The product.

    Parameters
    ----------
    functions
        IR of the segments.
    segments
        What they were made from.
    counters
        Number of counters; the first ones are the entries into each segment.
    edge_counters
        Number of counters of edges and entries among them; these come first.
    counters_of
        Numbers of the edge counters of each segment.
    collective_codes
        What the runtime has to do before a segment that follows a collective, and the type.
    blocks
        Costs of every block of every segment.
    rows
        Branches of each segment whose outcomes go to rows.
    cells
        Branches of each segment that have one outcome for all work-items.
    apart
        For each segment, how many accesses are counted in loops of their own.
    in_memory
        Branches whose history is kept in memory.
    line_branches
        For published conventions: number of the history of each source line that several branches
        share.
    conditional_writes
        Counter of the successful exchanges, by address space.
    narrow
        Counters of one group fit 32 bits.
    lowering
        Builtins that are used, and what they need.
    scopes
        Alias scopes.
    classes
        Pointer classes.
    sites
        Places that can fault, by number.
    private_bytes
        Private memory of one work-item that lives across barriers.
    stack_bytes
        Private memory of one work-item on the stack.
    live_bytes
        Memory of one work-group's values that live across barriers.
    live_offsets
        Where in that memory each value stands.
    local_bytes
        Local memory of the program's local variables.
    order_counter
        Counter of the published tool's freedom to reorder, if asked for.
    histories
        Number of branch histories.
    parameters, names
        The kernel's parameters, and their names in the source.
    granules
        Bytes that one counter stands for, by parameter or variable.
    sharing
        What it does to the memory of its parameters and variables.
    local_variables
        (number, offset) of the program's local variables.
    variables
        The program's variables.
    """

    functions: str
    segments: Segments
    counters: int
    edge_counters: int
    counters_of: list[range]
    collective_codes: dict[int, tuple[int, int]]
    blocks: list[BlockCosts]
    rows: list[list[int]]
    cells: list[list[int]]
    apart: dict[int, int]
    in_memory: list[int]
    line_branches: dict[int, int]
    conditional_writes: dict[int, str]
    narrow: bool
    lowering: Lowering
    scopes: Scopes
    classes: list[PointerClass]
    sites: list[Site]
    private_bytes: int
    stack_bytes: int
    live_bytes: int
    live_offsets: dict[str, int]
    local_bytes: int
    order_counter: int | None
    histories: int
    parameters: list[ir.Parameter]
    names: list[str]
    granules: dict[str, int]
    sharing: Sharing
    local_variables: dict[str, tuple[int, int]]
    variables: dict[str, ir.GlobalVariable]

    def parameter_granule(self, position: int) -> tuple[int, bool]:
        """Granule of a pointer parameter's counters, and whether the order of its accesses matters not."""
        name = self.parameters[position].name
        return self.granules.get(name, 4), name in self.sharing.commuting

    def access_weights(self) -> list[int]:
        """Accesses that one count of each counter stands for."""
        weights = [0] * max(self.counters, 1)
        for block in self.blocks:
            accesses = sum(block.reads.values()) + sum(block.writes.values())
            for number, sign in block.executions.items():
                weights[number] += sign * accesses
        return weights

    def is_written(self, position: int) -> bool:
        """Whether the kernel may write to a parameter's buffer."""
        return self.parameters[position].name in self.sharing.written

    def is_constant(self, position: int) -> bool:
        """Whether a parameter points to constant memory."""
        return address_space(self.parameters[position].type) == 2

    def is_pointer(self, position: int) -> bool:
        """Whether a parameter is a pointer to a buffer."""
        return address_space(self.parameters[position].type) in (1, 2)

    def parameter_name(self, position: int) -> str:
        """Name of a parameter in the source."""
        return self.names[position]

    def variable_regions(self) -> list[list[Any]]:
        """Regions of the program's variables: name, size, granule, place, and three flags."""
        return [
            [
                *(variable.name.removeprefix("@").strip('"'), variable.nbytes),
                *(self.granules.get(name, 4), 1, int(variable.address_space == 2), 0, 0),
            ]
            for name, variable in self.variables.items()
            if variable.address_space != 3 and variable.nbytes
        ]

    def local_regions(self) -> list[list[int]]:
        """Regions of the local variables: offset, size, granule, place, and three flags."""
        return [
            [offset, self.variables[name].nbytes, self.granules.get(name, 4), 2, 0, 0, 0]
            for name, (_, offset) in self.local_variables.items()
        ]


def instrument(module: ir.Module, function: ir.Function, switches: Switches) -> Instrumented:
    """Instrument a flattened kernel.

    Parameters
    ----------
    module
        The program it belongs to.
    function
        The kernel, without calls of defined functions; it is taken apart.
    switches
        What to do.
    """
    return Instrumenter(module, function, switches).run()


class Instrumenter:
    """Instruments one kernel."""

    def __init__(self, module: ir.Module, function: ir.Function, switches: Switches) -> None:
        self.module, self.function, self.switches = module, function, switches
        self.serial = 0
        _copy_structures(function, module.sizes)
        self.used = {name for i in function.instructions() for name in i.uses()}
        self.used |= {n for i in function.instructions() for v, _ in i.incoming for n in ir.LOCAL.findall(v)}
        self.lowering = Lowering(module, self)
        names = [p.name for p in function.parameters]
        for instruction in function.instructions():
            found = accesses_of(instruction, module.sizes)
            instruction.accesses = [a for a in found if address_space(a.pointer_type)]
        self.classes = PointerClasses(
            function,
            module.globals,
            [(a.pointer, a.pointer_type, a.alignment) for i in function.instructions() for a in i.accesses],
            [[names[position] for position in group] for group in switches.same],
        )
        self.arrays = [i for i in function.instructions() if i.opcode == "alloca" and i.text]
        self.sharing = find_sharing(function, self.classes, self.is_used)
        self.scopes = Scopes()
        self.sites: list[Site] = []
        self.blocks: list[BlockCosts] = []
        self.conditional_writes: dict[int, str] = {}
        self.apart: dict[int, int] = {}
        self.private_bytes = 0
        self.private_offsets: dict[str, int] = {}
        self.order: int | None = None
        self.uniform_carried: set[str] = set()
        self.local_variables: dict[str, tuple[int, int]] = {}
        self.local_bytes = 0
        used = {n for i in function.instructions() for n in _globals_in(i)}
        for name, variable in module.globals.items():
            if variable.address_space == 3 and name in used:
                self.local_variables[name] = (len(self.local_variables), self.local_bytes)
                self.local_bytes += -(-max(variable.nbytes, 1) // 1024) * 1024
        names_ = sorted(self.local_variables, key=len, reverse=True)
        self._variable = (
            re.compile("(?:" + "|".join(map(re.escape, names_)) + r")(?![-a-zA-Z$._0-9])") if names_ else None
        )

    def run(self) -> Instrumented:
        segments = cut(self.function, self.module.sizes)
        self.several = len(segments.segments) > 1
        self.after = {s.number: s.after for s in segments.segments if s.after is not None}
        if self.several:
            self._place_private(segments)
        self.led = {n for s in segments.segments if s.once for n in s.exits.values()}
        # The first place holds what the segment that ran once counted for each work-item.
        self.live_offsets, self.live_sizes, self.live_bytes = {}, {}, 64
        for carried in segments.carried:
            self.live_offsets[carried.name] = self.live_bytes
            self.live_sizes[carried.name] = carried.nbytes
            if carried.uniform:
                self.uniform_carried.add(carried.name)
            self.live_bytes += -(-carried.nbytes * context.MAX_ITEMS // 64) * 64 + 64 + UNIFORM_STEP
        flows = [s.successors() for s in segments.segments]
        loops = [graph.find_loops(flow) for flow in flows]
        inner = [graph.innermost(found) for found in loops]
        plans = plan_branches(segments.segments, inner, segments.uniform)
        collectives = any(not is_barrier(after) for after in self.after.values())
        self.narrow = not any(loops) and not collectives
        self.counters = len(segments.segments)
        lines = self._shared_lines(segments) if self.switches.published else {}
        placements = []
        for segment, flow, depth in zip(segments.segments, flows, inner, strict=True):
            place = graph.place_counters(
                flow, segment.entry, set(segment.exits), {b: loop.depth for b, loop in depth.items()}
            )
            placements.append((place, self.counters))
            self.counters += len(place.counted)
        edge_counters = self.counters
        texts = []
        for number, segment in enumerate(segments.segments):
            emitter = _SegmentEmitter(self, segment, plans[number], loops[number], lines)
            texts.append(emitter.emit(*placements[number]))
        rows, cells = (
            [
                sorted({segment.blocks[b].terminator.branch or 0 for b, p in plan.items() if p.way == way})
                for segment, plan in zip(segments.segments, plans, strict=True)
            ]
            for way in ("row", "cell")
        )
        in_memory = sorted(
            {
                segment.blocks[b].terminator.branch or 0
                for segment, plan in zip(segments.segments, plans, strict=True)
                for b, p in plan.items()
                if p.way != "each"
            }
        )
        stack_bytes = 0 if self.several else sum(_alloca_bytes(i, self.module.sizes) for i in self.arrays)
        return Instrumented(
            functions="\n".join(texts),
            segments=segments,
            counters=self.counters,
            edge_counters=edge_counters,
            counters_of=[
                range(first, first + len(place.counted)) for place, first in placements
            ],
            collective_codes={
                number: _collective_code(after)
                for number, after in self.after.items()
                if not is_barrier(after)
            },
            blocks=self.blocks,
            rows=rows,
            cells=cells,
            apart=self.apart,
            in_memory=in_memory,
            line_branches=lines,
            conditional_writes=self.conditional_writes,
            narrow=self.narrow,
            lowering=self.lowering,
            scopes=self.scopes,
            classes=self.classes.all(),
            sites=self.sites,
            private_bytes=self.private_bytes,
            stack_bytes=stack_bytes,
            live_bytes=self.live_bytes,
            live_offsets=self.live_offsets,
            local_bytes=self.local_bytes,
            order_counter=self.order,
            parameters=list(self.function.parameters),
            names=[p.name.lstrip("%") for p in self.function.parameters],
            granules=self.classes.granules(),
            sharing=self.sharing,
            local_variables=self.local_variables,
            variables=self.module.globals,
            histories=len(self.module.branches) + len(lines),
        )

    def _shared_lines(self, segments: Segments) -> dict[int, int]:
        """Histories of source lines with several branches, numbered behind those of the branches."""
        branches = {b.terminator.branch for s in segments.segments for b in s.blocks.values()} - {None}
        count = Counter(self.module.branches[b][1] for b in branches if b is not None)
        shared = sorted(line for line, n in count.items() if n > 1)
        return {line: len(self.module.branches) + k for k, line in enumerate(shared)}

    def _place_private(self, segments: Segments) -> None:
        """Give private arrays a place in memory, since they outlive a segment."""
        for instruction in (i for s in segments.segments for b in s.blocks.values() for i in b.instructions):
            if instruction.opcode == "alloca" and instruction.result and instruction.text:
                self._private_offset(instruction)

    def _private_offset(self, instruction: ir.Instruction) -> int:
        assert instruction.result is not None
        if instruction.result not in self.private_offsets:
            self.private_offsets[instruction.result] = self.private_bytes
            self.private_bytes += -(-_alloca_bytes(instruction, self.module.sizes) // 64) * 64
        return self.private_offsets[instruction.result]

    def is_used(self, instruction: ir.Instruction) -> bool:
        """Whether anything uses the result of an instruction."""
        return instruction.result in self.used

    def class_of(self, access: MemoryAccess) -> PointerClass:
        """Class of the pointer of an access."""
        return self.classes.of(access.pointer, access.pointer_type)

    def add_site(self, instruction: ir.Instruction, access: MemoryAccess, root: str | None = None) -> int:
        """Number of a new place that can fault."""
        self.sites.append(Site(instruction.line, root or "", access.kind != "read", access.nbytes))
        return len(self.sites) - 1

    def carried_offset(self, name: str) -> int:
        """Byte offset of a carried value's array; an array has room for the largest group."""
        return self.live_offsets[name]

    def carried_size(self, name: str) -> int:
        """Bytes of a carried value."""
        return self.live_sizes[name]

    def order_counter(self) -> int:
        """Counter that adds up where each work-item's last load or store stood."""
        if self.order is None:
            self.order = self.counters
            self.counters += 1
        return self.order

    def local_slots(self) -> list[tuple[int, int]]:
        """(number, byte offset) of each local variable of the program."""
        return [(number, offset) for number, offset in self.local_variables.values()]

    def expand(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """Replace local variables by their place in this thread's memory.

        Constant expressions on them become instructions, which stand before the instruction itself.
        """
        steps: list[ir.Instruction] = []
        while match := self._variable.search(instruction.text) if self._variable else None:
            text = instruction.text
            number, _ = self.local_variables[match[0]]
            opening = ir.enclosing(text, match.start())
            if opening < 0 or not (keyword := _CONSTANT_HEAD.search(text[:opening])):
                instruction.text = f"{text[: match.start()]}%cc.var{number}{text[match.end() :]}"
                continue
            inside, rest = ir.bracketed(text, opening)
            inside = inside.replace(match[0], f"%cc.var{number}", 1)
            name = self.unique("x")
            steps.append(ir.Instruction(f"{keyword[0].strip()} {inside}", "cc", "", name, counted=False))
            instruction.text = f"{text[: keyword.start()]}{name}{rest}"
        expanded = [piece for step in steps for piece in self.expand(step)]
        return [*expanded, instruction]

    def unique(self, stem: str) -> str:
        """Return a local name that nothing else has."""
        self.serial += 1
        return f"%cc.{stem}{self.serial}"


_CONSTANT_HEAD = re.compile(
    r"(getelementptr(?: inbounds| nuw| nusw| inrange\([^)]*\))*|addrspacecast|bitcast|ptrtoint|ptrtoaddr|trunc|add|sub|xor) ?$"
)
_GLOBAL = re.compile(r'@(?:"[^"]*"|[-a-zA-Z$._0-9]+)')


def _globals_in(instruction: ir.Instruction) -> list[str]:
    texts = [instruction.text, *(value for value, _ in instruction.incoming)]
    return [name for text in texts for name in _GLOBAL.findall(text)]


def _alloca_bytes(instruction: ir.Instruction, sizes: dict[str, tuple[int, int]]) -> int:
    """Bytes of a stack slot: an array of a scalar, vector or structure type."""
    return type_bytes(ir.split_top_level(instruction.text.removeprefix("alloca "))[0], sizes)


def type_bytes(type_: str, sizes: dict[str, tuple[int, int]]) -> int:
    """Size of a type, arrays of known types included."""
    if array := re.fullmatch(r"\[(\d+) x (.*)\]", type_):
        return int(array[1]) * type_bytes(array[2], sizes)
    return sizes[type_][0] if type_ in sizes else scalar_bytes(type_)


def _copy_structures(function: ir.Function, sizes: dict[str, tuple[int, int]]) -> None:
    """Give each work-item its own copy of a structure that is passed by value."""
    copies: list[ir.Instruction] = []
    for position, parameter in enumerate(function.parameters):
        if type_ := byval_type(parameter):
            given = f"%cc.given{position}"
            copies.append(
                ir.Instruction(f"alloca {type_}, align 16", "alloca", "ptr", parameter.name, counted=False)
            )
            text = (
                f"call void @llvm.memcpy.p0.p0.i64(ptr {parameter.name}, ptr {given}, "
                f"i64 {sizes[type_][0]}, i1 false)"
            )
            copies.append(ir.Instruction(text, "call", counted=False))
            function.parameters[position] = ir.Parameter("ptr", "", given)
    function.entry.instructions[:0] = copies


class _SegmentEmitter:
    """Writes the function of one segment."""

    def __init__(
        self,
        owner: Instrumenter,
        segment: Segment,
        plans: dict[str, BranchPlan],
        loops: list[graph.Loop],
        lines: dict[int, int],
    ) -> None:
        self.owner, self.segment, self.plans, self.loops, self.lines = owner, segment, plans, loops, lines
        self.flow = segment.successors()
        self.predecessors: dict[str, list[str]] = {label: [] for label in segment.blocks}
        for label, successors in self.flow.items():
            for successor in successors:
                self.predecessors[successor].append(label)
        self.slots: list[str] = []
        self.count = "i32" if owner.narrow else "i64"

    # -- small pieces of text

    def _slot(self, stem: str, type_: str, value: str = "0") -> str:
        name = self.owner.unique(stem)
        self.slots += [f"  {name} = alloca {type_}", f"  store {type_} {value}, ptr {name}"]
        return name

    def _add(self, slot: str, type_: str, amount: str = "1") -> list[str]:
        old, new = self.owner.unique("v"), self.owner.unique("v")
        return [
            f"{old} = load {type_}, ptr {slot}",
            f"{new} = add {type_} {old}, {amount}",
            f"store {type_} {new}, ptr {slot}",
        ]

    def _insert(self, label: str, texts: list[str], *, at_end: bool) -> None:
        block = self.segment.blocks[label]
        position = len(block.instructions) - 1 if at_end else sum(1 for _ in block.phis())
        block.instructions[position:position] = [ir.Instruction(text, "cc", counted=False) for text in texts]

    def _on_edge(self, edge: graph.Edge, texts: list[str]) -> None:
        """Execute `texts` whenever control goes along an edge."""
        source, target = edge
        if target == graph.EXIT or len(self.flow[source]) == 1:
            self._insert(source, texts, at_end=True)
        elif len(self.predecessors[target]) == 1 and target != self.segment.entry:
            self._insert(target, texts, at_end=False)
        else:
            self._insert(self._split(source, target), texts, at_end=True)

    def _split(self, source: str, target: str) -> str:
        label = self.owner.unique("edge")
        jump = ir.Instruction(f"br label {target}", "br", counted=False)
        blocks = self.segment.blocks
        blocks[label] = ir.Block(label, [jump])
        blocks[source].terminator.retarget(target, label)
        for phi in blocks[target].phis():
            kept = list(dict.fromkeys((v, label if p == source else p) for v, p in phi.incoming))
            phi.incoming = kept
        self.flow[source] = [label if s == target else s for s in self.flow[source]]
        self.flow[label] = [target]
        self.predecessors[label] = [source]
        self.predecessors[target] = [label if p == source else p for p in self.predecessors[target]]
        self.edges[source, target] = label
        return label

    # -- the function

    def emit(self, placement: graph.Placement, first: int) -> str:
        """Return the segment's function.

        Parameters
        ----------
        placement
            Edges to count.
        first
            Number of the first counter of this segment.
        """
        self.edges: dict[graph.Edge, str] = {}
        blocks = self.segment.blocks.values()
        self.widening = Widening((i for b in blocks for i in b.instructions), self.owner.unique)
        owner, segment = self.owner, self.segment
        costs = self._costs(placement, first)
        owner.blocks += costs.values()
        weights: Counter[int] = Counter()
        for label, cost in costs.items():
            for number, sign in placement.blocks[label].items():
                weights[number] += sign * sum(cost.opcodes.values())
        self.published = _Published(self, costs) if owner.switches.published else None
        apart = self._count_apart()
        self.apart = {id(a.instruction) for a in apart}
        owner.apart[segment.number] = len(apart)
        loops = [self._counting_function(number, access) for number, access in enumerate(apart)]
        for block in list(segment.blocks.values()):
            self._access_counters(block)
        if self.published:
            self.published.insert()
        counters = []
        branches = self._plan_edges()
        for number, edge in enumerate(placement.counted):
            counters.append(self._slot("c", self.count))
            branches.append((edge, self._add(counters[number], self.count)))
        for edge, texts in branches:
            self._on_edge_now(edge, texts)
        self._leave()
        body = self._render()
        return "\n".join(
            [
                *loops,
                self._header(f"i32 @cc.segment{segment.number}"),
                "cc.start:",
                *self.slots,
                *self._prologue(),
                f"  br label {segment.entry}",
                *body,
                "cc.exit:",
                *self._epilogue(counters, first, weights),
                "}",
            ]
        )

    def _on_edge_now(self, edge: graph.Edge, texts: list[str]) -> None:
        """Like `_on_edge`, for an edge that may have been split already."""
        middle = self.edges.get(edge)
        if middle is not None:
            self._insert(middle, texts, at_end=True)
        else:
            self._on_edge(edge, texts)

    def _costs(self, placement: graph.Placement, first: int) -> dict[str, BlockCosts]:
        found = {}
        for label, block in self.segment.blocks.items():
            executions = {
                self.segment.number if number < 0 else first + number: sign
                for number, sign in placement.blocks[label].items()
            }
            cost = BlockCosts(executions, branch=block.terminator.branch)
            for instruction in block.instructions:
                if instruction.counted:
                    self._add_cost(cost, instruction)
            if label in self.segment.exits and self.segment.exits[label]:
                after = self.owner.after.get(self.segment.exits[label])
                cost.barriers = int(after is not None and is_barrier(after))
            found[label] = cost
        return found

    def _add_cost(self, cost: BlockCosts, instruction: ir.Instruction) -> None:
        cost.opcodes[instruction.opcode] += 1
        cost.widths[instruction.width] += 1
        plain = instruction.opcode in ("load", "store")
        if plain and not instruction.accesses:
            cost.private += 1
        for access in instruction.accesses:
            cls = self.owner.class_of(access)
            if cls.place in ("dynamic", "private") or access.repeated:
                cost.private += plain and cls.place == "private"
                continue
            space = _space(access, cls)
            if access.kind != "write":
                cost.reads[space] += 1
            if access.kind in ("write", "read-write"):
                cost.writes[space] += 1
            if plain:
                cost.plain[space] += 1

    # -- memory

    def _access_counters(self, block: ir.Block) -> None:
        rewritten: list[ir.Instruction] = []
        for instruction in block.instructions:
            before: list[str] = []
            after: list[str] = []
            now = [
                a for a in accesses_of(instruction, self.owner.module.sizes) if address_space(a.pointer_type)
            ]
            for origin, access in zip(instruction.accesses, now, strict=True):
                cls = self.owner.class_of(origin)
                if cls.place == "private" or access.repeated:
                    continue
                address, steps = self._address(access)
                before += steps
                if self.owner.switches.check_bounds:
                    before += self._check(instruction, access, cls, address)
                if id(instruction) in self.apart:
                    continue
                if access.kind == "compare-exchange":
                    after += self._count_exchange(instruction, access, cls, address)
                else:
                    before += self._count(access, cls, address, instruction)
            lowered = self._lower(instruction)
            rewritten += [ir.Instruction(t, "cc", counted=False) for t in before]
            rewritten += self._with_scopes(instruction, lowered)
            rewritten += [ir.Instruction(t, "cc", counted=False) for t in after]
        block.instructions = rewritten

    def _with_scopes(self, original: ir.Instruction, lowered: list[ir.Instruction]) -> list[ir.Instruction]:
        if original.opcode in ("load", "store") and original.text and original.accesses:
            cls = self.owner.class_of(original.accesses[0])
            if cls.place in ("buffer", "local", "global"):
                lowered[-1].text += self.owner.scopes.attach(f"data{cls.number}")
        return lowered

    def _address(self, access: MemoryAccess) -> tuple[str, list[str]]:
        if access.index is None:
            return access.pointer, []
        type_, value = access.index
        wide, offset, address = (self.owner.unique("a") for _ in range(3))
        widen = f"{wide} = add i64 {value}, 0" if type_ == "i64" else f"{wide} = sext {type_} {value} to i64"
        return address, [
            widen,
            f"{offset} = mul i64 {wide}, {access.stride}",
            f"{address} = getelementptr i8, {access.pointer_type} {access.pointer}, i64 {offset}",
        ]

    def _count(
        self, access: MemoryAccess, cls: PointerClass, address: str, instruction: ir.Instruction
    ) -> list[str]:
        read, write = access.kind != "write", access.kind != "read"
        if cls.place == "dynamic":
            plain = instruction.opcode in ("load", "store")
            flags = read + 2 * write + 4 * plain
            return [
                f"call void @cc_count_dynamic(ptr %cc.ctx, ptr {address}, i32 {flags}, i32 {cls.granule})"
            ]
        bits = 8 * cls.granule
        flags = read * (1 << (bits - 2)) + write * (1 << (bits - 1))
        return self._add_to_counter(cls, address, str(_signed(flags, bits)), str(read + write))

    def _add_to_counter(self, cls: PointerClass, address: str, flags: str, amount: str) -> list[str]:
        """Count accesses to an address: the sum in the low bits, read and written in the highest two."""
        owner, bits = self.owner, 8 * cls.granule
        if not self._in_place(cls):
            return [
                f"call void @{owner.scopes.counter(cls)}(ptr %cc.ctx, ptr {address}, "
                f"i64 %cc.shift_{cls.place}, i{bits} {flags}, i{bits} {amount})"
            ]
        # In place rather than in a function: inlining would give the scopes new identities.
        scope = f", align {cls.granule}{owner.scopes.attach(f'counter{cls.number}')}"
        counter, old, total, new = (owner.unique("k") for _ in range(4))
        return [
            f"{counter} = getelementptr i8, ptr {address}, i64 %cc.shift_{cls.place}",
            f"{old} = load i{bits}, ptr {counter}{scope}",
            f"{total} = add i{bits} {old}, {amount}",
            f"{new} = or i{bits} {total}, {flags}",
            f"store i{bits} {new}, ptr {counter}{scope}",
        ]

    def _lower(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        if instruction.opcode in ("call", "atomicrmw", "cmpxchg"):
            return self.owner.lowering.lower(instruction)
        return self.widening.widen(instruction)

    def _in_place(self, cls: PointerClass) -> bool:
        """Whether counters of a class are so wide that they need not be looked after."""
        return cls.granule == 8 or (cls.granule == 4 and not self.owner.switches.checked)

    def _count_exchange(
        self, instruction: ir.Instruction, access: MemoryAccess, cls: PointerClass, address: str
    ) -> list[str]:
        wrote, steps = self._success(instruction, access)
        wide = self.owner.unique("w")
        if cls.place == "dynamic":
            flags = self.owner.unique("w")
            return [
                *steps,
                f"{wide} = zext i1 {wrote} to i32",
                f"{wide}.2 = shl i32 {wide}, 1",
                f"{flags} = or i32 {wide}.2, 1",
                f"call void @cc_count_dynamic(ptr %cc.ctx, ptr {address}, i32 {flags}, i32 {cls.granule})",
            ]
        bits = 8 * cls.granule
        flags, amount = self.owner.unique("w"), self.owner.unique("w")
        both = _signed(3 << (bits - 2), bits)
        number = self._conditional_counter(_space(access, cls))
        return [
            *steps,
            f"{wide} = zext i1 {wrote} to i{bits}",
            f"{amount} = add i{bits} {wide}, 1",
            f"{flags} = select i1 {wrote}, i{bits} {both}, i{bits} {_signed(1 << (bits - 2), bits)}",
            *self._add_to_counter(cls, address, flags, amount),
            f"call void @cc.count_if(ptr %cc.ctx, i64 {8 * number}, i1 {wrote})",
        ]

    def _success(self, instruction: ir.Instruction, access: MemoryAccess) -> tuple[str, list[str]]:
        wrote = self.owner.unique("ok")
        result = instruction.result
        if result is None:
            result = instruction.result = self.owner.unique("old")
        if access.success == "pair":
            return wrote, [f"{wrote} = extractvalue {instruction.type} {result}, 1"]
        if access.success == "result":
            return wrote, [
                f"{wrote} = trunc {instruction.type} {result} to i1"
            ] if instruction.type != "i1" else [f"{wrote} = or i1 {result}, false"]
        expected = ir.split_top_level(ir.bracketed(instruction.text, instruction.text.index("("))[0])[1]
        return wrote, [f"{wrote} = icmp eq {instruction.type} {result}, {ir.split_typed(expected)[1]}"]

    def _conditional_counter(self, space: str) -> int:
        number = self.owner.counters
        self.owner.counters += 1
        self.owner.conditional_writes[number] = space
        return number

    def _check(
        self, instruction: ir.Instruction, access: MemoryAccess, cls: PointerClass, address: str
    ) -> list[str]:
        number = self.owner.add_site(instruction, access, cls.root)
        write = access.kind != "read"
        length = f"i64 {access.length or access.nbytes}"
        if access.length and not access.length.isdigit():
            length = f"i64 {access.length}"
        return [
            f"call void @cc_check(ptr %cc.ctx, ptr {address}, {length}, i32 {number}, "
            f"i32 {int(write)}, i64 %cc.wi)"
        ]

    # -- branches

    def _plan_edges(self) -> list[tuple[graph.Edge, list[str]]]:
        """Texts that record branch histories, by edge; straight code is inserted right away."""
        pending: list[tuple[graph.Edge, list[str]]] = []
        self.rows: list[tuple[int, str, str]] = []
        for label, plan in self.plans.items():
            end = self.segment.blocks[label].terminator
            branch = end.branch
            assert branch is not None
            condition = end.text.removeprefix("br i1 ").split(",")[0]
            if end.line in self.lines:
                self._insert(label, self._each(self.lines[end.line], condition, invert=True), at_end=True)
            if plan.way == "each":
                self._insert(label, self._each(branch, condition, invert=False), at_end=True)
            elif plan.way == "lead":
                bit = self.owner.unique("bit")
                texts = [f"{bit} = zext i1 {condition} to i32"]
                texts.append(f"call void @cc_lead_outcome(ptr %cc.ctx, i32 {branch}, i32 {bit})")
                self._insert(label, texts, at_end=True)
            elif plan.way in ("cell", "row"):
                row = self._slot("row", "i8", "2")
                bit = self.owner.unique("bit")
                texts = [f"{bit} = zext i1 {condition} to i8", f"store i8 {bit}, ptr {row}"]
                self._insert(label, texts, at_end=True)
                self.rows.append((branch, row, plan.way))
            else:
                pending += self._run(label, branch, plan, end)
        return pending

    def _each(self, history: int, condition: str, *, invert: bool) -> list[str]:
        texts = []
        if invert:
            flipped = self.owner.unique("bit")
            texts.append(f"{flipped} = xor i1 {condition}, true")
            condition = flipped
        owner = self.owner
        past_scope, table_scope = owner.scopes.attach("past"), owner.scopes.attach("table")
        past, table, now, bit, moved, outcomes, entry, old, new, full, low, last, then = (
            owner.unique("h") for _ in range(13)
        )
        return [
            *texts,
            f"{past} = getelementptr i8, ptr %cc.past, i64 {8 * history}",
            f"{table} = getelementptr i8, ptr %cc.tables, i64 {context.TABLE_BYTES * history}",
            f"{now} = load i64, ptr {past}{past_scope}",
            f"{bit} = zext i1 {condition} to i64",
            f"{moved} = shl i64 {now}, 1",
            f"{outcomes} = or i64 {moved}, {bit}",
            f"{entry} = getelementptr i64, ptr {table}, i64 {outcomes}",
            f"{old} = load i64, ptr {entry}{table_scope}",
            f"{new} = add i64 {old}, 1",
            f"store i64 {new}, ptr {entry}{table_scope}",
            f"{full} = icmp uge i64 {outcomes}, {2 << context.WINDOW}",
            f"{low} = and i64 {outcomes}, {(1 << context.WINDOW) - 1}",
            f"{last} = or i64 {low}, {1 << context.WINDOW}",
            f"{then} = select i1 {full}, i64 {last}, i64 {outcomes}",
            f"store i64 {then}, ptr {past}{past_scope}",
        ]

    def _run(
        self, label: str, branch: int, plan: BranchPlan, end: ir.Instruction
    ) -> list[tuple[graph.Edge, list[str]]]:
        assert plan.loop is not None
        length = self._slot("run", "i64")
        stay_bit = int(ir.branch_targets(end)[0] == plan.stay)
        history = self.owner.unique("h")
        address = f"{history} = getelementptr i8, ptr %cc.histories, i64 {context.HISTORY_BYTES * branch}"
        pending: list[tuple[graph.Edge, list[str]]] = [((label, plan.stay), self._add(length, "i64"))]
        for source in sorted(plan.loop.blocks):
            targets = [t for t in self.flow[source] if t not in plan.loop.blocks]
            if source in self.segment.exits:
                targets.append(graph.EXIT)
            for target in targets:
                now, where = self.owner.unique("n"), self.owner.unique("h")
                leaves = source == label
                call = "cc.leave_loop" if leaves else "cc.end_run"
                pending.append(
                    (
                        (source, target),
                        [
                            address.replace(history, where),
                            f"{now} = load i64, ptr {length}",
                            f"call void @{call}(ptr {where}, i64 {now}, i64 {stay_bit})",
                            f"store i64 0, ptr {length}",
                        ],
                    )
                )
        return pending

    # -- ends

    def _leave(self) -> None:
        """Let every leaving block save what it carries and go to the common exit."""
        self.next = self._slot("next", "i32")
        self.barrier = self._slot("barrier", self.count)  # belongs to no piece between barriers
        for label, following in self.segment.exits.items():
            block = self.segment.blocks[label]
            texts = []
            for carried in self.segment.save.get(label, []):
                texts += self._carry(carried.name, carried.type, store=True)
            if following:
                texts += self._exchange_in(self.owner.after.get(following))
                if following in self.owner.after and is_barrier(self.owner.after[following]):
                    texts.append(f"store {self.count} 1, ptr {self.barrier}")
            texts.append(f"store i32 {following}, ptr {self.next}")
            if block.terminator.opcode != "unreachable":
                block.instructions[-1:] = [
                    *(ir.Instruction(t, "cc", counted=False) for t in texts),
                    ir.Instruction("br label %cc.exit", "br", counted=False),
                ]

    def _carry(self, name: str, type_: str, *, store: bool) -> list[str]:
        owner = self.owner
        value = name
        if store and name in self.segment.slots:
            value = owner.unique("v")
        base, address = owner.unique("p"), owner.unique("p")
        size, offset = owner.carried_size(name), owner.carried_offset(name)
        index = "%cc.wi"
        scope = owner.scopes.attach(f"live{name}")
        if name in owner.uniform_carried:
            # What enters and what leaves stand apart, so that what enters stays while the segment runs.
            index = "0"
            offset += store * UNIFORM_STEP
            scope = owner.scopes.attach(f"live{name}{store}")
        texts = [
            f"{base} = getelementptr i8, ptr %cc.live, i64 {offset}",
            f"{address} = getelementptr [{size} x i8], ptr {base}, i64 {index}",
        ]
        if not store:
            return [*texts, f"{entering(name, self.segment)} = load {type_}, ptr {address}{scope}"]
        if value != name:
            texts.append(f"{value} = load {type_}, ptr {slot_name(name)}")
        return [*texts, f"store {type_} {value}, ptr {address}{scope}"]

    def _exchange_in(self, collective: ir.Instruction | None) -> list[str]:
        """Hand the arguments of a collective to the runtime: 16 bytes a work-item."""
        if collective is None or is_barrier(collective):
            return []
        texts = []
        (type_, value), *whose = parse_call(collective).arguments
        address, second = self.owner.unique("x"), self.owner.unique("x")
        texts += [
            f"{address} = getelementptr [2 x i64], ptr %cc.exchange, i64 %cc.wi, i64 0",
            f"{second} = getelementptr [2 x i64], ptr %cc.exchange, i64 %cc.wi, i64 1",
            f"store {type_.split(' ')[0]} {value}, ptr {address}",
        ]
        ids = [local_id for _, local_id in whose] + ["0"] * (3 - len(whose))
        names = [self.owner.unique("x") for _ in range(4)]
        return [
            *texts,
            f"{names[0]} = mul i64 {ids[2]}, %cc.size1",
            f"{names[1]} = add i64 {names[0]}, {ids[1]}",
            f"{names[2]} = mul i64 {names[1]}, %cc.size0",
            f"{names[3]} = add i64 {names[2]}, {ids[0]}",
            f"store i64 {names[3]}, ptr {second}",
        ]

    def _count_apart(self) -> list[CountedApart]:
        switches = self.owner.switches
        if self.loops or switches.check_bounds:
            return []
        inline: dict[int, PointerClass] = {}
        for block in self.segment.blocks.values():
            for instruction in block.instructions:
                if len(instruction.accesses) == 1 and instruction.opcode in ("load", "store"):
                    cls = self.owner.class_of(instruction.accesses[0])
                    if cls.place != "dynamic" and self._in_place(cls):
                        inline[id(instruction)] = cls
        return find_apart(self.segment, inline, switches.local_size[0])

    def _counting_function(self, number: int, apart: CountedApart) -> str:
        """A function that counts one access of one work-item, and does nothing else."""
        rows = [
            self._header(f"void @cc.segment{self.segment.number}.count{number}"),
            "cc.start:",
            *self._prologue(),
            f"  br label {self.segment.entry}",
        ]
        (access,) = apart.instruction.accesses
        cls = self.owner.class_of(access)
        for label, kept in apart.rows(self.segment):
            rows.append(f"{label[1:]}:")
            for original in kept:
                for lowered in self._lower(original):
                    rows += [i.render() for i in self.owner.expand(lowered)]
            if label == apart.label:
                for text in self._count(access, cls, access.pointer, apart.instruction):
                    instruction = ir.Instruction(text, "cc", counted=False)
                    rows += [i.render() for i in self.owner.expand(instruction)]
                rows.append("  br label %cc.exit")
        return "\n".join([*rows, "cc.exit:", "  ret void", "}"])

    def _header(self, name: str) -> str:
        parameters = [
            "ptr %cc.ctx",
            "ptr %cc.acc",
            "ptr %cc.past",
            *(f"i64 %cc.id{d}" for d in range(3)),
            "i64 %cc.wi",
            "i64 %cc.items",
            *(f"{invariant_type(name)} %cc.{name}" for name in context.INVARIANTS),
            *(f"{p.type} {p.name}" for p in self.owner.function.parameters),
        ]
        return f"define internal {name}({', '.join(parameters)}) alwaysinline nounwind {{"

    def _prologue(self) -> list[str]:
        owner, segment = self.owner, self.segment
        texts = [f"%cc.var{n} = getelementptr i8, ptr %cc.local, i64 {o}" for n, o in owner.local_slots()]
        if owner.private_bytes:
            texts += [
                f"%cc.mine.at = mul i64 %cc.wi, {owner.private_bytes}",
                "%cc.mine = getelementptr i8, ptr %cc.private, i64 %cc.mine.at",
            ]
        for carried in segment.restore:
            texts += self._carry(carried.name, carried.type, store=False)
        renamed = {name: entering(name, segment) for name in segment.slots}
        for original in segment.recompute:
            for instruction in self._placed(original, owner.lowering.lower(original)):
                instruction.text = ir.substitute(instruction.text, lambda n: renamed.get(n, n))
                if instruction.result:
                    instruction.result = renamed.get(instruction.result, instruction.result)
                texts += [i.render().strip() for i in owner.expand(instruction)]
        after = segment.after
        if after is not None and after.result:
            address = owner.unique("x")
            texts += [
                f"{address} = getelementptr [2 x i64], ptr %cc.exchange, i64 %cc.wi, i64 0",
                f"{entering(after.result, segment)} = load {after.type}, ptr {address}",
            ]
        slots = []
        for name, type_ in segment.slots.items():
            slots.append(f"  {slot_name(name)} = alloca {type_}")
            texts.append(f"store {type_} {entering(name, segment)}, ptr {slot_name(name)}")
        return slots + [f"  {text}" for text in texts]

    def _placed(self, original: ir.Instruction, lowered: list[ir.Instruction]) -> list[ir.Instruction]:
        """Let a private array that outlives its segment stand in memory."""
        if original.opcode == "alloca" and original.result in self.owner.private_offsets:
            offset = self.owner.private_offsets[original.result]
            for instruction in lowered:
                instruction.text = f"getelementptr i8, ptr %cc.mine, i64 {offset}"
        return lowered

    def _render(self) -> list[str]:
        blocks = self.segment.blocks.values()
        late: dict[str, list[ir.Instruction]] = {}
        for block in blocks:
            for phi in block.phis():
                for position, (value, label) in enumerate(phi.incoming):
                    carrier = ir.Instruction(value, "value", counted=False)
                    *steps, carrier = self.owner.expand(carrier)
                    late.setdefault(label, []).extend(steps)
                    phi.incoming[position] = (carrier.text, label)
        rows = []
        for block in blocks:
            rows.append(f"{block.label[1:]}:")
            body = [*block.instructions[:-1], *late.get(block.label, []), block.instructions[-1]]
            for instruction in body:
                if instruction.opcode == "phi":
                    rows.append(instruction.render())
                elif instruction.text:
                    for piece in self.owner.expand(instruction):
                        rows += [i.render() for i in self._placed(instruction, [piece])]
        return rows

    def _epilogue(self, counters: list[str], first: int, weights: Counter[int]) -> list[str]:
        owner, segment = self.owner, self.segment
        texts = [f"%cc.following = load i32, ptr {self.next}"]
        if segment.once:
            texts.append(f"%cc.items.c = {'trunc' if owner.narrow else 'add'} i64 " + (
                "%cc.items to i32" if owner.narrow else "%cc.items, 0"
            ))
        total = str(weights.pop(-1, 0))
        for number, counter in enumerate(counters):
            value, times, address, old, new = (owner.unique("e") for _ in range(5))
            texts += [
                f"{value} = load {self.count}, ptr {counter}",
                f"{times} = mul {self.count} {value}, {'%cc.items.c' if segment.once else '1'}",
                f"{address} = getelementptr {self.count}, ptr %cc.acc, i64 {first + number}",
                f"{old} = load {self.count}, ptr {address}",
                f"{new} = add {self.count} {old}, {times}",
                f"store {self.count} {new}, ptr {address}",
            ]
            if weights[number]:
                scaled, added = owner.unique("e"), owner.unique("e")
                texts += [
                    f"{scaled} = mul {self.count} {value}, {weights[number]}",
                    f"{added} = add {self.count} {total}, {scaled}",
                ]
                total = added
        texts += self._instruction_counts(total)
        for branch, row, way in self.rows:
            bit, address = owner.unique("e"), owner.unique("e")
            offset = context.ROW_BYTES * branch
            texts += [
                f"{bit} = load i8, ptr {row}",
                f"{address}.row = getelementptr i8, ptr %cc.outcomes, i64 {offset}",
                f"{address} = getelementptr i8, ptr {address}.row, i64 {'%cc.wi' if way == 'row' else '0'}",
                f"store i8 {bit}, ptr {address}{owner.scopes.attach(f'row{branch}')}",
            ]
        if self.published:
            texts += self.published.epilogue()
        return [f"  {text}" for text in [*texts, "ret i32 %cc.following"]]

    def _instruction_counts(self, total: str) -> list[str]:
        """Store how many instructions the work-item ran; the barrier's call belongs to no piece."""
        owner, segment = self.owner, self.segment
        if segment.once:
            lead = f"store {self.count} {total}, ptr %cc.lead{owner.scopes.attach('lead')}"
            return ["%cc.lead = getelementptr i8, ptr %cc.live, i64 0", lead]
        name = "piece" if owner.several else "total"
        scope = owner.scopes.attach(name)
        texts = [f"%cc.e.piece = getelementptr {self.count}, ptr %cc.{name}, i64 %cc.wi"]
        if segment.number in owner.led:
            lead, led = owner.unique("e"), owner.unique("e")
            texts += [
                "%cc.lead = getelementptr i8, ptr %cc.live, i64 0",
                f"{lead} = load {self.count}, ptr %cc.lead{owner.scopes.attach('lead')}",
                f"{led} = add {self.count} {total}, {lead}",
            ]
            total = led
        if segment.after is not None and not is_barrier(segment.after):
            old, value = owner.unique("e"), owner.unique("e")
            texts.append(f"{old} = load {self.count}, ptr %cc.e.piece{scope}")
            texts.append(f"{value} = add {self.count} {old}, {total}")
            total = value
        if owner.several:
            barrier, piece = owner.unique("e"), owner.unique("e")
            texts.append(f"{barrier} = load {self.count}, ptr {self.barrier}")
            texts.append(f"{piece} = sub {self.count} {total}, {barrier}")
            total = piece
        return [*texts, f"store {self.count} {total}, ptr %cc.e.piece{scope}"]


class _Published:
    """What the published tool's freedom to reorder needs: where each work-item's last access stands."""

    def __init__(self, emitter: _SegmentEmitter, costs: dict[str, BlockCosts]) -> None:
        self.emitter = emitter
        self.ran = emitter._slot("ran", "i64")
        self.last = emitter._slot("last", "i64")
        self.positions: dict[str, tuple[int, int]] = {}
        for label, block in emitter.segment.blocks.items():
            counted = [i for i in block.instructions if i.counted]
            places = [n for n, i in enumerate(counted, 1) if i.opcode in ("load", "store")]
            self.positions[label] = (places[-1] if places else 0, len(counted))

    def insert(self) -> None:
        """Track the position at the end of each block."""
        unique = self.emitter.owner.unique
        for label, (position, length) in self.positions.items():
            here, then = unique("o"), unique("o")
            texts = [f"{here} = load i64, ptr {self.ran}"]
            if position:
                at = unique("o")
                texts += [f"{at} = add i64 {here}, {position}", f"store i64 {at}, ptr {self.last}"]
            texts += [f"{then} = add i64 {here}, {length}", f"store i64 {then}, ptr {self.ran}"]
            self.emitter._insert(label, texts, at_end=True)

    def epilogue(self) -> list[str]:
        """Carry the position on, and add it up where a work-item ends."""
        owner, segment = self.emitter.owner, self.emitter.segment
        number = owner.order_counter()
        if segment.once:
            return []
        texts = [
            "%cc.o.base = getelementptr [2 x i64], ptr %cc.order, i64 %cc.wi, i64 0",
            "%cc.o.place = getelementptr [2 x i64], ptr %cc.order, i64 %cc.wi, i64 1",
            f"%cc.o.ran = load i64, ptr {self.ran}",
            f"%cc.o.last = load i64, ptr {self.last}",
            "%cc.o.old = load i64, ptr %cc.o.place",
        ]
        if segment.number in owner.led:
            extend = "zext i32" if owner.narrow else "add i64"
            texts += [
                "%cc.o.before.old = load i64, ptr %cc.o.base",
                f"%cc.o.lead = load {self.emitter.count}, ptr %cc.lead{owner.scopes.attach('lead')}",
                f"%cc.o.lead.wide = {extend} %cc.o.lead{' to i64' if owner.narrow else ', 0'}",
                "%cc.o.before = add i64 %cc.o.before.old, %cc.o.lead.wide",
            ]
        else:
            texts.append("%cc.o.before = load i64, ptr %cc.o.base")
        return [
            *texts,
            "%cc.o.total = add i64 %cc.o.before, %cc.o.ran",
            "%cc.o.moved = add i64 %cc.o.before, %cc.o.last",
            "%cc.o.none = icmp eq i64 %cc.o.last, 0",
            "%cc.o.end = select i1 %cc.o.none, i64 %cc.o.old, i64 %cc.o.moved",
            "store i64 %cc.o.total, ptr %cc.o.base",
            "store i64 %cc.o.end, ptr %cc.o.place",
            "%cc.o.done = icmp eq i32 %cc.following, 0",
            "%cc.o.amount = select i1 %cc.o.done, i64 %cc.o.end, i64 0",
            f"call void @cc.count_by(ptr %cc.ctx, i64 {8 * number}, i64 %cc.o.amount)",
        ]


def invariant_type(name: str) -> str:
    """LLVM type of an invariant of the launch or the work-group."""
    numbers = ("group", "base", "size", "global", "offset", "enqueued", "dims", "shift")
    return "i64" if name.startswith(numbers) else "ptr"


def entering(name: str, segment: Segment) -> str:
    """Name under which a value enters a segment."""
    if name not in segment.slots:
        return name
    return f'{name[:-1]}.cc.in"' if name.endswith('"') else f"{name}.cc.in"


def _space(access: MemoryAccess, cls: PointerClass) -> str:
    space = address_space(access.pointer_type)
    if space == 4:
        return "local" if cls.place == "local" else "global"
    return {1: "global", 2: "constant", 3: "local"}[space]


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


_COLLECTIVE = re.compile(r"work_group_(all|any|broadcast|reduce|scan_exclusive|scan_inclusive)(?:_(add|min|max))?$")
_WHAT = ("all", "any", "broadcast", "reduce", "scan_exclusive", "scan_inclusive")


def _collective_code(call: ir.Instruction) -> tuple[int, int]:
    """Operation and type of a collective, as the runtime numbers them."""
    symbol = parse_call(call).name
    match = _COLLECTIVE.match(builtin_name(symbol))
    kinds = {"i": 0, "j": 1, "l": 2, "m": 3, "f": 4, "d": 5}
    letter = symbol[len(f"_Z{len(builtin_name(symbol))}") + len(builtin_name(symbol)) :][:1]
    if match is None or letter not in kinds:
        raise UnsupportedError(f"line {call.line}: {builtin_name(symbol)} is not supported")
    operation = ("add", "min", "max").index(match[2]) if match[2] else 0
    return _WHAT.index(match[1]) + 16 * operation, kinds[letter]

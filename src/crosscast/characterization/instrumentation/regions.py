"""Cut a kernel at its barriers into segments that run from one barrier to the next.

A segment has one entry (the kernel's start, or what follows a barrier) and leaves at the barriers
it can reach, or returns. Running a segment for every work-item of a work-group before the next one
starts is a barrier, without a stack per work-item. What a work-item carries across a barrier is
kept in memory, in one array per value; values that are cheap functions of ids and arguments are
computed again instead.

Let what all work-items do alike at the start of a segment be a segment of its own, run once.

Such a lead typically holds the counters and conditions of a loop with barriers in it. What follows
has fewer branches without it, so that LLVM can run several work-items at a time.

Values that enter a segment and are also defined in it, as around a loop with a barrier inside.

Each gets one place on the stack, so that the code need not tell its two definitions apart. LLVM
turns these stack slots back into registers and inserts the phis.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.builtin_calls import is_warp_operation
from crosscast.characterization.instrumentation.graph import (
    Uniformity,
    chain,
    find_uniform,
    recomputable,
    sources,
)
from crosscast.characterization.instrumentation.inline import called_builtin


@dataclass(frozen=True)
class Carried:
    """A value kept in memory across barriers; once a work-group if it is uniform."""

    name: str
    type: str
    nbytes: int
    uniform: bool


@dataclass
class Segment:
    """A part of the kernel between barriers."""

    number: int  # Its number; 0 starts the kernel
    entry: str  # Label where it starts
    blocks: dict[str, ir.Block]  # Its own copies of the blocks
    # For each block that leaves it: the segment that follows, 0 for the end of the work-item
    exits: dict[str, int]
    # The barrier or collective before it; `None` for segment 0, and after one that ran once
    after: ir.Instruction | None = None
    once: bool = False  # It is run once for all work-items of a group, because they would all do the same
    restore: list[Carried] = field(default_factory=list)  # Carried values that it loads at its start
    # Carried values to store at each leaving block
    save: dict[str, list[Carried]] = field(default_factory=dict)
    # Instructions that compute again, at its start, what need not be carried
    recompute: list[ir.Instruction] = field(default_factory=list)
    # Type of each value that lives in a stack slot, because it enters the segment and is also defined in it
    slots: dict[str, str] = field(default_factory=dict)

    def successors(self) -> dict[str, list[str]]:
        """Control flow inside the segment."""
        return {
            label: [] if label in self.exits else block.terminator.successors
            for label, block in self.blocks.items()
        }

    def entering(self, name: str) -> str:
        """Name under which a value enters the segment."""
        if name not in self.slots:
            return name
        return f'{name[:-1]}.cc.in"' if name.endswith('"') else f"{name}.cc.in"


@dataclass(frozen=True)
class Segments:
    """All segments of a kernel, everything they carry, and what is uniform."""

    segments: list[Segment]
    carried: list[Carried]
    uniform: Uniformity
    # Numbers of the segments as the program runs them, where work-items do not all stand at the same cut (see
    # `warps`); else empty
    turns: list[int] = field(default_factory=list)


def slot_name(name: str, load: int | None = None) -> str:
    """Name of the stack slot of a value, or of what one of its loads gives."""
    suffix = f".cc.slot{'' if load is None else load}"
    return f'{name[:-1]}{suffix}"' if name.endswith('"') else f"{name}{suffix}"


def is_barrier(instruction: ir.Instruction) -> bool:
    """Whether an instruction is a work-group barrier."""
    return called_builtin(instruction) in ("barrier", "work_group_barrier")


def is_collective(instruction: ir.Instruction) -> bool:
    """Whether an instruction is a work-group collective such as ``work_group_reduce_add``."""
    name = called_builtin(instruction)
    return name.startswith("work_group_") and not name.startswith("work_group_barrier")


@dataclass
class Cuts:
    """Where a kernel is cut."""

    roots: list[str]  # Label where each segment starts, by the segment's number
    # For each block that a cut ends: the label behind the cut
    crossings: dict[str, str] = field(default_factory=dict)
    # For each label behind a barrier or collective: that instruction
    cutters: dict[str, ir.Instruction] = field(default_factory=dict)

    def new_root(self) -> str:
        """Number one more segment, and return the label for its start."""
        label = f"%cc.segment{len(self.roots)}"
        self.roots.append(label)
        return label

    def result_across(self, root: str) -> str:
        """Result of the instruction before a segment's start; empty if it has none."""
        cutter = self.cutters.get(root)
        return (cutter.result if cutter is not None else None) or ""

    def flow(self, function: ir.Function) -> dict[str, list[str]]:
        """Successors of each block, across the cuts too."""
        return {
            label: [self.crossings[label]] if label in self.crossings else block.terminator.successors
            for label, block in function.blocks.items()
        }

    def reachable(self, function: ir.Function, starts: list[str]) -> set[str]:
        """Blocks that can be reached without crossing a cut, the starts among them."""
        reached: set[str] = set()
        pending = list(starts)
        while pending:
            label = pending.pop()
            if label not in reached:
                reached.add(label)
                if label not in self.crossings:
                    pending.extend(function.blocks[label].terminator.successors)
        return reached


def split_at_barriers(function: ir.Function) -> Cuts:
    """End a block at each barrier and collective."""
    cuts = Cuts([function.entry.label])
    ends: dict[str, str] = {}  # a block that was cut ends under another label
    blocks: dict[str, ir.Block] = {}
    for block in function.blocks.values():
        pieces = _split(block, cuts)
        blocks.update((piece.label, piece) for piece in pieces)
        ends[block.label] = pieces[-1].label
    function.blocks = blocks
    for block in blocks.values():
        for phi in block.phis():
            phi.incoming = [(value, ends[label]) for value, label in phi.incoming]
    return cuts


def _split(block: ir.Block, cuts: Cuts) -> list[ir.Block]:
    """The pieces of one block; a barrier stays behind in its piece, counted but without text."""
    pieces = [block]
    instructions, block.instructions = block.instructions, []
    for instruction in instructions:
        if not (is_barrier(instruction) or is_collective(instruction) or is_warp_operation(instruction)):
            pieces[-1].instructions.append(instruction)
            continue
        ghost = ir.copy_instruction(instruction)
        ghost.text = ""
        # What a collective is called with is used where the work-item leaves.
        operands = "" if is_barrier(instruction) else instruction.text
        pieces[-1].instructions += [ghost, ir.Instruction(operands, "cut", counted=False)]
        after = ir.Block(cuts.new_root(), [])
        cuts.crossings[pieces[-1].label] = after.label
        cuts.cutters[after.label] = instruction
        pieces.append(after)
    return pieces


def cut_leads(
    function: ir.Function, cuts: Cuts, uniform: Uniformity, cheap: dict[str, ir.Instruction]
) -> set[str]:
    """Cut behind the leads of segments."""
    leads: dict[str, list[str]] = {}
    for root in cuts.roots:
        cutter = cuts.cutters.get(root)
        if cutter is not None and not is_barrier(cutter):
            continue  # its piece of the work-item goes on across the collective
        lead = _lead(function, root, cuts, uniform, cheap)
        if any(len(function.blocks[b].terminator.successors) > 1 for b in lead):
            leads[root] = lead
    while rejected := {r for r in leads if not _may_lead(function, r, cuts, leads)}:
        for root in rejected:
            del leads[root]
    edges = {
        (u, v): None
        for lead in leads.values()
        for u in lead
        for v in function.blocks[u].terminator.successors
        if v not in lead
    }
    for source, target in edges:
        _cut_edge(function, source, target, cuts)
    return set(leads)


def _lead(
    function: ir.Function,
    root: str,
    cuts: Cuts,
    uniform: Uniformity,
    cheap: dict[str, ir.Instruction],
) -> list[str]:
    """Blocks from the start of a segment on that compute nothing but uniform values."""
    lead: list[str] = []
    pending = [root]
    while pending:
        label = pending.pop()
        block = function.blocks[label]
        if label in lead or label in cuts.crossings or not block.terminator.successors:
            continue
        if label in uniform.parted or not all(_belongs(i, uniform, cheap) for i in block.instructions):
            continue
        lead.append(label)
        pending.extend(block.terminator.successors)
    return lead


def _belongs(instruction: ir.Instruction, uniform: Uniformity, cheap: dict[str, ir.Instruction]) -> bool:
    if not instruction.text:
        return True
    if instruction.opcode in ("br", "switch"):
        return instruction.uses() <= uniform.values
    # What diverges but is cheap is computed again where it is needed.
    return instruction.result in uniform.values or instruction.result in cheap


def _may_lead(function: ir.Function, root: str, cuts: Cuts, leads: dict[str, list[str]]) -> bool:
    """Whether a segment's lead can be run once without changing what is recorded."""
    lead = leads[root]
    after = [v for u in lead for v in function.blocks[u].terminator.successors if v not in lead]
    rest = cuts.reachable(function, after)
    branches = {function.blocks[b].terminator.branch for b in lead} - {None}
    if rest & set(lead) or branches & {function.blocks[b].terminator.branch for b in rest}:
        return False  # the same branch would be recorded in two places, out of order
    # The blocks of the lead are cut for every segment that has them.
    return all(
        set(lead) & cuts.reachable(function, [other]) <= set(leads.get(other, ())) for other in cuts.roots
    )


def _cut_edge(function: ir.Function, source: str, target: str, cuts: Cuts) -> None:
    leaving = ir.Block(f"%cc.leave{len(cuts.roots)}", [ir.Instruction("", "cut", counted=False)])
    jump = ir.Instruction(f"br label {target}", "br", counted=False)
    going_on = ir.Block(cuts.new_root(), [jump])
    function.blocks[source].terminator.retarget(target, leaving.label)
    for phi in function.blocks[target].phis():
        phi.incoming = [(v, going_on.label if p == source else p) for v, p in phi.incoming]
    function.blocks[leaving.label] = leaving
    function.blocks[going_on.label] = going_on
    cuts.crossings[leaving.label] = going_on.label


def resolve_redefinitions(segment: Segment) -> None:
    """Let such values of a segment live in stack slots."""
    entering = {c.name: c.type for c in segment.restore}
    entering.update({i.result: i.type for i in segment.recompute if i.result})
    if segment.after is not None and segment.after.result:
        entering[segment.after.result] = segment.after.type
    defined = {i.result for b in segment.blocks.values() for i in b.instructions if i.result and i.text}
    for name in sorted(entering.keys() & defined):
        segment.slots[name] = entering[name]
        _Slot(name, entering[name]).use(segment)


class _Slot:
    """The stack slot of one value."""

    def __init__(self, name: str, type_: str) -> None:
        self._name, self._type = name, type_
        self._loads = 0

    def use(self, segment: Segment) -> None:
        for block in segment.blocks.values():
            self._use_in(block)
        for block in segment.blocks.values():
            for phi in block.phis():
                phi.incoming = [self._incoming(v, segment.blocks[label]) for v, label in phi.incoming]

    def _use_in(self, block: ir.Block) -> None:
        rewritten: list[ir.Instruction] = []
        for instruction in block.instructions:
            if instruction.opcode != "phi" and self._name in instruction.uses():
                load = self._load()
                rewritten.append(load)
                instruction.text = self._replace(instruction.text, load)
            rewritten.append(instruction)
            if instruction.result == self._name and instruction.text:
                text = f"store {self._type} {self._name}, ptr {slot_name(self._name)}"
                rewritten.append(ir.Instruction(text, "store", counted=False))
        block.instructions = _phis_first(rewritten)

    def _incoming(self, value: str, source: ir.Block) -> tuple[str, str]:
        """Load a phi's value at the end of the block that it comes from."""
        if self._name not in ir.LOCAL.findall(value):
            return value, source.label
        load = self._load()
        source.instructions.insert(-1, load)
        return self._replace(value, load), source.label

    def _load(self) -> ir.Instruction:
        self._loads += 1
        result = slot_name(self._name, self._loads)
        text = f"load {self._type}, ptr {slot_name(self._name)}"
        return ir.Instruction(text, "load", self._type, result, counted=False)

    def _replace(self, text: str, load: ir.Instruction) -> str:
        return ir.substitute(text, lambda n: load.result or "" if n == self._name else n)


def _phis_first(instructions: list[ir.Instruction]) -> list[ir.Instruction]:
    return sorted(instructions, key=lambda i: i.opcode != "phi")


Definitions = dict[str, ir.Instruction]


def cut(function: ir.Function, sizes: dict[str, tuple[int, int]], *, may_end_early: bool = False) -> Segments:
    """Cut a flattened kernel into segments.

    Work-items that `may_end_early` are not waited for at barriers.
    """
    cuts = split_at_barriers(function)
    once: set[str] = set()
    by_turns = any(map(is_warp_operation, cuts.cutters.values()))
    if len(cuts.roots) > 1 and not by_turns:
        uniform, definitions, cheap = _analyse(function, cuts)
        by_turns = may_end_early and not uniform.parted.isdisjoint(cuts.crossings)
        if not by_turns:
            once = cut_leads(function, cuts, uniform, cheap)
    uniform, definitions, cheap = _analyse(function, cuts, by_turns=by_turns)
    across = _find_across(function, cuts, cheap, definitions)
    carried = {
        name: Carried(name, definitions[name].type, sizes[definitions[name].type][0], name in uniform.values)
        for name in sorted(set().union(*across.needed.values()))
    }
    segments = []
    for number, root in enumerate(cuts.roots):
        segment = _copy_blocks(function, cuts, number)
        segment.once = root in once
        if number:
            _let_enter(segment, root, cuts, across, carried, cheap)
        _let_leave(segment, cuts, across, carried)
        resolve_redefinitions(segment)
        segments.append(segment)
    turns: list[int] = []
    if by_turns:
        order = graph.in_order(cuts.flow(function), function.entry.label)
        turns = sorted(range(len(cuts.roots)), key=lambda number: order.index(cuts.roots[number]))
    return Segments(segments, list(carried.values()), uniform, turns)


def _analyse(
    function: ir.Function, cuts: Cuts, *, by_turns: bool = False
) -> tuple[Uniformity, Definitions, Definitions]:
    """What is uniform, what defines each value, and which values to compute again."""
    names = [p.name for p in function.parameters]
    if by_turns:  # work-items are not in step, so that nothing is but what the launch gives
        uniform = Uniformity(set(names), set(function.blocks))
    else:
        uniform = find_uniform(function.blocks, cuts.flow(function), names)
    definitions = {i.result: i for i in [*function.instructions(), *cuts.cutters.values()] if i.result}
    return uniform, definitions, recomputable(definitions, set(names), uniform.values)


@dataclass(frozen=True)
class _Across:
    """Values that cross cuts."""

    live: dict[str, set[str]]  # Values that are live into each block
    needed: dict[str, set[str]]  # Those to carry to each segment's start


def _find_across(function: ir.Function, cuts: Cuts, cheap: Definitions, definitions: Definitions) -> _Across:
    """Find what crosses cuts. What is computed again needs the values that it is computed from."""
    roots = cuts.roots[1:]
    flow = cuts.flow(function)
    extra: dict[str, set[str]] = {}
    while True:
        live = graph.live_in(function.blocks, flow, extra)
        extra = {root: sources(live[root], cheap) & definitions.keys() for root in roots}
        if all(extra[root] <= live[root] for root in roots):
            return _Across(live, {r: (live[r] & definitions.keys()) - cheap.keys() for r in roots})


def _copy_blocks(function: ir.Function, cuts: Cuts, number: int) -> Segment:
    """A segment with copies of the blocks that it can reach."""
    root = cuts.roots[number]
    reached = cuts.reachable(function, [root])
    blocks: dict[str, ir.Block] = {}
    exits: dict[str, int] = {}
    successors = {label: function.blocks[label].terminator.successors for label in reached}
    for label in [root, *(n for n in function.blocks if n in reached and n != root)]:
        block = ir.Block(label, [ir.copy_instruction(i) for i in function.blocks[label].instructions])
        for phi in block.phis():
            phi.incoming = [(v, p) for v, p in phi.incoming if p in reached and label in successors[p]]
        if label in cuts.crossings:
            exits[label] = cuts.roots.index(cuts.crossings[label])
        elif not successors[label]:
            exits[label] = 0
        blocks[label] = block
    return Segment(number, root, blocks, exits)


def _let_enter(
    segment: Segment,
    root: str,
    cuts: Cuts,
    across: _Across,
    carried: dict[str, Carried],
    cheap: Definitions,
) -> None:
    segment.after = cuts.cutters.get(root)
    wanted = across.live[root] - {cuts.result_across(root)}
    segment.restore = [carried[n] for n in sorted(across.needed[root] & wanted)]
    segment.recompute = chain(wanted & cheap.keys(), cheap)


def _let_leave(segment: Segment, cuts: Cuts, across: _Across, carried: dict[str, Carried]) -> None:
    for label, following in segment.exits.items():
        if following:
            root = cuts.roots[following]
            segment.save[label] = [
                carried[n] for n in sorted(across.needed[root] - {cuts.result_across(root)})
            ]

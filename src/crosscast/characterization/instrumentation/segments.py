"""Cut a kernel at its barriers into segments that run from one barrier to the next.

A segment has one entry (the kernel's start, or what follows a barrier) and leaves at the barriers
it can reach, or returns. Running a segment for every work-item of a work-group before the next one
starts is a barrier, without a stack per work-item. What a work-item carries across a barrier is
kept in memory, in one array per value; values that are cheap functions of ids and arguments are
computed again instead.

What all work-items do alike at the start of a segment, its lead, is a segment of its own, run once. Such a
lead typically holds the counters and conditions of a loop with barriers in it. What follows has fewer
branches without it, so that LLVM can run several work-items at a time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.builtin_calls import (
    is_barrier,
    is_collective,
    is_warp_operation,
)
from crosscast.characterization.instrumentation.graph import Definitions, Uniformity
from crosscast.characterization.instrumentation.inline import suffixed

if TYPE_CHECKING:
    from crosscast.characterization.instrumentation.branch_code import BranchPlan


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

    number: int  # 0 is the start of the kernel
    entry: str  # Label where it starts
    blocks: dict[str, ir.Block]  # Copies of the blocks
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
    # What is planned for it: its loops, edges to count, the number of the first of their counters, and how to
    # record each branch, by its block
    loops: list[graph.Loop] = field(default_factory=list)
    order: dict[str, int] = field(default_factory=dict)  # Positions of blocks; a loop's share one
    placement: graph.Placement = field(default_factory=graph.Placement)
    first_counter: int = 0
    branches: dict[str, BranchPlan] = field(default_factory=dict)

    @functools.cached_property
    def definitions(self) -> dict[str, tuple[str, int]]:
        """Block and position in it of each value that it computes, before any rewriting."""
        return {
            i.result: (label, n)
            for label, block in self.blocks.items()
            for n, i in enumerate(block.instructions)
            if i.result and i.text
        }

    @property
    def counters(self) -> range:
        """Numbers of the counters of its edges."""
        return range(self.first_counter, self.first_counter + len(self.placement.counted))

    def recorded(self, *ways: str) -> list[int]:
        """Return the branches that are recorded by some methods."""
        ends = (self.blocks[label].terminator for label, plan in self.branches.items() if plan.way in ways)
        return sorted({end.branch for end in ends if end.branch is not None})

    def successors(self) -> dict[str, list[str]]:
        """Return the control flow inside the segment."""
        return {
            label: [] if label in self.exits else block.terminator.successors
            for label, block in self.blocks.items()
        }

    def entering(self, name: str) -> str:
        """Return the name under which a value enters the segment."""
        return suffixed(name, ".cc.in") if name in self.slots else name


@dataclass(frozen=True)
class Segments:
    """All segments of a kernel, the values that they carry, and uniformity."""

    segments: list[Segment]
    carried: list[Carried]
    uniform: Uniformity
    # Numbers of the segments in program order, if work-items may be at different cuts (see `warps`); else
    # empty
    warp_order: list[int] = field(default_factory=list)
    in_step: bool = True  # All work-items that reach a loop leave it together


def slot_name(name: str) -> str:
    """Return the name of the stack slot of a value."""
    return suffixed(name, ".cc.slot")


class _Cuts:
    """A kernel and its cuts: a block ends at each barrier and collective."""

    def __init__(self, function: ir.Function) -> None:
        self.blocks: dict[str, ir.Block] = {}
        self.roots = [function.entry.label]  # Start label of each segment, by number
        self.crossings: dict[str, str] = {}  # For each block that a cut ends: the label behind the cut
        # For each label behind a barrier or collective: that instruction
        self.cutters: dict[str, ir.Instruction] = {}
        ends = {block.label: self._split(block) for block in function.blocks.values()}
        for block in self.blocks.values():
            for phi in block.phis():
                phi.incoming = [(value, ends[label]) for value, label in phi.incoming]
        function.blocks = self.blocks

    def _split(self, block: ir.Block) -> str:
        """Split one block, and return the label under which it ends."""
        piece = self.blocks[block.label] = ir.Block(block.label, [])
        for instruction in block.instructions:
            if not (is_barrier(instruction) or is_collective(instruction) or is_warp_operation(instruction)):
                piece.instructions.append(instruction)
                continue
            # A barrier stays as a counted ghost; the arguments of a collective are used at the end of the
            # segment.
            ghost = instruction.copy()
            ghost.text = ""
            leaving = "" if is_barrier(instruction) else instruction.text
            piece.instructions += [ghost, ir.Instruction(leaving, "cut", counted=False)]
            after = self._new_root(piece.label)
            self.cutters[after] = instruction
            piece = self.blocks[after] = ir.Block(after, [])
        return piece.label

    def _new_root(self, before: str) -> str:
        """Add a segment behind a block, and return its start label."""
        self.crossings[before] = label = f"%cc.segment{len(self.roots)}"
        self.roots.append(label)
        return label

    def cut_edge(self, source: str, target: str) -> None:
        """Cut the edge from one block to another."""
        leaving = f"%cc.leave{len(self.roots)}"
        self.blocks[leaving] = ir.Block(leaving, [ir.Instruction("", "cut", counted=False)])
        going_on = self._new_root(leaving)
        self.blocks[going_on] = ir.Block(going_on, [ir.jump(target)])
        self.blocks[source].terminator.retarget(target, leaving)
        for phi in self.blocks[target].phis():
            phi.retarget(source, going_on)
        self.__dict__.pop("flow", None)

    def goes_to(self, label: str) -> list[str]:
        """Return the successors of a block, without crossing a cut."""
        return self.blocks[label].terminator.successors

    def result_across(self, root: str) -> str:
        """Return the result of the instruction before a segment's start; empty if it has none."""
        return (self.cutters[root].result if root in self.cutters else None) or ""

    @functools.cached_property
    def flow(self) -> dict[str, list[str]]:
        """Successors of each block, across cuts."""
        return {
            label: [self.crossings[label]] if label in self.crossings else self.goes_to(label)
            for label in self.blocks
        }

    def reachable(self, starts: Iterable[str]) -> set[str]:
        """Return the blocks reachable without crossing a cut, the starts included."""
        return graph.reachable(self.flow, starts, self.crossings)

    def definitions(self) -> Definitions:
        """Return the definition of each value."""
        written = [i for block in self.blocks.values() for i in block.instructions]
        return {i.result: i for i in [*written, *self.cutters.values()] if i.result}


def _cut_leads(cuts: _Cuts, uniform: Uniformity, cheap: Definitions) -> set[str]:
    """Cut behind the leads of segments, and return where these start."""
    leads: dict[str, list[str]] = {}
    for root in cuts.roots:
        if root in cuts.cutters and not is_barrier(cuts.cutters[root]):
            continue  # a work-item's piece continues across the collective
        lead = _lead(root, cuts, uniform, cheap)
        if any(len(cuts.goes_to(label)) > 1 for label in lead):
            leads[root] = lead
    while rejected := {root for root in leads if not _may_lead(root, cuts, leads)}:
        leads = {root: lead for root, lead in leads.items() if root not in rejected}
    edges = {(u, v): None for lead in leads.values() for u in lead for v in cuts.goes_to(u) if v not in lead}
    for source, target in edges:
        cuts.cut_edge(source, target)
    return set(leads)


def _lead(root: str, cuts: _Cuts, uniform: Uniformity, cheap: Definitions) -> list[str]:
    """Return the leading blocks of a segment that compute only uniform values."""

    def belongs(instruction: ir.Instruction) -> bool:
        if not instruction.text:
            return True
        if instruction.opcode in ("br", "switch"):
            return instruction.uses() <= uniform.values
        # Cheap divergent values are recomputed.
        return instruction.result in uniform.values or instruction.result in cheap

    lead: list[str] = []
    pending = [root]
    while pending:
        label = pending.pop()
        if label in lead or label in cuts.crossings or label in uniform.parted or not cuts.goes_to(label):
            continue
        if all(map(belongs, cuts.blocks[label].instructions)):
            lead.append(label)
            pending.extend(cuts.goes_to(label))
    return lead


def _may_lead(root: str, cuts: _Cuts, leads: dict[str, list[str]]) -> bool:
    """Whether a segment's lead can be run once without changing the records."""
    lead = set(leads[root])
    rest = cuts.reachable(v for u in lead for v in cuts.goes_to(u) if v not in lead)
    branches = {cuts.blocks[label].terminator.branch for label in lead} - {None}
    if rest & lead or branches & {cuts.blocks[label].terminator.branch for label in rest}:
        return False  # the same branch would be recorded twice, out of order
    # The blocks of the lead are cut for every segment that has them.
    return all(lead & cuts.reachable([other]) <= set(leads.get(other, ())) for other in cuts.roots)


def _use_slots(segment: Segment) -> None:
    """Store values that enter a segment and are also defined in it in stack slots.

    So the two definitions need not be distinguished around a loop with a barrier inside. LLVM turns the
    slots back into registers and inserts the phis.
    """
    entering = {c.name: c.type for c in segment.restore}
    entering.update({i.result: i.type for i in segment.recompute if i.result})
    if segment.after is not None and segment.after.result:
        entering[segment.after.result] = segment.after.type
    defined = {i.result for b in segment.blocks.values() for i in b.instructions if i.result and i.text}
    for name in sorted(entering.keys() & defined):
        segment.slots[name] = entering[name]
        _use_slot(segment, name, entering[name])


def _use_slot(segment: Segment, name: str, type_: str) -> None:
    slot, loads = slot_name(name), itertools.count(1)

    def load() -> tuple[ir.Instruction, str]:
        result = f"%cc.slot{len(segment.slots)}.{next(loads)}"
        return ir.Instruction(f"load {type_}, ptr {slot}", "load", type_, result, counted=False), result

    def incoming(value: str, label: str) -> tuple[str, str]:
        if value != name:
            return value, label
        instruction, result = load()
        segment.blocks[label].instructions.insert(-1, instruction)
        return result, label

    for block in segment.blocks.values():
        rewritten: list[ir.Instruction] = []
        for instruction in block.instructions:
            if instruction.opcode != "phi" and name in instruction.uses():
                loaded, result = load()
                rewritten.append(loaded)
                instruction.retarget(name, result)
            rewritten.append(instruction)
            if instruction.result == name and instruction.text:
                rewritten.append(ir.Instruction(f"store {type_} {name}, ptr {slot}", "store", counted=False))
        block.instructions = sorted(rewritten, key=lambda i: i.opcode != "phi")
    for block in segment.blocks.values():
        for phi in block.phis():
            phi.incoming = [incoming(value, label) for value, label in phi.incoming]


def cut(function: ir.Function, sizes: dict[str, tuple[int, int]], *, may_end_early: bool = False) -> Segments:
    """Cut a flattened kernel into segments.

    Barriers do not wait for work-items that have ended, if they `may_end_early`.
    """
    cuts = _Cuts(function)
    names = {p.name for p in function.parameters}
    once: set[str] = set()
    per_warp = any(map(is_warp_operation, cuts.cutters.values()))
    if len(cuts.roots) > 1 and not per_warp:
        uniform = graph.find_uniform(cuts.blocks, cuts.flow, names)
        per_warp = may_end_early and not uniform.parted.isdisjoint(cuts.crossings)
        if not per_warp:
            cheap = graph.recomputable(cuts.definitions(), names, uniform.values)
            once = _cut_leads(cuts, uniform, cheap)
    # Without lockstep, only the launch's arguments are uniform.
    uniform = Uniformity(names, set(cuts.blocks))
    if not per_warp:
        uniform = graph.find_uniform(cuts.blocks, cuts.flow, names)
    definitions = cuts.definitions()
    cheap = graph.recomputable(definitions, names, uniform.values)
    live = _find_live(cuts, cheap, definitions)
    needed = {root: (live[root] & definitions.keys()) - cheap.keys() for root in cuts.roots[1:]}
    carried = {
        name: Carried(name, definitions[name].type, sizes[definitions[name].type][0], name in uniform.values)
        for name in sorted(set().union(*needed.values()))
    }
    segments = []
    for number, root in enumerate(cuts.roots):
        segment = _copy_blocks(cuts, number)
        segment.once = root in once
        if number:
            segment.after = cuts.cutters.get(root)
            wanted = live[root] - {cuts.result_across(root)}
            segment.restore = [carried[name] for name in sorted(needed[root] & wanted)]
            segment.recompute = graph.chain(wanted & cheap.keys(), cheap)
        for label, following in segment.exits.items():
            if following:
                to = cuts.roots[following]
                segment.save[label] = [carried[n] for n in sorted(needed[to] - {cuts.result_across(to)})]
        _use_slots(segment)
        segments.append(segment)
    warp_order: list[int] = []
    if per_warp:
        order = graph.in_order(cuts.flow, function.entry.label)
        warp_order = sorted(range(len(cuts.roots)), key=lambda number: order.index(cuts.roots[number]))
    in_step = not per_warp and _loops_in_step(cuts, uniform)
    return Segments(segments, list(carried.values()), uniform, warp_order, in_step)


def _loops_in_step(cuts: _Cuts, uniform: Uniformity) -> bool:
    """Whether all work-items that reach a loop leave it together."""
    for loop in graph.find_loops(cuts.flow):
        for label in loop.blocks:
            leaves = not loop.blocks.issuperset(cuts.flow[label])
            if leaves and not cuts.blocks[label].terminator.uses() <= uniform.values:
                return False
    return True


def _find_live(cuts: _Cuts, cheap: Definitions, definitions: Definitions) -> dict[str, set[str]]:
    """Return the values live into each block, sources of recomputed values included."""
    roots, flow = cuts.roots[1:], cuts.flow
    extra: dict[str, set[str]] = {}
    while True:
        live, _ = graph.live(cuts.blocks, flow, extra)
        extra = {root: graph.sources(live[root], cheap) & definitions.keys() for root in roots}
        if all(extra[root] <= live[root] for root in roots):
            return live


def _copy_blocks(cuts: _Cuts, number: int) -> Segment:
    """Return a segment with copies of the blocks that it reaches."""
    root = cuts.roots[number]
    reached = cuts.reachable([root])
    blocks: dict[str, ir.Block] = {}
    exits: dict[str, int] = {}
    for label in [root, *(label for label in cuts.blocks if label in reached and label != root)]:
        block = blocks[label] = ir.Block(label, [i.copy() for i in cuts.blocks[label].instructions])
        for phi in block.phis():
            phi.incoming = [(v, p) for v, p in phi.incoming if p in reached and label in cuts.goes_to(p)]
        if label in cuts.crossings:
            exits[label] = cuts.roots.index(cuts.crossings[label])
        elif not cuts.goes_to(label):
            exits[label] = 0
    return Segment(number, root, blocks, exits)

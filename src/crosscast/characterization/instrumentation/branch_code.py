"""Recording of the history of outcomes of conditional branches.

There are five methods, from cheap to general, all exact:

- ``row``: a branch outside all loops of a segment runs at most once a work-item; its outcomes go to
  a row of bytes that is folded into the history when all work-items have run the segment.
- ``cell``: like ``row``, but all work-items have the same outcome: one byte for all of them.
- ``lead``: a branch of a segment that runs once for all work-items; its outcomes are stored one by
  one and then recorded once per work-item.
- ``run``: a branch that leaves the innermost loop around it is a run of equal outcomes and then the
  other one; the run's length is counted and recorded when the loop is left.
- ``each``: anything else is recorded outcome by outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import HISTORY_BYTES, ROW_BYTES, TABLE_BYTES, WINDOW
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.code import Code, Names, Scopes
from crosscast.characterization.instrumentation.graph import Uniformity
from crosscast.characterization.instrumentation.segments import Segment

Way = Literal["lead", "cell", "row", "run", "each"]


@dataclass(frozen=True)
class BranchPlan:
    """Recording of one copy of a branch."""

    way: Way  # How it is recorded
    loop: graph.Loop | None = None  # Innermost loop around it; set for `run`
    stay: str = ""  # Target while the loop continues; set for `run`


def plan_branches(
    segments: Sequence[Segment],
    loops: Sequence[dict[str, graph.Loop]],
    uniform: Uniformity,
    *,
    per_warp: bool = False,
) -> list[dict[str, BranchPlan]]:
    """Choose the recording of every branch, by segment and block label.

    All copies of a static branch share one history. Ways other than ``each`` keep it in memory and
    mix; a copy recorded ``each`` keeps it in a register, so then all copies do.
    """
    plans: list[dict[str, BranchPlan]] = []
    general: set[int] = set()
    for segment, inner in zip(segments, loops, strict=True):
        plans.append({})
        copies = Counter(block.terminator.branch for block in segment.blocks.values())
        for label, block in segment.blocks.items():
            if (branch := block.terminator.branch) is None:
                continue
            way: Way = "cell" if uniform.decides_for_all(block) else "row"
            plan = _plan(block.terminator.successors, inner.get(label), "each" if per_warp else way)
            plans[-1][label] = BranchPlan("lead") if segment.once else plan
            # Rows are of all work-items, and folded later, which would reorder several copies.
            is_row = plan.way in ("cell", "row") and copies[branch] > 1
            if (plan.way == "each" or is_row) and not segment.once:
                general.add(branch)
    return [
        {
            label: BranchPlan("each")
            if segment.blocks[label].terminator.branch in general and plan.way != "lead"
            else plan
            for label, plan in planned.items()
        }
        for segment, planned in zip(segments, plans, strict=True)
    ]


def _plan(successors: list[str], loop: graph.Loop | None, once: Way) -> BranchPlan:
    if loop is None:
        return BranchPlan(once)
    inside = [label for label in successors if label in loop.blocks]
    if len(successors) == 2 and len(inside) == 1:
        return BranchPlan("run", loop, inside[0])
    return BranchPlan("each")


class SegmentEditor:
    """Adds code to one segment."""

    def __init__(self, segment: Segment, names: Names) -> None:
        self.segment, self.names = segment, names
        self.slots: list[str] = []
        """Stack slots, to be written before the segment's entry."""
        self.flow = segment.successors()
        self._predecessors = graph.reverse(self.flow)
        self._middles: dict[graph.Edge, str] = {}  # block on each edge that was split

    def slot(self, stem: str, type_: str, value: str = "0") -> str:
        """Make a stack slot, and return its name."""
        name = self.names.unique(stem)
        self.slots += [f"  {name} = alloca {type_}", f"  store {type_} {value}, ptr {name}"]
        return name

    def computed_slot(self, stem: str, type_: str, code: Code, value: str) -> str:
        """Make a stack slot for a value that code computes before the segment's entry."""
        self.slots += [f"  {text}" for text in code.texts]
        return self.slot(stem, type_, value)

    def increment(self, slot: str, type_: str) -> list[str]:
        """Return code that adds 1 to a stack slot."""
        code = Code(self.names)
        code.add_to(type_, slot, 1)
        return code.texts

    def out_of(self, loop: graph.Loop) -> list[graph.Edge]:
        """Return the edges that leave a loop."""
        edges = [
            (label, to) for label in sorted(loop.blocks) for to in self.flow[label] if to not in loop.blocks
        ]
        return edges + [(label, graph.EXIT) for label in sorted(loop.blocks & self.segment.exits.keys())]

    def at_start(self, label: str, texts: Iterable[str]) -> None:
        """Add code behind the phis of a block."""
        self._insert(label, sum(1 for _ in self.segment.blocks[label].phis()), texts)

    def at_end(self, label: str, texts: Iterable[str]) -> None:
        """Add code before the terminator of a block."""
        self._insert(label, len(self.segment.blocks[label].instructions) - 1, texts)

    def on_edge(self, edge: graph.Edge, texts: Iterable[str]) -> None:
        """Add code on an edge."""
        source, target = edge
        if edge in self._middles:
            self.at_end(self._middles[edge], texts)
        elif target == graph.EXIT or len(self.flow[source]) == 1:
            self.at_end(source, texts)
        elif len(self._predecessors[target]) == 1 and target != self.segment.entry:
            self.at_start(target, texts)
        else:
            self.at_end(self._split(source, target), texts)

    def _insert(self, label: str, position: int, texts: Iterable[str]) -> None:
        self.segment.blocks[label].instructions[position:position] = map(ir.added, texts)

    def _split(self, source: str, target: str) -> str:
        """Split an edge by an empty block."""
        label = self.names.unique("edge")
        blocks = self.segment.blocks
        blocks[label] = ir.Block(label, [ir.jump(target)])
        blocks[source].terminator.retarget(target, label)
        for phi in blocks[target].phis():
            phi.incoming = [(value, label if p == source else p) for value, p in phi.incoming]
        self.flow[source] = [label if s == target else s for s in self.flow[source]]
        self.flow[label] = [target]
        self._predecessors[label] = [source]
        self._predecessors[target] = [label if p == source else p for p in self._predecessors[target]]
        self._middles[source, target] = label
        return label


OnEdges = list[tuple[graph.Edge, list[str]]]

_NOT_REACHED = "2"
"""Outcome of a branch that a work-item did not reach."""


class BranchCode:
    """Records the branches of one segment."""

    def __init__(self, editor: SegmentEditor, scopes: Scopes, lines: Mapping[int, int]) -> None:
        self._editor, self._names, self._scopes, self._lines = editor, editor.names, scopes, lines
        self._outcomes: list[tuple[int, str, bool]] = []  # branch, its slot, one for all work-items

    def record(self) -> OnEdges:
        """Record all branches; return code for edges, to be added later."""
        on_edges: OnEdges = []
        for label, plan in self._editor.segment.branches.items():
            end = self._editor.segment.blocks[label].terminator
            assert end.branch is not None
            condition, code = end.operands[0].value, Code(self._names)
            if end.line in self._lines:  # as the published tool does: 1 where it goes to its false successor
                self._append(code, self._lines[end.line], code.value(f"xor i1 {condition}, true"))
            if plan.way == "each":
                self._append(code, end.branch, condition)
            elif plan.way == "lead":
                bit = code.value(f"zext i1 {condition} to i32")
                code.do(f"call void @cc_lead_outcome(ptr %cc.ctx, i32 {end.branch}, i32 {bit})")
            elif plan.way == "run":
                on_edges += self._count_run(label, end, plan)
            else:
                slot = self._editor.slot("row", "i8", _NOT_REACHED)
                code.store("i8", code.value(f"zext i1 {condition} to i8"), slot)
                self._outcomes.append((end.branch, slot, plan.way == "cell"))
            self._editor.at_end(label, code.texts)
        return on_edges

    def epilogue(self, code: Code) -> None:
        """Store the outcomes in rows and cells."""
        for branch, slot, for_all in self._outcomes:
            row = code.at("%cc.outcomes", ROW_BYTES * branch)
            address = code.at(row, 0 if for_all else "%cc.wi")
            code.store("i8", code.load("i8", slot), address, self._scopes.attach(f"row{branch}"))

    def _append(self, code: Code, history: int, condition: str) -> None:
        """Append one outcome to a history, and count its new last outcomes."""
        past_scope, table_scope = self._scopes.attach("past"), self._scopes.attach("table")
        past = code.at("%cc.past", 8 * history)
        moved = code.value(f"shl i64 {code.load('i64', past, past_scope)}, 1")
        outcomes = code.value(f"or i64 {moved}, {code.value(f'zext i1 {condition} to i64')}")
        table = code.at("%cc.tables", TABLE_BYTES * history)
        code.add_to("i64", code.at(table, outcomes, "i64"), 1, table_scope)
        is_full = code.value(f"icmp uge i64 {outcomes}, {2 << WINDOW}")
        low = code.value(f"and i64 {outcomes}, {(1 << WINDOW) - 1}")
        last = code.value(f"or i64 {low}, {1 << WINDOW}")
        code.store("i64", code.value(f"select i1 {is_full}, i64 {last}, i64 {outcomes}"), past, past_scope)

    def _count_run(self, label: str, end: ir.Instruction, plan: BranchPlan) -> OnEdges:
        """Count outcomes that stay in the loop, and record the run on every edge out of it."""
        assert plan.loop is not None
        assert end.branch is not None
        length = self._editor.slot("run", "i64")
        stay_bit = int(end.targets[0] == plan.stay)
        on_edges: OnEdges = [((label, plan.stay), self._editor.increment(length, "i64"))]
        for edge in self._editor.out_of(plan.loop):
            code = Code(self._names)
            history = code.at("%cc.histories", HISTORY_BYTES * end.branch)
            # The branch itself also records the outcome that leaves; elsewhere the run just ends.
            ended = "cc.leave_loop" if edge[0] == label else "cc.end_run"
            code.do(f"call void @{ended}(ptr {history}, i64 {code.load('i64', length)}, i64 {stay_bit})")
            code.store("i64", 0, length)
            on_edges.append((edge, code.texts))
        return on_edges

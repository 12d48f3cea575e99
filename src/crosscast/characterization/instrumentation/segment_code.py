"""The function of one segment: it runs one work-item from a barrier to the next, and counts.

How many instructions a work-item ran in a segment, and where that number is kept.

The number is not counted: it is a sum of the edges' counters, weighted by the lengths of blocks. It
is kept for each work-item, as part of its piece between barriers and of its total.

The published tool's freedom to reorder: where each work-item's last load or store stands.

It is the position among the work-item's instructions, added up over work-items.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import builtin_calls, graph
from crosscast.characterization.instrumentation import builtin_calls as collectives
from crosscast.characterization.instrumentation.accesses import Widening
from crosscast.characterization.instrumentation.block_costs import BlockCosts, costs_of
from crosscast.characterization.instrumentation.branch_code import BranchCode, BranchPlan, SegmentEditor
from crosscast.characterization.instrumentation.graph import Placement
from crosscast.characterization.instrumentation.instrumented import Frame, Shared
from crosscast.characterization.instrumentation.memory_code import MemoryCode
from crosscast.characterization.instrumentation.regions import Segment, is_barrier, slot_name
from crosscast.characterization.instrumentation.row_code import RowCode, split_function


def weights_of(placement: Placement, costs: dict[str, BlockCosts]) -> Counter[int]:
    """Instructions that each counted edge stands for; at -1, those that entering stands for."""
    weights: Counter[int] = Counter()
    for label, cost in costs.items():
        for number, sign in placement.blocks[label].items():
            weights[number] += sign * cost.instructions
    return weights


def sum_up(values: list[str], weights: Counter[int], shared: Shared) -> tuple[str, list[str]]:
    """Name of the number of instructions that ran, and the code that computes it."""
    total, texts = str(weights[-1]), []
    for number, value in enumerate(values):
        if weights[number]:
            scaled, added = shared.names.unique("e"), shared.names.unique("e")
            texts += [
                f"{scaled} = mul {shared.count_type} {value}, {weights[number]}",
                f"{added} = add {shared.count_type} {total}, {scaled}",
            ]
            total = added
    return total, texts


def store_count(total: str, barrier: str, segment: Segment, shared: Shared, edges: int) -> list[str]:
    """Keep the number of instructions that a work-item ran; so many edges of the segment are counted."""
    type_, unique, scopes = shared.count_type, shared.names.unique, shared.scopes
    lead_at = "%cc.lead = getelementptr i8, ptr %cc.live, i64 0"
    if segment.once:
        return [lead_at, f"store {type_} {total}, ptr %cc.lead{scopes.attach('lead')}"]
    name = "piece" if shared.several else "total"
    if not (shared.several or shared.by_turns or edges):
        return []  # as many for all work-items
    scope = scopes.attach(name)
    texts = [f"%cc.e.piece = getelementptr {type_}, ptr %cc.{name}, i64 %cc.wi"]

    def add(place: str) -> None:
        nonlocal total
        old, new = unique("e"), unique("e")
        texts.extend([f"{old} = load {type_}, ptr {place}", f"{new} = add {type_} {total}, {old}"])
        total = new

    if segment.number in shared.led:
        texts.append(lead_at)
        add(f"%cc.lead{scopes.attach('lead')}")
    if segment.after is not None and not is_barrier(segment.after):
        add(f"%cc.e.piece{scope}")  # a collective does not end a piece
    if shared.several:
        last, piece = unique("e"), unique("e")
        texts += [f"{last} = load {type_}, ptr {barrier}", f"{piece} = sub {type_} {total}, {last}"]
        total = piece
    return [*texts, f"store {type_} {total}, ptr %cc.e.piece{scope}"]


class OrderCode:
    """Tracks positions in one segment."""

    def __init__(self, editor: SegmentEditor, shared: Shared) -> None:
        self._editor, self._shared = editor, shared
        self._ran = editor.slot("ran", "i64")
        self._last = editor.slot("last", "i64")
        self._positions: dict[str, tuple[int, int]] = {}
        for label, block in editor.segment.blocks.items():
            counted = [i for i in block.instructions if i.counted]
            places = [n for n, i in enumerate(counted, 1) if i.opcode in ("load", "store")]
            self._positions[label] = (places[-1] if places else 0, len(counted))

    def insert(self) -> None:
        """Track the position at the end of each block."""
        unique = self._shared.names.unique
        for label, (position, length) in self._positions.items():
            here, then = unique("o"), unique("o")
            texts = [f"{here} = load i64, ptr {self._ran}"]
            if position:
                at = unique("o")
                texts += [f"{at} = add i64 {here}, {position}", f"store i64 {at}, ptr {self._last}"]
            texts += [f"{then} = add i64 {here}, {length}", f"store i64 {then}, ptr {self._ran}"]
            self._editor.at_end(label, texts)

    def epilogue(self) -> list[str]:
        """Carry the position on, and add it up where a work-item ends."""
        if self._editor.segment.once:
            return []
        number = self._shared.counters.for_order()
        return [
            "%cc.o.base = getelementptr [2 x i64], ptr %cc.order, i64 %cc.wi, i64 0",
            "%cc.o.place = getelementptr [2 x i64], ptr %cc.order, i64 %cc.wi, i64 1",
            f"%cc.o.ran = load i64, ptr {self._ran}",
            f"%cc.o.last = load i64, ptr {self._last}",
            "%cc.o.old = load i64, ptr %cc.o.place",
            *self._before(),
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

    def _before(self) -> list[str]:
        """Instructions that the work-item ran before this segment, those of a lead included."""
        shared = self._shared
        if self._editor.segment.number not in shared.led:
            return ["%cc.o.before = load i64, ptr %cc.o.base"]
        widen = "zext i32 %cc.o.lead to i64" if shared.narrow else "add i64 %cc.o.lead, 0"
        return [
            "%cc.o.before.old = load i64, ptr %cc.o.base",
            f"%cc.o.lead = load {shared.count_type}, ptr %cc.lead{shared.scopes.attach('lead')}",
            f"%cc.o.lead.wide = {widen}",
            "%cc.o.before = add i64 %cc.o.before.old, %cc.o.lead.wide",
        ]


@dataclass(frozen=True)
class SegmentPlan:
    """What to do to one segment."""

    segment: Segment  # The segment
    loops: list[graph.Loop]  # Its loops
    placement: graph.Placement  # Edges to count
    first: int  # Number of the first of their counters
    branches: dict[str, BranchPlan]  # How to record each branch, by its block


@dataclass(frozen=True)
class SegmentCode:
    """Code of one segment."""

    text: str  # IR of its functions
    costs: list[BlockCosts]  # Costs of its blocks
    # Descriptions of the slices by which accesses are recorded, once a work-group or once a launch
    group_slices: list[str]
    launch_slices: list[str]
    split: bool  # There is a function that tells where to divide the loop over work-items


def write_segment(plan: SegmentPlan, shared: Shared, lines: dict[int, int]) -> SegmentCode:
    """Write the functions of a segment."""
    return _Writer(plan, shared, lines).write()


class _Writer:
    def __init__(self, plan: SegmentPlan, shared: Shared, lines: dict[int, int]) -> None:
        self._plan, self._shared, self._segment = plan, shared, plan.segment
        blocks = self._segment.blocks.values()
        widening = Widening((i for b in blocks for i in b.instructions), shared.names.unique)
        self._editor = SegmentEditor(self._segment, shared.names)
        definitions = {i.result: i for b in blocks for i in b.instructions if i.result}
        self._memory = MemoryCode(shared, widening, definitions)
        self._branches = BranchCode(self._editor, shared.names, shared.scopes, plan.branches, lines)

    def write(self) -> SegmentCode:
        shared, segment = self._shared, self._segment
        costs = self._costs()
        order = OrderCode(self._editor, shared) if shared.switches.published else None
        rows = RowCode(segment, self._plan.loops, shared)
        functions, apart = rows.functions(), rows.apart
        split = split_function(segment, shared)
        for label, block in segment.blocks.items():
            costs[label].in_rows = sum(id(i) in apart for i in block.instructions)
            self._memory.rewrite(block, apart)
        if order:
            order.insert()
        counters = self._count_edges(rows.record_loops(self._editor))
        following, barrier = self._leave()
        body = self._body()
        frame = Frame(segment, shared)
        epilogue = [
            f"%cc.following = load i32, ptr {following}",
            *self._add_counts(counters, barrier, costs),
            *self._branches.epilogue(),
            *(order.epilogue() if order else []),
            "ret i32 %cc.following",
        ]
        whole = [
            *functions,
            split,
            frame.header("i32", f"cc.segment{segment.number}", divided=bool(split)),
            "cc.start:",
            *self._editor.slots,
            *frame.prologue(),
            *body,
            "cc.exit:",
            *(f"  {text}" for text in epilogue),
            "}",
        ]
        return SegmentCode(
            "\n".join(whole), list(costs.values()), rows.slices("group"), rows.slices("launch"), bool(split)
        )

    def _costs(self) -> dict[str, BlockCosts]:
        executions = {
            label: {
                self._segment.number if number < 0 else self._plan.first + number: sign
                for number, sign in terms.items()
            }
            for label, terms in self._plan.placement.blocks.items()
        }
        return costs_of(self._segment, executions, self._shared.classes, self._shared.barrier_before)

    def _count_edges(self, on_edges: list[tuple[graph.Edge, list[str]]]) -> list[str]:
        """Count edges and record branches; return the stack slots of the counters."""
        on_edges += self._branches.record()
        counters = []
        for edge in self._plan.placement.counted:
            counters.append(self._editor.slot("c", self._shared.count_type))
            on_edges.append((edge, self._editor.increment(counters[-1], self._shared.count_type)))
        for edge, texts in on_edges:
            self._editor.on_edge(edge, texts)
        return counters

    def _leave(self) -> tuple[str, str]:
        """Let every leaving block save what it carries and go to the common exit."""
        following = self._editor.slot("next", "i32")
        barrier = self._editor.slot("barrier", self._shared.count_type)
        for label, target in self._segment.exits.items():
            block = self._segment.blocks[label]
            texts: list[str] = []
            for carried in self._segment.save.get(label, []):
                slot = slot_name(carried.name) if carried.name in self._segment.slots else None
                texts += self._shared.live.save(carried, slot)
            cutter = self._shared.segments[target].after
            if self._shared.barrier_before(target):
                texts.append(f"store {self._shared.count_type} 1, ptr {barrier}")
            elif cutter is not None:
                hand_over = (
                    builtin_calls.hand_to_warp
                    if builtin_calls.is_warp_operation(cutter)
                    else collectives.hand_over
                )
                texts += hand_over(block.terminator, self._shared.names)
            texts.append(f"store i32 {target}, ptr {following}")
            if block.terminator.opcode != "unreachable":
                jump = ir.Instruction("br label %cc.exit", "br", counted=False)
                block.instructions[-1:] = [*map(ir.added, texts), jump]
        return following, barrier

    def _body(self) -> list[str]:
        """Text of the blocks, with local variables and private arrays in their places."""
        shared = self._shared
        late = self._expand_phis()
        rows = []
        for block in self._segment.blocks.values():
            rows.append(f"{block.label[1:]}:")
            *body, end = block.instructions
            for instruction in [*body, *late.get(block.label, []), end]:
                if instruction.opcode == "phi":
                    rows.append(ir.render_phi(instruction, block.label, self._segment.blocks))
                elif instruction.text:
                    for piece in shared.local.expand(instruction):
                        rows += [i.render() for i in shared.private.place(instruction, [piece])]
        return rows

    def _expand_phis(self) -> dict[str, list[ir.Instruction]]:
        """Instructions that the values of phis need at the end of the blocks that they come from."""
        late: dict[str, list[ir.Instruction]] = {}
        for block in self._segment.blocks.values():
            for phi in block.phis():
                for position, (value, label) in enumerate(phi.incoming):
                    *steps, carrier = self._shared.local.expand(ir.added(value))
                    late.setdefault(label, []).extend(steps)
                    phi.incoming[position] = (carrier.text, label)
        return late

    def _add_counts(self, counters: list[str], barrier: str, costs: dict[str, BlockCosts]) -> list[str]:
        """Add the counters to the group's, and keep the number of instructions."""
        shared, type_, unique = self._shared, self._shared.count_type, self._shared.names.unique
        texts, times = [], "1"
        if self._segment.once:
            times = "%cc.items.c"
            convert = "trunc i64 %cc.items to i32" if shared.narrow else "add i64 %cc.items, 0"
            texts.append(f"{times} = {convert}")
        values = []
        for number, counter in enumerate(counters, self._plan.first):
            value, scaled, address, old, new = (unique("e") for _ in range(5))
            values.append(value)
            texts += [
                f"{value} = load {type_}, ptr {counter}",
                f"{scaled} = mul {type_} {value}, {times}",
                f"{address} = getelementptr {type_}, ptr %cc.acc, i64 {number}",
                f"{old} = load {type_}, ptr {address}",
                f"{new} = add {type_} {old}, {scaled}",
                f"store {type_} {new}, ptr {address}",
            ]
        total, sums = sum_up(values, weights_of(self._plan.placement, costs), shared)
        return [*texts, *sums, *store_count(total, barrier, self._segment, shared, len(counters))]

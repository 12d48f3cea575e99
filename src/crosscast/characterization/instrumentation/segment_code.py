"""The function of one segment: it runs one work-item from a barrier to the next, and counts.

How many instructions a work-item ran is not counted: it is a sum of the edges' counters, weighted by the
lengths of blocks. It is kept for each work-item, as part of its piece between barriers and of its total.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import builtin_calls
from crosscast.characterization.instrumentation.block_costs import BlockCosts
from crosscast.characterization.instrumentation.branch_code import BranchCode, SegmentEditor
from crosscast.characterization.instrumentation.builtin_calls import is_barrier
from crosscast.characterization.instrumentation.context import Code
from crosscast.characterization.instrumentation.instrumented import Frame, Instrumented
from crosscast.characterization.instrumentation.memory_code import MemoryCode
from crosscast.characterization.instrumentation.regions import Segment, slot_name
from crosscast.characterization.instrumentation.row_code import RowCode, split_function


class OrderCode:
    """The published tool's freedom to reorder: where each work-item's last load or store stands.

    It is the position among the work-item's instructions, added up over work-items.
    """

    def __init__(self, editor: SegmentEditor, shared: Instrumented) -> None:
        self._editor, self._shared = editor, shared
        self._ran, self._last = editor.slot("ran", "i64"), editor.slot("last", "i64")
        self._positions: dict[str, tuple[int, int]] = {}
        for label, block in editor.segment.blocks.items():
            counted = [i for i in block.instructions if i.counted]
            places = [n for n, i in enumerate(counted, 1) if i.opcode in ("load", "store")]
            self._positions[label] = (places[-1] if places else 0, len(counted))

    def insert(self) -> None:
        """Track the position at the end of each block."""
        for label, (position, length) in self._positions.items():
            code = Code(self._shared.names)
            here = code.load("i64", self._ran)
            if position:
                code.store("i64", code.value(f"add i64 {here}, {position}"), self._last)
            code.store("i64", code.value(f"add i64 {here}, {length}"), self._ran)
            self._editor.at_end(label, code.texts)

    def epilogue(self, code: Code, following: str) -> None:
        """Carry the position on, and add it up where a work-item ends."""
        shared, segment = self._shared, self._editor.segment
        if segment.once:
            return
        base, place = (code.at("%cc.order", f"%cc.wi, i64 {k}", "[2 x i64]") for k in (0, 1))
        ran, last, old = (code.load("i64", address) for address in (self._ran, self._last, place))
        before = code.load("i64", base)
        if shared.is_led(segment.number):
            lead = code.load(shared.count_type, "%cc.live", shared.scopes.attach("lead"))
            wide = code.value(f"zext i32 {lead} to i64") if shared.narrow else lead
            before = code.value(f"add i64 {before}, {wide}")
        code.store("i64", code.value(f"add i64 {before}, {ran}"), base)
        moved = code.value(f"add i64 {before}, {last}")
        none = code.value(f"icmp eq i64 {last}, 0")
        end = code.value(f"select i1 {none}, i64 {old}, i64 {moved}")
        code.store("i64", end, place)
        done = code.value(f"icmp eq i32 {following}, 0")
        amount = code.value(f"select i1 {done}, i64 {end}, i64 0")
        shared.count(code, shared.counters.for_order(), amount)


@dataclass(frozen=True)
class SegmentCode:
    """Code of one segment."""

    text: str  # IR of its functions
    costs: list[BlockCosts]  # Costs of its blocks
    # Descriptions of the slices by which accesses are recorded, once a work-group or once a launch
    group_slices: list[str]
    launch_slices: list[str]
    split: bool  # There is a function that tells where to divide the loop over work-items


def write_segment(segment: Segment, shared: Instrumented) -> SegmentCode:
    """Write the functions of a segment."""
    counts = shared.switches.counts
    costs = _costs(segment, shared) if counts else {}
    editor = SegmentEditor(segment, shared.names)
    memory = MemoryCode(segment, shared, editor)
    branches = BranchCode(editor, shared.names, shared.scopes, segment.branches, shared.line_branches)
    order = OrderCode(editor, shared) if shared.switches.published else None
    rows = RowCode(segment, segment.loops, shared)
    functions, apart = rows.functions(), rows.apart
    split = split_function(segment, shared)
    for label, block in segment.blocks.items():
        if counts:
            costs[label].in_rows = sum(id(i) in apart for i in block.instructions)
        memory.rewrite(block, apart)
    if order:
        order.insert()
    on_edges = rows.record_loops(editor) + branches.record()
    counters = []
    for edge in segment.placement.counted:
        counters.append(editor.slot("c", shared.count_type))
        on_edges.append((edge, editor.increment(counters[-1], shared.count_type)))
    for edge, texts in on_edges:
        editor.on_edge(edge, texts)
    next_slot, barrier_slot = editor.slot("next", "i32"), editor.slot("barrier", shared.count_type)
    _leave(segment, shared, next_slot, barrier_slot)
    end = Code(shared.names)
    memory.epilogue(end)
    following = end.load("i32", next_slot)
    if counts:
        total = _add_counts(segment, counters, costs, shared, end)
        _keep_total(segment, total, barrier_slot, shared, end)
    end.do(*branches.epilogue())
    if order:
        order.epilogue(end, following)
    end.do(f"ret i32 {following}")
    frame = Frame(segment, shared)
    whole = [
        *functions,
        *split,
        frame.header("i32", f"cc.segment{segment.number}", divided=bool(split)),
        "cc.start:",
        *editor.slots,
        *frame.prologue(),
        *_body(segment),
        "cc.exit:",
        *(f"  {text}" for text in end.texts),
        "}",
    ]
    slices = rows.slices("group"), rows.slices("launch")
    return SegmentCode("\n".join(whole), list(costs.values()), *slices, bool(split))


def _costs(segment: Segment, shared: Instrumented) -> dict[str, BlockCosts]:
    """Costs of each block, as the kernel's author wrote it."""
    found = {}
    for label, block in segment.blocks.items():
        terms = segment.placement.blocks[label].items()
        found[label] = cost = BlockCosts(
            label=label,
            executions={segment.number if n < 0 else segment.first_counter + n: sign for n, sign in terms},
            branch=block.terminator.branch,
            barriers=int(shared.barrier_before(segment.exits.get(label, 0))),
        )
        for instruction in block.instructions:
            if instruction.counted:
                cost.add(instruction, shared.classes)
    return found


def _leave(segment: Segment, shared: Instrumented, next_slot: str, barrier_slot: str) -> None:
    """Let every leaving block save what it carries and go to the common exit."""
    for label, target in segment.exits.items():
        block, code = segment.blocks[label], Code(shared.names)
        for carried in segment.save.get(label, []):
            slot = slot_name(carried.name) if carried.name in segment.slots else None
            code.do(*shared.live.save(carried, slot))
        if shared.barrier_before(target):
            code.store(shared.count_type, 1, barrier_slot)
        elif shared.segments[target].after is not None:
            builtin_calls.hand_over(block.terminator, code)
        code.store("i32", target, next_slot)
        if block.terminator.opcode != "unreachable":
            block.instructions[-1:] = [*map(ir.added, code.texts), ir.jump("%cc.exit")]


def _body(segment: Segment) -> list[str]:
    """Text of the blocks."""
    rows = []
    for block in segment.blocks.values():
        rows.append(f"{block.label[1:]}:")
        rows += [
            ir.render_phi(i, block.label, segment.blocks) if i.opcode == "phi" else i.render()
            for i in block.instructions
            if i.text
        ]
    return rows


def _add_counts(
    segment: Segment, counters: list[str], costs: dict[str, BlockCosts], shared: Instrumented, code: Code
) -> str:
    """Add the counters to the group's, and return the number of instructions that ran."""
    type_, times = shared.count_type, "1"
    if shared.by_turns:
        shared.sub_groups.count(code, segment.number, "1", type_, several=True)
    if segment.once:
        times = code.value("trunc i64 %cc.items to i32") if shared.narrow else "%cc.items"
    values = []
    for number, counter in zip(segment.counters, counters, strict=True):
        values.append(code.load(type_, counter))
        shared.sub_groups.count(code, number, values[-1], type_, several=shared.several or shared.by_turns)
        scaled = code.value(f"mul {type_} {values[-1]}, {times}")
        code.add_to(type_, code.at("%cc.acc", number, type_), scaled)
    weights: Counter[int] = Counter()  # instructions that each counted edge stands for; at -1, entering
    for label, cost in costs.items():
        for number, sign in segment.placement.blocks[label].items():
            weights[number] += sign * cost.instructions
    total = str(weights[-1])
    for number, value in enumerate(values):
        if weights[number]:
            scaled = code.value(f"mul {type_} {value}, {weights[number]}")
            total = code.value(f"add {type_} {total}, {scaled}")
    return total


def _keep_total(segment: Segment, total: str, barrier_slot: str, shared: Instrumented, code: Code) -> None:
    """Keep the number of instructions that a work-item ran."""
    type_, lead_scope = shared.count_type, shared.scopes.attach("lead")
    if segment.once:
        code.store(type_, total, "%cc.live", lead_scope)
        return
    if not (shared.several or shared.by_turns or segment.counters):
        return  # as many for all work-items
    name = "piece" if shared.several else "total"
    place, scope = code.at(f"%cc.{name}", "%cc.wi", type_), shared.scopes.attach(name)
    if shared.is_led(segment.number):
        total = code.value(f"add {type_} {total}, {code.load(type_, '%cc.live', lead_scope)}")
    if segment.after is not None and not is_barrier(segment.after):
        # A collective does not end a piece.
        total = code.value(f"add {type_} {total}, {code.load(type_, place, scope)}")
    if shared.several:
        total = code.value(f"sub {type_} {total}, {code.load(type_, barrier_slot)}")
    code.store(type_, total, place, scope)

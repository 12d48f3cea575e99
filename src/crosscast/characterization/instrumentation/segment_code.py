"""Function of one segment, which runs one work-item from a barrier to the next, and counts.

Instructions of a work-item are not counted: their number is a sum of the edges' counters, weighted by the
lengths of blocks. It is stored for each work-item, as part of its piece between barriers and of its total.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import BlockCosts
from crosscast.characterization.instrumentation import builtin_calls
from crosscast.characterization.instrumentation.branch_code import BranchCode, SegmentEditor
from crosscast.characterization.instrumentation.builtin_calls import is_barrier
from crosscast.characterization.instrumentation.code import Code
from crosscast.characterization.instrumentation.emission import Emission, Frame
from crosscast.characterization.instrumentation.instruction_kinds import add_instruction
from crosscast.characterization.instrumentation.memory_code import MemoryCode
from crosscast.characterization.instrumentation.segments import Segment, slot_name
from crosscast.characterization.instrumentation.strided_code import StridedCode, split_function


class OrderCode:
    """The published tool's freedom to reorder: the position of each work-item's last load or store.

    It is the position among the work-item's instructions, summed over work-items.
    """

    def __init__(self, editor: SegmentEditor, emission: Emission) -> None:
        self._editor, self._emission = editor, emission
        self._ran, self._last = editor.slot("ran", "i64"), editor.slot("last", "i64")
        self._positions: dict[str, tuple[int, int]] = {}
        for label, block in editor.segment.blocks.items():
            counted = [i for i in block.instructions if i.counted]
            accesses = [n for n, i in enumerate(counted, 1) if i.opcode in ("load", "store")]
            self._positions[label] = (accesses[-1] if accesses else 0, len(counted))

    def insert(self) -> None:
        """Track the position at the end of each block."""
        for label, (position, length) in self._positions.items():
            code = Code(self._emission.names)
            position_before = code.load("i64", self._ran)
            if position:
                code.store("i64", code.value(f"add i64 {position_before}, {position}"), self._last)
            code.store("i64", code.value(f"add i64 {position_before}, {length}"), self._ran)
            self._editor.at_end(label, code.texts)

    def epilogue(self, code: Code, following: str) -> None:
        """Carry the position over, and add it at the end of a work-item."""
        emission, segment = self._emission, self._editor.segment
        plan = emission.plan
        if segment.once:
            return
        base, kept = (code.at("%cc.order", f"%cc.wi, i64 {k}", "[2 x i64]") for k in (0, 1))
        ran, last, old = (code.load("i64", address) for address in (self._ran, self._last, kept))
        before = code.load("i64", base)
        if plan.follows_uniform(segment.number):
            lead = code.load(plan.count_type, "%cc.live", emission.scopes.attach("lead"))
            wide = code.value(f"zext i32 {lead} to i64") if plan.counts_fit_32_bits else lead
            before = code.value(f"add i64 {before}, {wide}")
        code.store("i64", code.value(f"add i64 {before}, {ran}"), base)
        moved = code.value(f"add i64 {before}, {last}")
        none = code.value(f"icmp eq i64 {last}, 0")
        end = code.value(f"select i1 {none}, i64 {old}, i64 {moved}")
        code.store("i64", end, kept)
        done = code.value(f"icmp eq i32 {following}, 0")
        amount = code.value(f"select i1 {done}, i64 {end}, i64 0")
        emission.count(code, emission.counter_for_order(), amount)


@dataclass(frozen=True)
class SegmentCode:
    """Code of one segment."""

    text: str  # IR of its functions
    costs: list[BlockCosts]  # Costs of its blocks
    # Descriptions of the slices by which accesses are recorded, once a work-group or once a launch
    group_slices: list[str]
    launch_slices: list[str]
    split: bool  # There is a function that computes where to divide the loop over work-items


def write_segment(segment: Segment, emission: Emission) -> SegmentCode:
    """Write the functions of a segment."""
    plan, counts = emission.plan, emission.plan.options.counts
    costs = _costs(segment, emission) if counts else {}
    editor = SegmentEditor(segment, emission.names)
    memory = MemoryCode(segment, emission, editor)
    branches = BranchCode(editor, emission.scopes, plan.line_branches)
    order = OrderCode(editor, emission) if plan.options.published else None
    strided = StridedCode(segment, emission)
    functions, apart = strided.functions(), strided.apart
    split = split_function(segment, emission)
    for label, block in segment.blocks.items():
        if counts:
            costs[label].strided = sum(id(i) in apart for i in block.instructions)
        memory.rewrite(block, apart)
    if order:
        order.insert()
    on_edges = strided.record_loops(editor) + branches.record()
    counters = []
    for edge in segment.placement.counted:
        counters.append(editor.slot("c", plan.count_type))
        on_edges.append((edge, editor.increment(counters[-1], plan.count_type)))
    for edge, texts in on_edges:
        editor.on_edge(edge, texts)
    next_slot, barrier_slot = editor.slot("next", "i32"), editor.slot("barrier", plan.count_type)
    _leave(segment, emission, next_slot, barrier_slot)
    end, first = Code(emission.names), Code(emission.names)
    is_repeated = plan.groups_alike and plan.has_several_segments and not segment.once
    repeated = first if is_repeated else end
    memory.epilogue(end, first)
    if not is_repeated:
        end.do_if("icmp ne i64 %cc.first, 0", first)
    following = end.load("i32", next_slot)
    if counts:
        total = _add_counts(segment, counters, costs, emission, end, repeated)
        _keep_total(segment, total, barrier_slot, emission, repeated)
    rows = segment.recorded("cell", "row")
    branches.epilogue(repeated if plan.histories_repeated.issuperset(rows) else end)
    if is_repeated:
        end.do_if("icmp ne i64 %cc.first, 0", first)
    if order:
        order.epilogue(end, following)
    end.do(f"ret i32 {following}")
    frame = Frame(segment, emission)
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
    slices = strided.slices("group"), strided.slices("launch")
    return SegmentCode("\n".join(whole), list(costs.values()), *slices, bool(split))


def _costs(segment: Segment, emission: Emission) -> dict[str, BlockCosts]:
    """Return the costs of each block, before instrumentation."""
    costs = {}
    for label, block in segment.blocks.items():
        terms = segment.placement.blocks[label].items()
        costs[label] = block_costs = BlockCosts(
            label=label,
            executions={segment.number if n < 0 else segment.first_counter + n: sign for n, sign in terms},
            branch=block.terminator.branch,
            barriers=int(emission.plan.barrier_before(segment.exits.get(label, 0))),
        )
        for instruction in block.instructions:
            if instruction.counted:
                add_instruction(block_costs, instruction, emission.plan.classes)
    return costs


def _leave(segment: Segment, emission: Emission, next_slot: str, barrier_slot: str) -> None:
    """Let every leaving block save its live values and jump to the common exit."""
    plan = emission.plan
    for label, target in segment.exits.items():
        block, code = segment.blocks[label], Code(emission.names)
        for carried in segment.save.get(label, []):
            slot = slot_name(carried.name) if carried.name in segment.slots else None
            plan.live.save(carried, slot, code, emission.scopes)
        if plan.barrier_before(target):
            code.store(plan.count_type, 1, barrier_slot)
        elif plan.segments[target].after is not None:
            builtin_calls.hand_over(block.terminator, code)
        code.store("i32", target, next_slot)
        if block.terminator.opcode != "unreachable":
            block.instructions[-1:] = [*map(ir.added, code.texts), ir.jump("%cc.exit")]


def _body(segment: Segment) -> list[str]:
    texts = []
    for block in segment.blocks.values():
        texts.append(f"{block.label[1:]}:")
        texts += [
            ir.render_phi(i, block.label, segment.blocks) if i.opcode == "phi" else i.render()
            for i in block.instructions
            if i.text
        ]
    return texts


def _add_counts(
    segment: Segment,
    counters: list[str],
    costs: dict[str, BlockCosts],
    emission: Emission,
    code: Code,
    repeated: Code,
) -> str:
    """Add the counters to the group's, and return the number of executed instructions.

    `repeated`: for counts of work-items.
    """
    plan = emission.plan
    type_, times = plan.count_type, "1"
    if plan.per_warp:
        emission.recording.count(code, segment.number, "1", type_, several=True)
    if segment.once:
        times = code.value("trunc i64 %cc.items to i32") if plan.counts_fit_32_bits else "%cc.items"
    values, several = [], plan.has_several_segments or plan.per_warp
    for number, counter in zip(segment.counters, counters, strict=True):
        values.append(code.load(type_, counter))
        to = repeated if number in plan.columns else code
        emission.recording.count(to, number, values[-1], type_, several=several)
        scaled = code.value(f"mul {type_} {values[-1]}, {times}")
        code.add_to(type_, code.at("%cc.acc", number, type_), scaled)
    weights: Counter[int] = Counter()  # instructions for each counted edge; at -1, for entering
    for label, cost in costs.items():
        for number, sign in segment.placement.blocks[label].items():
            weights[number] += sign * cost.instructions
    total = str(weights[-1])
    for number, value in enumerate(values):
        if weights[number]:
            scaled = code.value(f"mul {type_} {value}, {weights[number]}")
            total = code.value(f"add {type_} {total}, {scaled}")
    return total


def _keep_total(segment: Segment, total: str, barrier_slot: str, emission: Emission, code: Code) -> None:
    """Store the number of instructions that a work-item executed."""
    plan = emission.plan
    type_, lead_scope = plan.count_type, emission.scopes.attach("lead")
    if segment.once:
        code.store(type_, total, "%cc.live", lead_scope)
        return
    if not (plan.has_several_segments or plan.per_warp or segment.counters):
        return  # the same for all work-items
    name = "piece" if plan.has_several_segments else "total"
    kept, scope = code.at(f"%cc.{name}", "%cc.wi", type_), emission.scopes.attach(name)
    if plan.follows_uniform(segment.number):
        total = code.value(f"add {type_} {total}, {code.load(type_, '%cc.live', lead_scope)}")
    if segment.after is not None and not is_barrier(segment.after):
        # A collective does not end a piece.
        total = code.value(f"add {type_} {total}, {code.load(type_, kept, scope)}")
    if plan.has_several_segments:
        total = code.value(f"sub {type_} {total}, {code.load(type_, barrier_slot)}")
    code.store(type_, total, kept, scope)

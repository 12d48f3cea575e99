"""The function of one segment: it runs one work-item from a barrier to the next, and counts."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import collectives, graph
from crosscast.characterization.instrumentation.block_costs import BlockCosts, costs_of
from crosscast.characterization.instrumentation.branch_code import BranchCode
from crosscast.characterization.instrumentation.counting_code import CountingCode
from crosscast.characterization.instrumentation.frame import Frame
from crosscast.characterization.instrumentation.histories import BranchPlan
from crosscast.characterization.instrumentation.instruction_counts import store_count, sum_up, weights_of
from crosscast.characterization.instrumentation.memory_code import MemoryCode
from crosscast.characterization.instrumentation.order_code import OrderCode
from crosscast.characterization.instrumentation.segment_editor import SegmentEditor
from crosscast.characterization.instrumentation.segments import Segment, slot_name
from crosscast.characterization.instrumentation.shared import Shared
from crosscast.characterization.instrumentation.widening import Widening

__all__ = ["SegmentCode", "SegmentPlan", "write_segment"]


@dataclass(frozen=True)
class SegmentPlan:
    """What to do to one segment.

    Parameters
    ----------
    segment
        The segment.
    loops
        Its loops.
    placement
        Edges to count.
    first
        Number of the first of their counters.
    branches
        How to record each branch, by its block.
    """

    segment: Segment
    loops: list[graph.Loop]
    placement: graph.Placement
    first: int
    branches: dict[str, BranchPlan]


@dataclass(frozen=True)
class SegmentCode:
    """Code of one segment.

    Parameters
    ----------
    text
        IR of its functions.
    costs
        Costs of its blocks.
    apart
        Number of accesses that are counted in functions of their own.
    """

    text: str
    costs: list[BlockCosts]
    apart: int


def write_segment(plan: SegmentPlan, shared: Shared, lines: dict[int, int]) -> SegmentCode:
    """Write the functions of a segment.

    Parameters
    ----------
    plan
        What to do; the blocks of the segment are rewritten.
    shared
        What the kernel's segments share.
    lines
        For published conventions: history of each source line that several branches share.
    """
    return _Writer(plan, shared, lines).write()


class _Writer:
    def __init__(self, plan: SegmentPlan, shared: Shared, lines: dict[int, int]) -> None:
        self._plan, self._shared, self._segment = plan, shared, plan.segment
        blocks = self._segment.blocks.values()
        widening = Widening((i for b in blocks for i in b.instructions), shared.names.unique)
        self._editor = SegmentEditor(self._segment, shared.names)
        self._memory = MemoryCode(shared, widening)
        self._branches = BranchCode(self._editor, shared.names, shared.scopes, plan.branches, lines)

    def write(self) -> SegmentCode:
        shared, segment = self._shared, self._segment
        costs = self._costs()
        order = OrderCode(self._editor, shared) if shared.switches.published else None
        counting = CountingCode(segment, self._plan.loops, shared, self._memory)
        functions = counting.functions()
        for block in segment.blocks.values():
            self._memory.rewrite(block, counting.apart)
        if order:
            order.insert()
        counters = self._count_edges()
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
        rows = [
            *functions,
            frame.header("i32", f"cc.segment{segment.number}"),
            "cc.start:",
            *self._editor.slots,
            *frame.prologue(),
            *body,
            "cc.exit:",
            *(f"  {text}" for text in epilogue),
            "}",
        ]
        return SegmentCode("\n".join(rows), list(costs.values()), len(functions))

    def _costs(self) -> dict[str, BlockCosts]:
        executions = {
            label: {
                self._segment.number if number < 0 else self._plan.first + number: sign
                for number, sign in terms.items()
            }
            for label, terms in self._plan.placement.blocks.items()
        }
        return costs_of(self._segment, executions, self._shared.classes, self._shared.barrier_before)

    def _count_edges(self) -> list[str]:
        """Count edges and record branches; return the stack slots of the counters."""
        on_edges = self._branches.record()
        counters = []
        for edge in self._plan.placement.counted:
            counters.append(self._editor.slot("c", self._shared.count_type))
            on_edges.append((edge, self._editor.increment(counters[-1], self._shared.count_type)))
        for edge, texts in on_edges:
            self._editor.on_edge(edge, texts)
        return counters

    def _leave(self) -> tuple[str, str]:
        """Let every leaving block save what it carries and go to the common exit.

        Returns
        -------
        tuple
            Stack slots of the segment that follows, and of 1 if a barrier comes before it.
        """
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
                texts += collectives.hand_over(cutter, self._shared.names)
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
                    rows.append(instruction.render())
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
        return [*texts, *sums, *store_count(total, barrier, self._segment, shared)]

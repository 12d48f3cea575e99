"""Code that records the outcomes of a segment's conditional branches, each in its planned way."""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import context, graph
from crosscast.characterization.instrumentation.histories import BranchPlan
from crosscast.characterization.instrumentation.names import Names
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.segment_editor import SegmentEditor

__all__ = ["BranchCode"]

OnEdges = list[tuple[graph.Edge, list[str]]]

_NOT_REACHED = "2"
"""Outcome of a branch that a work-item did not come to."""


class BranchCode:
    """Records the branches of one segment.

    Parameters
    ----------
    editor
        Adds code to the segment.
    names
        Where new names come from.
    scopes
        The kernel's alias scopes.
    plans
        How to record each branch, by its block.
    lines
        For published conventions: history of each source line that several branches share.
    """

    def __init__(
        self,
        editor: SegmentEditor,
        names: Names,
        scopes: Scopes,
        plans: dict[str, BranchPlan],
        lines: dict[int, int],
    ) -> None:
        self._editor, self._unique, self._scopes = editor, names.unique, scopes
        self._plans, self._lines = plans, lines
        self._outcomes: list[tuple[int, str, bool]] = []  # branch, its slot, one for all work-items

    def record(self) -> OnEdges:
        """Record all branches; what has to stand on edges is returned, to be added later."""
        on_edges: OnEdges = []
        for label, plan in self._plans.items():
            end = self._editor.segment.blocks[label].terminator
            assert end.branch is not None
            condition = end.text.removeprefix("br i1 ").split(",")[0]
            if end.line in self._lines:
                self._record_line(label, self._lines[end.line], condition)
            if plan.way == "each":
                self._editor.at_end(label, self._append(end.branch, condition))
            elif plan.way == "lead":
                self._editor.at_end(label, self._note_in_lead(end.branch, condition))
            elif plan.way == "run":
                on_edges += self._count_run(label, end, plan)
            else:
                slot = self._editor.slot("row", "i8", _NOT_REACHED)
                bit = self._unique("bit")
                texts = [f"{bit} = zext i1 {condition} to i8", f"store i8 {bit}, ptr {slot}"]
                self._editor.at_end(label, texts)
                self._outcomes.append((end.branch, slot, plan.way == "cell"))
        return on_edges

    def epilogue(self) -> list[str]:
        """Store the outcomes that rows and cells are made of."""
        texts = []
        for branch, slot, for_all in self._outcomes:
            bit, address = self._unique("e"), self._unique("e")
            texts += [
                f"{bit} = load i8, ptr {slot}",
                f"{address}.row = getelementptr i8, ptr %cc.outcomes, i64 {context.ROW_BYTES * branch}",
                f"{address} = getelementptr i8, ptr {address}.row, i64 {'0' if for_all else '%cc.wi'}",
                f"store i8 {bit}, ptr {address}{self._scopes.attach(f'row{branch}')}",
            ]
        return texts

    def _record_line(self, label: str, history: int, condition: str) -> None:
        """Record an outcome as the published tool does: 1 where the branch goes to its false successor."""
        flipped = self._unique("bit")
        texts = [f"{flipped} = xor i1 {condition}, true", *self._append(history, flipped)]
        self._editor.at_end(label, texts)

    def _append(self, history: int, condition: str) -> list[str]:
        """Append one outcome to a history, and count the outcomes that it now ends with."""
        past_scope, table_scope = self._scopes.attach("past"), self._scopes.attach("table")
        past, table, now, bit, moved, outcomes, entry, old, new, full, low, last, then = (
            self._unique("h") for _ in range(13)
        )
        return [
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

    def _note_in_lead(self, branch: int, condition: str) -> list[str]:
        bit = self._unique("bit")
        return [
            f"{bit} = zext i1 {condition} to i32",
            f"call void @cc_lead_outcome(ptr %cc.ctx, i32 {branch}, i32 {bit})",
        ]

    def _count_run(self, label: str, end: ir.Instruction, plan: BranchPlan) -> OnEdges:
        """Count outcomes that stay in the loop, and record the run on every edge out of it."""
        assert plan.loop is not None
        assert end.branch is not None
        length = self._editor.slot("run", "i64")
        stay_bit = int(ir.branch_targets(end)[0] == plan.stay)
        offset = context.HISTORY_BYTES * end.branch
        on_edges: OnEdges = [((label, plan.stay), self._editor.increment(length, "i64"))]
        for source in sorted(plan.loop.blocks):
            targets = [t for t in self._editor.flow[source] if t not in plan.loop.blocks]
            if source in self._editor.segment.exits:
                targets.append(graph.EXIT)
            for target in targets:
                now, history = self._unique("n"), self._unique("h")
                # The branch itself also records the outcome that leaves; elsewhere the run just ends.
                ended = "cc.leave_loop" if source == label else "cc.end_run"
                texts = [
                    f"{history} = getelementptr i8, ptr %cc.histories, i64 {offset}",
                    f"{now} = load i64, ptr {length}",
                    f"call void @{ended}(ptr {history}, i64 {now}, i64 {stay_bit})",
                    f"store i64 0, ptr {length}",
                ]
                on_edges.append(((source, target), texts))
        return on_edges

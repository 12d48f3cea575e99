"""The published tool's freedom to reorder: where each work-item's last load or store stands.

It is the position among the work-item's instructions, added up over work-items.
"""

from __future__ import annotations

from crosscast.characterization.instrumentation.segment_editor import SegmentEditor
from crosscast.characterization.instrumentation.shared import Shared

__all__ = ["OrderCode"]


class OrderCode:
    """Tracks positions in one segment.

    Parameters
    ----------
    editor
        Adds code to the segment, which nothing has been added to yet.
    shared
        What the kernel's segments share.
    """

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

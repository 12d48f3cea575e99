"""Private arrays and structures of a work-item, and where they stand.

In a kernel of one segment they are stack slots. An array that lives across a barrier outlives the
function of its segment, so it stands in memory of the work-group then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crosscast.characterization import ir
from crosscast.characterization.frontend import byval_type
from crosscast.characterization.instrumentation.accesses import scalar_bytes
from crosscast.characterization.instrumentation.segments import Segment

__all__ = ["PrivateArrays", "copy_structures"]

_ALIGNMENT = 64

Sizes = dict[str, tuple[int, int]]


class PrivateArrays:
    """Places of a kernel's private arrays.

    Parameters
    ----------
    segments
        The kernel's segments, before anything is added to them.
    sizes
        Size and alignment of each type.
    """

    def __init__(self, segments: Sequence[Segment], sizes: Sizes) -> None:
        self.stack_bytes = 0
        """Bytes of one work-item on the stack."""
        self.nbytes = 0
        """Bytes of one work-item that live across barriers."""
        self._offsets: dict[str, int] = {}
        arrays = [
            i
            for segment in segments
            for block in segment.blocks.values()
            for i in block.instructions
            if i.opcode == "alloca" and i.text and i.result
        ]
        if len(segments) == 1:
            self.stack_bytes = sum(_alloca_bytes(i, sizes) for i in arrays)
            return
        for array in arrays:
            if array.result and array.result not in self._offsets:
                self._offsets[array.result] = self.nbytes
                self.nbytes += -(-_alloca_bytes(array, sizes) // _ALIGNMENT) * _ALIGNMENT

    def prologue(self) -> list[str]:
        """Instructions that compute where the work-item's arrays start."""
        if not self.nbytes:
            return []
        return [
            f"%cc.mine.at = mul i64 %cc.wi, {self.nbytes}",
            "%cc.mine = getelementptr i8, ptr %cc.private, i64 %cc.mine.at",
        ]

    def place(self, original: ir.Instruction, lowered: list[ir.Instruction]) -> list[ir.Instruction]:
        """Let an array that lives across barriers be an address instead of a stack slot."""
        if original.opcode == "alloca" and original.result in self._offsets:
            for instruction in lowered:
                offset = self._offsets[original.result]
                instruction.text = f"getelementptr i8, ptr %cc.mine, i64 {offset}"
        return lowered


def copy_structures(function: ir.Function, sizes: Sizes) -> None:
    """Give each work-item its own copy of a structure that is passed by value.

    Parameters
    ----------
    function
        The kernel; its parameters become pointers to what is copied.
    sizes
        Size and alignment of each type.
    """
    copies: list[ir.Instruction] = []
    for position, parameter in enumerate(function.parameters):
        type_ = byval_type(parameter)
        if not type_:
            continue
        given = f"%cc.given{position}"
        slot, nbytes = f"alloca {type_}, align 16", sizes[type_][0]
        copies.append(ir.Instruction(slot, "alloca", "ptr", parameter.name, counted=False))
        text = f"call void @llvm.memcpy.p0.p0.i64(ptr {parameter.name}, ptr {given}, i64 {nbytes}, i1 false)"
        copies.append(ir.Instruction(text, "call", counted=False))
        function.parameters[position] = ir.Parameter("ptr", "", given)
    function.entry.instructions[:0] = copies


def _alloca_bytes(instruction: ir.Instruction, sizes: Sizes) -> int:
    """Bytes of a stack slot: of a scalar, vector or structure, or an array of these."""
    return _type_bytes(ir.split_top_level(instruction.text.removeprefix("alloca "))[0], sizes)


def _type_bytes(type_: str, sizes: Sizes) -> int:
    if array := re.fullmatch(r"\[(\d+) x (.*)\]", type_):
        return int(array[1]) * _type_bytes(array[2], sizes)
    return sizes[type_][0] if type_ in sizes else scalar_bytes(type_)

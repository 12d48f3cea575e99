"""Where values, variables and arrays of work-items stand in memory.

Memory of values that live across barriers: an array per value, with a place per work-item.

A uniform value has one place a work-group. Two places, in fact: what enters a segment stays while
the segment runs, so what leaves it stands apart, and the driver hands it on.

The program's local variables: each stands at an offset in the local memory of the thread.

A variable at module level has one address, but every thread runs a work-group of its own. So each
use of a local variable becomes an address that the segment computes at its start.

Private arrays and structures of a work-item, and where they stand.

In a kernel of one segment they are stack slots. An array that lives across a barrier outlives the
function of its segment, so it stands in memory of the work-group then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import context
from crosscast.characterization.instrumentation.accesses import scalar_bytes
from crosscast.characterization.instrumentation.context import Names
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.regions import Carried, Segment

UNIFORM_STEP = 256
"""Bytes between what enters a segment and what leaves it, for a uniform value."""

_LINE = 64
_LEAD_BYTES = _LINE
"""The first place holds what a segment that ran once counted for each work-item."""


class LiveMemory:
    """Places of carried values."""

    def __init__(self, carried: Sequence[Carried], names: Names, scopes: Scopes) -> None:
        self._names, self._scopes = names, scopes
        self.nbytes = _LEAD_BYTES
        self.offsets: dict[str, int] = {}
        for value in carried:
            self.offsets[value.name] = self.nbytes
            array = -(-value.nbytes * context.MAX_ITEMS // _LINE) * _LINE
            self.nbytes += array + _LINE + UNIFORM_STEP

    def load(self, value: Carried, result: str) -> list[str]:
        """Load a value, under the name `result`."""
        address, texts = self._place(value, leaving=False)
        return [*texts, f"{result} = load {value.type}, ptr {address}{self._scope(value, leaving=False)}"]

    def save(self, value: Carried, slot: str | None) -> list[str]:
        """Save a value, from its stack slot if it has one."""
        kept = self._names.unique("v") if slot else value.name
        address, texts = self._place(value, leaving=True)
        if slot:
            texts.append(f"{kept} = load {value.type}, ptr {slot}")
        return [*texts, f"store {value.type} {kept}, ptr {address}{self._scope(value, leaving=True)}"]

    def _place(self, value: Carried, *, leaving: bool) -> tuple[str, list[str]]:
        base, address = self._names.unique("p"), self._names.unique("p")
        offset, index = self.offsets[value.name], "%cc.wi"
        if value.uniform:
            offset, index = offset + leaving * UNIFORM_STEP, "0"
        return address, [
            f"{base} = getelementptr i8, ptr %cc.live, i64 {offset}",
            f"{address} = getelementptr [{value.nbytes} x i8], ptr {base}, i64 {index}",
        ]

    def _scope(self, value: Carried, *, leaving: bool) -> str:
        direction = ("out" if leaving else "in") if value.uniform else ""
        return self._scopes.attach(f"live{value.name}{direction}")


_ALIGNMENT = 1024
_CONSTANT_HEAD = re.compile(
    r"(getelementptr(?: inbounds| nuw| nusw| inrange\([^)]*\))*"
    r"|addrspacecast|bitcast|ptrtoint|ptrtoaddr|trunc|add|sub|xor) ?$"
)
_GLOBAL = re.compile(r'@(?:"[^"]*"|[-a-zA-Z$._0-9]+)')
_NAME_GOES_ON = r"(?![-a-zA-Z$._0-9])"


class LocalVariables:
    """Places of the local variables that a kernel uses."""

    def __init__(self, function: ir.Function, variables: dict[str, ir.GlobalVariable], names: Names) -> None:
        self._names = names
        self.nbytes = 0
        self.offsets: dict[str, int] = {}
        used = {name for instruction in function.instructions() for name in _globals_in(instruction)}
        for name, variable in variables.items():
            if variable.address_space == 3 and name in used:
                self.offsets[name] = self.nbytes
                self.nbytes += -(-max(variable.nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        self._addresses = {name: f"%cc.var{number}" for number, name in enumerate(self.offsets)}
        longest_first = sorted(self.offsets, key=len, reverse=True)
        pattern = f"(?:{'|'.join(map(re.escape, longest_first))}){_NAME_GOES_ON}"
        self._pattern = re.compile(pattern) if longest_first else None

    def prologue(self) -> list[str]:
        """Instructions that compute the variables' addresses."""
        return [
            f"{self._addresses[name]} = getelementptr i8, ptr %cc.local, i64 {offset}"
            for name, offset in self.offsets.items()
        ]

    def expand(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """Replace local variables in an instruction by their addresses.

        Constant expressions on them become instructions, which stand before the instruction itself.
        """
        steps: list[ir.Instruction] = []
        while match := self._pattern.search(instruction.text) if self._pattern else None:
            position = match.start()
            text = (
                f"{instruction.text[:position]}{self._addresses[match[0]]}{instruction.text[match.end() :]}"
            )
            # Constant expressions stand inside one another: from the innermost outwards.
            while (opening := ir.enclosing(text, position)) >= 0:
                keyword = _CONSTANT_HEAD.search(text[:opening])
                if keyword is None:
                    break
                inside, rest = ir.bracketed(text, opening)
                name = self._names.unique("x")
                steps.append(ir.Instruction(f"{keyword[0].strip()} {inside}", "cc", "", name, counted=False))
                position = keyword.start()
                text = f"{text[:position]}{name}{rest}"
            instruction.text = text
        expanded = [piece for step in steps for piece in self.expand(step)]
        return [*expanded, instruction]


def _globals_in(instruction: ir.Instruction) -> list[str]:
    texts = [instruction.text, *(value for value, _ in instruction.incoming)]
    return [name for text in texts for name in _GLOBAL.findall(text)]


_PRIVATE_MEMORY_ALIGNMENT = 64

Sizes = dict[str, tuple[int, int]]


class PrivateArrays:
    """Places of a kernel's private arrays."""

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
                self.nbytes += (
                    -(-_alloca_bytes(array, sizes) // _PRIVATE_MEMORY_ALIGNMENT) * _PRIVATE_MEMORY_ALIGNMENT
                )

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
    """Give each work-item its own copy of a structure that is passed by value."""
    copies: list[ir.Instruction] = []
    for position, parameter in enumerate(function.parameters):
        type_ = ir.byval_type(parameter)
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

"""Memory layout of values, variables and arrays of work-items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from crosscast.characterization import ir
from crosscast.characterization.engine.abi import MAX_ITEMS
from crosscast.characterization.instrumentation.accesses import type_bytes
from crosscast.characterization.instrumentation.code import Code, Names, Scopes
from crosscast.characterization.instrumentation.inline import copy_structure
from crosscast.characterization.instrumentation.segments import Carried, Segment

UNIFORM_STEP = 256
"""Bytes between the entering and the leaving copy of a uniform value."""

Sizes = Mapping[str, tuple[int, int]]

_LINE = 64
_VARIABLE_ALIGNMENT = 1024
_GLOBAL = re.compile(r'@(?:"[^"]*"|[-\w$.]+)')


def _rounded(nbytes: int, unit: int) -> int:
    return -(-nbytes // unit) * unit


class LiveMemory:
    """Memory of values that live across barriers: an array per value, with an element per work-item.

    A uniform value has one element per work-group, in two copies: the entering copy must not change while the
    segment runs, so the leaving value is stored apart, and the driver copies it.
    """

    def __init__(self, carried: Iterable[Carried]) -> None:
        self.nbytes = _LINE  # the first line has the count per work-item of a segment that ran once
        self.offsets: dict[str, int] = {}
        for value in carried:
            self.offsets[value.name] = self.nbytes
            self.nbytes += _rounded(value.nbytes * MAX_ITEMS, _LINE) + _LINE + UNIFORM_STEP

    def load(self, value: Carried, result: str, code: Code, scopes: Scopes) -> None:
        """Load a value, under the name `result`."""
        address, scope = self._address(value, code, scopes, leaving=False)
        code.do(f"{result} = load {value.type}, ptr {address}{scope}")

    def save(self, value: Carried, slot: str | None, code: Code, scopes: Scopes) -> None:
        """Save a value, from its stack slot if it has one."""
        address, scope = self._address(value, code, scopes, leaving=True)
        code.store(value.type, code.load(value.type, slot) if slot else value.name, address, scope)

    def _address(self, value: Carried, code: Code, scopes: Scopes, *, leaving: bool) -> tuple[str, str]:
        offset, index, direction = self.offsets[value.name], "%cc.wi", ""
        if value.uniform:
            offset, index = offset + leaving * UNIFORM_STEP, "0"
            direction = "out" if leaving else "in"
        address = code.at(code.at("%cc.live", offset), index, f"[{value.nbytes} x i8]")
        return address, scopes.attach(f"live{value.name}{direction}")


class LocalVariables:
    """Local variables of a kernel, each at an offset in the local memory of the thread.

    A module-level variable has one address, but every thread runs another work-group. So local
    variables become parameters, and constant expressions on them instructions.
    """

    def __init__(self, function: ir.Function, variables: Iterable[ir.GlobalVariable], names: Names) -> None:
        self._unique = names.unique
        self.nbytes = 0
        self.sizes: dict[str, int] = {}  # Bytes of each, by the name of its parameter
        self._parameters: dict[str, str] = {}
        texts = [(i.text, *(value for value, _ in i.incoming)) for i in function.instructions()]
        used = {name for text in texts for part in text if "@" in part for name in _GLOBAL.findall(part)}
        for variable in variables:
            if variable.address_space == 3 and variable.name in used:
                name = self._parameters[variable.name] = f"%cc.var{len(self.sizes)}"
                function.parameters.append(ir.FunctionParameter("ptr addrspace(3)", name, offset=self.nbytes))
                self.sizes[name] = variable.nbytes
                self.nbytes += _rounded(max(variable.nbytes, 1), _VARIABLE_ALIGNMENT)
        if self._parameters:
            self._replace(function)

    def _replace(self, function: ir.Function) -> None:
        for block in function.blocks.values():
            block.instructions = [part for i in block.instructions for part in self._expand(i)]
        for block in function.blocks.values():
            for phi in block.phis():
                phi.incoming = [
                    (self._at_end(function.blocks[label], ir.Operand(phi.type, value)), label)
                    for value, label in phi.incoming
                ]

    def _at_end(self, block: ir.Block, operand: ir.Operand) -> str:
        value, steps = self._value(operand)
        block.instructions[-1:-1] = steps
        return value

    def _expand(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """Return an instruction, preceded by those that compute its addresses."""
        if "@" not in instruction.text:
            return [instruction]
        replacements = {operand.value: self._value(operand) for operand in instruction.operands}
        instruction.rename(lambda name: replacements[name][0] if name in replacements else name)
        return [*(step for _, steps in replacements.values() for step in steps), instruction]

    def _value(self, operand: ir.Operand) -> tuple[str, list[ir.Instruction]]:
        """Return the replacement of an operand, and the instructions that compute it."""
        if operand.value in self._parameters:
            return self._parameters[operand.value], []
        expression = operand.constant_expression
        if expression is None or self._parameters.keys().isdisjoint(_GLOBAL.findall(operand.value)):
            return operand.value, []
        expression.result = self._unique("x")
        return expression.result, self._expand(expression)


class PrivateArrays:
    """Private arrays and structures of a work-item.

    In a kernel of one segment they are stack slots. With several segments, an array may outlive the
    function of its segment, so that they are in memory of the work-group.
    """

    def __init__(self, segments: Sequence[Segment], sizes: Sizes) -> None:
        self.stack_bytes = 0
        """Bytes of one work-item on the stack."""
        self.nbytes = 0
        """Bytes of one work-item that live across barriers."""
        offsets: dict[str, int] = {}
        for segment in segments:
            blocks = segment.blocks.values()
            for array in [*(i for block in blocks for i in block.instructions), *segment.recompute]:
                if array.opcode != "alloca" or not array.result:
                    continue
                nbytes = type_bytes(array.operands[0].type, sizes)
                if len(segments) == 1:
                    self.stack_bytes += nbytes
                    continue
                if array.result not in offsets:
                    offsets[array.result] = self.nbytes
                    self.nbytes += _rounded(nbytes, _LINE)
                array.text = f"getelementptr i8, ptr %cc.mine, i64 {offsets[array.result]}"

    def prologue(self) -> list[str]:
        """Return instructions that compute the start of the work-item's arrays."""
        if not self.nbytes:
            return []
        return [
            f"%cc.mine.at = mul i64 %cc.wi, {self.nbytes}",
            "%cc.mine = getelementptr i8, ptr %cc.private, i64 %cc.mine.at",
        ]


def copy_structures(function: ir.Function, sizes: Sizes) -> None:
    """Give each work-item a copy of a structure that is passed by value."""
    copies: list[ir.Instruction] = []
    for position, parameter in enumerate(function.parameters):
        if type_ := parameter.structure:
            argument = f"%cc.given{position}"
            copies += copy_structure(type_, parameter.name, argument, sizes[type_][0])
            function.parameters[position] = ir.FunctionParameter("ptr", argument)
    function.entry.instructions[:0] = copies

"""Address arithmetic in 64 bits where the program does it in 32 and promises that it does not wrap.

``sext(a +nsw b)`` is ``sext(a) + sext(b)``. Each such sum that an address is made from gets a twin
of 64 bits beside it. LLVM then sees that neighbouring work-items touch neighbouring addresses, even
where an addition stands behind a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from crosscast.characterization import ir

__all__ = ["Widening"]

_EXTENSION = re.compile(r"(sext|zext(?: nneg)?) i32 (%\S+) to i64")
_OPERATION = re.compile(r"(add|sub|mul|shl) ((?:nuw |nsw )*)i32 (\S+), (\S+)")


class Widening:
    """The twins of one segment.

    Parameters
    ----------
    instructions
        All its instructions.
    unique
        Gives new names.
    """

    def __init__(self, instructions: Iterable[ir.Instruction], unique: Callable[[str], str]) -> None:
        self._unique = unique
        self._operations: dict[str, re.Match[str]] = {}
        extensions: list[tuple[str, str]] = []
        for instruction in instructions:
            if instruction.opcode in ("add", "sub", "mul", "shl") and instruction.result:
                if match := _OPERATION.fullmatch(instruction.text):
                    self._operations[instruction.result] = match
            elif instruction.opcode in ("sext", "zext") and (match := _EXTENSION.fullmatch(instruction.text)):
                extensions.append((match[2], _flag(match[1])))
        self._twins: dict[tuple[str, str], str] = {}
        pending = extensions
        while pending:
            name, flag = pending.pop()
            operation = self._operations.get(name)
            if operation is None or flag not in operation[2].split() or (name, flag) in self._twins:
                continue
            self._twins[name, flag] = unique("i")
            pending += [(operation[3], flag), (operation[4], flag)]

    def widen(self, instruction: ir.Instruction) -> list[ir.Instruction]:
        """The instruction, with its twins behind it; or the twin instead of an extension."""
        if match := _EXTENSION.fullmatch(instruction.text):
            twin = self._twins.get((match[2], _flag(match[1])))
            if twin is not None:
                instruction = ir.copy_instruction(instruction)
                instruction.text = f"add i64 {twin}, 0"
            return [instruction]
        made = [instruction]
        for flag in ("nsw", "nuw"):
            twin = self._twins.get((instruction.result or "", flag))
            if twin is not None:
                operation = self._operations[instruction.result or ""]
                a, b = (self._operand(operation[side], flag, made) for side in (3, 4))
                made.append(_new(twin, f"{operation[1]} {flag} i64 {a}, {b}"))
        return made

    def _operand(self, value: str, flag: str, made: list[ir.Instruction]) -> str:
        if not value.startswith("%"):
            negative = value.startswith("-") and flag == "nuw"
            return str(int(value) + (1 << 32)) if negative else value
        twin = self._twins.get((value, flag))
        if twin is None:
            twin = self._unique("i")
            made.append(_new(twin, f"{'sext' if flag == 'nsw' else 'zext'} i32 {value} to i64"))
        return twin


def _flag(extension: str) -> str:
    # A value that is promised not to be negative extends the same either way.
    return "nuw" if extension == "zext" else "nsw"


def _new(name: str, text: str) -> ir.Instruction:
    return ir.Instruction(text, "cc", "i64", name, counted=False)

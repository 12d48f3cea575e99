"""The program's local variables: each stands at an offset in the local memory of the thread.

A variable at module level has one address, but every thread runs a work-group of its own. So each
use of a local variable becomes an address that the segment computes at its start.
"""

from __future__ import annotations

import re

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.names import Names

__all__ = ["LocalVariables"]

_ALIGNMENT = 1024
_CONSTANT_HEAD = re.compile(
    r"(getelementptr(?: inbounds| nuw| nusw| inrange\([^)]*\))*"
    r"|addrspacecast|bitcast|ptrtoint|ptrtoaddr|trunc|add|sub|xor) ?$"
)
_GLOBAL = re.compile(r'@(?:"[^"]*"|[-a-zA-Z$._0-9]+)')
_NAME_GOES_ON = r"(?![-a-zA-Z$._0-9])"


class LocalVariables:
    """Places of the local variables that a kernel uses.

    Parameters
    ----------
    function
        The kernel.
    variables
        The program's variables.
    names
        Where new names come from.
    """

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
            text, address = instruction.text, self._addresses[match[0]]
            opening = ir.enclosing(text, match.start())
            if opening < 0 or not (keyword := _CONSTANT_HEAD.search(text[:opening])):
                instruction.text = f"{text[: match.start()]}{address}{text[match.end() :]}"
                continue
            inside, rest = ir.bracketed(text, opening)
            inside = inside.replace(match[0], address, 1)
            name = self._names.unique("x")
            steps.append(ir.Instruction(f"{keyword[0].strip()} {inside}", "cc", "", name, counted=False))
            instruction.text = f"{text[: keyword.start()]}{name}{rest}"
        expanded = [piece for step in steps for piece in self.expand(step)]
        return [*expanded, instruction]


def _globals_in(instruction: ir.Instruction) -> list[str]:
    texts = [instruction.text, *(value for value, _ in instruction.incoming)]
    return [name for text in texts for name in _GLOBAL.findall(text)]

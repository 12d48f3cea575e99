"""Which buffers a kernel writes, and which it only updates in ways whose order does not matter."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.builtins import atomics
from crosscast.characterization.builtins.mangling import parse
from crosscast.characterization.instrumentation.inline import parse_call
from crosscast.characterization.instrumentation.pointers import PointerClasses, address_space

__all__ = ["Sharing", "commutes", "find_sharing"]

_LOCAL = 3
_COMMUTATIVE = frozenset("add sub and or xor max min umax umin".split())


@dataclass(frozen=True)
class Sharing:
    """Names of parameters and variables, by what the kernel does to their memory.

    Parameters
    ----------
    written
        It may write there.
    commuting
        All it does there is atomic, commutes, and its results are not used: work-groups can do it in
        any order and end up with the same.
    overlapping
        Written memory in which accesses may overlap without starting at the same address, so that
        the counters cannot tell whether work-groups communicate.
    """

    written: set[str]
    commuting: set[str]
    overlapping: set[str]


def commutes(instruction: ir.Instruction, is_used: Callable[[ir.Instruction], bool]) -> bool:
    """Whether an instruction is an atomic update whose order among others does not matter."""
    if is_used(instruction):
        return False
    if instruction.opcode == "atomicrmw":
        operation = re.match(r"atomicrmw (?:volatile )?(\w+)", instruction.text)
        return operation is not None and operation[1] in _COMMUTATIVE
    if instruction.opcode != "call":
        return False
    declaration = parse(parse_call(instruction).name)
    return declaration is not None and atomics.is_commutative(declaration)


def find_sharing(
    function: ir.Function, classes: PointerClasses, is_used: Callable[[ir.Instruction], bool]
) -> Sharing:
    """Sort the memory of a kernel by what it does there.

    Parameters
    ----------
    function
        The kernel, with the accesses of its instructions.
    classes
        Its pointers.
    is_used
        Whether the result of an instruction is used.
    """
    written: set[str] = set()
    touched: set[str] = set()
    ordered: set[str] = set()
    extents: dict[str, set[int]] = {}
    for instruction in function.instructions():
        for access in instruction.accesses:
            if address_space(access.pointer_type) == _LOCAL:
                continue  # no other work-group sees it
            members = classes.members(access.pointer)
            touched |= members
            if access.kind != "read":
                written |= members
            if not commutes(instruction, is_used):
                ordered |= members
            # Of no known extent where its length is only known while running, or it may start anywhere.
            known = 0 < access.nbytes <= access.alignment or access.repeated
            for name in members:
                extents.setdefault(name, set()).add(access.nbytes if known else 0)
    mixed = {name for name, found in extents.items() if len(found) > 1 or 0 in found}
    return Sharing(written, touched - ordered, written & mixed)

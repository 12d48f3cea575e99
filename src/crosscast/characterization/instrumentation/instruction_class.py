"""The class of an instruction in the mix of paper 004, which counted the instructions of a CPU."""

from __future__ import annotations

import re

from crosscast.characterization import ir

__all__ = ["CLASSES", "OTHER", "class_of"]

CLASSES = ("sse", "alu", "mem", "fp", "stack", "string", "shift", "control")
"""The classes, in the order of Table 4."""

OTHER = "other"
"""What is none of them: a phi, or a change of type that costs nothing."""

_OPCODES = {
    "mem": "load store atomicrmw cmpxchg fence",
    "stack": "alloca",
    "shift": "shl lshr ashr mul",
    "fp": "fadd fsub fmul fdiv frem fneg fcmp fptoui fptosi uitofp sitofp fptrunc fpext",
    "control": "br switch indirectbr ret unreachable",
    OTHER: "phi bitcast addrspacecast freeze ptrtoint inttoptr",
}
_CLASS_OF_OPCODE = {opcode: name for name, opcodes in _OPCODES.items() for opcode in opcodes.split()}
_OF_VECTORS = ("extractelement", "insertelement", "shufflevector")
_TRANSFERS = re.compile(r"@llvm\.(memcpy|memmove|memset)\.")
_REALS = ("half", "bfloat", "float", "double")


def class_of(instruction: ir.Instruction) -> str:
    """One of `CLASSES`, or `OTHER`.

    Each instruction is in one class only. Where an instruction could be in several, the first of these
    holds: memory, vectors, then what it does; a call of a builtin goes by the type of what it returns.

    Parameters
    ----------
    instruction
        One that is counted, with its accesses.
    """
    opcode = instruction.opcode
    if opcode == "call" and _TRANSFERS.search(instruction.text):
        return "string"
    if instruction.accesses:
        # Atomics and loads of vectors are calls.
        return "mem"
    known = _CLASS_OF_OPCODE.get(opcode)
    if known in ("mem", "stack", "control", OTHER):
        return known
    if instruction.width > 1 or opcode in _OF_VECTORS:
        return "sse"
    if opcode == "call":
        # Nothing is left of a barrier, and of a function of the program its own instructions.
        if not instruction.text or instruction.type == "void":
            return "control"
        return "fp" if instruction.type in _REALS else "alu"
    return known or "alu"

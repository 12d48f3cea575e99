"""Costs of one execution of each basic block, and classes of the instruction mix.

Instructions and accesses are not counted during execution: the cost of a block is constant, and is multiplied
by its executions afterwards. Executions follow from the few counted edges.
"""

from __future__ import annotations

import re

from crosscast.characterization import ir
from crosscast.characterization.engine.layout import OTHER, BlockCosts
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClass,
    PointerClasses,
    address_space,
)

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
_TRANSFERS = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.")
_REALS = ("half", "bfloat", "float", "double")


def class_of(instruction: ir.Instruction) -> str:
    """Return one of `CLASSES`, or `OTHER`.

    Each instruction is in one class only. If it could be in several, the first of these holds: memory,
    vectors, then its operation; a call of a builtin is classified by the type of its result.
    """
    opcode = instruction.opcode
    if instruction.callee.startswith(_TRANSFERS):
        return "string"
    if instruction.accesses:
        # Atomics and loads of vectors are calls.
        return "mem"
    opcode_class = _CLASS_OF_OPCODE.get(opcode)
    if opcode_class in ("mem", "stack", "control", OTHER):
        return opcode_class
    if instruction.width > 1 or opcode in _OF_VECTORS:
        return "sse"
    if opcode == "call":
        # Barriers and inlined calls have no instruction of their own.
        if not instruction.text or instruction.type == "void":
            return "control"
        return "fp" if instruction.type in _REALS else "alu"
    return opcode_class or "alu"


_ARITHMETIC = frozenset("fadd fsub fmul fdiv frem".split())
_FUSED = re.compile(r"llvm\.(fma|fmuladd)\.|_Z3(fma|mad)")
_PRECISIONS = {"half": "half", "bfloat": "half", "float": "single", "double": "double"}
_OF_REALS = re.compile(r"(?:<\d+ x )?(half|bfloat|float|double)>?")


def work_of(instruction: ir.Instruction) -> dict[str, int]:
    """Return floating-point operations by precision, or elements that a mathematical function computes.

    A multiply-add is two operations, as in the peak rates of data sheets; a comparison or conversion is none.
    """
    reals = _OF_REALS.fullmatch(instruction.type)
    if reals is None or instruction.accesses:
        return {}
    if instruction.opcode in _ARITHMETIC:
        return {f"flops_{_PRECISIONS[reals[1]]}": instruction.width}
    if instruction.opcode != "call" or not instruction.text:
        return {}
    if _FUSED.match(instruction.callee):
        return {f"flops_{_PRECISIONS[reals[1]]}": 2 * instruction.width}
    return {"function_elements": instruction.width}


def add_instruction(costs: BlockCosts, instruction: ir.Instruction, classes: PointerClasses) -> None:
    """Add one instruction to the costs of its block."""
    costs.opcodes[instruction.opcode] += 1
    costs.widths[instruction.width] += 1
    costs.classes[class_of(instruction)] += 1
    costs.work.update(work_of(instruction))
    costs.kinds[instruction.kind] += 1
    plain = instruction.opcode in ("load", "store")
    if plain and not instruction.accesses:
        costs.private += 1
    for access in instruction.accesses:
        cls = classes.of(access.pointer, access.pointer_type)
        if cls.memory != "private":
            # The length of a copy may be dynamic.
            sized = access.nbytes * (1 + (access.kind == "read-write"))
            space = "generic" if cls.memory == "dynamic" else space_name(access, cls)
            known = sized and not access.repeated
            costs.work.update({f"{space}_bytes": sized} if known else {"unsized_accesses": 1})
        if cls.memory in ("dynamic", "private") or access.repeated:
            costs.private += plain and cls.memory == "private"
            continue
        space = space_name(access, cls)
        if access.kind != "write":
            costs.reads[space] += 1
        if access.kind in ("write", "read-write"):
            costs.writes[space] += 1
        if plain:
            costs.plain[space] += 1


def space_name(access: MemoryAccess, cls: PointerClass) -> str:
    """Return the address space in which an access is counted."""
    space = address_space(access.pointer_type)
    if space == 4:
        return "local" if cls.memory == "local" else "global"
    return {1: "global", 2: "constant", 3: "local"}[space]

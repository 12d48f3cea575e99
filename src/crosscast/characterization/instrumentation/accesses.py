"""The memory accesses of an instruction: where, what, how aligned."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from crosscast.characterization import ir
from crosscast.characterization.builtins import library
from crosscast.characterization.builtins.declarations import Access, parse
from crosscast.characterization.instrumentation.inline import Call, parse_call
from crosscast.characterization.scalars import SCALARS

_ALIGN = re.compile(r"\balign (\d+)")
_TRANSFERS = re.compile(r"llvm\.(memcpy|memmove|memset)\.")


@dataclass(frozen=True)
class MemoryAccess:
    """One access event."""

    # `read`, `write`, `read-write` (one of each) or `compare-exchange` (a read, and a write if it succeeds)
    kind: Literal["read", "write", "read-write", "compare-exchange"]
    pointer: str  # Pointer value
    pointer_type: str  # Its LLVM type
    nbytes: int  # Bytes accessed; 0 where that is known only while running (see `length`)
    alignment: int  # Alignment in bytes that the program promises
    # Value to be multiplied by `stride` and added to the pointer, with its type; `None` for 0
    index: tuple[str, str] | None = None
    stride: int = 1  # Bytes for one unit of `index`
    length: str | None = None  # Value that holds the number of bytes, of `memcpy` and the like
    # How a compare-exchange tells that it wrote: `pair` (second element of the result), `result` (the result
    # is true), `equals-argument` (the result equals argument 1)
    success: Literal["none", "pair", "result", "equals-argument"] = "none"
    repeated: bool = False  # One event an element, as often as the runtime finds out (an async copy)


def accesses_of(instruction: ir.Instruction, sizes: dict[str, tuple[int, int]]) -> list[MemoryAccess]:
    """Accesses of one instruction, to whatever address space."""
    if not instruction.text or not instruction.counted:
        return []
    if instruction.opcode in ("load", "store", "atomicrmw", "cmpxchg"):
        return [_plain(instruction, sizes)]
    if instruction.opcode == "call":
        call = parse_call(instruction)
        if match := _TRANSFERS.match(call.name):
            return _transfer(call, match[1])
        if "async_work_group" in call.name:
            return _async_copy(call)
        if call.name.startswith("_Z"):
            return [_builtin(call, access) for access in library.accesses(call.name)]
    return []


def _plain(instruction: ir.Instruction, sizes: dict[str, tuple[int, int]]) -> MemoryAccess:
    operands = instruction.operands()
    # A load begins with its type and a store with its value; atomics begin with the pointer.
    first = instruction.opcode in ("load", "store")
    pointer, value_type = operands[1 if first else 0], operands[0 if first else 1].type
    nbytes = sizes[value_type][0] if value_type in sizes else scalar_bytes(value_type)
    align = _ALIGN.search(instruction.text)
    alignment = int(align[1]) if align else nbytes
    if instruction.opcode == "cmpxchg":
        return MemoryAccess(
            "compare-exchange", pointer.value, pointer.type, nbytes, alignment, success="pair"
        )
    kinds: dict[str, Literal["read", "write", "read-write"]] = {
        "load": "read",
        "store": "write",
        "atomicrmw": "read-write",
    }
    return MemoryAccess(kinds[instruction.opcode], pointer.value, pointer.type, nbytes, alignment)


def scalar_bytes(type_: str) -> int:
    """Size of a scalar or vector type that no instruction of the program has as its result."""
    if vector := re.fullmatch(r"<(\d+) x (.*)>", type_):
        count = int(vector[1])
        return (4 if count == 3 else count) * scalar_bytes(vector[2])
    if integer := re.fullmatch(r"i(\d+)", type_):
        return max(1, int(integer[1]) // 8)
    return {"half": 2, "bfloat": 2, "float": 4, "double": 8}.get(type_, 8)


def _transfer(call: Call, name: str) -> list[MemoryAccess]:
    length = call.arguments[2][1]
    nbytes = int(length) if length.isdigit() else 0

    def side(position: int, kind: Literal["read", "write"]) -> MemoryAccess:
        type_, pointer = call.arguments[position]
        align = _ALIGN.search(type_)
        pointer_type = ir.Operand.parse(type_).type
        return MemoryAccess(kind, pointer, pointer_type, nbytes, int(align[1]) if align else 1, length=length)

    return [side(0, "write")] if name == "memset" else [side(1, "read"), side(0, "write")]


def _builtin(call: Call, access: Access) -> MemoryAccess:
    type_, pointer = call.arguments[access.pointer]
    pointer_type = ir.Operand.parse(type_).type
    index = None
    if access.index is not None:
        index_type, value = call.arguments[access.index]
        index = (index_type.split(" ")[0], value)
    return MemoryAccess(
        access.kind,
        pointer,
        pointer_type,
        access.nbytes,
        access.alignment,
        index,
        access.stride,
        success=access.success,
    )


def _async_copy(call: Call) -> list[MemoryAccess]:
    """Accesses of ``async_work_group_copy(destination, source, ...)``: one event an element a side."""
    nbytes = async_element(call.name)

    def side(position: int, kind: Literal["read", "write"]) -> MemoryAccess:
        type_, pointer = call.arguments[position]
        pointer_type = ir.Operand.parse(type_).type
        return MemoryAccess(kind, pointer, pointer_type, nbytes, nbytes, repeated=True)

    return [side(1, "read"), side(0, "write")]


def async_element(symbol: str) -> int:
    """Bytes of one element of an async copy, from its mangled name."""
    declaration = parse(symbol)
    assert declaration is not None
    element = declaration.parameters[0]
    count = 4 if element.width == 3 else element.width
    return count * (SCALARS[element.base].nbytes if element.base in SCALARS else 8)

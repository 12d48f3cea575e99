"""Memory accesses: of instructions, classes of pointers, and granularity of counters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from crosscast.characterization import builtins as library
from crosscast.characterization import ir
from crosscast.characterization.builtins import SCALARS, parse
from crosscast.errors import UnsupportedError

_ALIGN = re.compile(r"\balign (\d+)")
_TRANSFERS = re.compile(r"llvm\.(memcpy|memmove|memset)\.")

Kind = Literal["read", "write", "read-write", "compare-exchange"]
_KINDS: dict[str, Kind] = {
    "load": "read",
    "store": "write",
    "atomicrmw": "read-write",
    "cmpxchg": "compare-exchange",
}
_DOES: dict[Kind, int] = {"read": 1, "write": 2, "read-write": 3, "compare-exchange": 0}
"""1 if an access reads, 2 if it writes, 3 for both; 0 if that depends on data."""


@dataclass(frozen=True)
class MemoryAccess:
    """One access event."""

    kind: Kind  # `read-write` is one of each, `compare-exchange` a read, and a write if it succeeds
    pointer: str  # Pointer value
    pointer_type: str  # Its LLVM type
    nbytes: int  # Bytes accessed; 0 if that is dynamic (see `length`)
    alignment: int  # Alignment in bytes that the program promises
    # Value to be multiplied by `stride` and added to the pointer; `None` for 0
    index: ir.Operand | None = None
    stride: int = 1  # Bytes for one unit of `index`
    length: str | None = None  # Value of the number of bytes, of `memcpy` and the like
    # How a compare-exchange shows that it wrote: `pair` (second element of the result), `result` (the result
    # is true), `equals-argument` (the result equals argument 1)
    success: Literal["none", "pair", "result", "equals-argument"] = "none"
    repeated: bool = False  # One event per element, of a dynamic number (an async copy)
    site: int = -1  # Its number among the static accesses of the kernel


def accesses_of(instruction: ir.Instruction, sizes: Mapping[str, tuple[int, int]]) -> list[MemoryAccess]:
    """Return the accesses of one instruction, to any address space."""
    if not instruction.text or not instruction.counted:
        return []

    def at(position: int, kind: Kind, nbytes: int, alignment: int) -> MemoryAccess:
        pointer = instruction.operands[position]
        return MemoryAccess(kind, pointer.value, pointer.type, nbytes, alignment)

    if kind := _KINDS.get(instruction.opcode):
        # A load begins with its type and a store with its value; atomics begin with the pointer.
        first = int(instruction.opcode in ("load", "store"))
        nbytes = type_bytes(instruction.operands[1 - first].type, sizes)
        align = _ALIGN.search(instruction.text)
        access = at(first, kind, nbytes, int(align[1]) if align else nbytes)
        return [replace(access, success="pair") if kind == "compare-exchange" else access]
    name = instruction.callee
    sides: list[tuple[int, Kind]] = [(1, "read"), (0, "write")]
    if match := _TRANSFERS.match(name):
        length = instruction.operands[2].value
        nbytes = int(length) if length.isdigit() else 0
        if match[1] == "memset":
            del sides[0]
        aligned = [_ALIGN.search(operand.attributes) for operand in instruction.operands]
        return [
            replace(
                at(position, kind, nbytes, int(align[1]) if (align := aligned[position]) else 1),
                length=length,
            )
            for position, kind in sides
        ]
    if "async_work_group" in name:
        nbytes = async_element(name)
        return [replace(at(position, kind, nbytes, nbytes), repeated=True) for position, kind in sides]
    if not name.startswith("_Z"):
        return []
    return [
        replace(
            at(access.pointer, access.kind, access.nbytes, access.alignment),
            index=None if access.index is None else instruction.operands[access.index],
            stride=access.stride,
            success=access.success,
        )
        for access in library.accesses(name)
    ]


def type_bytes(type_: str, sizes: Mapping[str, tuple[int, int]]) -> int:
    """Return the size of a type, also of one that no instruction of the program has as its result."""
    if type_ in sizes:
        return sizes[type_][0]
    if array := re.fullmatch(r"\[(\d+) x (.*)\]", type_):
        return int(array[1]) * type_bytes(array[2], sizes)
    if vector := re.fullmatch(r"<(\d+) x (.*)>", type_):
        count = int(vector[1])
        return (4 if count == 3 else count) * type_bytes(vector[2], sizes)
    if integer := re.fullmatch(r"i(\d+)", type_):
        return max(1, int(integer[1]) // 8)
    return {"half": 2, "bfloat": 2, "float": 4}.get(type_, 8)


def async_element(symbol: str) -> int:
    """Return the bytes of one element of an async copy, from its mangled name."""
    declaration = parse(symbol)
    assert declaration is not None
    element = declaration.parameters[0]
    count = 4 if element.width == 3 else element.width
    return count * (SCALARS[element.base].nbytes if element.base in SCALARS else 8)


MemoryKind = Literal["buffer", "global", "local", "private", "dynamic"]

_SPACE = re.compile(r"addrspace\((\d+)\)")
_UNKNOWN, _LOCAL = "?", 3
_WIDEST = 8
_NO_POINTER = re.compile(r"(null|undef|poison|zeroinitializer)$")
# Operands from which a pointer is computed
_ORIGINS = {
    "getelementptr": slice(1, 2),
    "select": slice(1, 3),
    **dict.fromkeys(("addrspacecast", "bitcast", "freeze"), slice(1)),
}


def address_space(type_: str) -> int:
    """Return the address space of a pointer type: 0 private, 1 global, 2 constant, 3 local, 4 generic."""
    match = _SPACE.search(type_)
    number = int(match[1]) if match else 0
    if number > 4:
        raise UnsupportedError(f"pointers to address space {number} are not supported")
    return number


@dataclass(frozen=True)
class PointerClass:
    """Pointers into the same memory."""

    number: int  # Position among the classes
    memory: MemoryKind  # A `buffer`, a module `global`, `local`, `private`, or `dynamic`
    granule: int  # Bytes of one counter: 1, 2, 4 or 8
    # Kind of all accesses, 1 for reads and 2 for writes, if data decide addresses: it has small counters
    scattered: int = 0
    read_bytes: int = 0  # Bytes of the widest read, and of the widest write
    write_bytes: int = 0
    overlaps: int = 0  # Accesses that may overlap without equal start addresses: reads 1, writes 2


def _origins(i: ir.Instruction) -> list[str]:
    """Return the values from which a pointer is computed."""
    if i.opcode == "phi":
        return [value for value, _ in i.incoming]
    if i.opcode in _ORIGINS:
        return [operand.value for operand in i.operands[_ORIGINS[i.opcode]]]
    return [] if i.opcode == "alloca" else [_UNKNOWN]


def _atom(value: str) -> str | None:
    """Return the base name of a pointer value; ``None`` for null and the like."""
    if value.startswith("%"):
        return value
    if match := ir.SYMBOL.search(value):
        return match[0]
    return None if _NO_POINTER.search(value) else _UNKNOWN


def _widest(accesses: Iterable[MemoryAccess]) -> tuple[int, bool]:
    """Return the bytes of the widest access, and whether any may overlap another of an unequal start.

    One of unknown length is as wide as its alignment.
    """
    extents = [(access.nbytes or access.alignment, access.alignment) for access in accesses]
    most = max((nbytes for nbytes, _ in extents), default=0)
    return most, any(min(extent) < most for extent in extents)


class PointerClasses:
    """Classes of the pointers of one flattened kernel with known accesses."""

    def __init__(
        self, function: ir.Function, variables: Iterable[ir.GlobalVariable], same: Sequence[Sequence[str]]
    ) -> None:
        self._parent: dict[str, str] = {}
        variables = [v for v in variables if v.address_space != _LOCAL]  # local ones are parameters
        self._memory = [*(p.name for p in function.parameters), *(v.name for v in variables)]
        for i in function.instructions():
            if i.result is not None and i.text and "ptr" in i.type:
                for origin in map(_atom, _origins(i)):
                    if origin is not None:
                        self._unite(i.result, origin)
        for first, *others in same:
            for name in others:
                self._unite(first, name)
        accesses = [access for i in function.instructions() for access in i.accesses]
        self._kinds = self._find_kinds(function, variables, accesses)
        self._classes = self._number(accesses, _made_from_data(function))

    def of(self, pointer: str, type_: str) -> PointerClass:
        """Return the class of a pointer value that some access uses."""
        return self._classes[self._key(pointer, type_)]

    def members(self, pointer: str) -> set[str]:
        """Return the parameters and variables that a pointer may point into."""
        key = self._find(_atom(pointer) or _UNKNOWN)
        return {name for name in self._memory if self._find(name) == key}

    def by_memory(self) -> dict[str, PointerClass]:
        """Return the class of each accessed parameter and variable."""
        by_key = {key: cls for (key, _), cls in self._classes.items()}
        return {name: by_key[self._find(name)] for name in self._memory if self._find(name) in by_key}

    def members_of(self, classes: set[PointerClass]) -> set[str] | None:
        """Return the parameters and variables that some classes may point into; ``None`` for all."""
        if any(cls.memory == "dynamic" for cls in classes):
            return None
        keys = {key for (key, _), cls in self._classes.items() if cls in classes}
        return {name for name in self._memory if self._find(name) in keys}

    def _find(self, name: str) -> str:
        parent = self._parent.setdefault(name, name)
        if parent != name:
            parent = self._parent[name] = self._find(parent)
        return parent

    def _unite(self, a: str, b: str) -> None:
        self._parent[self._find(a)] = self._find(b)

    def _find_kinds(
        self, function: ir.Function, variables: Iterable[ir.GlobalVariable], accesses: Iterable[MemoryAccess]
    ) -> dict[str, set[MemoryKind]]:
        """Return the kinds of memory of each class's parameters, variables and private arrays.

        A pointer of unknown origin joins all memory that it may point to.
        """
        by_space: dict[int, MemoryKind] = {0: "private", _LOCAL: "local"}
        named: list[tuple[str, MemoryKind]] = [
            (p.name, by_space.get(address_space(p.type), "buffer"))
            for p in function.parameters
            if p.type.startswith("ptr")
        ]
        named += [(v.name, "global") for v in variables if v.address_space in (1, 2)]
        named += [(i.result, "private") for i in function.instructions() if i.opcode == "alloca" and i.result]
        unknown = self._find(_UNKNOWN)
        atoms = ((_atom(access.pointer), address_space(access.pointer_type)) for access in accesses)
        spaces = {space for atom, space in atoms if atom is not None and self._find(atom) == unknown}
        reach: set[MemoryKind] = set()
        if spaces & {1, 2, 4}:
            reach |= {"buffer", "global"}
        if spaces & {3, 4}:
            reach.add("local")
        if 4 in spaces:
            reach.add("private")
        before: dict[str, set[MemoryKind]] = {}
        for name, kind in named:
            before.setdefault(self._find(name), set()).add(kind)
        for key, kinds in before.items():
            if kinds & reach:
                self._unite(key, _UNKNOWN)
        united: dict[str, set[MemoryKind]] = {}
        for key, kinds in before.items():
            united.setdefault(self._find(key), set()).update(kinds)
        return united

    def _key(self, pointer: str, type_: str) -> tuple[str, int]:
        space = address_space(type_)
        # Local and private pointers are determined by their type, whatever their class.
        return self._find(_atom(pointer) or _UNKNOWN), space if space in (0, _LOCAL) else 1

    def _number(
        self, accesses: Iterable[MemoryAccess], from_data: set[str]
    ) -> dict[tuple[str, int], PointerClass]:
        by_base: dict[str, list[MemoryAccess]] = {}
        grouped: dict[tuple[str, int], list[MemoryAccess]] = {}
        for access in accesses:
            key = self._key(access.pointer, access.pointer_type)
            by_base.setdefault(key[0], []).append(access)
            grouped.setdefault(key, []).append(access)
        classes = {}
        for number, (key, members) in enumerate(grouped.items()):
            same, memory, does = by_base[key[0]], self._kind(key), {_DOES[a.kind] for a in members}
            granule = min(_WIDEST, *(access.alignment for access in same))
            small = memory == "buffer" and granule >= 4 and len(does) == 1
            small = small and any(access.pointer in from_data for access in members)
            (read_bytes, reads), (write_bytes, writes) = (
                _widest(access for access in same if access.kind != other) for other in ("write", "read")
            )
            scattered, overlaps = does.pop() if small else 0, reads + 2 * writes
            sizes = granule, scattered, read_bytes, write_bytes, overlaps
            classes[key] = PointerClass(number, memory, *sizes)
        return classes

    def _kind(self, key: tuple[str, int]) -> MemoryKind:
        if key[1] == _LOCAL:
            return "local"
        if key[1] == 0:
            return "private"
        kinds = self._kinds.get(key[0], set())
        if key[0] == self._find(_UNKNOWN) and kinds - {"buffer"}:
            return "dynamic"
        if len(kinds) == 1:
            return next(iter(kinds))
        return "dynamic" if kinds else "buffer"


def _made_from_data(function: ir.Function) -> set[str]:
    """Return the values that are loaded, or computed from loaded ones."""
    users: dict[str, list[str]] = {}
    pending = []
    for instruction in function.instructions():
        if instruction.result is None:
            continue
        if instruction.opcode == "load":
            pending.append(instruction.result)
            continue
        for used in instruction.uses():
            users.setdefault(used, []).append(instruction.result)
    from_data: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in from_data:
            from_data.add(name)
            pending += users.get(name, [])
    return from_data

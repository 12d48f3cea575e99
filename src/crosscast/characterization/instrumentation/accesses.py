"""Memory accesses: where instructions make them, where pointers can point, how finely to count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from crosscast.characterization import ir
from crosscast.characterization.builtins import library
from crosscast.characterization.builtins.calls import Access
from crosscast.characterization.builtins.declarations import SCALARS, parse
from crosscast.characterization.instrumentation.inline import Call, parse_call

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


Place = Literal["buffer", "global", "local", "private", "dynamic"]

_SPACE = re.compile(r"addrspace\((\d+)\)")
_UNKNOWN = "?"
_WIDEST = 8
_NO_POINTER = re.compile(r"(null|undef|poison|zeroinitializer)$")


def address_space(type_: str) -> int:
    """Address space of a pointer type: 0 private, 1 global, 2 constant, 3 local, 4 generic."""
    match = _SPACE.search(type_)
    return int(match[1]) if match else 0


@dataclass(frozen=True)
class PointerClass:
    """Pointers into the same memory."""

    number: int  # Position among the classes
    place: Place  # What memory: a `buffer`, a module `global`, `local`, `private`, or `dynamic`
    granule: int  # Bytes that one counter stands for: 1, 2, 4 or 8
    # What all accesses do, 1 to read and 2 to write, if data decide where: such memory has small counters
    scattered: int = 0


class PointerClasses:
    """Classes of the pointers of one flattened kernel."""

    def __init__(
        self,
        function: ir.Function,
        variables: dict[str, ir.GlobalVariable],
        accesses: Iterable[tuple[str, str, int, int]],
        same: Sequence[Sequence[str]],
    ) -> None:
        self._parent: dict[str, str] = {}
        self._places: dict[str, set[Place]] = {}
        self._parameters = {p.name for p in function.parameters}
        self._variables = variables
        for instruction in function.instructions():
            self._follow(instruction)
        for group in same:
            for name in group[1:]:
                self._unite(group[0], name)
        self._find_places(function)
        used = list(accesses)
        self._from_data = _made_from_data(function)
        self._merge_unknown(used)
        self._classes = self._number(used)

    def of(self, pointer: str, type_: str) -> PointerClass:
        """Class of a pointer value that some access uses."""
        return self._classes[self._key(pointer, type_)]

    def members(self, pointer: str) -> set[str]:
        """Parameters and variables that a pointer may point into."""
        atom = self._atom(pointer)
        key = self._find(atom if atom is not None else _UNKNOWN)
        return {name for name in [*self._parameters, *self._variables] if self._find(name) == key}

    def granules(self) -> dict[str, int]:
        """Granule of each parameter and variable that something accesses."""
        return {name: cls.granule for name, cls in self._accessed()}

    def scattered(self) -> dict[str, int]:
        """What the accesses to each parameter with small counters do."""
        return {name: cls.scattered for name, cls in self._accessed() if cls.scattered}

    def members_of(self, classes: set[PointerClass]) -> set[str] | None:
        """Parameters and variables that some classes may point into; ``None`` if it may be all."""
        if any(cls.place == "dynamic" for cls in classes):
            return None
        keys = {key for (key, _), cls in self._classes.items() if cls in classes}
        return {name for name in [*self._parameters, *self._variables] if self._find(name) in keys}

    def _accessed(self) -> list[tuple[str, PointerClass]]:
        by_key = {key: cls for (key, _), cls in self._classes.items()}
        names = [*self._parameters, *self._variables]
        return [(name, by_key[self._find(name)]) for name in names if self._find(name) in by_key]

    def _find(self, name: str) -> str:
        parent = self._parent.setdefault(name, name)
        if parent != name:
            parent = self._parent[name] = self._find(parent)
        return parent

    def _unite(self, a: str, b: str) -> None:
        self._parent[self._find(a)] = self._find(b)

    @staticmethod
    def _atom(value: str) -> str | None:
        """Name that a pointer value is based on; ``None`` for null and the like."""
        if _NO_POINTER.search(value):
            return None
        if match := re.search(r'@(?:"[^"]*"|[-a-zA-Z$._0-9]+)', value):
            return match[0]
        if value.startswith("%"):
            return value
        return _UNKNOWN

    def _same(self, result: str, value: str) -> None:
        atom = self._atom(value)
        if atom is not None:
            self._unite(result, atom)

    def _follow(self, instruction: ir.Instruction) -> None:
        result, opcode = instruction.result, instruction.opcode
        if result is None or not instruction.text or "ptr" not in instruction.type:
            return
        if opcode == "phi":
            for value, _ in instruction.incoming:
                self._same(result, value)
            return
        if opcode == "getelementptr":
            self._same(result, instruction.operands()[1].value)
        elif opcode == "select":
            for operand in instruction.operands()[1:]:
                self._same(result, operand.value)
        elif opcode in ("addrspacecast", "bitcast", "freeze"):
            self._same(result, instruction.operands()[0].value)
        elif opcode != "alloca":
            self._unite(result, _UNKNOWN)

    def _find_places(self, function: ir.Function) -> None:
        """Note what memory the parameters, variables and private arrays of each class are."""

        def add(name: str, place: Place) -> None:
            self._places.setdefault(self._find(name), set()).add(place)

        for parameter in function.parameters:
            space = address_space(parameter.type)
            if parameter.type.startswith("ptr"):
                add(parameter.name, "local" if space == 3 else "private" if space == 0 else "buffer")
        for name, variable in self._variables.items():
            if variable.address_space in (1, 2, 3):
                add(name, "local" if variable.address_space == 3 else "global")
        for instruction in function.instructions():
            if instruction.opcode == "alloca" and instruction.result:
                add(instruction.result, "private")

    def _merge_unknown(self, accesses: Sequence[tuple[str, str, int, int]]) -> None:
        """Let a pointer of unknown origin join everything that it may point to."""
        unknown = self._find(_UNKNOWN)
        spaces = {
            address_space(type_)
            for pointer, type_, *_ in accesses
            if (atom := self._atom(pointer)) is not None and self._find(atom) == unknown
        }
        reach: set[Place] = set()
        if spaces & {1, 2, 4}:
            reach |= {"buffer", "global"}
        if spaces & {3, 4}:
            reach.add("local")
        if 4 in spaces:
            reach.add("private")
        for key, places in list(self._places.items()):
            if places & reach:
                self._unite(key, _UNKNOWN)
        merged: dict[str, set[Place]] = {}
        for key, places in self._places.items():
            merged.setdefault(self._find(key), set()).update(places)
        self._places = merged

    def _key(self, pointer: str, type_: str) -> tuple[str, int]:
        atom = self._atom(pointer)
        space = address_space(type_)
        # Local and private pointers are what their type says, whatever their class.
        kind = space if space in (0, 3) else 1
        return self._find(atom if atom is not None else _UNKNOWN), kind

    def _number(self, accesses: Sequence[tuple[str, str, int, int]]) -> dict[tuple[str, int], PointerClass]:
        granules: dict[str, int] = {}
        does: dict[tuple[str, int], set[int]] = {}
        for pointer, type_, alignment, what in accesses:
            base, _ = key = self._key(pointer, type_)
            granules[base] = min(granules.get(base, _WIDEST), alignment)
            does.setdefault(key, set()).add(what)
        found: dict[tuple[str, int], PointerClass] = {}
        scattered = {self._key(p, type_) for p, type_, *_ in accesses if p in self._from_data}
        for pointer, type_, *_ in accesses:
            key = self._key(pointer, type_)
            if key not in found:
                place, granule = self._place(key), granules[key[0]]
                small = key in scattered and place == "buffer" and granule >= 4 and len(does[key]) == 1
                found[key] = PointerClass(len(found), place, granule, min(does[key]) if small else 0)
        return found

    def _place(self, key: tuple[str, int]) -> Place:
        if key[1] == 3:
            return "local"
        if key[1] == 0:
            return "private"
        places = self._places.get(key[0], set())
        if key[0] == self._find(_UNKNOWN) and places - {"buffer"}:
            return "dynamic"
        if len(places) == 1:
            return next(iter(places))
        return "dynamic" if places else "buffer"


def _made_from_data(function: ir.Function) -> set[str]:
    """Values that are loaded, or made from such."""
    users: dict[str, list[str]] = {}
    pending = []
    for instruction in function.instructions():
        if instruction.result is None:
            continue
        if instruction.opcode == "load":
            pending.append(instruction.result)
            continue
        for used in [*instruction.uses(), *(value for value, _ in instruction.incoming)]:
            users.setdefault(used, []).append(instruction.result)
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += users.get(name, [])
    return found


_EXTENSION = re.compile(r"(sext|zext(?: nneg)?) i32 (%\S+) to i64")
_OPERATION = re.compile(r"(add|sub|mul|shl) ((?:nuw |nsw )*)i32 (\S+), (\S+)")


class Widening:
    """The twins of one segment."""

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

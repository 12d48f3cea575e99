"""Steps of a device's compiler before a kernel is counted: vector accesses, and ids in front of loops.

A vector access loads or stores neighbouring members of an aligned structure together.

The vector types of CUDA and HIP are structures here, whose members the optimizer separates, as it does the
vectors of OpenCL C whose elements are used one by one. The compilers of devices do so too, and then merge
neighbouring accesses as far as the alignment is known, so that a ``float4`` is one access of 16 bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import address_space, type_bytes
from crosscast.characterization.instrumentation.builtin_calls import (
    is_barrier,
    is_collective,
    is_warp_operation,
)
from crosscast.characterization.instrumentation.code import Names
from crosscast.characterization.instrumentation.inline import called_builtin
from crosscast.characterization.instrumentation.instruction_kinds import OF_VECTORS

_WIDTHS = (16, 8, 4, 2)
"""Bytes of vectors, the widest first."""
_SCALARS = ("i8", "i16", "i32", "i64", "half", "bfloat", "float", "double")
_ALIGN = re.compile(r", align (\d+)$")
_ARRAY = re.compile(r"\[(\d+) x (.*)\]")
_SIZED = re.compile(r"i(?:8|16|32|64)|half|bfloat|float|double|ptr.*")
_CONSTANT = re.compile(r"-?\d+")
_ORDERED = ("atomicrmw", "cmpxchg", "fence", "load", "store")
"""Operations of memory that are not moved, nor is anything across them: volatile loads and stores too."""
_CONSTANT_SPACE, _GENERIC_SPACE = 2, 4

Key = tuple[str, str, frozenset[tuple[str, int]]]


class _Address(NamedTuple):
    """An address as a sum, which wraps around as the address does."""

    root: str
    terms: frozenset[tuple[str, int]]  # Variable indices, and their strides in bytes
    offset: int


@dataclass(frozen=True)
class _Access:
    """A load or a store that may be moved."""

    at: int  # Position in its block
    instruction: ir.Instruction
    type: str  # Of the value
    nbytes: int
    alignment: int
    pointer: ir.Operand
    address: _Address

    @property
    def key(self) -> Key:
        """Operation, root and terms: those of accesses at constant distances."""
        return self.instruction.opcode, self.address.root, self.address.terms

    @property
    def start(self) -> int:
        """Offset of its first byte."""
        return self.address.offset

    @property
    def end(self) -> int:
        """Offset behind its last byte."""
        return self.start + self.nbytes

    def overlaps(self, other: _Access) -> bool:
        """Whether two accesses at a constant distance overlap."""
        return self.start < other.end and other.start < self.end


@dataclass
class _Run:
    """Loads that may all be done at the first of them, or stores that may at the last one."""

    accesses: list[_Access] = field(default_factory=list)
    written: list[_Access] = field(default_factory=list)  # Stores among loads, at constant distances

    def vectors(self) -> Iterator[list[_Access]]:
        """Yield accesses that fill an aligned vector, in the order of their addresses."""
        rest = sorted(self.accesses, key=lambda access: access.start)
        anchor = max(rest, key=lambda access: access.alignment)
        while rest:
            distance = rest[0].start - anchor.start
            known = min(anchor.alignment, distance & -distance) if distance else anchor.alignment
            widths = (n for n in _WIDTHS if n <= max(known, rest[0].alignment))
            vector = next(filter(None, (_filling(rest, rest[0].start + n) for n in widths)), [])
            if vector:
                yield vector
            del rest[: len(vector) or 1]


def _filling(accesses: list[_Access], end: int) -> list[_Access]:
    """Return the first of some accesses, up to an end; none if these have gaps or are fewer than two."""
    vector: list[_Access] = []
    for access in accesses:
        if access.start >= end:
            break
        if vector and (access.start != vector[-1].end or (access.start - vector[0].start) % access.nbytes):
            return []
        vector.append(access)
    return vector if len(vector) > 1 and vector[-1].end == end else []


def _may_access_memory(instruction: ir.Instruction) -> bool:
    """Whether a call may access memory, or order the accesses of several work-items."""
    if instruction.opcode != "call" or not instruction.text or not instruction.counted:
        return False
    if is_barrier(instruction) or is_collective(instruction) or is_warp_operation(instruction):
        return True
    return instruction.type == "void" or any(o.type.startswith("ptr") for o in instruction.operands)


def merge_accesses(function: ir.Function, sizes: dict[str, tuple[int, int]]) -> None:
    """Merge neighbouring loads, and neighbouring stores, of a flattened kernel to vector accesses.

    They must fill an aligned vector of up to 16 bytes and be in one block, without anything between them that
    may access the same memory. Instructions that take vectors apart, or make them, are not counted, whether
    they are new or not: a vector is in several registers. Types of vectors are added to `sizes`.
    """
    merger = _Merger(function, sizes)
    for block in function.blocks.values():
        merger.merge_in(block)
    if merger.merged:
        merger.drop_addresses()
    for instruction in function.instructions():
        if instruction.opcode in OF_VECTORS and not instruction.operands[-1].value.startswith("%"):
            instruction.counted = False


class _Merger:
    def __init__(self, function: ir.Function, sizes: dict[str, tuple[int, int]]) -> None:
        self.function, self.sizes = function, sizes
        self.made = {i.result: i for i in function.instructions() if i.result}
        self.addresses: dict[str, _Address] = {}
        self.parameters = {p.name: p.is_restricted for p in function.parameters}
        self.merged: set[str] = set()  # Pointers of merged accesses
        self.names = Names()

    def merge_in(self, block: ir.Block) -> None:
        """Merge the accesses in a block."""
        accesses = {at: access for at, i in enumerate(block.instructions) if (access := self._access(at, i))}
        scalars = {at: access for at, access in accesses.items() if self._may_merge(access)}
        neighbours = Counter(access.key for access in scalars.values())
        aligned = {access.key for access in scalars.values() if access.alignment > access.nbytes}
        keys = {key for key in aligned if neighbours[key] > 1}
        if not keys:
            return
        runs: list[_Run] = []
        current: dict[Key, _Run] = {}
        for at, instruction in enumerate(block.instructions):
            access = accesses.get(at)
            for key in [key for key, run in current.items() if self._ends(run, instruction, access)]:
                del current[key]
            if access is not None and at in scalars and access.key in keys:
                if access.key not in current:
                    current[access.key] = _Run()
                    runs.append(current[access.key])
                run = current[access.key]
                if not any(map(access.overlaps, run.accesses)):  # Otherwise it repeats a load
                    run.accesses.append(access)
        vectors = [vector for run in runs for vector in run.vectors()]
        if vectors:
            self._rewrite(block, vectors)

    def _access(self, at: int, instruction: ir.Instruction) -> _Access | None:
        """Return a load or a store, unless it is atomic or volatile."""
        text, opcode = instruction.text, instruction.opcode
        align = _ALIGN.search(text)
        if opcode not in ("load", "store") or align is None or not instruction.counted:
            return None
        value, pointer, *_ = instruction.operands
        nbytes = self._size(value.type)
        if nbytes is None or text.startswith((f"{opcode} volatile", f"{opcode} atomic")):
            return None
        address = self._address(pointer)
        return _Access(at, instruction, value.type, nbytes, int(align[1]), pointer, address)

    def _may_merge(self, access: _Access) -> bool:
        space, address = address_space(access.pointer.type), access.address
        # Devices read constants at known addresses as operands of instructions.
        is_operand = space == _CONSTANT_SPACE and address.root.startswith("@") and not address.terms
        return access.type in _SCALARS and space != 0 and not is_operand

    def _address(self, pointer: ir.Operand) -> _Address:
        chain: list[tuple[str, ir.Instruction]] = []
        value, made = pointer.value, pointer.constant_expression or self.made.get(pointer.value)
        while value not in self.addresses and made is not None and made.opcode == "getelementptr":
            chain.append((value, made))
            base = made.operands[1]
            value, made = base.value, base.constant_expression or self.made.get(base.value)
        known = self.addresses.setdefault(value, _Address(value, frozenset(), 0))
        for value, made in reversed(chain):
            known = self.addresses[value] = self._moved(known, made) or _Address(value, frozenset(), 0)
        return known

    def _moved(self, base: _Address, step: ir.Instruction) -> _Address | None:
        """Return the address that a ``getelementptr`` computes; ``None`` if it is no sum."""
        terms, offset, indexed = Counter(dict(base.terms)), base.offset, ir.indexed_elements(step)
        if indexed is None:
            return None
        for index, element in indexed:
            stride = self._size(element)
            if stride is None:
                return None
            if _CONSTANT.fullmatch(index):
                offset += int(index) * stride
            else:
                terms[index] += stride
        return _Address(base.root, frozenset(terms.items()), offset)

    def _size(self, type_: str) -> int | None:
        element = type_
        while array := _ARRAY.fullmatch(element):
            element = array[2]
        is_known = element in self.sizes or _SIZED.fullmatch(element)
        return type_bytes(type_, self.sizes) if is_known else None

    def _ends(self, run: _Run, instruction: ir.Instruction, access: _Access | None) -> bool:
        """Whether a run ends before an instruction; stores at constant distances are noted among loads."""
        if access is None:
            return instruction.opcode in _ORDERED or _may_access_memory(instruction)
        first, stores = run.accesses[0], instruction.opcode == "store"
        is_near = first.address[:2] == access.address[:2]
        if first.instruction.opcode == "store":
            return any(map(access.overlaps, run.accesses)) if is_near else self._may_overlap(first, access)
        if not stores:
            return is_near and any(map(access.overlaps, run.written))
        if is_near:
            run.written.append(access)
            return False
        return self._may_overlap(first, access)

    def _may_overlap(self, one: _Access, other: _Access) -> bool:
        """Whether accesses at an unknown distance may overlap."""
        spaces = {address_space(access.pointer.type) for access in (one, other)}
        if len(spaces) > 1 and _GENERIC_SPACE not in spaces:
            return False
        roots = one.address.root, other.address.root
        if roots[0] == roots[1]:
            return True
        objects = [self._is_object(root) for root in roots]
        unaliased = [self.parameters.get(root, False) for root in roots]
        known = [is_object or root in self.parameters for is_object, root in zip(objects, roots, strict=True)]
        return not all(objects) and not (any(unaliased) and all(known))

    def _is_object(self, root: str) -> bool:
        """Whether an address is that of a variable or an array."""
        made = self.made.get(root)
        return root.startswith("@") or (made is not None and made.opcode == "alloca")

    def _rewrite(self, block: ir.Block, vectors: list[list[_Access]]) -> None:
        moved = {access.at for vector in vectors for access in vector}
        new: dict[int, list[ir.Instruction]] = {}
        for vector in vectors:
            self.merged.update(access.pointer.value for access in vector)
            if vector[0].instruction.opcode == "load":
                new[min(access.at for access in vector)] = self._load(vector)
            else:
                new[max(access.at for access in vector)] = self._store(vector)
        block.instructions = [
            instruction
            for at, old in enumerate(block.instructions)
            for instruction in (new.get(at, []) if at in moved else [old])
        ]

    def _load(self, vector: list[_Access]) -> list[ir.Instruction]:
        """Return the load of a vector, and the instructions that take it apart."""
        first = min(vector, key=lambda access: access.at)
        address, lines = self._start(vector, first)
        type_, whole = _vector_type(vector, first), self.names.unique("vector")
        lines.append(_instruction(f"load {type_}, {address}", type_, whole, first))
        for access in vector:
            type_, whole = self._as_vector_of(vector, access, type_, whole, lines)
            text = f"extractelement {type_} {whole}, i64 {_index(vector, access)}"
            lines.append(_instruction(text, access.type, access.instruction.result))
        return lines

    def _store(self, vector: list[_Access]) -> list[ir.Instruction]:
        """Return the instructions that make a vector, and its store."""
        last = max(vector, key=lambda access: access.at)
        address, lines = self._start(vector, last)
        type_, whole = _vector_type(vector, vector[0]), "zeroinitializer"
        for access in vector:
            type_, previous = self._as_vector_of(vector, access, type_, whole, lines)
            value, whole = access.instruction.operands[0].value, self.names.unique("vector")
            component = f"{access.type} {value}, i64 {_index(vector, access)}"
            lines.append(_instruction(f"insertelement {type_} {previous}, {component}", type_, whole))
        lines.append(_instruction(f"store {type_} {whole}, {address}", "void", None, last))
        return lines

    def _as_vector_of(
        self, vector: list[_Access], access: _Access, type_: str, whole: str, lines: list[ir.Instruction]
    ) -> tuple[str, str]:
        """Return type and name of a vector's bits as elements of the type of one of its accesses."""
        wanted = _vector_type(vector, access)
        self.sizes.setdefault(wanted, (_width(vector), _width(vector)))
        if wanted == type_:
            return type_, whole
        name = self.names.unique("vector")
        lines.append(_instruction(f"bitcast {type_} {whole} to {wanted}", wanted, name))
        return wanted, name

    def _start(self, vector: list[_Access], at: _Access) -> tuple[str, list[ir.Instruction]]:
        """Return a vector's address at one of its accesses, and the instructions that compute it."""
        start, known = vector[0], at if at.instruction.opcode == "load" else vector[0]
        type_, pointer = known.pointer.type, known.pointer.value
        lines = []
        if known is not start:
            pointer = self.names.unique("vector")
            text = f"getelementptr i8, {type_} {known.pointer.value}, i64 {start.start - known.start}"
            lines.append(_instruction(text, type_, pointer))
        alignment = max(start.alignment, _width(vector))
        return f"{type_} {pointer}, align {alignment}", lines

    def drop_addresses(self) -> None:
        """Remove the addresses of merged accesses that nothing uses."""
        self.function.drop_unused(lambda i: i.result in self.merged and i.opcode == "getelementptr")


def _width(vector: list[_Access]) -> int:
    return vector[-1].end - vector[0].start


def _vector_type(vector: list[_Access], access: _Access) -> str:
    """Return the type of a vector whose elements are of the type of one of its accesses."""
    return f"<{_width(vector) // access.nbytes} x {access.type}>"


def _index(vector: list[_Access], access: _Access) -> int:
    return (access.start - vector[0].start) // access.nbytes


def _instruction(text: str, type_: str, result: str | None, of: _Access | None = None) -> ir.Instruction:
    """Return an instruction, which is counted if it does an access."""
    line = of.instruction.line if of else 0
    return ir.Instruction(text, text.partition(" ")[0], type_, result, line, counted=of is not None)


_MAY_TRAP = frozenset("udiv sdiv urem srem".split())


def hoist_ids(function: ir.Function) -> None:
    """Move ids, and values computed from them only, out of the loops of a flattened kernel.

    A device's compiler has them in registers; for clang, work-item functions are convergent calls that must
    not be speculated, so that it does not move them.
    """
    flow = function.flow
    before = graph.reverse(flow)
    same: dict[str, str] = {}
    for loop in reversed(graph.find_loops(flow)):  # the inner ones first
        headers = {label for label in loop.blocks if not loop.blocks.issuperset(before[label])}
        outside = {source for label in headers for source in before[label]} - loop.blocks
        if len(headers) == 1 and len(outside) == 1:
            blocks = [block for label, block in function.blocks.items() if label in loop.blocks]
            _hoist(blocks, function.blocks[outside.pop()], same)
    if same:
        for instruction in function.instructions():
            if not same.keys().isdisjoint(instruction.uses()):
                instruction.rename(lambda name: same.get(name, name))


def _hoist(loop: list[ir.Block], target: ir.Block, same: dict[str, str]) -> None:
    """Move instructions from a loop to the end of the block before it; record equal values in `same`."""
    changing = {i.result for block in loop for i in block.instructions if i.result}
    ids: set[str] = set()  # values that are ids or computed from them
    moved: dict[str, str] = {}  # values by their instruction
    again = True
    while again:
        again = False
        for block in loop:
            kept = []
            for instruction in block.instructions:
                name, used = instruction.result, instruction.uses()
                if name is None or not _may_move(instruction, used, ids) or not used.isdisjoint(changing):
                    kept.append(instruction)
                    continue
                changing.discard(name)
                ids.add(name)
                again = True
                instruction.rename(lambda operand: same.get(operand, operand))
                first = moved.setdefault(instruction.text, name)
                if first == name:
                    target.instructions.insert(-1, instruction)
                else:
                    same[name] = first
            block.instructions = kept


def _may_move(instruction: ir.Instruction, used: frozenset[str], ids: set[str]) -> bool:
    if called_builtin(instruction) in graph.IDENTITIES:
        return True
    pure = instruction.opcode in graph.PURE and instruction.opcode not in _MAY_TRAP
    return pure and instruction.counted and not ids.isdisjoint(used)

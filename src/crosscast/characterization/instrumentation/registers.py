"""Register demand of a work-item, by the simultaneously live values of the flattened kernel.

Also loads of local memory that repeat another one, of which a device's compiler keeps the value in a
register, and those that it joins with their neighbours.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClasses,
    address_space,
    type_bytes,
)
from crosscast.characterization.instrumentation.instruction_kinds import value_bytes

_UNIT_BYTES = 4
_FORGETS = (
    "stores.local",
    "stores.generic",
    "atomics",
    "barriers",
    "collectives",
    "copies",
    "fences",
    "sub_group",
)
"""Kinds after which local memory may have changed."""
_LOADS, _RELOADS, _CONSECUTIVE = "loads.local", "reloads.local", "consecutive.local"
_JOINED_BYTES = 16
"""Size and alignment of the largest access."""
_OUTSIDE = ("buffer", "global", "dynamic")
"""Kinds of memory that may be global."""
_COMPUTED_AGAIN = ("addresses", "indexing", "ids", "loads.constant")
_ALL = -1
"""All elements of a vector, as bits."""
_LANE = re.compile(r"i32 (\w+)")
_BY_LANE = frozenset(
    "add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem fneg icmp fcmp select "
    "phi freeze trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp".split()
)
_CALLS_BY_LANE = tuple(
    f"llvm.{name}" for name in "fma fmuladd abs fabs sqrt min max umin umax smin smax ctpop".split()
)

Sum = tuple[frozenset[tuple[str, int]], int]
"""A linear form: values with their factors, and a constant."""
_Address = tuple[frozenset[tuple[str, int]], bool]
"""Terms of an address, and whether these are all of it."""
_CONSTANT = 2
"""Address space that no kernel writes."""


def mark_local_loads(sums: LinearForms) -> None:
    """Set the kind of loads of local memory that may be fewer after a device's compiler.

    Reloads repeat an earlier load in straight-line code: their addresses are equal linear forms, without a
    possible change of local memory in between. Consecutive ones are parts of aligned 16 bytes that are loaded
    in straight-line code, or in successive iterations of a loop. Sums are assumed not to overflow.
    """
    consecutive = sums.consecutive()
    for i in sums.function.instructions():
        if i.result in sums.reloads:
            i.kind = i.kind[0].replace(_LOADS, _RELOADS, 1), i.kind[1]
        elif i.result in consecutive:
            i.kind = i.kind[0].replace(_LOADS, _CONSECUTIVE, 1), i.kind[1]


def blocks_in_turn(sums: LinearForms, classes: PointerClasses) -> tuple[set[str], set[str]]:
    """Return the blocks of inner loops whose iterations wait for each other's loads, by kind of compiler.

    All compilers keep loads behind stores that may be to the same global memory. nvcc unrolls other loops if
    each exit compares a variable that changes by a constant, AMD's only if their number of iterations is one.
    """
    function = sums.function
    loops = graph.innermost(graph.find_loops(function.flow))
    in_turn: set[graph.Loop] = set()
    rolled: set[graph.Loop] = set()
    for loop in set(loops.values()):
        blocks = [function.blocks[label] for label in sorted(loop.blocks)]
        steps = sums.steps(blocks)
        exits = sums.exits_of(blocks, steps)
        if exits == "unknown" or sums.may_change_loads(blocks, steps, classes):
            in_turn.add(loop)
        if loop in in_turn or exits != "constant":
            rolled.add(loop)
    return (
        {label for label, loop in loops.items() if loop in in_turn},
        {label for label, loop in loops.items() if loop in rolled},
    )


def loads_behind_stores(sums: LinearForms, classes: PointerClasses) -> dict[str, dict[int, int]]:
    """Return by block and position of a load that of the last store before it that it is kept behind.

    Compilers do not move it before a store that may be to the same global memory, unless their addresses
    differ by a constant.
    """
    roots = {}

    def address_of(access: MemoryAccess) -> tuple[_Address, frozenset[str]]:
        if access.pointer not in roots:
            roots[access.pointer] = frozenset(classes.members(access.pointer))
        return (sums.of(access.pointer)[0], access.index is None), roots[access.pointer]

    behind: dict[str, dict[int, int]] = {}
    for label, block in sums.function.blocks.items():
        # By roots, the last stores at two addresses that do not differ by a constant
        stores: dict[frozenset[str], list[tuple[int, _Address]]] = {}
        for position, i in enumerate(block.instructions):
            outside = [access for access in i.accesses if _is_outside(access, classes)]
            waits = [
                stored
                for address, origins in map(address_of, filter(_may_change, outside))
                for other, last in stores.items()
                if sums.may_share(origins, other)
                for stored, at in last
                if at != address or not address[1]
            ]
            if waits:
                behind.setdefault(label, {})[position] = max(waits)
            for address, origins in (address_of(access) for access in outside if access.kind != "read"):
                others = [each for each in stores.get(origins, []) if each[1] != address]
                stores[origins] = [(position, address), *others[:1]]
    return behind


def _is_outside(access: MemoryAccess, classes: PointerClasses) -> bool:
    return classes.of(access.pointer, access.pointer_type).memory in _OUTSIDE


def _may_change(access: MemoryAccess) -> bool:
    """Whether an access reads what a kernel may write."""
    return access.kind != "write" and address_space(access.pointer_type) != _CONSTANT


class LinearForms:
    """Integers and addresses of a function as linear forms of other values."""

    def __init__(self, function: ir.Function, sizes: Mapping[str, tuple[int, int]]) -> None:
        self.function, self.sizes = function, sizes
        self.made = {i.result: i for i in function.instructions() if i.result}
        self.parameters = frozenset(each.name for each in function.parameters)
        self.restricted = frozenset(each.name for each in function.parameters if each.is_restricted)
        self.known: dict[str, Sum] = {}

    def of(self, value: str) -> Sum:
        """Return the linear form of a value."""
        if value.lstrip("-").isdigit():
            return frozenset(), int(value)
        if value not in self.known:
            self.known[value] = frozenset({(value, 1)}), 0  # An atom; also ends cycles
            if value in self.made:
                self.known[value] = self._computed(self.made[value]) or self.known[value]
        return self.known[value]

    def is_atom(self, value: str) -> bool:
        """Whether a value is no sum of others."""
        return self.of(value) == (frozenset({(value, 1)}), 0)

    @functools.cached_property
    def reloads(self) -> dict[str, str]:
        """Values that repeat a load of local memory, with the value of the first load.

        The loads before a branch are available behind it, unless there are other predecessors.
        """
        blocks, before = self.function.blocks, graph.reverse(self.function.flow)
        repeated: dict[str, str] = {}
        ends: dict[str, dict[tuple[Sum, str], str]] = {}
        pending = list(reversed(blocks))
        while pending:
            label = pending[-1]
            (source, *others) = before[label] or [label]
            if label not in ends and not others and source != label and source not in ends:
                ends[label] = {}  # Ends cycles
                pending.append(source)
                continue
            pending.pop()
            if not ends.get(label):
                known = dict(ends.get(source, {})) if not others and source != label else {}
                ends[label] = self._reloads_in(blocks[label], known, repeated)
        return repeated

    def _reloads_in(
        self, block: ir.Block, first: dict[tuple[Sum, str], str], repeated: dict[str, str]
    ) -> dict[tuple[Sum, str], str]:
        """Record repeated loads in a block, given the available ones before it; return those at its end."""
        for i in block.instructions:
            if result := _loaded(i):
                known = first.setdefault((self.of(i.operands[1].value), i.type), result)
                if known != result:
                    repeated[result] = known
            elif i.kind[0].startswith(_FORGETS):
                first.clear()
        return first

    def consecutive(self) -> set[str]:
        """Return the values of loads of local memory that are parts of aligned 16 bytes, all loaded."""
        loops = graph.innermost(graph.find_loops(self.function.flow))
        parts: set[str] = set()
        for label, block in self.function.blocks.items():
            parts |= self._parts_in(block)
            if label in loops:
                blocks = [self.function.blocks[each] for each in sorted(loops[label].blocks)]
                if not any(i.kind[0].startswith(_FORGETS) for each in blocks for i in each.instructions):
                    steps = self.steps(blocks)
                    parts |= {name for i in block.instructions if (name := self._part_of_loop(i, steps))}
        return parts - self.reloads.keys()

    def _parts_in(self, block: ir.Block) -> set[str]:
        """Return the parts of 16 bytes that a block loads without a change of local memory in between."""
        parts: set[str] = set()
        windows: dict[tuple[frozenset[tuple[str, int]], int, str], set[str]] = {}
        for i in block.instructions:
            if (result := _loaded(i)) and result not in self.reloads:
                terms, constant = self.of(i.operands[1].value)
                if self._is_aligned(terms):
                    loads = windows.setdefault((terms, constant // _JOINED_BYTES, i.type), set())
                    loads.add(result)
                    # Other loads of the same bytes repeat one, and are left out.
                    if len(loads) > 1 and len(loads) * type_bytes(i.type, self.sizes) == _JOINED_BYTES:
                        parts |= loads
            elif i.kind[0].startswith(_FORGETS):
                windows.clear()
        return parts

    def _is_aligned(self, terms: frozenset[tuple[str, int]]) -> bool:
        """Whether an address is aligned to the largest access: a base, and multiples of its size."""
        factors = [factor * self._divisor(name) for name, factor in terms]
        return [factor for factor in factors if factor % _JOINED_BYTES] == [1]

    def _divisor(self, value: str) -> int:
        """Return a power of two that divides a value which is no sum, such as those of which bits are cut."""
        i = self.made.get(value)
        if i is None or i.opcode != "and" or not (mask := i.operands[1].value).lstrip("-").isdigit():
            return 1
        return int(mask) & -int(mask) or 1

    def steps(self, blocks: Collection[ir.Block]) -> dict[str, tuple[Sum, int]]:
        """Return the first value and the step of the variables of a loop."""
        inside = {block.label for block in blocks}
        steps: dict[str, tuple[Sum, int]] = {}
        for phi in (phi for block in blocks for phi in block.phis()):
            first = [value for value, label in phi.incoming if label not in inside]
            after = {self.of(value) for value, label in phi.incoming if label in inside}
            if phi.result and len(first) == len(after) == 1:
                terms, step = after.pop()
                if terms == {(phi.result, 1)}:
                    steps[phi.result] = self.of(first[0]), step
        return steps

    def exits_of(
        self, blocks: Collection[ir.Block], steps: Mapping[str, tuple[Sum, int]]
    ) -> Literal["constant", "stepwise", "unknown"]:
        """Whether a loop has a constant number of iterations, or else exits that compare what steps."""
        inside = {block.label for block in blocks}
        exits = [each.terminator for each in blocks if not inside.issuperset(each.terminator.successors)]
        conditions = [self.made.get(name) for each in exits for name in each.uses()]
        sides = [
            [self.of(each.value) for each in i.operands] if i is not None and i.opcode == "icmp" else []
            for i in conditions
        ]
        if not all(any(name in steps for terms, _ in both for name, _ in terms) for both in sides):
            return "unknown"

        def first(value: Sum) -> Sum:
            total: Sum = frozenset(), value[1]
            for name, factor in value[0]:
                total = _added(total, steps[name][0] if name in steps else self.of(name), factor)
            return total

        distances = [_added(first(one), first(other), -1)[0] for one, other in sides]
        return "constant" if distances == [frozenset()] else "stepwise"

    def may_change_loads(
        self,
        blocks: Collection[ir.Block],
        steps: Mapping[str, tuple[Sum, int]],
        classes: PointerClasses,
    ) -> bool:
        """Whether an iteration of a loop may store to global memory what the next one loads."""
        accesses = [access for block in blocks for i in block.instructions for access in i.accesses]
        outside = [access for access in accesses if _is_outside(access, classes)]

        def may_meet(stored: MemoryAccess, loaded: MemoryAccess) -> bool:
            one, other = (self.of(each.pointer)[0] for each in (stored, loaded))
            if (
                one == other
                and stored.index is loaded.index is None
                and any(name in steps for name, _ in one)
            ):
                return False  # At a distance that is known
            return self.may_share(*(frozenset(classes.members(each.pointer)) for each in (stored, loaded)))

        loads = [access for access in outside if access.kind == "read" and _may_change(access)]
        stores = [access for access in outside if access.kind != "read"]
        return any(may_meet(stored, loaded) for stored in stores for loaded in loads)

    def may_share(self, one: frozenset[str], other: frozenset[str]) -> bool:
        """Whether pointers into some parameters and variables may be to the memory of others."""
        if not (one and other and one.isdisjoint(other)):
            return True
        variables = one.isdisjoint(self.parameters) and other.isdisjoint(self.parameters)
        return not variables and not one <= self.restricted and not other <= self.restricted

    def _part_of_loop(self, i: ir.Instruction, steps: Mapping[str, tuple[Sum, int]]) -> str | None:
        """Return the value of a load that continues where that of the iteration before ended."""
        result = _loaded(i)
        if result is None:
            return None
        terms, constant = self.of(i.operands[1].value)
        for name, factor in terms:
            if name in steps:
                first, step = steps[name]
                others = frozenset(each for each in terms if each[0] != name), constant
                start, offset = _added(others, first, factor)
                size = type_bytes(i.type, self.sizes)
                if factor * step == size < _JOINED_BYTES:
                    return result if self._is_aligned(start) and offset % _JOINED_BYTES == 0 else None
        return None

    def _computed(self, i: ir.Instruction) -> Sum | None:
        values = [operand.value for operand in i.operands]
        if i.opcode in ("sext", "zext", "addrspacecast", "bitcast", "freeze"):
            return self.of(values[0])
        if i.opcode == "add" or (i.opcode == "or" and "disjoint" in i.text):
            return _added(self.of(values[0]), self.of(values[1]))
        if i.opcode == "sub":
            return _added(self.of(values[0]), self.of(values[1]), -1)
        if i.opcode in ("mul", "shl"):
            terms, factor = self.of(values[1])
            by = factor if i.opcode == "mul" else 1 << min(max(factor, 0), 63)
            return None if terms else _added((frozenset(), 0), self.of(values[0]), by)
        return self._address(i) if i.opcode == "getelementptr" else None

    def _address(self, i: ir.Instruction) -> Sum | None:
        indexed = ir.indexed_elements(i)
        if indexed is None:
            return None
        total = self.of(i.operands[1].value)
        for index, element in indexed:
            total = _added(total, self.of(index), type_bytes(element, self.sizes))
        return total


def _loaded(i: ir.Instruction) -> str | None:
    """Return the value of a load of local memory that a compiler may leave out or join."""
    is_local = i.opcode == "load" and i.kind[0].startswith((_LOADS, _RELOADS, _CONSECUTIVE))
    return i.result if is_local and not i.text.startswith(("load volatile", "load atomic")) else None


def _added(one: Sum, other: Sum, factor: int = 1) -> Sum:
    terms = Counter(dict(one[0]))
    for value, times in other[0]:
        terms[value] += factor * times
    return frozenset((value, n) for value, n in terms.items() if n), one[1] + factor * other[1]


def kept_values(sums: LinearForms) -> int:
    """Return the most live 32-bit units of values that a device's compiler keeps in registers or spills.

    As `most_live`, without addresses and integer sums, which it rematerializes, and with repeated loads of
    `mark_local_loads` done once. The kinds of the instructions must be set.
    """
    again = {
        name
        for name, i in sums.made.items()
        if i.kind[0].startswith(_COMPUTED_AGAIN) or not sums.is_atom(name)
    }
    return most_live(_merged(sums.function, sums.reloads), sums.sizes, again)


def _merged(function: ir.Function, repeated: Mapping[str, str]) -> ir.Function:
    """Return a function with repeated loads replaced by the first ones."""

    def renamed(i: ir.Instruction) -> ir.Instruction:
        if not i.uses() & repeated.keys():
            return i
        copied = i.copy()
        copied.rename(lambda name: repeated.get(name, name))
        return copied

    blocks = {
        label: ir.Block(block.label, [renamed(i) for i in block.instructions if i.result not in repeated])
        for label, block in function.blocks.items()
    }
    return replace(function, blocks=blocks)


def most_live(
    function: ir.Function, sizes: Mapping[str, tuple[int, int]], without: Collection[str] = ()
) -> int:
    """Return the most 32-bit units of simultaneously live values in a flattened kernel.

    A value is live from its definition to its last use. Numbers of up to 32 bits and pointers to local memory
    are one unit, other pointers and numbers of 64 bits two, vectors and structures as many as their bytes or
    used elements fill. Values that need no registers of a device are left out: constants, kernel arguments
    (in constant memory), and addresses of variables and private arrays; vectors of accesses whose elements
    are counted; and the values of `without`.
    """
    without = {*without, *_vectors_taken_apart(function)}
    lanes = used_lanes(function)
    units = {
        i.result: _units(i.type, sizes, lanes.get(i.result))
        for i in function.instructions()
        if i.result and i.opcode != "alloca" and i.type != "void" and i.result not in without
    }
    _, at_end = graph.live(function.blocks, function.flow, {})
    return max(_most_in(block, units, at_end[label]) for label, block in function.blocks.items())


def mark_lanes(function: ir.Function) -> None:
    """Set the elements of operations on vectors to those that are used.

    clang multiplies whole vectors for the sake of one element, where the compiler of a GPU, whose registers
    have one element each, has one multiplication.
    """
    lanes = used_lanes(function)
    for i in function.instructions():
        if i.result in lanes and i.kind[1] > 1:
            i.kind = i.kind[0], max(lanes[i.result].bit_count(), 1)


def used_lanes(function: ir.Function) -> dict[str, int]:
    """Return the elements of each vector that are used, as bits."""
    made = {i.result: i for i in function.instructions() if i.result and i.width > 1}
    lanes = dict.fromkeys(made, 0)
    pending = [i for i in function.instructions() if i.result not in made] if made else []
    while pending:
        i = pending.pop()
        for name, used in _lanes_of_operands(i, lanes.get(i.result or "", _ALL)):
            if name in lanes and (more := used & ~lanes[name] & ((1 << made[name].width) - 1)):
                lanes[name] |= more
                pending.append(made[name])
    return lanes


def _lanes_of_operands(i: ir.Instruction, used: int) -> Iterator[tuple[str, int]]:
    """Yield the values that an instruction uses, and which elements it does, given those of its result."""
    if i.opcode == "shufflevector":
        first, second, mask = i.operands
        size = ir.width_of(first.type)
        chosen = _LANE.findall(mask.value) or ["0"] * i.width
        sources = [int(each) for lane, each in enumerate(chosen) if used >> lane & 1 and each.isdigit()]
        yield first.value, sum({1 << each for each in sources if each < size})
        yield second.value, sum({1 << (each - size) for each in sources if each >= size})
        return
    index = i.operands[-1].value if i.opcode in ("extractelement", "insertelement") else ""
    if i.opcode == "insertelement" and index.isdigit():
        yield i.operands[0].value, used & ~(1 << int(index))
        yield i.operands[1].value, 1
    elif i.opcode == "extractelement" and index.isdigit():
        yield i.operands[0].value, 1 << int(index)
    else:
        is_by_lane = i.opcode in _BY_LANE or i.callee.startswith(_CALLS_BY_LANE)
        for name in i.uses():
            yield name, used if is_by_lane and i.width > 1 else _ALL


def _vectors_taken_apart(function: ir.Function) -> set[str]:
    """Return vectors whose elements uncounted instructions of their block take, and nothing else uses."""
    taken_apart: set[str] = set()
    used: set[str] = set()
    for block in function.blocks.values():
        here = {i.result for i in block.instructions if i.opcode != "phi"}
        for i in block.instructions:
            is_free = not i.counted and i.opcode in ("extractelement", "bitcast") and i.uses() <= here
            (taken_apart if is_free else used).update(i.uses())
    return taken_apart - used


def _most_in(block: ir.Block, units: Mapping[str, int], live: Collection[str]) -> int:
    """Return the most live units in a block, given the live values at its end."""
    living = {name for name in live if name in units}
    current = most = sum(units[name] for name in living)
    for i in reversed(block.instructions):
        if i.opcode == "phi":  # all phis are simultaneous
            unused = {str(phi.result) for phi in block.phis()} - living
            return max(most, current + sum(units[name] for name in unused))
        result = i.result or ""
        if result in living:
            living.discard(result)
            current -= units[result]
        elif result in units:
            most = max(most, current + units[result])  # unused, but live for its definition
        for name in i.uses():
            if name in units and name not in living:
                living.add(name)
                current += units[name]
        most = max(most, current)
    return most


def private_bytes(
    function: ir.Function, sizes: Mapping[str, tuple[int, int]], arguments: Collection[str]
) -> int:
    """Return the bytes of a work-item's private arrays and structures, except arguments."""
    return sum(
        type_bytes(i.operands[0].type, sizes)
        for i in function.instructions()
        if i.opcode == "alloca" and i.result and i.result not in arguments
    )


def _units(type_: str, sizes: Mapping[str, tuple[int, int]], lanes: int | None) -> int:
    """Return the units of a value, of vectors those of some elements."""
    nbytes = type_bytes(type_, sizes) if type_[0] in "{[%" else value_bytes(type_)
    if lanes is not None:
        nbytes = nbytes // ir.width_of(type_) * max(lanes.bit_count(), 1)
    return -(-nbytes // _UNIT_BYTES)

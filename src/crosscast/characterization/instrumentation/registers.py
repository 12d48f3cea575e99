"""How many registers a work-item needs, by the values of the flattened kernel that live at once.

And which loads of local memory repeat another: a device's compiler keeps the value in a register.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import type_bytes
from crosscast.characterization.instrumentation.instruction_kinds import value_bytes

_UNIT_BYTES = 4
_ARRAY = re.compile(r"[\[<](\d+) x (.*)[\]>]")
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
"""Kinds after which local memory may hold something else."""
_LOADS, _RELOADS = "loads.local", "reloads.local"
_COMPUTED_AGAIN = ("addresses", "indexing", "ids", "loads.constant")

Sum = tuple[frozenset[tuple[str, int]], int]
"""A linear form: values with their factors, and a constant."""


def mark_reloads(function: ir.Function, sizes: Mapping[str, tuple[int, int]]) -> None:
    """Give loads of local memory that repeat one before them in straight-line code their kind.

    They are at the same sum of the same values, and nothing that could change local memory stands between.
    Sums are taken not to overflow.
    """
    repeated = _Sums(function, sizes).reloads(function)
    for i in function.instructions():
        if i.result in repeated:
            i.kind = i.kind[0].replace(_LOADS, _RELOADS, 1), i.kind[1]


class _Sums:
    """Integers and addresses of a function as linear forms of other values."""

    def __init__(self, function: ir.Function, sizes: Mapping[str, tuple[int, int]]) -> None:
        self.sizes = sizes
        self.made = {i.result: i for i in function.instructions() if i.result}
        self.known: dict[str, Sum] = {}

    def of(self, value: str) -> Sum:
        """The linear form of a value."""
        if value.lstrip("-").isdigit():
            return frozenset(), int(value)
        if value not in self.known:
            self.known[value] = frozenset({(value, 1)}), 0  # Of what is no sum, and of circles
            if value in self.made:
                self.known[value] = self._computed(self.made[value]) or self.known[value]
        return self.known[value]

    def is_atom(self, value: str) -> bool:
        """Whether a value is no sum of others."""
        return self.of(value) == (frozenset({(value, 1)}), 0)

    def reloads(self, function: ir.Function) -> dict[str, str]:
        """Values that are loaded from local memory again, by what each was loaded as first.

        Behind a branch is known what was before it, unless other ways lead there.
        """
        before: dict[str, list[str]] = {label: [] for label in function.blocks}
        for label, block in function.blocks.items():
            for after in block.terminator.successors:
                before[after].append(label)
        repeated: dict[str, str] = {}
        ends: dict[str, dict[tuple[Sum, str], str]] = {}
        left = list(reversed(function.blocks))
        while left:
            label = left[-1]
            (source, *others) = before[label] or [label]
            if label not in ends and not others and source != label and source not in ends:
                ends[label] = {}  # So that a circle ends
                left.append(source)
                continue
            left.pop()
            if not ends.get(label):
                known = dict(ends.get(source, {})) if not others and source != label else {}
                ends[label] = self._reloads_in(function.blocks[label], known, repeated)
        return repeated

    def _reloads_in(
        self, block: ir.Block, first: dict[tuple[Sum, str], str], repeated: dict[str, str]
    ) -> dict[tuple[Sum, str], str]:
        """Note what is loaded again in a block, given what is known before it; what is known at its end."""
        for i in block.instructions:
            kind = i.kind[0]
            if i.opcode == "load" and i.result and kind.startswith((_LOADS, _RELOADS)):
                if not i.text.startswith(("load volatile", "load atomic")):
                    known = first.setdefault((self.of(i.operands[1].value), i.type), i.result)
                    if known != i.result:
                        repeated[i.result] = known
            elif kind.startswith(_FORGETS):
                first.clear()
        return first

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
        type_, base, *indices = i.operands
        total, element = self.of(base.value), type_.type
        for place, index in enumerate(indices):
            if place:
                array = _ARRAY.fullmatch(element)
                if array is None:
                    return None
                element = array[2]
            total = _added(total, self.of(index.value), type_bytes(element, self.sizes))
        return total


def _added(one: Sum, other: Sum, factor: int = 1) -> Sum:
    terms = Counter(dict(one[0]))
    for value, times in other[0]:
        terms[value] += factor * times
    return frozenset((value, n) for value, n in terms.items() if n), one[1] + factor * other[1]


def kept_values(function: ir.Function, sizes: Mapping[str, tuple[int, int]]) -> int:
    """Most 32-bit units at once of values that a device's compiler keeps, or else spills.

    As of `most_live`, without addresses and sums of integers, which it computes again where it needs them,
    and with the loads of `mark_reloads` done once. The kinds of the instructions are known.
    """
    sums = _Sums(function, sizes)
    repeated = sums.reloads(function)
    again = {
        name
        for name, i in sums.made.items()
        if i.kind[0].startswith(_COMPUTED_AGAIN) or not sums.is_atom(name)
    }
    return most_live(_merged(function, repeated), sizes, again)


def _merged(function: ir.Function, repeated: Mapping[str, str]) -> ir.Function:
    """A function whose values that are loaded again are those that were loaded first."""
    if not repeated:
        return function
    blocks = {}
    for label, block in function.blocks.items():
        instructions = [i.copy() for i in block.instructions if i.result not in repeated]
        for i in instructions:
            if i.uses() & repeated.keys():
                i.rename(lambda name: repeated.get(name, name))
        blocks[label] = ir.Block(block.label, instructions)
    return replace(function, blocks=blocks)


def most_live(
    function: ir.Function, sizes: Mapping[str, tuple[int, int]], without: Collection[str] = ()
) -> int:
    """Most 32-bit units of values that live at once at any instruction of a flattened kernel.

    A value lives from the instruction that makes it to the last one that uses it. Numbers of up to 32 bits
    and pointers to local memory are one unit, other pointers and numbers of 64 bits two, vectors and
    structures as many as their bytes fill. What stands elsewhere in a device is left out: constants, the
    arguments of the kernel (in constant memory), and the addresses of variables and private arrays; and the
    values of `without`.
    """
    units = {
        i.result: _units(i.type, sizes)
        for i in function.instructions()
        if i.result and i.opcode != "alloca" and i.type != "void" and i.result not in without
    }
    flow = {label: block.terminator.successors for label, block in function.blocks.items()}
    live_in = graph.live_in(function.blocks, flow, {})
    at_end: dict[str, set[str]] = {label: set() for label in flow}
    for block in function.blocks.values():
        for phi in block.phis():
            for value, source in phi.incoming:
                at_end[source].add(value)
    return max(
        _most_in(block, units, at_end[label].union(*(live_in[after] for after in flow[label])))
        for label, block in function.blocks.items()
    )


def _most_in(block: ir.Block, units: Mapping[str, int], live: Collection[str]) -> int:
    """Most units that live at once in a block, at whose end some values live."""
    living = {name for name in live if name in units}
    now = most = sum(units[name] for name in living)
    for i in reversed(block.instructions):
        if i.opcode == "phi":  # all of them are there at once
            unused = {str(phi.result) for phi in block.phis()} - living
            return max(most, now + sum(units[name] for name in unused))
        made = i.result or ""
        if made in living:
            living.discard(made)
            now -= units[made]
        elif made in units:
            most = max(most, now + units[made])  # nobody uses it, but it is made
        for name in i.uses():
            if name in units and name not in living:
                living.add(name)
                now += units[name]
        most = max(most, now)
    return most


def private_bytes(
    function: ir.Function, sizes: Mapping[str, tuple[int, int]], arguments: Collection[str]
) -> int:
    """Bytes of the private arrays and structures of a work-item, but for structures that are arguments."""
    return sum(
        type_bytes(i.operands[0].type, sizes)
        for i in function.instructions()
        if i.opcode == "alloca" and i.result and i.result not in arguments
    )


def _units(type_: str, sizes: Mapping[str, tuple[int, int]]) -> int:
    nbytes = type_bytes(type_, sizes) if type_[0] in "{[%" else value_bytes(type_)
    return -(-nbytes // _UNIT_BYTES)

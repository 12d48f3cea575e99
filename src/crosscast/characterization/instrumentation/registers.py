"""How many registers a work-item needs, by the values of the flattened kernel that live at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import type_bytes
from crosscast.characterization.instrumentation.instruction_kinds import value_bytes

_UNIT_BYTES = 4


def most_live(function: ir.Function, sizes: Mapping[str, tuple[int, int]]) -> int:
    """Most 32-bit units of values that live at once at any instruction of a flattened kernel.

    A value lives from the instruction that makes it to the last one that uses it. Numbers of up to 32 bits
    and pointers to local memory are one unit, other pointers and numbers of 64 bits two, vectors and
    structures as many as their bytes fill. What stands elsewhere in a device is left out: constants, the
    arguments of the kernel (in constant memory), and the addresses of variables and private arrays.
    """
    units = {
        i.result: _units(i.type, sizes)
        for i in function.instructions()
        if i.result and i.opcode != "alloca" and i.type != "void"
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

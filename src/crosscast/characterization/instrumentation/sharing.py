"""Work-groups that meet in memory: of a kernel, what they share, and whether they wait for each other."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from crosscast.characterization import builtins as library
from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import PointerClasses, address_space
from crosscast.characterization.instrumentation.inline import called_builtin

_FENCES = frozenset("mem_fence read_mem_fence write_mem_fence atomic_work_item_fence".split())
_LOCAL = 3
_LOCAL_MEMORY, _WAY, _NOTHING = "local memory", "way", ""
"""Parts of a loop that may depend on a load, beside values: memory, and which way it takes."""


_COMMUTATIVE = frozenset("add sub and or xor max min umax umin".split())
_SUMS = frozenset(("add", "sub"))
_OPERATION = re.compile(r"atomicrmw (?:volatile )?(\w+)")


@dataclass(frozen=True)
class SharedNames:
    """Names of parameters and variables, by what the kernel does to their memory."""

    written: set[str]  # It may be written
    # All accesses are atomic and commute, and their results are not used: the order of work-groups does not
    # matter
    commuting: set[str]
    # Written memory in which accesses may overlap without starting at the same address, so that the counters
    # cannot tell whether work-groups communicate
    overlapping: set[str]
    # Bytes of the integers that all accesses add to, if those are all atomics of the kernel; or nothing
    sums: dict[str, int]


def commutes(instruction: ir.Instruction, used: Container[str | None], *, adds: bool = False) -> bool:
    """Whether an instruction is an atomic update whose order among others does not matter; or a sum."""
    if instruction.result in used:
        return False
    if instruction.opcode == "atomicrmw":
        operation = _OPERATION.match(instruction.text)
        return operation is not None and operation[1] in (_SUMS if adds else _COMMUTATIVE)
    return instruction.opcode == "call" and library.is_commutative(instruction.callee, adds=adds)


def find_sharing(function: ir.Function, classes: PointerClasses, used: Container[str | None]) -> SharedNames:
    """Classify the memory of a kernel by its accesses."""
    written: set[str] = set()
    touched: set[str] = set()
    ordered: set[str] = set()
    added: set[str] = set()
    others: set[str] = set()  # Of atomics
    extents: dict[str, set[int]] = {}
    for instruction in function.instructions():
        for access in instruction.accesses:
            if address_space(access.pointer_type) == _LOCAL:
                continue  # no other work-group sees it
            members = classes.members(access.pointer)
            touched |= members
            if access.kind != "read":
                written |= members
            if not commutes(instruction, used):
                ordered |= members
            is_buffer = classes.of(access.pointer, access.pointer_type).memory == "buffer"
            if is_buffer and commutes(instruction, used, adds=True):
                added |= members
            elif access.kind in ("read-write", "compare-exchange"):
                others |= members
            # The extent is unknown if the length is dynamic, or the alignment is less than it.
            known = 0 < access.nbytes <= access.alignment or access.repeated
            for name in members:
                extents.setdefault(name, set()).add(access.nbytes if known else 0)
    mixed = {name for name, sizes in extents.items() if len(sizes) > 1 or 0 in sizes}
    sums = {name: min(extents[name]) for name in added - ordered - mixed}
    is_sum = sums.keys() == added | others and set(sums.values()) <= {4, 8}
    return SharedNames(written, touched - ordered, written & mixed, sums if is_sum else {})


def waiting_load(function: ir.Function) -> ir.Instruction | None:
    """Return a load by which a work-group may wait for another one; ``None`` if there is none.

    That is a volatile or atomic load of global memory, an atomic that changes nothing, or any load beside a
    fence, in a loop whose exit depends on it. Exits that depend on local memory count too, if the loop stores
    such a value there.
    """
    loops = graph.find_loops(function.flow)
    for loop in loops:
        blocks = [function.blocks[label] for label in sorted(loop.blocks)]
        for load in _polled(blocks):
            if _decides(load, blocks, loop.blocks):
                return load
    return None


def _polled(blocks: Sequence[ir.Block]) -> Iterator[ir.Instruction]:
    """Yield the loads that may see what other work-groups write while the loop runs."""
    fenced = any(i.opcode == "fence" or called_builtin(i) in _FENCES for i in _instructions(blocks))
    for load in (i for i in _instructions(blocks) if i.opcode == "load"):
        is_fresh = fenced or load.text.startswith(("load volatile", "load atomic"))
        if is_fresh and any(address_space(a.pointer_type) != _LOCAL for a in load.accesses):
            yield load
    for atomic in filter(_only_reads, _instructions(blocks)):
        if address_space(atomic.operands[0].type) != _LOCAL:
            yield atomic


def _only_reads(instruction: ir.Instruction) -> bool:
    """Whether an instruction is an atomic that changes nothing, such as an addition of 0."""
    name = "" if instruction.opcode != "call" else called_builtin(instruction)
    if name.startswith(("atomic_load", "atom_load")):
        return True
    text = name or instruction.text
    operation = re.match(
        r"(?:atomicrmw (?:volatile )?|atom(?:ic)?_(?:fetch_)?)(add|sub|or|xor)(?![a-z])", text
    )
    return operation is not None and any(each.value == "0" for each in instruction.operands[1:2])


def _instructions(blocks: Iterable[ir.Block]) -> Iterator[ir.Instruction]:
    for block in blocks:
        yield from block.instructions


def _decides(load: ir.Instruction, blocks: Sequence[ir.Block], inside: frozenset[str]) -> bool:
    """Whether the exit of a loop depends on a load in it."""
    dependent, size = {load.result or _NOTHING}, 0
    while size != (size := len(dependent)):
        for block in blocks:
            for instruction in block.instructions:
                _follow(instruction, inside, dependent)
            end = block.terminator
            if len(end.successors) > 1 and not dependent.isdisjoint(end.uses()):
                if not inside.issuperset(end.successors):
                    return True
                dependent.add(_WAY)
    return False


def _follow(instruction: ir.Instruction, inside: frozenset[str], dependent: set[str]) -> None:
    """Add what an instruction makes of what depends on the load."""
    is_dependent = not dependent.isdisjoint(instruction.uses())
    in_local = any(address_space(a.pointer_type) == _LOCAL for a in instruction.accesses)
    if instruction.opcode == "phi":
        # Which of its values a phi has depends on the way that was taken.
        chosen = {value for value, label in instruction.incoming if label in inside}
        is_dependent |= _WAY in dependent and len(chosen) > 1
    elif instruction.opcode == "store" and in_local and (is_dependent or _WAY in dependent):
        dependent.add(_LOCAL_MEMORY)
    elif instruction.opcode == "load":
        is_dependent |= in_local and _LOCAL_MEMORY in dependent
    if is_dependent and instruction.result:
        dependent.add(instruction.result)

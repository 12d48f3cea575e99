"""Kinds of integer operations and atomics that depend on the instructions around them.

Integer operations for addresses and loops only are ``indexing``: a device's compiler folds most of them into
addresses, replaces products by sums from one iteration to the next, and unrolls loops. Others are joined, or
take another way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Set

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.inline import called_builtin
from crosscast.characterization.instrumentation.instruction_kinds import FREE, INTEGER_DIVISIONS, INTEGERS

INDEXING = "indexing"
"""Prefix of the kinds of integer operations for addresses and loops only."""
_MAY_INDEX = frozenset("add sub mul shl lshr ashr and or xor select icmp sext zext trunc phi freeze".split())
_INDEXING_CALLS = frozenset("mul24 mad24 min max umin umax smin smax".split())
_OF_OPERANDS = frozenset(
    (*INTEGER_DIVISIONS, *"add sub mul and or xor shl lshr ashr zext sext trunc".split())
)
_VALUES = ("%", "@")
_CONSTANT = re.compile(r"-?\d+")
_SHORT_BITS = 23  # And a sign
_JOINED_ATOMICS = ("atomics.global", "atomics.generic")
_OF_INTEGERS = ("int16.", "int32.", "int64.")
_SUMS, _LOGIC = ("add", "sub"), ("and", "or", "xor")
_MOST_NEEDED = 3  # Values of an instruction of logic
_NO_VALUE = ("-1", "true")  # Takes no place among these: its exclusive or is a negation


def mark_indexing(function: ir.Function) -> None:
    """Set the kind of integer operations of a flattened kernel for addresses and loops only.

    These are computed from ids, arguments and constants, not from loaded values, and used by addresses, by
    the exits of loops, and by each other.
    """
    flow = function.flow
    inside = graph.innermost(graph.find_loops(flow))
    exits = {
        label
        for label, loop in inside.items()
        if len(set(flow[label])) > 1 and not loop.blocks.issuperset(flow[label])
    }
    definitions = {i.result: i for i in function.instructions() if i.result}
    ids = {name for name, i in definitions.items() if called_builtin(i) in graph.IDENTITIES}
    chosen = {name for name, i in definitions.items() if _may_index(i)}
    users: dict[str, set[str]] = {name: set() for name in chosen}
    for label, block in function.blocks.items():
        for i in block.instructions:
            if i.opcode == "getelementptr" or (i is block.terminator and label in exits):
                continue
            for name in i.uses() & chosen:
                users[name].add(i.result or "")
    computed = definitions.keys() - ids
    sources = {name: definitions[name].uses() & computed for name in chosen}
    results: dict[str, set[str]] = {}
    for name, of_name in sources.items():
        for source in of_name:
            results.setdefault(source, set()).add(name)
    # Twice, as an index that is also a value makes no values of the addresses computed from it.
    _keep_within(chosen, sources, results)
    _keep_within(chosen, users, sources)
    for name in chosen:
        instruction = definitions[name]
        kind, elements = instruction.kind
        if kind.startswith(("int", "conversions")):
            instruction.kind = f"{INDEXING}.{kind}", elements
    for label in exits:
        branch = function.blocks[label].terminator
        if branch.opcode == "br" and branch.uses() <= chosen:
            branch.kind = f"{INDEXING}.{branch.kind[0]}", 1


def mark_divisions(function: ir.Function) -> None:
    """Set the kind of divisions of integers by a divisor that is no constant.

    Compilers divide by constants with a product and shifts. GPUs have no instruction for the others, but
    begin with the divisor's reciprocal, once for a loop that does not change it. A division that repeats
    another, of its block or in each iteration, is free.
    """
    if not any(map(_divides_by_variable, function.instructions())):
        return
    inside = graph.innermost(graph.find_loops(function.flow))
    computed_in = {i.result: label for label, block in function.blocks.items() for i in block.instructions}
    same = _equal_values(function)
    for label, block in function.blocks.items():
        loop = inside[label].blocks if label in inside else frozenset()
        done: set[str] = set()
        for i in filter(_divides_by_variable, block.instructions):
            dividend_changes, divisor_changes = (computed_in.get(each.value) in loop for each in i.operands)
            value = same[i.result or ""]
            kind, elements = i.kind
            if value in done or (loop and not dividend_changes and not divisor_changes):
                i.kind = FREE, 1
            else:
                i.kind = f"{kind}_by_{'variable' if divisor_changes or not loop else 'invariant'}", elements
            done.add(value)


def mark_short_products(function: ir.Function) -> None:
    """Set the kind of products of 32 bits of which the code shows that both factors have 24 bits at most.

    AMD's compiler looks for these, as GPUs of AMD have a faster instruction for them (LLVM,
    AMDGPUCodeGenPrepare).
    """
    products = [i for i in function.instructions() if i.opcode == "mul" and i.kind[0] == "int32.mul"]
    if not products:
        return
    definitions = {i.result: i for i in function.instructions() if i.result}
    for i in products:
        if all(_is_short(operand.value, definitions) for operand in i.operands):
            i.kind = "int32.mul24", i.kind[1]


def _is_short(value: str, definitions: Mapping[str, ir.Instruction]) -> bool:
    if _CONSTANT.fullmatch(value):
        return abs(int(value)) < 1 << _SHORT_BITS
    i = definitions.get(value)
    if i is None:
        return False
    values = [operand.value for operand in i.operands]
    constant = int(values[1]) if len(values) > 1 and _CONSTANT.fullmatch(values[1]) else -1
    match i.opcode:
        case "zext" | "sext":
            source = INTEGERS.match(i.operands[0].type)
            return source is not None and int(source[1]) <= 16
        case "trunc":
            return _is_short(values[0], definitions)
        case "and":
            return 0 <= constant < 1 << _SHORT_BITS
        case "lshr":
            return constant >= 32 - _SHORT_BITS
    return called_builtin(i) in ("get_local_id", "get_local_size")


def _divides_by_variable(instruction: ir.Instruction) -> bool:
    return instruction.opcode in INTEGER_DIVISIONS and instruction.operands[1].value.startswith(_VALUES)


def _equal_values(function: ir.Function) -> dict[str, str]:
    """Map integers computed alike from ids, and from equal values, to the first of them."""
    same: dict[str, str] = {}
    first: dict[tuple[str, ...], str] = {}
    for i in function.instructions():
        name = called_builtin(i) or i.opcode
        if i.result and (name in graph.IDENTITIES or name in _OF_OPERANDS):
            operands = (same.get(operand.value, operand.value) for operand in i.operands)
            same[i.result] = first.setdefault((name, i.type, *operands), i.result)
    return same


def mark_joined(function: ir.Function) -> None:
    """Set the kind of integer operations that GPUs do in one instruction with the next.

    Nvidia's add three values (IADD3), or one to a product or a shifted value (IMAD, LEA), and do any logic of
    three (LOP3). An operation joins the one that takes its result, in its block and alone. A product with its
    sum is ``fused``, and the sum free; what joins in another way is ``joined``.
    """
    if not any(i.kind[0].startswith(_OF_INTEGERS) for i in function.instructions()):
        return
    uses = Counter(operand.value for i in function.instructions() for operand in i.operands)
    uses.update(value for i in function.instructions() for value, _ in i.incoming)
    for block in function.blocks.values():
        terms: dict[str, ir.Instruction] = {}  # What a sum can take in, by result
        needs: dict[str, tuple[ir.Instruction, frozenset[str]]] = {}  # Logic that can join, and its values
        for i in block.instructions:
            if not i.kind[0].startswith(_OF_INTEGERS):
                continue
            result, group = i.result or "", i.kind[0].partition(".")[0]
            operands = [operand.value for operand in i.operands]
            alone = uses[result] == 1
            if i.opcode in _LOGIC:
                needed = _join_logic(operands, needs)
                if alone:
                    needs[result] = i, needed
            elif i.opcode in _SUMS:
                term = next((terms.pop(value) for value in operands if value in terms), None)
                if term is None:
                    if alone:
                        terms[result] = i
                elif term.opcode == "mul":
                    term.kind = term.kind[0].replace("mul", "fused"), term.kind[1]
                    i.kind = FREE, 1
                else:
                    term.kind = f"{group}.joined", term.kind[1]
            elif alone and (
                (i.opcode == "mul" and group != "int64")
                or (i.opcode == "shl" and _CONSTANT.fullmatch(operands[1]))
            ):
                terms[result] = i


def _join_logic(
    operands: list[str], needs: dict[str, tuple[ir.Instruction, frozenset[str]]]
) -> frozenset[str]:
    """Join as much of the logic behind operands as an instruction can do; return the values that it needs."""
    before = [value for value in operands if value in needs]
    for chosen in (before, before[:1], before[1:], []):  # The last always fits.
        of_each = [needs[v][1] if v in chosen else frozenset((v,)) for v in operands if v not in _NO_VALUE]
        needed = frozenset[str]().union(*of_each)
        if len(needed) <= _MOST_NEEDED:
            break
    for value in chosen:
        instruction, _ = needs.pop(value)
        group, elements = instruction.kind[0].partition(".")[0], instruction.kind[1]
        instruction.kind = f"{group}.joined", elements
    return needed


def mark_uniform_atomics(function: ir.Function) -> None:
    """Set the kind of atomics on integers whose address is the same for all work-items of a group.

    Compilers for GPUs replace those of a sub-group by one (Nvidia's since CUDA 9, AMD's since LLVM 8).
    """
    atomics = [i for i in function.instructions() if i.kind[0] in _JOINED_ATOMICS]
    if not atomics:
        return
    flow = function.flow
    values = graph.find_uniform(function.blocks, flow, [p.name for p in function.parameters]).values
    for i in atomics:
        if all(access.pointer in values or access.pointer.startswith("@") for access in i.accesses):
            i.kind = f"{i.kind[0]}_uniform", i.kind[1]


def _keep_within(chosen: set[str], needs: Mapping[str, Set[str]], affected: Mapping[str, Set[str]]) -> None:
    """Remove names until all that each needs is chosen; without one, those it affects are looked at again."""
    pending = [*chosen]
    while pending:
        name = pending.pop()
        if name in chosen and not needs[name] <= chosen:
            chosen.remove(name)
            pending += affected.get(name, ())


def _may_index(instruction: ir.Instruction) -> bool:
    if not INTEGERS.fullmatch(instruction.type):
        return False
    name = called_builtin(instruction) or instruction.callee.removeprefix("llvm.").split(".")[0]
    return instruction.opcode in _MAY_INDEX or name in _INDEXING_CALLS

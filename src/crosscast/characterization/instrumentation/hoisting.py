"""Hoisting of work-item ids out of loops, as in a device's compiler, which has them in registers.

For clang, work-item functions are convergent calls that must not be speculated, so that it does not move
them. `hoist_ids` moves them, and values computed from them, in front of loops in which they do not change.
"""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.inline import called_builtin

_MAY_TRAP = frozenset("udiv sdiv urem srem".split())


def hoist_ids(function: ir.Function) -> None:
    """Move ids, and values computed from them only, out of the loops of a flattened kernel."""
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

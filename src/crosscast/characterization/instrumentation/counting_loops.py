"""Accesses whose counting is better done in loops of their own.

Where a work-item touches neighbours in the same array, as in a stencil, one work-item counts an
address that the next one counts too: LLVM cannot run several work-items at a time then. If such an
access depends on nothing but ids and arguments, it is counted apart: a loop over the work-items
that computes its address and counts, one access a loop, leaves the main loop free of it. Additions
commute, so the order does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.inline import called_builtin
from crosscast.characterization.instrumentation.pointers import PointerClass
from crosscast.characterization.instrumentation.recomputation import IDENTITIES
from crosscast.characterization.instrumentation.segments import Segment
from crosscast.characterization.instrumentation.uniformity import PURE

__all__ = ["CountedApart", "find_apart"]

_FEWEST_IN_A_ROW = 16  # shorter rows of work-items do not fill a vector
_MOST_LOOPS = 16


@dataclass(frozen=True)
class CountedApart:
    """An access that is counted in a loop of its own.

    Parameters
    ----------
    label
        Block where it stands.
    instruction
        The load or store.
    blocks
        Blocks through which control gets there.
    values
        Values that its address and the way there depend on.
    """

    label: str
    instruction: ir.Instruction
    blocks: set[str]
    values: set[str]

    def rows(self, segment: Segment) -> Iterator[tuple[str, list[ir.Instruction]]]:
        """What is left of each block: phis, address computation, and the way on."""
        for label, block in segment.blocks.items():
            if label not in self.blocks:
                continue
            kept = []
            for original in block.instructions:
                if original.result not in self.values or not original.text:
                    continue
                instruction = ir.copy_instruction(original)
                instruction.incoming = [(v, p) for v, p in instruction.incoming if p in self.blocks]
                kept.append(instruction)
            if label != self.label:
                end = ir.copy_instruction(block.terminator)
                for successor in end.successors:
                    if successor not in self.blocks:
                        end.retarget(successor, "%cc.exit")
                kept.append(end)
            yield label, kept


def find_apart(segment: Segment, classes: dict[int, PointerClass], row_length: int) -> list[CountedApart]:
    """Accesses of a segment without loops to count apart; all that stand in the way, or none.

    Parameters
    ----------
    segment
        The segment.
    classes
        Class of each access, by the identity of its instruction; instructions with several accesses,
        and accesses that are not counted in place, are absent.
    row_length
        Work-items of a group in dimension 0.
    """
    if row_length < _FEWEST_IN_A_ROW or segment.once or segment.slots:
        return []
    accesses = [(label, i) for label, b in segment.blocks.items() for i in b.instructions if i.accesses]
    shared = Counter(classes[id(i)].number for _, i in accesses if id(i) in classes)
    crowded = {number for number, count in shared.items() if count > 1}
    found = []
    for label, instruction in accesses:
        cls = classes.get(id(instruction))
        if cls is None:
            return []
        if cls.number not in crowded:
            continue
        apart = _slice(segment, label, instruction)
        if apart is None:
            return []
        found.append(apart)
    return found if len(found) <= _MOST_LOOPS else []


def _slice(segment: Segment, label: str, access: ir.Instruction) -> CountedApart | None:
    """What the address of an access and the way to it depend on; ``None`` if that is not pure."""
    flow = segment.successors()
    blocks = {label}
    pending = [label]
    while pending:
        block = pending.pop()
        for predecessor in flow:
            if block in flow[predecessor] and predecessor not in blocks:
                blocks.add(predecessor)
                pending.append(predecessor)
    definitions = {i.result: i for b in blocks for i in segment.blocks[b].instructions if i.result and i.text}
    (memory,) = access.accesses
    wanted = set(ir.LOCAL.findall(memory.pointer))
    for block in blocks - {label}:
        if len(flow[block]) > 1:
            wanted |= segment.blocks[block].terminator.uses()
    values: set[str] = set()
    work = list(wanted)
    while work:
        name = work.pop()
        definition = definitions.get(name)
        if definition is None or name in values:
            continue
        pure = definition.opcode == "phi" or definition.opcode in PURE
        if not pure and called_builtin(definition) not in IDENTITIES:
            return None
        values.add(name)
        work.extend(definition.uses())
        for value, predecessor in definition.incoming:
            if predecessor in blocks:
                work.extend(ir.LOCAL.findall(value))
    return CountedApart(label, access, blocks, values)

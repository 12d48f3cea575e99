"""Functions that count one access of one work-item, and do nothing else."""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.counting_loops import CountedApart, find_apart
from crosscast.characterization.instrumentation.frame import Frame
from crosscast.characterization.instrumentation.memory_code import MemoryCode
from crosscast.characterization.instrumentation.pointers import PointerClass
from crosscast.characterization.instrumentation.segments import Segment
from crosscast.characterization.instrumentation.shared import Shared

__all__ = ["CountingCode"]


class CountingCode:
    """Counts accesses of one segment in loops of their own, where that is better.

    Parameters
    ----------
    segment
        The segment, before anything is added to it.
    loops
        Its loops.
    shared
        What the kernel's segments share.
    memory
        The segment's memory accesses.
    """

    def __init__(self, segment: Segment, loops: list[graph.Loop], shared: Shared, memory: MemoryCode) -> None:
        self._segment, self._shared, self._memory = segment, shared, memory
        self._found = [] if loops or shared.switches.check_bounds else self._find()

    @property
    def apart(self) -> set[int]:
        """Identities of the instructions that are counted here."""
        return {id(found.instruction) for found in self._found}

    def functions(self) -> list[str]:
        """IR of the functions, one an access."""
        return [self._function(number, apart) for number, apart in enumerate(self._found)]

    def _find(self) -> list[CountedApart]:
        in_place: dict[int, PointerClass] = {}
        for block in self._segment.blocks.values():
            for instruction in block.instructions:
                if len(instruction.accesses) == 1 and instruction.opcode in ("load", "store"):
                    cls = self._shared.class_of(instruction.accesses[0])
                    if cls.place != "dynamic" and self._memory.counters.in_place(cls):
                        in_place[id(instruction)] = cls
        return find_apart(self._segment, in_place, self._shared.switches.local_size[0])

    def _function(self, number: int, apart: CountedApart) -> str:
        frame = Frame(self._segment, self._shared)
        rows = [
            frame.header("void", f"cc.segment{self._segment.number}.count{number}"),
            "cc.start:",
            *frame.prologue(),
        ]
        for label, kept in apart.rows(self._segment):
            rows.append(f"{label[1:]}:")
            for original in kept:
                for translated in self._memory.translate(original):
                    rows += self._rendered(translated)
            if label == apart.label:
                for text in self._count(apart.instruction):
                    rows += self._rendered(ir.added(text))
                rows.append("  br label %cc.exit")
        return "\n".join([*rows, "cc.exit:", "  ret void", "}"])

    def _count(self, instruction: ir.Instruction) -> list[str]:
        (access,) = instruction.accesses
        cls = self._shared.class_of(access)
        return self._memory.counters.count(access, cls, access.pointer, instruction)

    def _rendered(self, instruction: ir.Instruction) -> list[str]:
        return [i.render() for i in self._shared.local.expand(instruction)]

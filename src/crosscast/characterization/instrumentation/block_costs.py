"""What one execution of each basic block costs.

Instructions and accesses are not counted as they are executed: a block costs the same every time,
so that costs are multiplied by executions afterwards. Executions follow from the few counted edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.accesses import MemoryAccess
from crosscast.characterization.instrumentation.instruction_class import class_of
from crosscast.characterization.instrumentation.pointers import PointerClass, PointerClasses, address_space
from crosscast.characterization.instrumentation.segments import Segment

__all__ = ["BlockCosts", "Tally", "costs_of", "space_name"]

Key = TypeVar("Key")


@dataclass
class Tally:
    """Instructions, accesses and barriers, by kind.

    Parameters
    ----------
    opcodes, widths, classes
        Executed instructions by opcode, by width of the result, and by class of the instruction mix.
    reads, writes, plain
        Read events, write events, and load and store instructions, by address space.
    private
        Load and store instructions to private memory.
    barriers
        Barriers hit.
    """

    opcodes: Counter[str] = field(default_factory=Counter)
    widths: Counter[int] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    plain: Counter[str] = field(default_factory=Counter)
    private: int = 0
    barriers: int = 0

    @property
    def instructions(self) -> int:
        """Executed instructions."""
        return sum(self.opcodes.values())

    @property
    def accesses(self) -> int:
        """Read and write events."""
        return sum(self.reads.values()) + sum(self.writes.values())

    def add_times(self, other: Tally, times: int) -> None:
        """Add another tally, so many times."""
        _add_counters(self.opcodes, other.opcodes, times)
        _add_counters(self.widths, other.widths, times)
        _add_counters(self.classes, other.classes, times)
        _add_counters(self.reads, other.reads, times)
        _add_counters(self.writes, other.writes, times)
        _add_counters(self.plain, other.plain, times)
        self.private += other.private * times
        self.barriers += other.barriers * times


def _add_counters(total: Counter[Key], own: Counter[Key], times: int) -> None:
    for key, n in own.items():
        total[key] += n * times


@dataclass
class BlockCosts(Tally):
    """What one execution of a block costs, and how to know how often it ran.

    Its accesses are those whose address space is known.

    Parameters
    ----------
    executions
        Coefficient of each counter in the number of executions.
    branch
        Static branch at its end, ``None`` if there is none.
    """

    executions: dict[int, int] = field(default_factory=dict)
    branch: int | None = None

    def add(self, instruction: ir.Instruction, classes: PointerClasses) -> None:
        """Add one instruction."""
        self.opcodes[instruction.opcode] += 1
        self.widths[instruction.width] += 1
        self.classes[class_of(instruction)] += 1
        plain = instruction.opcode in ("load", "store")
        if plain and not instruction.accesses:
            self.private += 1
        for access in instruction.accesses:
            cls = classes.of(access.pointer, access.pointer_type)
            if cls.place in ("dynamic", "private") or access.repeated:
                self.private += plain and cls.place == "private"
                continue
            space = space_name(access, cls)
            if access.kind != "write":
                self.reads[space] += 1
            if access.kind in ("write", "read-write"):
                self.writes[space] += 1
            if plain:
                self.plain[space] += 1


def costs_of(
    segment: Segment,
    executions: dict[str, dict[int, int]],
    classes: PointerClasses,
    barrier_before: Callable[[int], bool],
) -> dict[str, BlockCosts]:
    """Costs of each block of a segment, as the kernel's author wrote it.

    Parameters
    ----------
    segment
        The segment, before anything is added to it.
    executions
        For each block: coefficient of each counter in the number of its executions.
    classes
        The kernel's pointer classes.
    barrier_before
        Whether there is a barrier before a segment.
    """
    found = {}
    for label, block in segment.blocks.items():
        cost = BlockCosts(executions=executions[label], branch=block.terminator.branch)
        for instruction in block.instructions:
            if instruction.counted:
                cost.add(instruction, classes)
        cost.barriers = int(barrier_before(segment.exits.get(label, 0)))
        found[label] = cost
    return found


def space_name(access: MemoryAccess, cls: PointerClass) -> str:
    """Address space to which an access is counted."""
    space = address_space(access.pointer_type)
    if space == 4:
        return "local" if cls.place == "local" else "global"
    return {1: "global", 2: "constant", 3: "local"}[space]

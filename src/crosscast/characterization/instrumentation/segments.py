"""Segments: the parts of a kernel between barriers."""

from __future__ import annotations

from dataclasses import dataclass, field

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.uniformity import Uniformity

__all__ = ["Carried", "Segment", "Segments", "slot_name"]


@dataclass(frozen=True)
class Carried:
    """A value kept in memory across barriers; once a work-group if it is uniform."""

    name: str
    type: str
    nbytes: int
    uniform: bool


@dataclass
class Segment:
    """A part of the kernel between barriers.

    Parameters
    ----------
    number
        Its number; 0 starts the kernel.
    entry
        Label where it starts.
    blocks
        Its own copies of the blocks.
    exits
        For each block that leaves it: the segment that follows, 0 for the end of the work-item.
    after
        The barrier or collective before it; ``None`` for segment 0, and after one that ran once.
    once
        It is run once for all work-items of a group, because they would all do the same.
    restore
        Carried values that it loads at its start.
    save
        Carried values to store at each leaving block.
    recompute
        Instructions that compute again, at its start, what need not be carried.
    slots
        Type of each value that lives in a stack slot, because it enters the segment and is also
        defined in it.
    """

    number: int
    entry: str
    blocks: dict[str, ir.Block]
    exits: dict[str, int]
    after: ir.Instruction | None = None
    once: bool = False
    restore: list[Carried] = field(default_factory=list)
    save: dict[str, list[Carried]] = field(default_factory=dict)
    recompute: list[ir.Instruction] = field(default_factory=list)
    slots: dict[str, str] = field(default_factory=dict)

    def successors(self) -> dict[str, list[str]]:
        """Control flow inside the segment."""
        return {
            label: [] if label in self.exits else block.terminator.successors
            for label, block in self.blocks.items()
        }

    def entering(self, name: str) -> str:
        """Name under which a value enters the segment."""
        if name not in self.slots:
            return name
        return f'{name[:-1]}.cc.in"' if name.endswith('"') else f"{name}.cc.in"


@dataclass(frozen=True)
class Segments:
    """All segments of a kernel, everything they carry, and what is uniform."""

    segments: list[Segment]
    carried: list[Carried]
    uniform: Uniformity


def slot_name(name: str, load: int | None = None) -> str:
    """Name of the stack slot of a value, or of what one of its loads gives."""
    suffix = f".cc.slot{'' if load is None else load}"
    return f'{name[:-1]}{suffix}"' if name.endswith('"') else f"{name}{suffix}"

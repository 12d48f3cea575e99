"""Barriers and collectives, and the blocks of a kernel cut at them."""

from __future__ import annotations

from dataclasses import dataclass, field

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.inline import called_builtin

__all__ = ["Cuts", "is_barrier", "is_collective", "split_at_barriers"]


def is_barrier(instruction: ir.Instruction) -> bool:
    """Whether an instruction is a work-group barrier."""
    return called_builtin(instruction) in ("barrier", "work_group_barrier")


def is_collective(instruction: ir.Instruction) -> bool:
    """Whether an instruction is a work-group collective such as ``work_group_reduce_add``."""
    name = called_builtin(instruction)
    return name.startswith("work_group_") and not name.startswith("work_group_barrier")


@dataclass
class Cuts:
    """Where a kernel is cut.

    Parameters
    ----------
    roots
        Label where each segment starts, by the segment's number.
    crossings
        For each block that a cut ends: the label behind the cut.
    cutters
        For each label behind a barrier or collective: that instruction.
    """

    roots: list[str]
    crossings: dict[str, str] = field(default_factory=dict)
    cutters: dict[str, ir.Instruction] = field(default_factory=dict)

    def new_root(self) -> str:
        """Number one more segment, and return the label for its start."""
        label = f"%cc.segment{len(self.roots)}"
        self.roots.append(label)
        return label

    def result_across(self, root: str) -> str:
        """Result of the instruction before a segment's start; empty if it has none."""
        cutter = self.cutters.get(root)
        return (cutter.result if cutter is not None else None) or ""

    def flow(self, function: ir.Function) -> dict[str, list[str]]:
        """Successors of each block, across the cuts too."""
        return {
            label: [self.crossings[label]] if label in self.crossings else block.terminator.successors
            for label, block in function.blocks.items()
        }

    def reachable(self, function: ir.Function, starts: list[str]) -> set[str]:
        """Blocks that can be reached without crossing a cut, the starts among them."""
        reached: set[str] = set()
        pending = list(starts)
        while pending:
            label = pending.pop()
            if label not in reached:
                reached.add(label)
                if label not in self.crossings:
                    pending.extend(function.blocks[label].terminator.successors)
        return reached


def split_at_barriers(function: ir.Function) -> Cuts:
    """End a block at each barrier and collective.

    Parameters
    ----------
    function
        A flattened kernel; its blocks are split.
    """
    cuts = Cuts([function.entry.label])
    ends: dict[str, str] = {}  # a block that was cut ends under another label
    blocks: dict[str, ir.Block] = {}
    for block in function.blocks.values():
        pieces = _split(block, cuts)
        blocks.update((piece.label, piece) for piece in pieces)
        ends[block.label] = pieces[-1].label
    function.blocks = blocks
    for block in blocks.values():
        for phi in block.phis():
            phi.incoming = [(value, ends[label]) for value, label in phi.incoming]
    return cuts


def _split(block: ir.Block, cuts: Cuts) -> list[ir.Block]:
    """The pieces of one block; a barrier stays behind in its piece, counted but without text."""
    pieces = [block]
    instructions, block.instructions = block.instructions, []
    for instruction in instructions:
        if not (is_barrier(instruction) or is_collective(instruction)):
            pieces[-1].instructions.append(instruction)
            continue
        ghost = ir.copy_instruction(instruction)
        ghost.text = ""
        pieces[-1].instructions += [ghost, ir.Instruction("", "cut", counted=False)]
        after = ir.Block(cuts.new_root(), [])
        cuts.crossings[pieces[-1].label] = after.label
        cuts.cutters[after.label] = instruction
        pieces.append(after)
    return pieces

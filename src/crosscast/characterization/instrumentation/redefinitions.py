"""Values that enter a segment and are also defined in it, as around a loop with a barrier inside.

Each gets one place on the stack, so that the code need not tell its two definitions apart. LLVM
turns these stack slots back into registers and inserts the phis.
"""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.segments import Segment, slot_name

__all__ = ["resolve_redefinitions"]


def resolve_redefinitions(segment: Segment) -> None:
    """Let such values of a segment live in stack slots."""
    entering = {c.name: c.type for c in segment.restore}
    entering.update({i.result: i.type for i in segment.recompute if i.result})
    if segment.after is not None and segment.after.result:
        entering[segment.after.result] = segment.after.type
    defined = {i.result for b in segment.blocks.values() for i in b.instructions if i.result and i.text}
    for name in sorted(entering.keys() & defined):
        segment.slots[name] = entering[name]
        _Slot(name, entering[name]).use(segment)


class _Slot:
    """The stack slot of one value."""

    def __init__(self, name: str, type_: str) -> None:
        self._name, self._type = name, type_
        self._loads = 0

    def use(self, segment: Segment) -> None:
        for block in segment.blocks.values():
            self._use_in(block)
        for block in segment.blocks.values():
            for phi in block.phis():
                phi.incoming = [self._incoming(v, segment.blocks[label]) for v, label in phi.incoming]

    def _use_in(self, block: ir.Block) -> None:
        rewritten: list[ir.Instruction] = []
        for instruction in block.instructions:
            if instruction.opcode != "phi" and self._name in instruction.uses():
                load = self._load()
                rewritten.append(load)
                instruction.text = self._replace(instruction.text, load)
            rewritten.append(instruction)
            if instruction.result == self._name and instruction.text:
                text = f"store {self._type} {self._name}, ptr {slot_name(self._name)}"
                rewritten.append(ir.Instruction(text, "store", counted=False))
        block.instructions = _phis_first(rewritten)

    def _incoming(self, value: str, source: ir.Block) -> tuple[str, str]:
        """Load a phi's value at the end of the block that it comes from."""
        if self._name not in ir.LOCAL.findall(value):
            return value, source.label
        load = self._load()
        source.instructions.insert(-1, load)
        return self._replace(value, load), source.label

    def _load(self) -> ir.Instruction:
        self._loads += 1
        result = slot_name(self._name, self._loads)
        text = f"load {self._type}, ptr {slot_name(self._name)}"
        return ir.Instruction(text, "load", self._type, result, counted=False)

    def _replace(self, text: str, load: ir.Instruction) -> str:
        return ir.substitute(text, lambda n: load.result or "" if n == self._name else n)


def _phis_first(instructions: list[ir.Instruction]) -> list[ir.Instruction]:
    return sorted(instructions, key=lambda i: i.opcode != "phi")

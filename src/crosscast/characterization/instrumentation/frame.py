"""Header and prologue of the functions that are made from a segment."""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import collectives, signature
from crosscast.characterization.instrumentation.segments import Segment, slot_name
from crosscast.characterization.instrumentation.shared import Shared

__all__ = ["Frame"]


class Frame:
    """What every function of one segment begins with.

    Parameters
    ----------
    segment
        The segment.
    shared
        What the kernel's segments share.
    """

    def __init__(self, segment: Segment, shared: Shared) -> None:
        self._segment, self._shared = segment, shared

    def header(self, result: str, name: str) -> str:
        """First line of a function of one work-item."""
        parameters = signature.formal(self._shared.parameters)
        return f"define internal {result} @{name}({parameters}) alwaysinline nounwind {{"

    def prologue(self) -> list[str]:
        """Compute addresses, and all values that enter the segment; then go to its entry."""
        shared, segment = self._shared, self._segment
        texts = [*shared.local.prologue(), *shared.private.prologue()]
        for carried in segment.restore:
            texts += shared.live.load(carried, segment.entering(carried.name))
        for original in segment.recompute:
            texts += self._recompute(original)
        if segment.after is not None and segment.after.result:
            result = segment.entering(segment.after.result)
            texts += collectives.take(segment.after, result, shared.names)
        slots = []
        for name, type_ in segment.slots.items():
            slots.append(f"{slot_name(name)} = alloca {type_}")
            texts.append(f"store {type_} {segment.entering(name)}, ptr {slot_name(name)}")
        return [f"  {text}" for text in [*slots, *texts, f"br label {segment.entry}"]]

    def _recompute(self, original: ir.Instruction) -> list[str]:
        shared = self._shared
        renamed = {name: self._segment.entering(name) for name in self._segment.slots}
        texts: list[str] = []
        for instruction in shared.private.place(original, shared.lowering.lower(original)):
            instruction.text = ir.substitute(instruction.text, lambda n: renamed.get(n, n))
            if instruction.result:
                instruction.result = renamed.get(instruction.result, instruction.result)
            texts += [i.render().strip() for i in shared.local.expand(instruction)]
        return texts

"""What the code of all segments of one kernel shares."""

from __future__ import annotations

from dataclasses import dataclass, field

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import builtin_calls as collectives
from crosscast.characterization.instrumentation import signature, warps
from crosscast.characterization.instrumentation.accesses import MemoryAccess
from crosscast.characterization.instrumentation.builtin_calls import Lowering
from crosscast.characterization.instrumentation.context import Counters, Names
from crosscast.characterization.instrumentation.instrumented import Switches
from crosscast.characterization.instrumentation.memory_layout import LiveMemory, LocalVariables, PrivateArrays
from crosscast.characterization.instrumentation.pointers import PointerClass, PointerClasses
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.regions import Segment, is_barrier, slot_name


@dataclass(frozen=True)
class Shared:
    """What the code of all segments of one kernel shares."""

    parameters: list[ir.Parameter]  # The kernel's parameters
    sizes: dict[str, tuple[int, int]]  # Size and alignment of each type
    switches: Switches  # What to instrument
    narrow: bool  # What one run of a segment counts fits 32 bits
    by_turns: bool  # Work-items do not all stand at the same cut
    segments: list[Segment]  # The segments
    names: Names  # Where new names come from
    scopes: Scopes  # Alias scopes
    counters: Counters  # Where new counters come from
    sites: list[int]  # Source line of each place that can fault
    classes: PointerClasses  # Pointer classes
    lowering: Lowering  # What stands for calls of builtins
    local: LocalVariables  # Where local variables, private arrays and carried values stand
    private: PrivateArrays
    live: LiveMemory
    counted: set[PointerClass] = field(default_factory=set)  # Those with accesses that are no rows
    led: set[int] = field(init=False)
    """Segments that follow one that ran once."""

    def __post_init__(self) -> None:
        led = {number for segment in self.segments if segment.once for number in segment.exits.values()}
        object.__setattr__(self, "led", led)

    @property
    def count_type(self) -> str:
        """LLVM type in which a segment counts."""
        return "i32" if self.narrow else "i64"

    @property
    def several(self) -> bool:
        """Whether there is more than one segment."""
        return len(self.segments) > 1

    def class_of(self, access: MemoryAccess) -> PointerClass:
        """Class of the pointer of an access."""
        return self.classes.of(access.pointer, access.pointer_type)

    def barrier_before(self, number: int) -> bool:
        """Whether there is a barrier before a segment."""
        after = self.segments[number].after
        return after is not None and is_barrier(after)


class Frame:
    """What every function of one segment begins with."""

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
            take = warps.take if warps.is_warp_operation(segment.after) else collectives.take
            texts += take(segment.after, result, shared.names)
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

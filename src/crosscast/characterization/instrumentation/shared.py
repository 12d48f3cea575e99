"""What the code of all segments of one kernel shares."""

from __future__ import annotations

from dataclasses import dataclass, field

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.accesses import MemoryAccess
from crosscast.characterization.instrumentation.barriers import is_barrier
from crosscast.characterization.instrumentation.builtin_calls import Lowering
from crosscast.characterization.instrumentation.counters import Counters
from crosscast.characterization.instrumentation.instrumented import Switches
from crosscast.characterization.instrumentation.live_memory import LiveMemory
from crosscast.characterization.instrumentation.local_variables import LocalVariables
from crosscast.characterization.instrumentation.names import Names
from crosscast.characterization.instrumentation.pointers import PointerClass, PointerClasses
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.private_memory import PrivateArrays
from crosscast.characterization.instrumentation.segments import Segment

__all__ = ["Shared"]


@dataclass(frozen=True)
class Shared:
    """What the code of all segments of one kernel shares.

    Parameters
    ----------
    parameters
        The kernel's parameters.
    sizes
        Size and alignment of each type.
    switches
        What to instrument.
    narrow
        What one run of a segment counts fits 32 bits.
    segments
        The segments.
    names
        Where new names come from.
    scopes
        Alias scopes.
    counters
        Where new counters come from.
    sites
        Source line of each place that can fault.
    classes
        Pointer classes.
    lowering
        What stands for calls of builtins.
    local, private, live
        Where local variables, private arrays and carried values stand.
    """

    parameters: list[ir.Parameter]
    sizes: dict[str, tuple[int, int]]
    switches: Switches
    narrow: bool
    segments: list[Segment]
    names: Names
    scopes: Scopes
    counters: Counters
    sites: list[int]
    classes: PointerClasses
    lowering: Lowering
    local: LocalVariables
    private: PrivateArrays
    live: LiveMemory
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

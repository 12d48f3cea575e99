"""What the engine has to know of an instrumented kernel: the layout of what it needs and of what it leaves.

Instrumentation fills it in; running a kernel, reading its counts and telling its faults need nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crosscast.characterization.engine.abi import CONSTANTS, MemoryRegion

CLASSES = ("sse", "alu", "mem", "fp", "stack", "string", "shift", "control")
"""Classes of the instruction mix, in the order of Table 4 of Moolchandani et al. 2022."""

OTHER = "other"
"""What is none of them: a phi, or a change of type that costs nothing."""


@dataclass
class Tally:
    """Instructions, accesses and barriers, by kind."""

    # Executed instructions by opcode, by width of the result, and by class of the instruction mix
    opcodes: Counter[str] = field(default_factory=Counter)
    widths: Counter[int] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    # Read events, write events, and load and store instructions, by address space
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    plain: Counter[str] = field(default_factory=Counter)
    # Floating-point operations by precision, elements of mathematical functions, and bytes by address space
    work: Counter[str] = field(default_factory=Counter)
    # Executed instructions by kind and elements of each
    kinds: Counter[tuple[str, int]] = field(default_factory=Counter)
    private: int = 0  # Load and store instructions to private memory
    barriers: int = 0  # Barriers hit

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
        for name in ("opcodes", "widths", "classes", "reads", "writes", "plain", "work", "kinds"):
            total = getattr(self, name)
            for key, n in getattr(other, name).items():
                total[key] += n * times
        self.private += other.private * times
        self.barriers += other.barriers * times


@dataclass
class BlockCosts(Tally):
    """What one execution of a basic block costs, and how to know how often it ran.

    Its accesses are those whose address space is known.
    """

    label: str = ""  # Label of the block
    # Coefficient of each counter in the number of executions
    executions: dict[int, int] = field(default_factory=dict)
    branch: int | None = None  # Static branch at its end, `None` if there is none
    strided: int = 0  # Accesses that are recorded as strided


class AccessSite(NamedTuple):
    """A static access, as the runtime reads it."""

    flags: int
    nbytes: int  # 0 for texels, whose size the image says
    shift: int  # Logarithm of the alignment of its addresses, as far as a sector goes
    buffer: int = -1  # Position of the parameter whose buffer it accesses, if it can be one only

    @property
    def is_local(self) -> bool:
        """Whether it is in local memory."""
        return bool(self.flags & CONSTANTS["SITE_LOCAL"])

    @property
    def is_written(self) -> bool:
        """Whether it writes; atomics do."""
        return bool(self.flags & CONSTANTS["SITE_WRITES"])


class Recorded(NamedTuple):
    """An access whose addresses a segment leaves to the runtime."""

    segment: int
    site: int
    mode: int  # `ONCE`, `STREAM` or `RUNS` of the runtime
    number: int  # Among those that are recorded once, or among all streams
    order: int  # Where it stands in the segment


@dataclass(frozen=True)
class Form:
    """Executions of blocks that differ between work-items: a sum of columns."""

    terms: tuple[tuple[int, int], ...]  # Column and coefficient
    weight: int  # Instructions that one execution stands for


@dataclass(frozen=True)
class SubGroupLayout:
    """What is recorded for sub-groups, and how executions of blocks by work-items follow from counters."""

    sites: Sequence[AccessSite] = ()
    recorded: Sequence[Recorded] = ()
    once: int = 0  # How many of these are recorded once, and how many as streams
    streams: int = 0
    stream_words: int = 0  # Room in a stream
    # For each counter: its column if work-items differ, or else its index among what a group counts once
    columns: Mapping[int, int] = field(default_factory=dict)
    alike: Mapping[int, int] = field(default_factory=dict)
    forms: Sequence[Form] = ()  # The first one is of all instructions, and weighs nothing
    # By index among what a group counts once: instructions without phis, and with them
    weights: Sequence[int] = ()
    totals: Sequence[int] = ()


@dataclass(frozen=True)
class ParameterLayout:
    """A parameter of the kernel, and the memory that it points to."""

    name: str  # As the program has it
    region: MemoryRegion  # Without its start and size, which the launch gives
    is_buffer: bool  # It points to global or constant memory
    is_accessed: bool  # The kernel may access that memory, and may write to it
    is_written: bool


@dataclass(frozen=True)
class ResultLayout:
    """What an instrumented kernel needs of memory, and what stands where in its results."""

    parameters: Sequence[ParameterLayout]
    variables: Sequence[
        tuple[str, MemoryRegion]
    ]  # The program's variables by symbol, their start still unknown
    writes_variables: bool  # The kernel may write to them
    local_regions: Sequence[MemoryRegion]  # Variables in local memory, which start at an offset
    local_bytes: int  # Bytes of these together
    stack_bytes: int  # Private arrays of a work-item on the stack, and those that live across barriers
    private_bytes: int
    live_bytes: int  # Of a work-group, for values that live across barriers
    cut_lines: Sequence[int]  # By segment: source line of what it stands behind, 0 if that is not known
    fault_lines: Sequence[int]  # Source line of each place that tells where it fails
    print_calls: Sequence[Sequence[str]]  # Types of the arguments of each call of ``printf``
    is_ordered: bool  # Results depend on the order of work-groups
    per_warp: bool  # Work-items do not all stand at the same cut
    counts_fit_32_bits: bool  # What one run of a segment counts
    blocks: Sequence[BlockCosts]  # Of every segment
    counters: int  # How many there are
    strided: int  # Numbers of strided accesses and of their parts
    order_counter: int | None  # Counter of the positions of last loads and stores
    conditional_writes: Mapping[int, str]  # Address space by counter of a compare-exchange's successes
    histories: int  # How many there are, and those kept in memory
    histories_in_memory: Sequence[int]
    instructions_per_item: int | None  # Where each work-item is known to run as many
    sub_groups: SubGroupLayout

    @property
    def has_several_segments(self) -> bool:
        """Whether there is more than one segment."""
        return len(self.cut_lines) > 1

    @property
    def compares_items(self) -> bool:
        """Whether work-items of a group are compared when they have ended."""
        return self.has_several_segments or bool(self.sub_groups.columns)

    def is_accessed(self, position: int) -> bool:
        """Whether the kernel may access the buffer of a parameter."""
        return self.parameters[position].is_accessed

    def access_weights(self) -> list[int]:
        """Accesses with a counter in memory that one count of each counter stands for."""
        return self._weights((block, block.accesses - block.strided) for block in self.blocks)

    def instruction_weights(self) -> list[int]:
        """Instructions that one count of each counter stands for."""
        return self._weights((block, block.instructions) for block in self.blocks)

    def _weights(self, costs: Iterator[tuple[BlockCosts, int]]) -> list[int]:
        weights = [0] * max(self.counters, 1)
        for block, cost in costs:
            for number, sign in block.executions.items():
                weights[number] += sign * cost
        return weights

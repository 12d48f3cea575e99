"""Layout of an instrumented kernel's inputs and results, for the engine, and the runtime's binary interface.

Structures, constants and functions of the runtime are read from `runtime/runtime.h`.
Instrumentation fills the layout in; running a kernel, reading its counts and describing its faults need
nothing else.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_PATH = Path(__file__).with_name("runtime") / "runtime.h"
_TEXT = re.sub(r"/\*.*?\*/", "", _PATH.read_text(), flags=re.DOTALL)
_FIELD = re.compile(r"\**(\w+)(?:\[(\d+)\])?$")


@functools.cache
def words(struct: str) -> dict[str, str]:
    """Return the leading words of a structure and their LLVM types; arrays are expanded: ``group0``."""
    match = re.search(rf"^struct {struct} \{{(.*?)^\}}", _TEXT, re.DOTALL | re.MULTILINE)
    assert match is not None
    types: dict[str, str] = {}
    for declaration in match[1].split(";"):
        type_, _, declared = re.sub(r"\bstruct ", "", declaration.strip()).partition(" ")
        for declared_field in map(str.strip, declared.split(",")):
            name = _FIELD.match(declared_field)
            if name is None or not (type_ == "u64" or declared_field.startswith("*")):
                return types
            names = [f"{name[1]}{k}" for k in range(int(name[2]))] if name[2] else [name[1]]
            types |= dict.fromkeys(names, "ptr" if declared_field.startswith("*") else "i64")
    return types


def _constants() -> dict[str, int]:
    constants: dict[str, int] = {}
    for body in re.findall(r"\benum \w*\s*\{(.*?)\}", _TEXT, re.DOTALL):
        value = -1
        for entry in filter(None, map(str.strip, body.split(","))):
            name, _, expression = entry.partition(" = ")
            base, _, shift = expression.partition(" << ")
            value = int(base) << int(shift or 0) if expression else value + 1
            constants[name] = value
    return constants


CONSTANTS = _constants()
"""Values of all enumerators."""


_LLVM_TYPES = {"void": "void", "u64": "i64", "u32": "i32"}
_PROTOTYPE = re.compile(r"^(u64|u32|void)( \*| )(cc_(?!group\b)\w+)\(([^()]*)\);", re.MULTILINE)


def _declaration(match: re.Match[str]) -> str:
    """Declare a function of the runtime in LLVM IR."""
    types = ["ptr" if "*" in p else _LLVM_TYPES[p.split()[0]] for p in match[4].split(",") if p != "void"]
    result = "ptr" if "*" in match[2] else _LLVM_TYPES[match[1]]
    return f"declare {result} @{match[3]}({', '.join(types)})"


RUNTIME_FUNCTIONS = {match[3]: _declaration(match) for match in _PROTOTYPE.finditer(_TEXT)}
"""Declarations of the runtime's functions, by name."""


class MemoryRegion(NamedTuple):
    """Memory that a kernel may access, as ``struct region``."""

    start: int
    size: int
    granule: int  # Bytes of one counter
    kind: int
    constant: int = 0
    read_only: int = 0
    commutes: int = 0  # The order of accesses does not matter; bytes of the integers that they add to, or 1
    counted: int = 1  # Some accesses are not strided
    scattered: int = 0  # Accesses that are counted in small counters: read 1, write 2
    read_bytes: int = 0  # Bytes of the widest read, and of the widest write
    write_bytes: int = 0
    overlaps: int = 0  # Accesses that may overlap without equal start addresses: reads 1, writes 2
    lines_64: int = 0  # Distinct lines, after the reduction
    lines_128: int = 0
    largest: int = 0  # The most accesses of a granule, after the reduction
    before: int = 0  # Bytes read before and behind it
    behind: int = 0


_SLOTS = [*words("context")]

INVARIANTS = {
    name: type_
    for name, type_ in words("context").items()
    if name != "items" and _SLOTS.index(name) < _SLOTS.index("strided")
}
"""Slots that generated code reads once a work-group, and their types."""

MAX_ITEMS = CONSTANTS["MAX_ITEMS"]
ROW_BYTES = MAX_ITEMS + 64
"""Bytes of a row of branch outcomes."""

ARGUMENT_BYTES = 128
"""Bytes of each kernel argument in the argument block; larger ones are behind the block."""

HISTORY_BYTES = 8 * len(words("history"))
WINDOW = 16
"""Outcomes of one history pattern."""

TABLE_BYTES = 8 << (WINDOW + 2)
"""Bytes of a branch's table: 2^18 counts, indexed by up to 17 outcomes behind a leading 1."""


def slot(name: str) -> int:
    """Return the byte offset of a slot."""
    return 8 * _SLOTS.index(name)


CLASSES = ("sse", "alu", "mem", "fp", "stack", "string", "shift", "control")
"""Classes of the instruction mix, in the order of Table 4 of Moolchandani et al. 2022."""

OTHER = "other"
"""Class of all other instructions: phis, and changes of type without cost."""


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
        """Add a multiple of another tally."""
        for name in ("opcodes", "widths", "classes", "reads", "writes", "plain", "work", "kinds"):
            total = getattr(self, name)
            for key, n in getattr(other, name).items():
                total[key] += n * times
        self.private += other.private * times
        self.barriers += other.barriers * times


@dataclass
class BlockCosts(Tally):
    """Cost of one execution of a basic block, and its number of executions by counters.

    Only accesses of known address space are included.
    """

    label: str = ""  # Label of the block
    # Coefficient of each counter in the number of executions
    executions: dict[int, int] = field(default_factory=dict)
    branch: int | None = None  # Static branch at its end, `None` if there is none
    strided: int = 0  # Accesses that are recorded as strided


class AccessSite(NamedTuple):
    """A static access, as passed to the runtime."""

    flags: int
    nbytes: int  # 0 for texels, whose size depends on the image
    shift: int  # Logarithm of the alignment of its addresses, up to a sector
    buffer: int = -1  # Position of the parameter whose buffer it accesses, if that is unique
    is_shared: bool = False  # It reads global memory at an address that all work-items of a launch share
    is_read_only: bool = (
        False  # It reads through a `restrict` pointer to global memory that the kernel only reads
    )

    @property
    def is_local(self) -> bool:
        """Whether it is in local memory."""
        return bool(self.flags & CONSTANTS["SITE_LOCAL"])

    @property
    def is_atomic(self) -> bool:
        """Whether it is an atomic."""
        return bool(self.flags & CONSTANTS["SITE_ATOMIC"])

    @property
    def is_written(self) -> bool:
        """Whether it writes; atomics do."""
        return bool(self.flags & CONSTANTS["SITE_WRITES"])


class Recorded(NamedTuple):
    """An access whose addresses a segment records for the runtime."""

    segment: int
    site: int
    mode: int  # `ONCE`, `STREAM` or `RUNS` of the runtime
    number: int  # Number among those recorded once, or among all streams
    order: int  # Position in the segment


SUB_GROUP_INSTRUCTIONS: Mapping[str, tuple[str, ...]] = {
    "sub_group_instructions_without_phi": (),
    "sub_group_fp32": ("fp16.", "fp32."),
    "sub_group_fp64": ("fp64.", "conversions.fp64"),
}
"""Instructions that sub-groups execute, and how the kinds of those begin that are of one unit, by element."""


@dataclass(frozen=True)
class Form:
    """Executions of blocks that differ between work-items: a sum of columns."""

    terms: tuple[tuple[int, int], ...]  # Column and coefficient
    weights: Sequence[int]  # What `SUB_GROUP_INSTRUCTIONS` are of one execution


@dataclass(frozen=True)
class SubGroupLayout:
    """Records for sub-groups, and executions of blocks by work-items as sums of counters."""

    sites: Sequence[AccessSite] = ()
    recorded: Sequence[Recorded] = ()
    once: int = 0  # Number of these recorded once, and as streams
    streams: int = 0
    stream_words: int = 0  # Room in a stream
    # For each counter: its column if work-items differ, or else its index among those counted once a group
    columns: Mapping[int, int] = field(default_factory=dict)
    alike: Mapping[int, int] = field(default_factory=dict)
    forms: Sequence[Form] = ()  # The first one is of all instructions, without weights
    # By index among those counted once a group: what `SUB_GROUP_INSTRUCTIONS` are, and all instructions
    weights: Sequence[Sequence[int]] = ()
    totals: Sequence[int] = ()


@dataclass(frozen=True)
class ParameterLayout:
    """A parameter of the kernel, and its memory."""

    name: str  # Name in the program
    region: MemoryRegion  # Without start and size, which depend on the launch
    is_buffer: bool  # It points to global or constant memory
    is_accessed: bool  # The kernel may access that memory, and may write to it
    is_written: bool


@dataclass(frozen=True)
class ResultLayout:
    """Memory of an instrumented kernel, and the layout of its results."""

    parameters: Sequence[ParameterLayout]
    variables: Sequence[tuple[str, MemoryRegion]]  # The program's variables by symbol, without start
    writes_variables: bool  # The kernel may write to them
    local_regions: Sequence[MemoryRegion]  # Variables in local memory, which start at an offset
    local_bytes: int  # Bytes of these together
    stack_bytes: int  # Private arrays of a work-item on the stack, and those that live across barriers
    private_bytes: int
    live_bytes: int  # Of a work-group, for values that live across barriers
    cut_lines: Sequence[int]  # By segment: source line of the cut before it, 0 if unknown
    fault_lines: Sequence[int]  # Source line of each fault site
    print_calls: Sequence[Sequence[str]]  # Types of the arguments of each call of ``printf``
    is_ordered: bool  # Results depend on the order of work-groups
    per_warp: bool  # Work-items may be at different cuts
    counts_fit_32_bits: bool  # The counts of one run of a segment
    blocks: Sequence[BlockCosts]  # Of every segment
    counters: int  # Number of counters
    strided: int  # Numbers of strided accesses and of their parts
    order_counter: int | None  # Counter of the positions of last loads and stores
    conditional_writes: Mapping[int, str]  # Address space by counter of a compare-exchange's successes
    histories: int  # Number of histories, and those kept in memory
    histories_in_memory: Sequence[int]
    histories_repeated: Sequence[int]  # Those that are the same in all work-groups
    groups_alike: bool  # All work-groups take the same way
    instructions_per_item: int | None  # If it is known to be the same for all work-items
    sub_groups: SubGroupLayout

    @property
    def has_several_segments(self) -> bool:
        """Whether there is more than one segment."""
        return len(self.cut_lines) > 1

    @property
    def compares_items(self) -> bool:
        """Whether work-items of a group are compared at their ends."""
        return self.has_several_segments or bool(self.sub_groups.columns)

    def is_accessed(self, position: int) -> bool:
        """Whether the kernel may access the buffer of a parameter."""
        return self.parameters[position].is_accessed

    def access_weights(self) -> list[int]:
        """Return the accesses with a counter in memory for one count of each counter."""
        return self._weights((block, block.accesses - block.strided) for block in self.blocks)

    def instruction_weights(self) -> list[int]:
        """Return the instructions for one count of each counter."""
        return self._weights((block, block.instructions) for block in self.blocks)

    @property
    def most_instructions(self) -> int:
        """Instructions that no work-item exceeds, as it runs each block once; 0 if it may run one again."""
        once = self.counts_fit_32_bits and not self.has_several_segments
        return sum(block.instructions for block in self.blocks) if once else 0

    def _weights(self, costs: Iterator[tuple[BlockCosts, int]]) -> list[int]:
        weights = [0] * max(self.counters, 1)
        for block, cost in costs:
            for number, sign in block.executions.items():
                weights[number] += sign * cost
        return weights

"""What instrumentation is told to do, what it makes, and what the code of all segments shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import builtin_calls, context
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClass,
    PointerClasses,
    address_space,
)
from crosscast.characterization.instrumentation.block_costs import BlockCosts
from crosscast.characterization.instrumentation.builtin_calls import Lowering, Sharing
from crosscast.characterization.instrumentation.context import CONSTANTS, Counters, Names, Region
from crosscast.characterization.instrumentation.memory_layout import LiveMemory, LocalVariables, PrivateArrays
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.regions import Segment, is_barrier, slot_name

_VARIABLE, _LOCAL = CONSTANTS["VARIABLE"], CONSTANTS["LOCAL"]


@dataclass(frozen=True)
class Switches:
    """What to instrument, beyond the metrics."""

    local_size: tuple[int, int, int]  # Work-items of a group, three numbers
    uniform: bool = True  # Every work-group is full
    check_bounds: bool = False  # Check every access against its buffer
    published: bool = False  # Also record what only the published tool's conventions need
    checked: bool = False  # Let counters of 4 bytes spill before they overflow
    small_ids: bool = True  # All global ids fit 31 bits, so that LLVM can see through conversions to `int`
    same: tuple[tuple[int, ...], ...] = ()  # Groups of positions of arguments that are the same buffer
    cuda: bool = False  # A kernel of CUDA or HIP: who has ended is not waited for at barriers
    shared: int | None = None  # Bytes of CUDA's dynamic shared memory
    warp: int = 32  # Lanes of a warp, or work-items of a sub-group


@dataclass(frozen=True)
class Instrumented:
    """An instrumented kernel."""

    functions: str  # IR of the functions of the segments
    segments: list[Segment]  # What they were made from
    counters: int  # Number of counters; the first ones are the entries into each segment
    edge_counters: int  # Number of counters of edges and entries among them; these come first
    counters_of: list[range]  # Numbers of the edge counters of each segment
    # What the runtime has to do before a segment that follows a collective, and the type
    collective_codes: dict[int, tuple[int, int]]
    # What stands before each segment of a kernel that runs by turns, as the runtime numbers it; else empty
    cut_codes: list[tuple[int, int, int, int]]
    blocks: list[BlockCosts]  # Costs of every block of every segment
    rows: list[list[int]]  # Branches of each segment whose outcomes go to rows
    cells: list[list[int]]  # Branches of each segment that have one outcome for all work-items
    # Descriptions of the slices by which accesses are recorded: once a work-group by segment, once a launch
    group_slices: list[list[str]]
    launch_slices: list[str]
    splits: set[int]  # Segments with a function that tells where to divide the loop over work-items
    rows_of_accesses: int  # Number of sets of rows that accesses are recorded in
    in_memory: list[int]  # Branches whose history is kept in memory
    # For published conventions: number of the history of each source line that several branches share
    line_branches: dict[int, int]
    conditional_writes: dict[int, str]  # Address space of each counter of successful exchanges
    narrow: bool  # What one run of a segment counts fits 32 bits
    lowering: Lowering  # Builtins that are used, and what they need
    scopes: Scopes  # Alias scopes
    sites: list[int]  # Source line of each place that can fault, by its number; 0 where unknown
    private: PrivateArrays  # Private arrays
    live: LiveMemory  # Memory of values that live across barriers
    local: LocalVariables  # The program's local variables
    order_counter: int | None  # Counter of the published tool's freedom to reorder, if asked for
    histories: int  # Number of branch histories
    parameters: list[ir.Parameter]  # The kernel's parameters, and their names in the source
    names: list[str]
    granules: dict[str, int]  # Bytes that one counter stands for, by parameter or variable
    scattered: dict[str, int]  # What the accesses of parameters with small counters do: read 1, write 2
    counted: set[str] | None  # Parameters and variables with accesses that are no rows; `None`: it may be all
    sharing: Sharing  # What the kernel does to the memory of its parameters and variables
    variables: dict[str, ir.GlobalVariable]  # The program's variables

    def parameter_granule(self, position: int) -> int:
        """Bytes that one counter of a pointer parameter's memory stands for."""
        return self.granules.get(self.parameters[position].name, 4)

    def commutes(self, position: int) -> bool:
        """Whether work-groups may access a parameter's buffer in any order, to the same end."""
        return self.parameters[position].name in self.sharing.commuting

    def is_counted(self, position: int) -> bool:
        """Whether accesses to a parameter's buffer may be counted one by one."""
        return self.counted is None or self.parameters[position].name in self.counted

    def is_written(self, position: int) -> bool:
        """Whether the kernel may write to a parameter's buffer."""
        return self.parameters[position].name in self.sharing.written

    def is_accessed(self, position: int) -> bool:
        """Whether the kernel may access a parameter's buffer at all."""
        return self.parameters[position].name in self.granules

    def is_constant(self, position: int) -> bool:
        """Whether a parameter points to constant memory."""
        return address_space(self.parameters[position].type) == 2

    def is_pointer(self, position: int) -> bool:
        """Whether a parameter is a pointer to a buffer."""
        return address_space(self.parameters[position].type) in (1, 2)

    @property
    def even_total(self) -> int | None:
        """Instructions of each work-item, if they are known to be as many for all."""
        if len(self.segments) > 1 or self.edge_counters > 1 or self.cut_codes:
            return None
        return sum(block.instructions * block.executions.get(0, 0) for block in self.blocks)

    def access_weights(self) -> list[int]:
        """Accesses with a counter in memory that one count of each counter stands for."""
        weights = [0] * max(self.counters, 1)
        for block in self.blocks:
            for number, sign in block.executions.items():
                weights[number] += sign * (block.accesses - block.in_rows)
        return weights

    def variable_regions(self) -> list[tuple[str, Region]]:
        """Regions of the program's variables, by name; where they start is known in the child."""
        return [
            (
                ir.symbol(variable.name),
                Region(
                    0,
                    variable.nbytes,
                    self.granules.get(name, 4),
                    _VARIABLE,
                    int(variable.address_space == 2),
                ),
            )
            for name, variable in self.variables.items()
            if variable.address_space != 3 and variable.nbytes
        ]

    def local_regions(self) -> list[Region]:
        """Regions of the local variables, which start at an offset."""
        return [
            Region(offset, self.variables[name].nbytes, self.granules.get(name, 4), _LOCAL)
            for name, offset in self.local.offsets.items()
        ]


_NUMBERS = ("group", "base", "size", "global", "offset", "enqueued", "dims", "shift")


def invariant_type(name: str) -> str:
    """LLVM type of an invariant of the launch or the work-group."""
    return "i64" if name.startswith(_NUMBERS) else "ptr"


def formal(parameters: Sequence[ir.Parameter]) -> str:
    """Formal parameters: context, counters, histories, the work-item, invariants, kernel parameters."""
    return listed([f"%cc.id{d}" for d in range(3)], "%cc.wi", parameters)


def actual(parameters: Sequence[ir.Parameter], loop: str) -> str:
    """Arguments inside a loop over work-items."""
    return listed([f"%{axis}{loop}" for axis in "xyz"], f"%wi{loop}", parameters)


def listed(ids: Sequence[str], item: str, parameters: Sequence[ir.Parameter]) -> str:
    """Arguments for a work-item with the given ids and number."""
    values = [
        *("ptr %cc.ctx", "ptr %cc.acc", "ptr %cc.past"),
        *(f"i64 {name}" for name in ids),
        *(f"i64 {item}", "i64 %cc.items"),
        *(f"{invariant_type(name)} %cc.{name}" for name in context.INVARIANTS),
        *(f"{p.type} {p.name}" for p in parameters),
    ]
    return ", ".join(values)


SLICE = "ptr %cc.ctx, i64 %cc.id0, i64 %cc.id1, i64 %cc.id2, ptr %cc.results"
"""Parameters of a slice."""


def load(parameters: Sequence[ir.Parameter], switches: Switches) -> list[str]:
    """Load all invariants and kernel arguments from the context."""
    rows = _invariants(switches)
    for position, parameter in enumerate(parameters):
        rows += _argument(position, parameter)
    return rows


def load_all(parameters: Sequence[ir.Parameter], switches: Switches) -> list[str]:
    """Compute whatever a function of a segment gets as parameters, in a slice."""
    return [
        *load(parameters, switches),
        "  %cc.xy = mul i64 %cc.size0, %cc.size1",
        "  %cc.items = mul i64 %cc.xy, %cc.size2",
        "  %cc.row.y = mul i64 %cc.id1, %cc.size0",
        "  %cc.row.z = mul i64 %cc.id2, %cc.xy",
        "  %cc.row.yz = add i64 %cc.row.y, %cc.row.z",
        "  %cc.wi = add i64 %cc.row.yz, %cc.id0",
    ]


def _invariants(switches: Switches) -> list[str]:
    rows = []
    for name in context.INVARIANTS:
        type_ = invariant_type(name)
        stem, dimension = name[:-1], name[-1]
        fixed = stem == "enqueued" or (stem == "size" and switches.uniform)
        if fixed:
            rows.append(f"  %cc.{name} = add i64 {switches.local_size[int(dimension)]}, 0")
        else:
            rows += [
                f"  %cc.at.{name} = getelementptr i8, ptr %cc.ctx, i64 {context.slot(name)}",
                f"  %cc.{name} = load {type_}, ptr %cc.at.{name}",
            ]
    return rows


def _argument(position: int, parameter: ir.Parameter) -> list[str]:
    """Load one kernel argument; a local pointer is given as an offset into local memory."""
    place = f"%cc.at.arg{position}"
    rows = [f"  {place} = getelementptr i8, ptr %cc.args, i64 {context.ARGUMENT_BYTES * position}"]
    if parameter.type == "ptr addrspace(3)":
        return [
            *rows,
            f"  {place}.offset = load i64, ptr {place}",
            f"  {parameter.name} = getelementptr i8, ptr %cc.local, i64 {place}.offset",
        ]
    if parameter.name.startswith("%cc.given"):
        return [*rows, f"  {parameter.name} = load ptr, ptr {place}"]
    return [*rows, f"  {parameter.name} = load {parameter.type}, ptr {place}"]


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

    def header(self, result: str, name: str, *, divided: bool = False) -> str:
        """First line of a function of one work-item; in a divided loop it is told which part it is in."""
        parameters = formal(self._shared.parameters) + ", i1 %cc.rest" * divided
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
            take = (
                builtin_calls.take_from_warp
                if builtin_calls.is_warp_operation(segment.after)
                else builtin_calls.take
            )
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

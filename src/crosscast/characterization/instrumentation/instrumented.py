"""What instrumentation is told to do, and what it makes."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.engine.header import CONSTANTS, Region
from crosscast.characterization.instrumentation.block_costs import BlockCosts
from crosscast.characterization.instrumentation.builtin_calls import Lowering, Sharing
from crosscast.characterization.instrumentation.memory_layout import LiveMemory, LocalVariables, PrivateArrays
from crosscast.characterization.instrumentation.pointers import address_space
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.regions import Segment

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

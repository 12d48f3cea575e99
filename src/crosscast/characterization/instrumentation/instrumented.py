"""What instrumentation makes, and what the code of all segments shares."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

from crosscast.characterization import ir
from crosscast.characterization.frontend import parameter_names
from crosscast.characterization.instrumentation import builtin_calls, context, graph
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClass,
    PointerClasses,
    accesses_of,
    address_space,
)
from crosscast.characterization.instrumentation.block_costs import BlockCosts
from crosscast.characterization.instrumentation.branch_code import plan_branches
from crosscast.characterization.instrumentation.builtin_calls import Lowering, find_sharing, is_barrier
from crosscast.characterization.instrumentation.context import (
    CONSTANTS,
    Code,
    Counters,
    Names,
    Region,
    Switches,
)
from crosscast.characterization.instrumentation.dependence_path import Dependences
from crosscast.characterization.instrumentation.instruction_kinds import kind_of, mark_indexing
from crosscast.characterization.instrumentation.memory_layout import (
    LiveMemory,
    LocalVariables,
    PrivateArrays,
    copy_structures,
)
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.regions import Segment, Segments, cut, slot_name
from crosscast.characterization.instrumentation.registers import (
    kept_values,
    mark_reloads,
    most_live,
    private_bytes,
)
from crosscast.characterization.instrumentation.sub_groups import SubGroups


def formal(parameters: Sequence[ir.Parameter]) -> str:
    """Formal parameters: context, counters, histories, the work-item, invariants, kernel parameters."""
    return listed([f"%cc.id{d}" for d in range(3)], "%cc.wi", parameters)


def listed(ids: Sequence[str], item: str, parameters: Sequence[ir.Parameter]) -> str:
    """Arguments for a work-item with the given ids and number."""
    values = [
        *("ptr %cc.ctx", "ptr %cc.acc", "ptr %cc.past"),
        *(f"i64 {name}" for name in ids),
        *(f"i64 {item}", "i64 %cc.items"),
        *(f"{type_} %cc.{name}" for name, type_ in context.INVARIANTS.items()),
        *(f"{p.type} {p.name}" for p in parameters),
    ]
    return ", ".join(values)


SLICE = "ptr %cc.ctx, i64 %cc.id0, i64 %cc.id1, i64 %cc.id2, ptr %cc.results"
"""Parameters of a slice."""


def load(parameters: Sequence[ir.Parameter], switches: Switches) -> list[str]:
    """Load all invariants and kernel arguments from the context."""
    rows = []
    for name, type_ in context.INVARIANTS.items():
        stem, dimension = name[:-1], name[-1]
        if stem == "enqueued" or (stem == "size" and switches.uniform):
            rows.append(f"  %cc.{name} = add i64 {switches.local_size[int(dimension)]}, 0")
        else:
            rows += [
                f"  %cc.at.{name} = getelementptr i8, ptr %cc.ctx, i64 {context.slot(name)}",
                f"  %cc.{name} = load {type_}, ptr %cc.at.{name}",
            ]
    for position, parameter in enumerate(parameters):
        place, name, offset = f"%cc.at.arg{position}", parameter.name, str(parameter.offset)
        if parameter.offset is None:
            rows.append(
                f"  {place} = getelementptr i8, ptr %cc.args, i64 {context.ARGUMENT_BYTES * position}"
            )
            if parameter.type != "ptr addrspace(3)":
                rows.append(f"  {name} = load {parameter.type}, ptr {place}")
                continue
            offset = f"{place}.offset"
            rows.append(f"  {offset} = load i64, ptr {place}")
        rows.append(f"  {name} = getelementptr i8, ptr %cc.local, i64 {offset}")
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


class Instrumented:
    """What is known of a flattened kernel, what the code of its segments shares, and that code."""

    def __init__(self, module: ir.Module, function: ir.Function, switches: Switches) -> None:
        self.switches, self.sizes = switches, module.sizes
        self.variables = module.globals
        self.source_names = parameter_names(function)
        self.names = Names()  # Where new names come from
        self.scopes = Scopes()  # Alias scopes
        self.sites: list[int] = []  # Source line of each place that can fault
        structures = [p.name for p in function.parameters if p.structure]
        copy_structures(function, self.sizes)
        arguments = [parameter.name for parameter in function.parameters]
        self.local = LocalVariables(function, module.globals.values(), self.names)
        self.parameters = function.parameters  # the local variables among them
        for instruction in function.instructions():
            found = accesses_of(instruction, self.sizes)
            instruction.accesses = [a for a in found if address_space(a.pointer_type)]
        same = [[arguments[position] for position in group] for group in switches.same]
        self.classes = PointerClasses(function, module.globals.values(), same)
        self.sub_groups = SubGroups(self.scopes, switches.stream_words)
        for instruction in function.instructions():
            instruction.accesses = [
                self.sub_groups.number(a, self.class_of(a), self.classes.members(a.pointer))
                for a in instruction.accesses
            ]
        for instruction in function.instructions():
            instruction.kind = kind_of(instruction, self.classes, self.sizes)
        mark_indexing(function)
        mark_reloads(function, self.sizes)
        self.registers = most_live(function, self.sizes)
        self.kept_values = kept_values(function, self.sizes)
        self.code = sum(len(block.instructions) for block in function.blocks.values())
        self.private_bytes = private_bytes(function, self.sizes, structures)
        self.dependences = Dependences(function)
        self.counted: set[PointerClass] = set()  # Those with accesses that are no rows
        used = {name for i in function.instructions() for name in i.uses()}
        self.sharing = find_sharing(function, self.classes, used)
        self.lowering = Lowering(self.names, switches, used, self.sites)
        cuts = cut(function, self.sizes, may_end_early=switches.cuda)
        self.segments = cuts.segments
        # Segments in order, where work-items do not all stand at the same cut; else empty
        self.turns = cuts.turns
        self.in_step = cuts.in_step  # So that the loop over work-items can be vectorized
        self.private = PrivateArrays(self.segments, self.sizes)
        self.live = LiveMemory(cuts.carried, self.names, self.scopes)
        self.counters = Counters(len(self.segments))  # Where new counters come from
        if switches.counts:
            _plan(cuts, self.counters)
            self._plan_executions()
        # Labels of all blocks, segment by segment, in the order of `blocks`
        self.labels = [label for segment in self.segments for label in segment.blocks]
        # For published conventions: number of the history of each source line that several branches share
        self.line_branches = _shared_lines(module, self.segments) if switches.published else {}
        self.histories = len(module.branches) + len(self.line_branches)
        self.text = ""  # IR of all functions, once it is written
        self.blocks: list[BlockCosts] = []  # Costs of every block of every segment

    def _plan_executions(self) -> None:
        """Choose which counts are kept for each work-item, and which are alike for all of a group."""
        executions = self.sub_groups.executions
        for segment in self.segments:
            self.sub_groups.note_copies(i for b in segment.blocks.values() for i in b.instructions)
            chosen = executions.columns if self.by_turns else executions.alike
            chosen[segment.number] = len(chosen)
        for segment in self.segments:
            chosen = executions.alike if segment.once else executions.columns
            for counter in segment.counters:
                chosen[counter] = len(chosen)

    @functools.cached_property
    def narrow(self) -> bool:
        """Whether what one run of a segment counts fits 32 bits.

        Each run has to be short, and no piece of a work-item goes on across a run.
        """
        afters = [segment.after for segment in self.segments if segment.after is not None]
        loops = any(segment.loops for segment in self.segments)
        return not loops and not self.turns and all(map(is_barrier, afters))

    @property
    def even(self) -> bool:
        """Whether each work-item is known to run as many instructions."""
        return not (self.several or self.turns or self.segments[0].counters)

    @functools.cached_property
    def regions(self) -> dict[str, Region]:
        """What is known of the memory of parameters and variables: of buffers not yet place and size."""
        known, counted = self.classes.by_memory(), self.classes.members_of(self.counted)
        granules = {name: cls.granule for name, cls in known.items()}
        widths = {name: (c.read_bytes, c.write_bytes, c.overlaps) for name, c in known.items()}
        regions = {}
        for p in self.parameters:
            space, cls = address_space(p.type), known.get(p.name)
            if space == 3:
                nbytes = self.local.sizes.get(p.name, 0)
                regions[p.name] = Region(p.offset or 0, nbytes, granules.get(p.name, 4), CONSTANTS["LOCAL"])
                continue
            regions[p.name] = Region(
                *(0, 0, granules.get(p.name, 4), CONSTANTS["BUFFER"]),
                constant=int(space == 2),
                commutes=int(p.name in self.sharing.commuting),
                counted=int(counted is None or p.name in counted),
                scattered=cls.scattered if cls and not self.switches.checked else 0,
            )
        for v in self.variables.values():
            if v.address_space != 3:
                constant = int(v.address_space == 2)
                regions[v.name] = Region(
                    0, v.nbytes, granules.get(v.name, 4), CONSTANTS["VARIABLE"], constant
                )
        for name, (read_bytes, write_bytes, overlaps) in widths.items():
            if name in regions:
                regions[name] = regions[name]._replace(
                    read_bytes=read_bytes, write_bytes=write_bytes, overlaps=overlaps
                )
        return regions

    def region(self, position: int) -> Region:
        """What is known of a parameter's memory, but for where it stands."""
        return self.regions[self.parameters[position].name]

    def is_written(self, position: int) -> bool:
        """Whether the kernel may write to a parameter's buffer."""
        return self.parameters[position].name in self.sharing.written

    def is_accessed(self, position: int) -> bool:
        """Whether the kernel may access a parameter's buffer at all."""
        return self.parameters[position].name in self.classes.by_memory()

    def is_pointer(self, position: int) -> bool:
        """Whether a parameter is a pointer to a buffer."""
        return address_space(self.parameters[position].type) in (1, 2)

    def access_weights(self) -> list[int]:
        """Accesses with a counter in memory that one count of each counter stands for."""
        weights = [0] * max(self.counters.count, 1)
        for block in self.blocks:
            for number, sign in block.executions.items():
                weights[number] += sign * (block.accesses - block.in_rows)
        return weights

    def instruction_weights(self) -> list[int]:
        """Instructions that one count of each counter stands for."""
        weights = [0] * max(self.counters.count, 1)
        for block in self.blocks:
            for number, sign in block.executions.items():
                weights[number] += sign * block.instructions
        return weights

    def variable_regions(self) -> list[tuple[str, Region]]:
        """Regions of the program's variables, by name; where they start is known in the child."""
        regions = ((name, region) for name, region in self.regions.items() if name.startswith("@"))
        return [(ir.symbol(name), region) for name, region in regions if region.size]

    def local_regions(self) -> list[Region]:
        """Regions of the local variables, which start at an offset."""
        return [self.regions[name] for name in self.local.sizes]

    @property
    def in_memory(self) -> list[int]:
        """Branches whose history is kept in memory."""
        return sorted({n for s in self.segments for n in s.recorded("lead", "cell", "row", "run")})

    @property
    def even_total(self) -> int | None:
        """Instructions of each work-item, if they are known to be as many for all."""
        return sum(b.instructions * b.executions.get(0, 0) for b in self.blocks) if self.even else None

    @property
    def by_turns(self) -> bool:
        """Whether work-items do not all stand at the same cut."""
        return bool(self.turns)

    @property
    def count_type(self) -> str:
        """LLVM type in which a segment counts."""
        return "i32" if self.narrow else "i64"

    @property
    def measures_groups(self) -> bool:
        """Whether work-items of a group are compared when they have ended."""
        return self.several or bool(self.sub_groups.executions.columns)

    @property
    def several(self) -> bool:
        """Whether there is more than one segment."""
        return len(self.segments) > 1

    @property
    def uses_dynamic_memory(self) -> bool:
        """Whether the kernel has a variable in CUDA's dynamic shared memory."""
        return any(v.address_space == 3 and " external " in v.text for v in self.variables.values())

    def is_led(self, number: int) -> bool:
        """Whether a segment follows one that ran once."""
        return any(segment.once and number in segment.exits.values() for segment in self.segments)

    def count(self, code: Code, number: int, amount: str) -> None:
        """Add an amount to one of the thread's counters."""
        code.add_to("i64", code.at("%cc.counts", 8 * number), amount, self.scopes.attach("counts"))

    def class_of(self, access: MemoryAccess) -> PointerClass:
        """Class of the pointer of an access."""
        return self.classes.of(access.pointer, access.pointer_type)

    def barrier_before(self, number: int) -> bool:
        """Whether there is a barrier before a segment."""
        after = self.segments[number].after
        return after is not None and is_barrier(after)


def _plan(cuts: Segments, counters: Counters) -> None:
    """Choose which edges of each segment to count, and how to record its branches."""
    flows = [segment.successors() for segment in cuts.segments]
    inner = []
    for segment, flow in zip(cuts.segments, flows, strict=True):
        segment.loops = graph.find_loops(flow)
        segment.order = graph.places(flow, segment.entry, segment.loops)
        inner.append(graph.innermost(segment.loops))
        depth = {label: loop.depth for label, loop in inner[-1].items()}
        segment.placement = graph.place_counters(flow, segment.entry, set(segment.exits), depth)
        segment.first_counter = counters.take(len(segment.placement.counted))
    branches = plan_branches(cuts.segments, inner, cuts.uniform, by_turns=bool(cuts.turns))
    for segment, planned in zip(cuts.segments, branches, strict=True):
        segment.branches = planned


def _shared_lines(module: ir.Module, segments: Sequence[Segment]) -> dict[int, int]:
    """Histories of source lines with several branches, numbered behind those of the branches."""
    found = {block.terminator.branch for segment in segments for block in segment.blocks.values()}
    count = Counter(module.branches[branch][1] for branch in found if branch is not None)
    shared = sorted(line for line, n in count.items() if n > 1)
    return {line: len(module.branches) + k for k, line in enumerate(shared)}


class Frame:
    """What every function of one segment begins with."""

    def __init__(self, segment: Segment, shared: Instrumented) -> None:
        self._segment, self._shared = segment, shared

    def header(self, result: str, name: str, *, divided: bool = False) -> str:
        """First line of a function of one work-item; in a divided loop it is told which part it is in."""
        parameters = formal(self._shared.parameters) + ", i1 %cc.rest" * divided
        return f"define internal {result} @{name}({parameters}) alwaysinline nounwind {{"

    def prologue(self) -> list[str]:
        """Compute addresses, and all values that enter the segment; then go to its entry."""
        shared, segment = self._shared, self._segment
        slots, code = [], Code(shared.names)
        code.do(*shared.private.prologue())
        for carried in segment.restore:
            code.do(*shared.live.load(carried, segment.entering(carried.name)))
        for original in segment.recompute:
            for instruction in shared.lowering.lower(original.copy()):
                instruction.rename(segment.entering)
                if instruction.result:
                    instruction.result = segment.entering(instruction.result)
                code.do(instruction.render())
        if segment.after is not None and segment.after.result:
            builtin_calls.take(segment.after, segment.entering(segment.after.result), code)
        for name, type_ in segment.slots.items():
            slots.append(f"{slot_name(name)} = alloca {type_}")
            code.store(type_, segment.entering(name), slot_name(name))
        return [f"  {text}" for text in [*slots, *code.texts, f"br label {segment.entry}"]]

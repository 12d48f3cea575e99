"""From a kernel's IR to LLVM IR for this machine that runs a work-group and counts what it does.

Each segment of the kernel becomes a function of one work-item; `driver` calls it in a loop over the
work-items of a group. Counters are stack slots that LLVM keeps in registers across that loop.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from crosscast.characterization import ir
from crosscast.characterization.frontend import parameter_names
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import (
    MemoryAccess,
    PointerClasses,
    accesses_of,
    address_space,
)
from crosscast.characterization.instrumentation.branch_code import Way, plan_branches
from crosscast.characterization.instrumentation.builtin_calls import (
    Lowering,
    collective_code,
    cut_codes,
    find_sharing,
)
from crosscast.characterization.instrumentation.context import Counters, Names
from crosscast.characterization.instrumentation.instrumented import Instrumented, Shared, Switches
from crosscast.characterization.instrumentation.memory_layout import (
    LiveMemory,
    LocalVariables,
    PrivateArrays,
    copy_structures,
)
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.regions import (
    Segment,
    Segments,
    cut,
    is_barrier,
    is_collective,
)
from crosscast.characterization.instrumentation.segment_code import SegmentPlan, write_segment


def instrument(module: ir.Module, function: ir.Function, switches: Switches) -> Instrumented:
    """Instrument a flattened kernel."""
    source_names = parameter_names(function)
    copy_structures(function, module.sizes)
    classes = _sort_pointers(module, function, switches)
    is_used = _find_used(function)
    sharing = find_sharing(function, classes, is_used)
    names, scopes, sites = Names(), Scopes(), list[int]()
    local = LocalVariables(function, module.globals, names)
    segments = cut(function, module.sizes, may_end_early=switches.cuda)
    counters = Counters(len(segments.segments))
    plans = _plan(segments, counters)
    edge_counters = counters.count
    shared = Shared(
        parameters=function.parameters,
        sizes=module.sizes,
        switches=switches,
        narrow=_is_narrow(plans) and not segments.turns,
        by_turns=bool(segments.turns),
        segments=segments.segments,
        names=names,
        scopes=scopes,
        counters=counters,
        sites=sites,
        classes=classes,
        lowering=Lowering(
            *(names, is_used, sites),
            small_ids=switches.small_ids,
            check_bounds=switches.check_bounds,
            warp=switches.warp,
            items=math.prod(switches.local_size),
        ),
        local=local,
        private=PrivateArrays(segments.segments, module.sizes),
        live=LiveMemory(segments.carried, names, scopes),
    )
    lines = _shared_lines(module, segments.segments) if switches.published else {}
    # Read off before the blocks are rewritten.
    recorded: dict[Way, list[list[int]]] = {
        way: [_recorded(plan, way) for plan in plans] for way in ("lead", "cell", "row", "run")
    }
    written = [write_segment(plan, shared, lines) for plan in plans]
    collective_codes = {
        segment.number: collective_code(segment.after)
        for segment in segments.segments
        if segment.after is not None and is_collective(segment.after)
    }
    return Instrumented(
        functions="\n".join(code.text for code in written),
        segments=segments.segments,
        counters=counters.count,
        edge_counters=edge_counters,
        counters_of=[range(plan.first, plan.first + len(plan.placement.counted)) for plan in plans],
        collective_codes=collective_codes,
        cut_codes=cut_codes([s.after for s in segments.segments], collective_codes, segments.turns),
        blocks=[cost for code in written for cost in code.costs],
        rows=recorded["row"],
        cells=recorded["cell"],
        group_slices=[code.group_slices for code in written],
        launch_slices=[text for code in written for text in code.launch_slices],
        splits={number for number, code in enumerate(written) if code.split},
        rows_of_accesses=counters.rows,
        in_memory=sorted({branch for found in recorded.values() for each in found for branch in each}),
        line_branches=lines,
        conditional_writes=counters.conditional_writes,
        narrow=shared.narrow,
        lowering=shared.lowering,
        scopes=scopes,
        sites=sites,
        private=shared.private,
        live=shared.live,
        local=local,
        order_counter=counters.order,
        histories=len(module.branches) + len(lines),
        parameters=function.parameters,
        names=source_names,
        granules=classes.granules(),
        counted=classes.members_of(shared.counted),
        scattered={} if switches.checked else classes.scattered(),
        sharing=sharing,
        variables=module.globals,
    )


def _sort_pointers(module: ir.Module, function: ir.Function, switches: Switches) -> PointerClasses:
    """Find the accesses of all instructions, and sort their pointers into classes."""
    for instruction in function.instructions():
        found = accesses_of(instruction, module.sizes)
        instruction.accesses = [a for a in found if address_space(a.pointer_type)]
    names = [p.name for p in function.parameters]
    return PointerClasses(
        function,
        module.globals,
        [
            (a.pointer, a.pointer_type, a.alignment, _does(a))
            for i in function.instructions()
            for a in i.accesses
        ],
        [[names[position] for position in group] for group in switches.same],
    )


def _does(access: MemoryAccess) -> int:
    """1 if an access reads, 2 if it writes, 3 if it does both; 0 if that depends."""
    return {"read": 1, "write": 2, "read-write": 3, "compare-exchange": 0}[access.kind]


def _find_used(function: ir.Function) -> Callable[[ir.Instruction], bool]:
    """Return a function that tells whether anything uses the result of an instruction."""
    used = {name for i in function.instructions() for name in i.uses()}
    used |= {n for i in function.instructions() for v, _ in i.incoming for n in ir.LOCAL.findall(v)}
    return lambda instruction: instruction.result in used


def _plan(segments: Segments, counters: Counters) -> list[SegmentPlan]:
    """Choose which edges of each segment to count, and how to record its branches."""
    flows = [segment.successors() for segment in segments.segments]
    loops = [graph.find_loops(flow) for flow in flows]
    inner = [graph.innermost(found) for found in loops]
    branches = plan_branches(segments.segments, inner, segments.uniform, by_turns=bool(segments.turns))
    plans = []
    for number, segment in enumerate(segments.segments):
        depth = {label: loop.depth for label, loop in inner[number].items()}
        placement = graph.place_counters(flows[number], segment.entry, set(segment.exits), depth)
        first = counters.take(len(placement.counted))
        plans.append(SegmentPlan(segment, loops[number], placement, first, branches[number]))
    return plans


def _is_narrow(plans: Sequence[SegmentPlan]) -> bool:
    """Whether one run of each segment is short, and no piece of a work-item goes on across a run."""
    afters = [plan.segment.after for plan in plans if plan.segment.after is not None]
    return not any(plan.loops for plan in plans) and all(map(is_barrier, afters))


def _shared_lines(module: ir.Module, segments: Sequence[Segment]) -> dict[int, int]:
    """Histories of source lines with several branches, numbered behind those of the branches."""
    found = {block.terminator.branch for segment in segments for block in segment.blocks.values()}
    count = Counter(module.branches[branch][1] for branch in found if branch is not None)
    shared = sorted(line for line, n in count.items() if n > 1)
    return {line: len(module.branches) + k for k, line in enumerate(shared)}


def _recorded(plan: SegmentPlan, way: Way) -> list[int]:
    """Branches of a segment that are recorded in one way."""
    blocks = plan.segment.blocks
    numbers = {blocks[label].terminator.branch for label, p in plan.branches.items() if p.way == way}
    return sorted(number for number in numbers if number is not None)

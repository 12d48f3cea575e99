"""From a kernel's IR to LLVM IR for this machine that runs a work-group and counts what it does.

Each segment of the kernel becomes a function of one work-item; `driver` calls it in a loop over the
work-items of a group. Counters are stack slots that LLVM keeps in registers across that loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from crosscast.characterization import ir
from crosscast.characterization.frontend import parameter_names
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.accesses import PointerClasses, accesses_of, address_space
from crosscast.characterization.instrumentation.branch_code import plan_branches
from crosscast.characterization.instrumentation.builtin_calls import (
    Lowering,
    Sharing,
    find_sharing,
    is_barrier,
)
from crosscast.characterization.instrumentation.context import CONSTANTS, Counters, Names, Region, Switches
from crosscast.characterization.instrumentation.driver import Driver
from crosscast.characterization.instrumentation.instrumented import Instrumented, Shared
from crosscast.characterization.instrumentation.memory_layout import (
    LiveMemory,
    LocalVariables,
    PrivateArrays,
    copy_structures,
)
from crosscast.characterization.instrumentation.prelude import Scopes
from crosscast.characterization.instrumentation.regions import Segment, Segments, cut
from crosscast.characterization.instrumentation.segment_code import SegmentPlan, write_segment


def instrument(module: ir.Module, function: ir.Function, switches: Switches) -> Instrumented:
    """Instrument a flattened kernel."""
    source_names = parameter_names(function)
    copy_structures(function, module.sizes)
    names, scopes, sites = Names(), Scopes(), list[int]()
    arguments = [parameter.name for parameter in function.parameters]
    local = LocalVariables(function, module.globals.values(), names)
    for instruction in function.instructions():
        found = accesses_of(instruction, module.sizes)
        instruction.accesses = [a for a in found if address_space(a.pointer_type)]
    same = [[arguments[position] for position in group] for group in switches.same]
    classes = PointerClasses(function, module.globals.values(), same)
    is_used = _find_used(function)
    sharing = find_sharing(function, classes, is_used)
    cuts = cut(function, module.sizes, may_end_early=switches.cuda)
    segments = cuts.segments
    counters = Counters(len(segments))
    plans = _plan(cuts, counters)
    shared = Shared(
        parameters=function.parameters,
        sizes=module.sizes,
        switches=switches,
        narrow=_is_narrow(plans) and not cuts.turns,
        turns=cuts.turns,
        segments=segments,
        names=names,
        scopes=scopes,
        counters=counters,
        sites=sites,
        classes=classes,
        lowering=Lowering(names, switches, is_used, sites),
        private=PrivateArrays(segments, module.sizes),
        live=LiveMemory(cuts.carried, names, scopes),
    )
    lines = _shared_lines(module, segments) if switches.published else {}
    histories = len(module.branches) + len(lines)
    even = len(segments) == 1 and not plans[0].counters and not cuts.turns
    codes = [write_segment(plan, shared, lines) for plan in plans]
    blocks = [cost for code in codes for cost in code.costs]
    functions = [code.text for code in codes] + Driver(shared, plans, codes, histories, even).rows()
    return Instrumented(
        text=scopes.complete(functions),
        segments=segments,
        counters=counters.count,
        blocks=blocks,
        even_total=sum(b.instructions * b.executions.get(0, 0) for b in blocks) if even else None,
        rows_of_accesses=counters.rows,
        in_memory=sorted({n for plan in plans for n in plan.recorded("lead", "cell", "row", "run")}),
        histories=histories,
        line_branches=lines,
        order_counter=counters.order,
        conditional_writes=counters.conditional_writes,
        lowering=shared.lowering,
        sites=sites,
        private=shared.private,
        live=shared.live,
        local=local,
        parameters=function.parameters,
        names=source_names,
        sharing=sharing,
        accessed=set(classes.by_memory()),
        regions=_regions(shared, local, module.globals.values(), sharing),
    )


def _regions(
    shared: Shared, local: LocalVariables, variables: Iterable[ir.GlobalVariable], sharing: Sharing
) -> dict[str, Region]:
    """What is known of the memory of parameters and variables: of buffers not yet place and size."""
    known, counted = shared.classes.by_memory(), shared.classes.members_of(shared.counted)
    granules = {name: cls.granule for name, cls in known.items()}
    regions = {}
    for p in shared.parameters:
        space, cls = address_space(p.type), known.get(p.name)
        if space == 3:
            nbytes = local.sizes.get(p.name, 0)
            regions[p.name] = Region(p.offset or 0, nbytes, granules.get(p.name, 4), CONSTANTS["LOCAL"])
            continue
        regions[p.name] = Region(
            *(0, 0, granules.get(p.name, 4), CONSTANTS["BUFFER"]),
            constant=int(space == 2),
            commutes=int(p.name in sharing.commuting),
            counted=int(counted is None or p.name in counted),
            scattered=cls.scattered if cls and not shared.switches.checked else 0,
        )
    for v in variables:
        if v.address_space != 3:
            constant = int(v.address_space == 2)
            regions[v.name] = Region(0, v.nbytes, granules.get(v.name, 4), CONSTANTS["VARIABLE"], constant)
    return regions


def _find_used(function: ir.Function) -> Callable[[ir.Instruction], bool]:
    """Return a function that tells whether anything uses the result of an instruction."""
    used = {name for i in function.instructions() for name in i.uses()}
    return lambda instruction: instruction.result in used


def _plan(cuts: Segments, counters: Counters) -> list[SegmentPlan]:
    """Choose which edges of each segment to count, and how to record its branches."""
    flows = [segment.successors() for segment in cuts.segments]
    loops = [graph.find_loops(flow) for flow in flows]
    inner = [graph.innermost(found) for found in loops]
    branches = plan_branches(cuts.segments, inner, cuts.uniform, by_turns=bool(cuts.turns))
    plans = []
    for number, segment in enumerate(cuts.segments):
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

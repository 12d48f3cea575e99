"""Code generation: from a plan to LLVM IR that runs a work-group and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crosscast.characterization import ir
from crosscast.characterization.engine.abi import CONSTANTS, MemoryRegion
from crosscast.characterization.engine.layout import BlockCosts, ParameterLayout, ResultLayout
from crosscast.characterization.instrumentation.accesses import address_space
from crosscast.characterization.instrumentation.driver import Driver
from crosscast.characterization.instrumentation.emission import Emission
from crosscast.characterization.instrumentation.plan import Plan
from crosscast.characterization.instrumentation.segment_code import write_segment
from crosscast.characterization.instrumentation.segments import Segment
from crosscast.characterization.instrumentation.sub_groups import sub_group_layout


@dataclass(frozen=True)
class Emitted:
    """Generated code of a kernel."""

    text: str  # IR of all functions
    library_symbols: frozenset[str]  # Called functions of the library of builtins
    layout: ResultLayout


def emit(plan: Plan) -> Emitted:
    """Write the code of a plan, which is not modified."""
    # Code generation modifies blocks.
    plan = replace(plan, segments=[_copied(segment) for segment in plan.segments])
    emission = Emission(plan)
    codes = [write_segment(segment, emission) for segment in plan.segments]
    functions = [code.text for code in codes] + Driver(emission, codes).text()
    text = emission.scopes.complete(functions + emission.recording.functions())
    blocks = [cost for code in codes for cost in code.costs]
    return Emitted(text, frozenset(emission.lowering.library_symbols), _layout(emission, blocks))


def _copied(segment: Segment) -> Segment:
    blocks = {
        label: ir.Block(label, [instruction.copy() for instruction in block.instructions])
        for label, block in segment.blocks.items()
    }
    return replace(segment, blocks=blocks)


def _layout(emission: Emission, blocks: Sequence[BlockCosts]) -> ResultLayout:
    plan, regions = emission.plan, _regions(emission)
    accessed = plan.classes.by_memory()
    cuts = [segment.after for segment in plan.segments]
    same = sum(block.instructions * block.executions.get(0, 0) for block in blocks)
    ways = ("lead", "cell", "row", "run")
    return ResultLayout(
        parameters=[
            ParameterLayout(
                name,
                regions[parameter.name],
                is_buffer=address_space(parameter.type) in (1, 2),
                is_accessed=parameter.name in accessed,
                is_written=parameter.name in plan.sharing.written,
            )
            for name, parameter in zip(plan.source_names, plan.parameters, strict=False)
        ],
        variables=[
            (ir.symbol(name), region)
            for name, region in regions.items()
            if name.startswith("@") and region.size
        ],
        writes_variables=any(name.startswith("@") for name in plan.sharing.written),
        local_regions=[regions[name] for name in plan.local.sizes],
        local_bytes=plan.local.nbytes,
        stack_bytes=plan.private.stack_bytes,
        private_bytes=plan.private.nbytes,
        live_bytes=plan.live.nbytes,
        cut_lines=[0 if cutter is None else cutter.line for cutter in cuts],
        fault_lines=emission.fault_lines,
        print_calls=emission.lowering.print_calls,
        is_ordered=emission.lowering.is_ordered,
        per_warp=plan.per_warp,
        counts_fit_32_bits=plan.counts_fit_32_bits,
        blocks=blocks,
        counters=emission.counters,
        strided=emission.strided,
        order_counter=emission.order_counter,
        conditional_writes=emission.conditional_writes,
        histories=plan.histories,
        histories_in_memory=sorted({n for segment in plan.segments for n in segment.recorded(*ways)}),
        instructions_per_item=same if plan.same_length else None,
        sub_groups=sub_group_layout(emission.recording, plan.columns, plan.alike, blocks),
    )


def _regions(emission: Emission) -> dict[str, MemoryRegion]:
    """Return the regions of parameters and variables; of buffers without start and size."""
    plan = emission.plan
    classes, counted = plan.classes.by_memory(), plan.classes.members_of(emission.counted)
    regions = {}
    for p in plan.parameters:
        space, cls = address_space(p.type), classes.get(p.name)
        granule = cls.granule if cls else 4
        if space == 3:
            nbytes = plan.local.sizes.get(p.name, 0)
            regions[p.name] = MemoryRegion(p.offset or 0, nbytes, granule, CONSTANTS["LOCAL"])
            continue
        regions[p.name] = MemoryRegion(
            *(0, 0, granule, CONSTANTS["BUFFER"]),
            constant=int(space == 2),
            commutes=int(p.name in plan.sharing.commuting),
            counted=int(counted is None or p.name in counted),
            scattered=cls.scattered if cls and not plan.options.checked else 0,
        )
    for v in plan.variables.values():
        if v.address_space != 3:
            granule = classes[v.name].granule if v.name in classes else 4
            constant = int(v.address_space == 2)
            regions[v.name] = MemoryRegion(0, v.nbytes, granule, CONSTANTS["VARIABLE"], constant)
    for name, cls in classes.items():
        if name in regions:
            regions[name] = regions[name]._replace(
                read_bytes=cls.read_bytes, write_bytes=cls.write_bytes, overlaps=cls.overlaps
            )
    return regions

"""From a kernel's IR to LLVM IR for this machine that runs a work-group and counts what it does.

Each segment of the kernel becomes a function of one work-item; `driver` calls it in a loop over the
work-items of a group. Counters are stack slots that LLVM keeps in registers across that loop.
"""

from __future__ import annotations

from collections.abc import Iterable

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.accesses import address_space
from crosscast.characterization.instrumentation.context import CONSTANTS, Region, Switches
from crosscast.characterization.instrumentation.driver import Driver
from crosscast.characterization.instrumentation.instrumented import Instrumented, Shared
from crosscast.characterization.instrumentation.segment_code import write_segment


def instrument(module: ir.Module, function: ir.Function, switches: Switches) -> Instrumented:
    """Instrument a flattened kernel."""
    shared = Shared(module, function, switches)
    segments, counters = shared.segments, shared.counters
    codes = [write_segment(segment, shared) for segment in segments]
    blocks = [cost for code in codes for cost in code.costs]
    functions = [code.text for code in codes] + Driver(shared, codes).rows()
    return Instrumented(
        text=shared.scopes.complete(functions),
        segments=segments,
        counters=counters.count,
        blocks=blocks,
        even_total=sum(b.instructions * b.executions.get(0, 0) for b in blocks) if shared.even else None,
        rows_of_accesses=counters.rows,
        in_memory=sorted({n for s in segments for n in s.recorded("lead", "cell", "row", "run")}),
        histories=shared.histories,
        line_branches=shared.line_branches,
        order_counter=counters.order,
        conditional_writes=counters.conditional_writes,
        lowering=shared.lowering,
        sites=shared.sites,
        private=shared.private,
        live=shared.live,
        local=shared.local,
        parameters=shared.parameters,
        names=shared.source_names,
        sharing=shared.sharing,
        accessed=set(shared.classes.by_memory()),
        regions=_regions(shared, module.globals.values()),
    )


def _regions(shared: Shared, variables: Iterable[ir.GlobalVariable]) -> dict[str, Region]:
    """What is known of the memory of parameters and variables: of buffers not yet place and size."""
    known, counted = shared.classes.by_memory(), shared.classes.members_of(shared.counted)
    granules = {name: cls.granule for name, cls in known.items()}
    regions = {}
    for p in shared.parameters:
        space, cls = address_space(p.type), known.get(p.name)
        if space == 3:
            nbytes = shared.local.sizes.get(p.name, 0)
            regions[p.name] = Region(p.offset or 0, nbytes, granules.get(p.name, 4), CONSTANTS["LOCAL"])
            continue
        regions[p.name] = Region(
            *(0, 0, granules.get(p.name, 4), CONSTANTS["BUFFER"]),
            constant=int(space == 2),
            commutes=int(p.name in shared.sharing.commuting),
            counted=int(counted is None or p.name in counted),
            scattered=cls.scattered if cls and not shared.switches.checked else 0,
        )
    for v in variables:
        if v.address_space != 3:
            constant = int(v.address_space == 2)
            regions[v.name] = Region(0, v.nbytes, granules.get(v.name, 4), CONSTANTS["VARIABLE"], constant)
    return regions

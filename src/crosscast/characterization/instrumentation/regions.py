"""Cut a kernel at its barriers into segments that run from one barrier to the next.

A segment has one entry (the kernel's start, or what follows a barrier) and leaves at the barriers
it can reach, or returns. Running a segment for every work-item of a work-group before the next one
starts is a barrier, without a stack per work-item. What a work-item carries across a barrier is
kept in memory, in one array per value; values that are cheap functions of ids and arguments are
computed again instead.
"""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.characterization import ir
from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.barriers import Cuts, split_at_barriers
from crosscast.characterization.instrumentation.leads import cut_leads
from crosscast.characterization.instrumentation.recomputation import chain, recomputable, sources
from crosscast.characterization.instrumentation.redefinitions import resolve_redefinitions
from crosscast.characterization.instrumentation.segments import Carried, Segment, Segments
from crosscast.characterization.instrumentation.uniformity import Uniformity, find_uniform

__all__ = ["cut"]

Definitions = dict[str, ir.Instruction]


def cut(function: ir.Function, sizes: dict[str, tuple[int, int]]) -> Segments:
    """Cut a flattened kernel into segments.

    Parameters
    ----------
    function
        A kernel without calls of defined functions; it is taken apart.
    sizes
        Size and alignment of each type.
    """
    cuts = split_at_barriers(function)
    once: set[str] = set()
    if len(cuts.roots) > 1:
        uniform, definitions, cheap = _analyse(function, cuts)
        once = cut_leads(function, cuts, uniform, cheap)
    uniform, definitions, cheap = _analyse(function, cuts)
    across = _find_across(function, cuts, cheap, definitions)
    carried = {
        name: Carried(name, definitions[name].type, sizes[definitions[name].type][0], name in uniform.values)
        for name in sorted(set().union(*across.needed.values()))
    }
    segments = []
    for number, root in enumerate(cuts.roots):
        segment = _copy_blocks(function, cuts, number)
        segment.once = root in once
        if number:
            _let_enter(segment, root, cuts, across, carried, cheap)
        _let_leave(segment, cuts, across, carried)
        resolve_redefinitions(segment)
        segments.append(segment)
    return Segments(segments, list(carried.values()), uniform)


def _analyse(function: ir.Function, cuts: Cuts) -> tuple[Uniformity, Definitions, Definitions]:
    """What is uniform, what defines each value, and which values to compute again."""
    names = [p.name for p in function.parameters]
    uniform = find_uniform(function.blocks, cuts.flow(function), names)
    definitions = {i.result: i for i in [*function.instructions(), *cuts.cutters.values()] if i.result}
    return uniform, definitions, recomputable(definitions, set(names), uniform.values)


@dataclass(frozen=True)
class _Across:
    """Values that cross cuts.

    Parameters
    ----------
    live
        Values that are live into each block.
    needed
        Those to carry to each segment's start.
    """

    live: dict[str, set[str]]
    needed: dict[str, set[str]]


def _find_across(function: ir.Function, cuts: Cuts, cheap: Definitions, definitions: Definitions) -> _Across:
    """Find what crosses cuts. What is computed again needs the values that it is computed from."""
    roots = cuts.roots[1:]
    flow = cuts.flow(function)
    extra: dict[str, set[str]] = {}
    while True:
        live = graph.live_in(function.blocks, flow, extra)
        extra = {root: sources(live[root], cheap) & definitions.keys() for root in roots}
        if all(extra[root] <= live[root] for root in roots):
            return _Across(live, {r: (live[r] & definitions.keys()) - cheap.keys() for r in roots})


def _copy_blocks(function: ir.Function, cuts: Cuts, number: int) -> Segment:
    """A segment with copies of the blocks that it can reach."""
    root = cuts.roots[number]
    reached = cuts.reachable(function, [root])
    blocks: dict[str, ir.Block] = {}
    exits: dict[str, int] = {}
    successors = {label: function.blocks[label].terminator.successors for label in reached}
    for label in [root, *(n for n in function.blocks if n in reached and n != root)]:
        block = ir.Block(label, [ir.copy_instruction(i) for i in function.blocks[label].instructions])
        for phi in block.phis():
            phi.incoming = [(v, p) for v, p in phi.incoming if p in reached and label in successors[p]]
        if label in cuts.crossings:
            exits[label] = cuts.roots.index(cuts.crossings[label])
        elif not successors[label]:
            exits[label] = 0
        blocks[label] = block
    return Segment(number, root, blocks, exits)


def _let_enter(
    segment: Segment,
    root: str,
    cuts: Cuts,
    across: _Across,
    carried: dict[str, Carried],
    cheap: Definitions,
) -> None:
    segment.after = cuts.cutters.get(root)
    wanted = across.live[root] - {cuts.result_across(root)}
    segment.restore = [carried[n] for n in sorted(across.needed[root] & wanted)]
    segment.recompute = chain(wanted & cheap.keys(), cheap)


def _let_leave(segment: Segment, cuts: Cuts, across: _Across, carried: dict[str, Carried]) -> None:
    for label, following in segment.exits.items():
        if following:
            root = cuts.roots[following]
            segment.save[label] = [
                carried[n] for n in sorted(across.needed[root] - {cuts.result_across(root)})
            ]

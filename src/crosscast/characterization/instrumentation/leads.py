"""Let what all work-items do alike at the start of a segment be a segment of its own, run once.

Such a lead typically holds the counters and conditions of a loop with barriers in it. What follows
has fewer branches without it, so that LLVM can run several work-items at a time.
"""

from __future__ import annotations

from crosscast.characterization import ir
from crosscast.characterization.instrumentation.barriers import Cuts, is_barrier
from crosscast.characterization.instrumentation.uniformity import Uniformity

__all__ = ["cut_leads"]


def cut_leads(
    function: ir.Function, cuts: Cuts, uniform: Uniformity, cheap: dict[str, ir.Instruction]
) -> set[str]:
    """Cut behind the leads of segments.

    Parameters
    ----------
    function
        The kernel, split at its barriers; it is split further.
    cuts
        Where it is cut; cuts are added.
    uniform
        What is the same for all work-items.
    cheap
        Values that are computed again where they are needed.

    Returns
    -------
    set
        Where the segments start that run once.
    """
    leads: dict[str, list[str]] = {}
    for root in cuts.roots:
        cutter = cuts.cutters.get(root)
        if cutter is not None and not is_barrier(cutter):
            continue  # its piece of the work-item goes on across the collective
        lead = _lead(function, root, cuts, uniform, cheap)
        if any(len(function.blocks[b].terminator.successors) > 1 for b in lead):
            leads[root] = lead
    while rejected := {r for r in leads if not _may_lead(function, r, cuts, leads)}:
        for root in rejected:
            del leads[root]
    edges = {
        (u, v): None
        for lead in leads.values()
        for u in lead
        for v in function.blocks[u].terminator.successors
        if v not in lead
    }
    for source, target in edges:
        _cut_edge(function, source, target, cuts)
    return set(leads)


def _lead(
    function: ir.Function,
    root: str,
    cuts: Cuts,
    uniform: Uniformity,
    cheap: dict[str, ir.Instruction],
) -> list[str]:
    """Blocks from the start of a segment on that compute nothing but uniform values."""
    lead: list[str] = []
    pending = [root]
    while pending:
        label = pending.pop()
        block = function.blocks[label]
        if label in lead or label in cuts.crossings or not block.terminator.successors:
            continue
        if label in uniform.parted or not all(_belongs(i, uniform, cheap) for i in block.instructions):
            continue
        lead.append(label)
        pending.extend(block.terminator.successors)
    return lead


def _belongs(instruction: ir.Instruction, uniform: Uniformity, cheap: dict[str, ir.Instruction]) -> bool:
    if not instruction.text:
        return True
    if instruction.opcode in ("br", "switch"):
        return instruction.uses() <= uniform.values
    # What diverges but is cheap is computed again where it is needed.
    return instruction.result in uniform.values or instruction.result in cheap


def _may_lead(function: ir.Function, root: str, cuts: Cuts, leads: dict[str, list[str]]) -> bool:
    """Whether a segment's lead can be run once without changing what is recorded."""
    lead = leads[root]
    after = [v for u in lead for v in function.blocks[u].terminator.successors if v not in lead]
    rest = cuts.reachable(function, after)
    branches = {function.blocks[b].terminator.branch for b in lead} - {None}
    if rest & set(lead) or branches & {function.blocks[b].terminator.branch for b in rest}:
        return False  # the same branch would be recorded in two places, out of order
    # The blocks of the lead are cut for every segment that has them.
    return all(
        set(lead) & cuts.reachable(function, [other]) <= set(leads.get(other, ())) for other in cuts.roots
    )


def _cut_edge(function: ir.Function, source: str, target: str, cuts: Cuts) -> None:
    leaving = ir.Block(f"%cc.leave{len(cuts.roots)}", [ir.Instruction("", "cut", counted=False)])
    jump = ir.Instruction(f"br label {target}", "br", counted=False)
    going_on = ir.Block(cuts.new_root(), [jump])
    function.blocks[source].terminator.retarget(target, leaving.label)
    for phi in function.blocks[target].phis():
        phi.incoming = [(v, going_on.label if p == source else p) for v, p in phi.incoming]
    function.blocks[leaving.label] = leaving
    function.blocks[going_on.label] = going_on
    cuts.crossings[leaving.label] = going_on.label

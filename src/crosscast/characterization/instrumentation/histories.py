"""How each conditional branch records the history of its outcomes.

Five ways, from cheap to general, all exact:

- ``row``: a branch outside all loops of a segment runs at most once a work-item; its outcomes go to
  a row of bytes that is folded into the history when all work-items have run the segment.
- ``cell``: like ``row``, but all work-items take the same way: one byte for all of them.
- ``lead``: a branch of a segment that runs once for all work-items; its outcomes are noted one by
  one and then recorded as often as there are work-items.
- ``run``: a branch that leaves the innermost loop around it is a run of equal outcomes and then the
  other one; the run's length is counted and recorded when the loop is left.
- ``each``: anything else is recorded outcome by outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from crosscast.characterization.instrumentation import graph
from crosscast.characterization.instrumentation.segments import Segment
from crosscast.characterization.instrumentation.uniformity import Uniformity

__all__ = ["BranchPlan", "Way", "plan_branches"]

Way = Literal["lead", "cell", "row", "run", "each"]


@dataclass(frozen=True)
class BranchPlan:
    """Recording of one copy of a branch.

    Parameters
    ----------
    way
        How it is recorded.
    loop
        Innermost loop around it; set for ``run``.
    stay
        Label it goes to while the loop goes on; set for ``run``.
    """

    way: Way
    loop: graph.Loop | None = None
    stay: str = ""


def plan_branches(
    segments: Sequence[Segment], loops: Sequence[dict[str, graph.Loop]], uniform: Uniformity
) -> list[dict[str, BranchPlan]]:
    """Choose the recording of every branch, by segment and block label.

    All copies of a static branch share one history. Ways other than ``each`` keep it in memory and
    mix; a copy recorded ``each`` keeps it in a register, so then all copies do.

    Parameters
    ----------
    segments
        The kernel's segments.
    loops
        Innermost loop of each block, for each segment.
    uniform
        What is the same for all work-items.
    """
    plans: list[dict[str, BranchPlan]] = []
    general: set[int] = set()
    for segment, inner in zip(segments, loops, strict=True):
        here: dict[str, BranchPlan] = {}
        copies: Counter[int] = Counter()
        for label, block in segment.blocks.items():
            branch = block.terminator.branch
            if branch is None:
                continue
            copies[branch] += 1
            way: Way = "cell" if uniform.decides_for_all(block) else "row"
            here[label] = _plan(block.terminator.successors, inner.get(label), way)
            if segment.once:
                here[label] = BranchPlan("lead")
            if here[label].way == "each":
                general.add(branch)
        for label, plan in here.items():
            number = segment.blocks[label].terminator.branch
            # Rows are folded after the fact, which would reorder several copies.
            if plan.way in ("cell", "row") and number is not None and copies[number] > 1:
                general.add(number)
        plans.append(here)
    return [
        {
            label: BranchPlan("each")
            if segment.blocks[label].terminator.branch in general and plan.way != "lead"
            else plan
            for label, plan in here.items()
        }
        for segment, here in zip(segments, plans, strict=True)
    ]


def _plan(successors: list[str], loop: graph.Loop | None, once: Way) -> BranchPlan:
    if loop is None:
        return BranchPlan(once)
    inside = [label for label in successors if label in loop.blocks]
    if len(successors) == 2 and len(inside) == 1:
        return BranchPlan("run", loop, inside[0])
    return BranchPlan("each")

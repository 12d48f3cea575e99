"""How many instructions a work-item ran in a segment, and where that number is kept.

The number is not counted: it is a sum of the edges' counters, weighted by the lengths of blocks. It
is kept for each work-item, as part of its piece between barriers and of its total.
"""

from __future__ import annotations

from collections import Counter

from crosscast.characterization.instrumentation.barriers import is_barrier
from crosscast.characterization.instrumentation.block_costs import BlockCosts
from crosscast.characterization.instrumentation.graph import Placement
from crosscast.characterization.instrumentation.segments import Segment
from crosscast.characterization.instrumentation.shared import Shared

__all__ = ["store_count", "sum_up", "weights_of"]


def weights_of(placement: Placement, costs: dict[str, BlockCosts]) -> Counter[int]:
    """Instructions that each counted edge stands for; at -1, those that entering stands for."""
    weights: Counter[int] = Counter()
    for label, cost in costs.items():
        for number, sign in placement.blocks[label].items():
            weights[number] += sign * cost.instructions
    return weights


def sum_up(values: list[str], weights: Counter[int], shared: Shared) -> tuple[str, list[str]]:
    """Name of the number of instructions that ran, and the code that computes it.

    Parameters
    ----------
    values
        Executions of each counted edge.
    weights
        Instructions that each stands for.
    shared
        What the kernel's segments share.
    """
    total, texts = str(weights[-1]), []
    for number, value in enumerate(values):
        if weights[number]:
            scaled, added = shared.names.unique("e"), shared.names.unique("e")
            texts += [
                f"{scaled} = mul {shared.count_type} {value}, {weights[number]}",
                f"{added} = add {shared.count_type} {total}, {scaled}",
            ]
            total = added
    return total, texts


def store_count(total: str, barrier: str, segment: Segment, shared: Shared) -> list[str]:
    """Keep the number of instructions that a work-item ran.

    Parameters
    ----------
    total
        The number.
    barrier
        Stack slot that holds 1 if the last of them was a barrier's call, which belongs to no piece.
    segment
        The segment.
    shared
        What the kernel's segments share.
    """
    type_, unique, scopes = shared.count_type, shared.names.unique, shared.scopes
    lead_at = "%cc.lead = getelementptr i8, ptr %cc.live, i64 0"
    if segment.once:
        return [lead_at, f"store {type_} {total}, ptr %cc.lead{scopes.attach('lead')}"]
    name = "piece" if shared.several else "total"
    scope = scopes.attach(name)
    texts = [f"%cc.e.piece = getelementptr {type_}, ptr %cc.{name}, i64 %cc.wi"]

    def add(place: str) -> None:
        nonlocal total
        old, new = unique("e"), unique("e")
        texts.extend([f"{old} = load {type_}, ptr {place}", f"{new} = add {type_} {total}, {old}"])
        total = new

    if segment.number in shared.led:
        texts.append(lead_at)
        add(f"%cc.lead{scopes.attach('lead')}")
    if segment.after is not None and not is_barrier(segment.after):
        add(f"%cc.e.piece{scope}")  # a collective does not end a piece
    if shared.several:
        last, piece = unique("e"), unique("e")
        texts += [f"{last} = load {type_}, ptr {barrier}", f"{piece} = sub {type_} {total}, {last}"]
        total = piece
    return [*texts, f"store {type_} {total}, ptr %cc.e.piece{scope}"]

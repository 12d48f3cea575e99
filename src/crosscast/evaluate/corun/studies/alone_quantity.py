"""Bags of one size of which one quantity alone is known, so that models are fitted to nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crosscast.evaluate.corun.quantities import measured
from crosscast.tables.corun.bag import Bag
from crosscast.tables.corun.view import CoRuns

__all__ = ["fewest_members", "performance_of", "told_alone"]

_LEAST = 5


def fewest_members(co_runs: CoRuns) -> int:
    """Members of the smallest bags: two, where there are pairs, as in sections 6 and 7."""
    return min((len(bag.members) for bag in co_runs.bags if len(bag.members) > 1), default=2)


def told_alone(co_runs: CoRuns, quantity: str, sizes: Sequence[int]) -> CoRuns:
    """The bags of some sizes of which a quantity is known, without what else is measured.

    Parameters
    ----------
    co_runs
        Bags of one device.
    quantity
        ``slowdown``, ``time`` or ``power``.
    sizes
        Members of the bags.
    """
    kept = [bag for bag in co_runs.bags if len(bag.members) in sizes and _known([bag], quantity)]
    return replace(co_runs, bags=tuple(_only(bag, quantity) for bag in kept))


def performance_of(co_runs: CoRuns, size: int) -> str:
    """What tells how fast bags of a size are: their time, as published, or the slowdowns of their members."""
    bags = [bag for bag in co_runs.bags if len(bag.members) == size]
    return "time" if _known(bags, "time") >= max(_LEAST, len(bags) // 2) else "slowdown"


def _known(bags: Sequence[Bag], quantity: str) -> int:
    values = measured(bags, quantity).value
    return int((values == values).sum())


def _only(bag: Bag, quantity: str) -> Bag:
    return replace(
        bag,
        members=tuple(
            replace(member, slowdown=member.slowdown if quantity == "slowdown" else None)
            for member in bag.members
        ),
        time_s=bag.time_s if quantity == "time" else None,
        power_w=bag.power_w if quantity == "power" else None,
    )

"""Where walks end with each number of changes that they may make."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosscast.arrays import Flags
from crosscast.choose.walk import Chooser, Settled, Walk, settle
from crosscast.predict.configuration.surfaces import Observed

__all__ = ["endings"]


def endings(
    chooser: Chooser,
    observed: Observed,
    power_cap: float,
    available: Flags,
    budgets: Sequence[int],
    run: Callable[[int], Observed],
) -> list[Settled]:
    """Where a chooser settles with each budget.

    A chooser with an attribute ``uses_budget`` that is false walks once, with the largest budget, as smaller
    ones only end its walk earlier.

    Parameters
    ----------
    chooser
        What chooses.
    observed, power_cap, available
        Of the kernel: see `Chooser.walk`.
    budgets
        Most changes of configuration.
    run
        Runs the kernel at a configuration.
    """
    if getattr(chooser, "uses_budget", True):
        return [settle(chooser.walk(observed, power_cap, available, each), run, each) for each in budgets]
    most = max(budgets)
    numbers = _numbers(chooser.walk(observed, power_cap, available, most), run, most)
    changes = [min(each, len(numbers) - 1) for each in budgets]
    return [Settled(numbers[each], each) for each in changes]


def _numbers(walk: Walk, run: Callable[[int], Observed], most: int) -> list[int]:
    """The first configuration and all that follow."""
    numbers = [next(walk)]
    while len(numbers) <= most:
        try:
            numbers.append(walk.send(run(numbers[-1])))
        except StopIteration:
            return numbers
    walk.close()
    return numbers

"""Round robin: machines take turns."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.jobs import Integers
from crosscast.cluster.placement import Bound
from crosscast.cluster.placements.workload import Flags, Workload

__all__ = ["in_turn", "round_robin"]


def round_robin(workload: Workload) -> Bound:
    """Bind job ``i`` to machine ``i mod m`` (section VII of Nichols et al. 2024).

    A job that does not run there goes to the next machine on which it does.
    """
    return Bound(in_turn(workload.runs_on))


def in_turn(allowed: Flags) -> Integers:
    """The first machine, from ``i mod m`` on, that is allowed to row ``i``.

    Parameters
    ----------
    allowed
        Of shape ``(n, m)``, with one that is true in each row.

    Examples
    --------
    >>> in_turn(np.array([[True, True], [True, False], [True, True], [True, True]])).tolist()
    [0, 0, 0, 1]
    """
    rows, machines = allowed.shape
    order = (np.arange(rows)[:, None] + np.arange(machines)) % machines
    first = np.argmax(np.take_along_axis(allowed, order, axis=1), axis=1)
    turn: Integers = order[np.arange(rows), first]
    return turn

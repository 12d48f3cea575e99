"""What trees look at: traits of a member, and of those beside it, whatever their number and order."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.corun.process.rows import MemberRows
from crosscast.predict.corun.process.traits import Traited

__all__ = ["neighbourhood", "width"]


def width(traits: int) -> int:
    """Columns of `neighbourhood`."""
    return 3 * traits + 1


def neighbourhood(there: Traited, rows: MemberRows) -> Reals:
    """Traits of members, sums and maxima of the traits of those beside them, and how many these are.

    Returns
    -------
    array
        Of shape ``(n, 3 f + 1)``.
    """
    sums = rows.beside @ there.near
    most = np.full_like(sums, -np.inf)
    for application in range(len(there)):
        with_it = rows.beside[:, application] > 0
        most[with_it] = np.maximum(most[with_it], there.near[application])
    return np.column_stack([there.near[rows.own], sums, most, rows.beside.sum(axis=1)])

"""Whether a power keeps to a cap."""

from __future__ import annotations

from typing import overload

import numpy as np

from crosscast.arrays import Flags, Reals

__all__ = ["GUARD", "SLACK", "within_cap"]

GUARD = 0.01
"""Share of a cap: what a method may be told less of it, and the tolerance of some scores."""

SLACK = 1e-9
"""Share by which a power may be above a cap, as caps lie on measured powers and arithmetic rounds."""


@overload
def within_cap(power_w: float, power_cap: float, tolerance: float = ...) -> bool: ...


@overload
def within_cap(power_w: Reals, power_cap: Reals | float, tolerance: float = ...) -> Flags: ...


def within_cap(
    power_w: Reals | float, power_cap: Reals | float, tolerance: float = 0.0
) -> Flags | bool | np.bool_:
    """Whether powers keep to caps; one that is not a number does not.

    Parameters
    ----------
    power_w, power_cap
        Powers and the most that they may be, in watts.
    tolerance
        Share of the cap by which a power may be above it, besides `SLACK`.
    """
    return power_w <= power_cap * (1 + tolerance + SLACK)

"""Devices of a type and vendor, which tend to be alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Integers
from crosscast.device import Device

__all__ = ["kinds_of"]


def kinds_of(devices: Sequence[Device]) -> Integers:
    """A number for each device, from 0, equal where they are of one type and vendor.

    Returns
    -------
    array
        Of shape ``(d,)``.
    """
    kinds = [(device.type, device.vendor) for device in devices]
    order = {kind: place for place, kind in enumerate(sorted(set(kinds)))}
    return np.array([order[kind] for kind in kinds], dtype=np.int64)

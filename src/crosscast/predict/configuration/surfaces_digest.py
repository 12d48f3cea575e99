"""A hash of surfaces."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["surfaces_digest"]


def surfaces_digest(surfaces: Surfaces) -> str:
    """A hash of all that is in surfaces."""
    names = [[*each] for each in surfaces.kernels], [each.to_dict() for each in surfaces.space.configurations]
    digest = hashlib.sha256(json.dumps(names).encode())
    arrays = {"time_s": surfaces.time_s, "power_w": surfaces.power_w}
    for kind, group in (("", arrays), ("domain ", surfaces.domains), ("counter ", surfaces.counters)):
        for name, values in sorted(group.items()):
            # All that is not a number is the same, whatever its bits.
            plain = np.where(np.isnan(values), np.nan, values)
            digest.update(f"{kind}{name}".encode() + plain.tobytes())
    return digest.hexdigest()

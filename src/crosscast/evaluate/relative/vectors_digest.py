"""A hash of relative vectors and the runs that go with them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import numpy as np

from crosscast.predict.relative.observations import Vectors

__all__ = ["vectors_digest"]


def vectors_digest(vectors: Vectors) -> str:
    """A hash of all that is in vectors."""
    rows = vectors.observations
    texts = [
        rows.application,
        rows.kernel,
        rows.size,
        rows.scale,
        rows.source,
        rows.names,
        rows.configuration,
        vectors.devices,
        [asdict(device) for device in vectors.described],
    ]
    digest = hashlib.sha256(json.dumps(texts).encode())
    for values in (rows.counters, rows.settings, rows.time_s, vectors.times_s):
        # All that is not a number is the same, whatever its bits.
        plain = np.where(np.isnan(values), np.nan, values)
        digest.update(str(plain.shape).encode() + plain.tobytes())
    return digest.hexdigest()

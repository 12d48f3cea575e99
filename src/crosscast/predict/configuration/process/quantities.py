"""What the process predicts: time, and the powers whose sum is what a cap limits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["TIME", "TOTAL", "power_parts", "powers_of"]

TIME = "time"
TOTAL = "power"
"""Name of the power that a cap limits, where it is predicted as a whole."""

_AGREE = 1e-3


def power_parts(surfaces: Surfaces) -> tuple[str, ...]:
    """Domains whose powers add up to the power, sorted; `TOTAL` alone where none do.

    Parts are easier to predict than their sum: each follows its own cap.
    """
    known = surfaces.known
    names = [
        name
        for name, values in sorted(surfaces.domains.items())
        if np.isfinite(values[known]).all() and (values[known] > 0).all() and not _is_total(surfaces, values)
    ]
    total = sum((surfaces.domains[name] for name in names), np.zeros_like(surfaces.power_w))
    # A domain of that name would be taken for the time.
    added = len(names) > 1 and TIME not in names and _is_total(surfaces, total)
    return tuple(names) if added else (TOTAL,)


def _is_total(surfaces: Surfaces, values: Reals) -> bool:
    known = surfaces.known
    return bool(np.allclose(values[known], surfaces.power_w[known], rtol=_AGREE, atol=0))


def powers_of(parts: tuple[str, ...], power_w: Reals, domains: Mapping[str, Reals]) -> dict[str, Reals]:
    """Power of each part; those of a kernel that does not tell its domains are NaN."""
    if parts == (TOTAL,):
        return {TOTAL: power_w}
    return {name: domains.get(name, np.full_like(power_w, np.nan)) for name in parts}

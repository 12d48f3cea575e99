"""Which domains together are the power that a model was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from types import MappingProxyType

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["Totals", "power_totals", "total_power"]

Totals = Mapping[str, tuple[tuple[str, ...], ...]]
"""For each device the sets of domains of which the powers sum to the whole."""

_MOST_TOGETHER = 4
_MOST_DOMAINS = 12
_TOLERANCE = 1e-3
"""Share by which sums may be off, as sources round."""


def power_totals(surfaces: Surfaces) -> Totals:
    """Find the sets of domains whose powers sum to the power, wherever it is known.

    Parameters
    ----------
    surfaces
        Training kernels.

    Returns
    -------
    Mapping
        For each device the sets, the smallest first, of which none holds another; of at most four domains.
        None where no sum is the power.
    """
    found = {}
    for number, device in enumerate(surfaces.space.devices):
        own = np.broadcast_to(surfaces.space.device_numbers == number, surfaces.known.shape)
        known = own & surfaces.known
        domains = {name: values[known] for name, values in surfaces.domains.items()}
        there = {name: values for name, values in domains.items() if np.isfinite(values).all()}
        found[device] = _sets(dict(list(there.items())[:_MOST_DOMAINS]), surfaces.power_w[known])
    return MappingProxyType(found)


def _sets(domains: Mapping[str, Reals], power_w: Reals) -> tuple[tuple[str, ...], ...]:
    if not power_w.size:
        return ()
    found: list[tuple[str, ...]] = []
    for count in range(1, _MOST_TOGETHER + 1):
        for names in combinations(sorted(domains), count):
            if any(set(smaller) <= set(names) for smaller in found):
                continue
            if np.allclose(sum(domains[name] for name in names), power_w, rtol=_TOLERANCE, atol=0):
                found.append(names)
    return tuple(found)


def total_power(sets: tuple[tuple[str, ...], ...], powers_w: Mapping[str, float]) -> float | None:
    """Power of the whole by those of its domains, in watts; ``None`` if too few of them are known.

    Parameters
    ----------
    sets
        The sets of domains, of which the first that is known counts.
    powers_w
        Power of each domain that is known.
    """
    for names in sets:
        if all(name in powers_w for name in names):
            return sum(powers_w[name] for name in names)
    return None

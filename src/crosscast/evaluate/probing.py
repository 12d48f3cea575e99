"""Which devices a kernel is measured on before the others are predicted."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from crosscast.errors import InputError

__all__ = ["MOST_SETS", "probe_sets"]

MOST_SETS = 200
"""Sets of devices that are tried at most; where there are more, as many are drawn."""


def probe_sets(devices: int, probes: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Sets of devices to measure on: all there are, or a sample without replacement.

    Parameters
    ----------
    devices
        Number of devices.
    probes
        Number of devices in a set.
    seed
        Start of the random numbers of the sample.

    Raises
    ------
    InputError
        If no device is left to predict.

    Examples
    --------
    >>> probe_sets(3, 2, seed=0)
    ((0, 1), (0, 2), (1, 2))
    """
    if not 0 <= probes < devices:
        raise InputError(f"probes: expected 0 to {devices - 1} of {devices} devices, found {probes}")
    if comb(devices, probes) <= MOST_SETS:
        return tuple(combinations(range(devices), probes))
    rng = np.random.default_rng(seed)
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < MOST_SETS:
        drawn.add(tuple(sorted(rng.choice(devices, probes, replace=False).tolist())))
    return tuple(sorted(drawn))

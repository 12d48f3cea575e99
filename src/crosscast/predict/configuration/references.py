"""From which sample run a configuration's performance and power are scaled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Integers
from crosscast.predict.configuration.space import Space

__all__ = ["references"]


def references(space: Space, samples: Sequence[int]) -> Integers:
    """``(c,)`` For each configuration the place, among the samples, of that from which it is scaled.

    The first sample on the same device; the first of all, where a device has none. In the paper each device
    has one (Bailey et al. 2014, section III-B).
    """
    numbers = [space.device_numbers[each] for each in samples]
    first = [numbers.index(device) if device in numbers else 0 for device in range(len(space.devices))]
    return np.array(first, np.int64)[space.device_numbers]

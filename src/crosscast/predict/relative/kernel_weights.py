"""Weights by which all kernels count the same, however often each was run."""

from __future__ import annotations

from collections import Counter

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.relative.observations import Observations

__all__ = ["kernel_weights"]


def kernel_weights(observations: Observations) -> Reals:
    """Weight of each row, of shape ``(r,)``; those of each kernel add up to 1."""
    kernels = list(zip(observations.application, observations.kernel, strict=True))
    rows = Counter(kernels)
    return np.array([1.0 / rows[kernel] for kernel in kernels])

"""Length of Collatz sequences: a data-dependent loop, unpredictable branches, one access."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from benchmarks.kernels.case import Case, Workload


def _lengths(size: int) -> npt.NDArray[np.uint32]:
    """Steps from 1 to `size` down to 1."""
    value = np.arange(1, size + 1, dtype=np.int64)
    steps = np.zeros(size, np.uint32)
    going = np.flatnonzero(value != 1)
    while going.size:
        current = value[going]
        value[going] = np.where(current & 1, 3 * current + 1, current >> 1)
        steps[going] += 1
        going = going[value[going] != 1]
    return steps


def prepare(size: int, random: np.random.Generator) -> Workload:
    """Starts from 1 to `size`."""
    steps = _lengths(size)
    return Workload(
        (size,), (64,), (np.zeros(size, np.uint32),), (0,), (steps,), work=float(steps.sum(dtype=np.int64))
    )


CASE = Case("collatz", "length of Collatz sequences", size=1 << 17, reduced=1 << 14, prepare=prepare)

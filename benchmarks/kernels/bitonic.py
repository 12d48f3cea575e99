"""Bitonic sort of blocks of 256 in local memory: 37 barriers a work-item."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.case import Case, Workload

_GROUP = 256


def prepare(size: int, random: np.random.Generator) -> Workload:
    """`size` elements; each block of 256 is sorted by itself."""
    data = random.integers(0, 1 << 32, size, dtype=np.uint32)
    blocks = np.sort(data.reshape(-1, _GROUP), axis=1).reshape(-1)
    return Workload((size,), (_GROUP,), (data,), (0,), (blocks,), work=size)


CASE = Case("bitonic", "bitonic sort of blocks, barriers", size=1 << 18, reduced=1 << 15, prepare=prepare)

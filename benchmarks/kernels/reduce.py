"""Sum by a tree in local memory: barriers, a local pointer argument, half of the items idle."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.case import Case, LocalBytes, Workload

_GROUP = 256


def prepare(size: int, random: np.random.Generator) -> Workload:
    """`size` elements, a sum for each block of 256."""
    data = random.random(size, dtype=np.float32)
    tree = data.reshape(-1, _GROUP)
    # The same order of additions as the kernel's, so the same float32 results.
    while tree.shape[1] > 1:
        half = tree.shape[1] // 2
        tree = tree[:, :half] + tree[:, half:]
    sums = np.zeros(size // _GROUP, np.float32)
    return Workload(
        (size,), (_GROUP,), (data, sums, LocalBytes(4 * _GROUP)), (1,), (tree.reshape(-1),), work=size
    )


CASE = Case("reduce", "sum by a tree, barriers", size=1 << 22, reduced=1 << 17, prepare=prepare)

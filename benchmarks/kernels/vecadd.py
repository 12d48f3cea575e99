"""Sum of two vectors: a streaming kernel with three accesses a work-item."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.case import Case, Workload


def prepare(size: int, random: np.random.Generator) -> Workload:
    """`size` elements."""
    a = random.random(size, dtype=np.float32)
    b = random.random(size, dtype=np.float32)
    c = np.zeros(size, np.float32)
    return Workload((size,), (64,), (a, b, c), (2,), (a + b,), work=size)


CASE = Case("vecadd", "sum of two vectors", size=1 << 20, reduced=1 << 20, prepare=prepare)

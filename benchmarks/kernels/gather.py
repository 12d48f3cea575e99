"""Reads at random indexes: bound by the caches."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.case import Case, Workload


def prepare(size: int, random: np.random.Generator) -> Workload:
    """`size` reads from a table as long."""
    table = random.random(size, dtype=np.float32)
    index = random.integers(0, size, size, dtype=np.uint32)
    out = np.zeros(size, np.float32)
    return Workload((size,), (64,), (table, index, out), (2,), (table[index],), work=size)


CASE = Case("gather", "reads at random indexes", size=1 << 22, reduced=1 << 20, prepare=prepare)

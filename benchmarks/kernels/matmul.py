"""Naive matrix product: a long inner loop with a strided read."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.case import Case, Workload


def prepare(size: int, random: np.random.Generator, *, group: int = 8) -> Workload:
    """Matrices of `size` rows and columns, for square work-groups of `group` rows and columns."""
    a = random.random((size, size), dtype=np.float32)
    b = random.random((size, size), dtype=np.float32)
    c = np.zeros((size, size), np.float32)
    return Workload(
        (size, size),
        (group, group),
        (a, b, c, np.int32(size)),
        outputs=(2,),
        expected=(a.astype(np.float64) @ b,),
        work=float(size) ** 3,
        tolerance=1e-5,
    )


CASE = Case("matmul", "naive matrix product", size=512, reduced=128, prepare=prepare)

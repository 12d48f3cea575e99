"""Sparse matrix (CSR) times vector: one work-item a row, rows of irregular length."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.case import Case, Workload

_MEAN_ROW = 32


def prepare(size: int, random: np.random.Generator) -> Workload:
    """`size` rows of 32 entries on average; their lengths are exponentially distributed."""
    lengths = random.exponential(_MEAN_ROW, size).astype(np.int64)
    # Rounding down loses half an entry a row: spread them again, so that the total is exact.
    missing = _MEAN_ROW * size - int(lengths.sum())
    np.add.at(lengths, random.integers(0, size, max(missing, 0)), 1)
    row_start = np.zeros(size + 1, np.int32)
    np.cumsum(lengths, out=row_start[1:])
    entries = int(row_start[-1])
    columns = random.integers(0, size, entries, dtype=np.int32)
    values = random.random(entries, dtype=np.float32)
    x = random.random(size, dtype=np.float32)
    running = np.zeros(entries + 1)
    np.cumsum(values * x[columns].astype(np.float64), out=running[1:])
    return Workload(
        (size,),
        (64,),
        (row_start, columns, values, x, np.zeros(size, np.float32)),
        outputs=(4,),
        expected=(np.diff(running[row_start]),),
        work=entries,
        tolerance=1e-5,
    )


CASE = Case("spmv", "sparse matrix times vector", size=1 << 17, reduced=1 << 15, prepare=prepare)

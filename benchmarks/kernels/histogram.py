"""Histogram of bytes: byte reads and atomic additions to 256 hot addresses."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.case import Case, Workload


def prepare(size: int, random: np.random.Generator) -> Workload:
    """`size` bytes, unevenly distributed."""
    data = np.clip(random.normal(128, 40, size), 0, 255).astype(np.uint8)
    bins = np.bincount(data, minlength=256).astype(np.uint32)
    return Workload((size,), (64,), (data, np.zeros(256, np.uint32)), (1,), (bins,), work=size)


CASE = Case("histogram", "histogram of bytes, atomics", size=1 << 22, reduced=1 << 19, prepare=prepare)

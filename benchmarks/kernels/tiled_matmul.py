"""Matrix product by tiles of 16 x 16 in local memory: two barriers a tile."""

from __future__ import annotations

import functools

from benchmarks.kernels import matmul
from benchmarks.kernels.case import Case

CASE = Case(
    "tiled_matmul",
    "matrix product by tiles, barriers",
    size=512,
    reduced=128,
    prepare=functools.partial(matmul.prepare, group=16),
)

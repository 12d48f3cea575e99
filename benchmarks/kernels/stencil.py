"""Five-point stencil: neighbours in two dimensions, a branch at the border."""

from __future__ import annotations

import numpy as np

from benchmarks.kernels.case import Case, Workload

_CENTRE, _SIDE = 0.5, 0.125


def prepare(size: int, random: np.random.Generator) -> Workload:
    """A grid of `size` rows and columns."""
    grid = random.random((size, size), dtype=np.float32)
    expected = grid.astype(np.float64)
    sides = grid[1:-1, :-2] + grid[1:-1, 2:] + grid[:-2, 1:-1] + grid[2:, 1:-1]
    expected[1:-1, 1:-1] = _CENTRE * grid[1:-1, 1:-1] + _SIDE * sides
    return Workload(
        (size, size),
        (16, 16),
        (grid, np.zeros((size, size), np.float32), np.int32(size), np.float32(_CENTRE), np.float32(_SIDE)),
        outputs=(1,),
        expected=(expected,),
        work=float(size) ** 2,
        tolerance=1e-6,
    )


CASE = Case("stencil", "five-point stencil", size=1024, reduced=512, prepare=prepare)

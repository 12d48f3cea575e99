"""The LU decomposition application."""

from __future__ import annotations

from functools import cached_property
from math import isqrt

import numpy as np

from crosscast.suite.application import Application, Array, Parameters, Queue, expect_close

_BLOCK = 16


class Lud(Application):
    """Decompose a dense matrix into L and U, block by block and in place.

    Dense linear algebra among the dwarfs: right-looking blocked elimination without pivoting, which a
    matrix with a dominant diagonal does not need. The working set is one matrix; the work grows with
    its power of 1.5, about 2 billion operations for 8 MiB.

    S. Che et al., Rodinia: a benchmark suite for heterogeneous computing, IISWC 2009,
    doi:10.1109/IISWC.2009.5306797. The matrix has ``blocks`` of 16 in each direction, at least 2.
    """

    name = "lud"
    kernels = ("lud_diagonal", "lud_perimeter", "lud_internal")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self.blocks = parameters["blocks"]
        n = self.blocks * _BLOCK
        random = np.random.default_rng(seed)
        self.original = random.uniform(-1, 1, (n, n)).astype(np.float32)
        # Dominance by columns: it keeps elements from growing, and SciPy's reference from swapping rows.
        np.fill_diagonal(self.original, np.abs(self.original).sum(axis=0))
        self.matrix = np.zeros_like(self.original)
        self.arrays = (self.matrix,)
        self._n = np.int32(n)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """The largest matrix of whole blocks."""
        return {"blocks": isqrt(nbytes // 4) // _BLOCK}

    def run(self, queue: Queue) -> None:
        """Decompose a diagonal block, then its row and column of blocks, then update the rest; repeat."""
        self.matrix[:] = self.original
        queue.write(self.matrix)
        for step in range(self.blocks):
            start = np.int32(step * _BLOCK)
            queue.launch("lud_diagonal", (_BLOCK,), (_BLOCK,), self.matrix, self._n, start)
            left = self.blocks - step - 1
            if left == 0:
                break
            pairs = (left * 2 * _BLOCK,)
            queue.launch("lud_perimeter", pairs, (2 * _BLOCK,), self.matrix, self._n, start)
            rest = (left * _BLOCK, left * _BLOCK)
            queue.launch("lud_internal", rest, (_BLOCK, _BLOCK), self.matrix, self._n, start)
        queue.read(self.matrix)

    def check(self) -> None:
        """Compare both triangles with LAPACK's."""
        expected = self._expected
        diagonal = np.diag(expected)
        column = np.arange(len(expected))
        for start in range(0, len(expected), _BLOCK):
            # By rows of blocks, as all at once would take several times the memory of the working set.
            rows = slice(start, start + _BLOCK)
            # L's elements are about as small as the diagonal is large. Times the diagonal they are of the
            # order of 1, as U's are, and one tolerance fits all.
            scale = np.where(column[rows, np.newaxis] > column, diagonal, 1)
            what = f"L and U from row {start}"
            expect_close(what, self.matrix[rows] * scale, expected[rows] * scale, rtol=1e-5, atol=1e-5)

    @cached_property
    def _expected(self) -> Array:
        """L below the diagonal and U from there, in double precision."""
        from scipy.linalg import lu_factor

        # In LAPACK's own order, so that it factors in place.
        matrix = np.asarray(self.original, np.float64, order="F")
        factors: Array = lu_factor(matrix, overwrite_a=True)[0]
        return factors

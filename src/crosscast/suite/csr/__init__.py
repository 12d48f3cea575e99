"""The sparse matrix-vector product application."""

from __future__ import annotations

from functools import cached_property
from math import isqrt

import numpy as np

from crosscast.suite.application import Application, Array, Parameters, Queue, expect_close, whole_groups

_GROUP = 64
_PRODUCTS = 4


class Csr(Application):
    """Multiply a vector by a sparse matrix a few times over, as an iterative solver would.

    Sparse linear algebra among the dwarfs. Rows have different numbers of elements, in random columns;
    some have none. The matrix is in compressed sparse rows.
    """

    name = "csr"
    kernels = ("csr",)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        rows, elements = parameters["rows"], parameters["elements"]
        random = np.random.default_rng(seed)
        cells = _distinct(random, rows * rows, elements)
        counts = np.bincount(cells // rows, minlength=rows)
        self.row_starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
        self.columns = (cells % rows).astype(np.int32)
        # So scaled, vectors keep their order of magnitude from product to product.
        self.values = random.standard_normal(elements, np.float32)
        self.values *= np.float32((rows / elements) ** 0.5)
        self.start = random.standard_normal(rows, np.float32)
        self.vectors = self.start.copy(), np.zeros_like(self.start)
        self.arrays = (self.row_starts, self.columns, self.values, *self.vectors)
        self._launch = (whole_groups(rows, _GROUP),), (_GROUP,), np.int32(rows), *self.arrays[:3]

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Return parameters with one element in 200, as published: only large matrices have long rows."""
        # Bytes: 8 an element, and 12 a row with 4 for the end. Hence rows² / 25 + 12 rows + 4 <= nbytes.
        rows = isqrt(25 * (nbytes - 4) + 150**2) - 150
        return {"rows": rows, "elements": rows * rows // 200}

    def run(self, queue: Queue) -> None:
        """Multiply back and forth between two vectors."""
        source, target = self.vectors
        source[:] = self.start
        queue.write(self.row_starts, self.columns, self.values, source)
        for _ in range(_PRODUCTS):
            queue.launch("csr", *self._launch, source, target)
            source, target = target, source
        queue.read(source)

    def check(self) -> None:
        """Compare with SciPy's products in double precision."""
        # An even number of products ends where it began.
        expect_close("vector", self.vectors[_PRODUCTS % 2], self._expected, rtol=1e-5, atol=1e-5)

    @cached_property
    def _expected(self) -> Array:
        from scipy.sparse import csr_array

        shape = (self.start.size, self.start.size)
        values = self.values.astype(np.float64)
        matrix = csr_array((values, self.columns, self.row_starts), shape=shape)
        vector: Array = self.start.astype(np.float64)
        for _ in range(_PRODUCTS):
            vector = matrix @ vector
        return vector


def _distinct(random: np.random.Generator, end: int, count: int) -> Array:
    """Return `count` different whole numbers below `end`, in rising order."""
    # Sorted draws may repeat; adding each one's rank spreads them apart and keeps the order.
    draws = np.sort(random.integers(end - count, size=count, endpoint=True))
    return draws + np.arange(count)

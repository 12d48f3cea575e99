"""The example of docs/suite.md: an application of one's own."""

from functools import cached_property
from math import isqrt

import numpy as np

from crosscast import Application, Array, Parameters, Queue, expect_close, whole_groups

_TILE = 16
_RATE = 0.2


class Heat(Application):
    """Let heat spread in a plate whose edge keeps its temperature (explicit five-point stencil).

    Structured grids among the dwarfs. The plate has random temperatures at the start.

    Parameters
    ----------
    parameters
        ``rows`` and ``columns`` of points, and ``steps`` in time.
    seed
        Start of the random temperatures.
    """

    name = "heat"
    kernels = ("heat_step",)

    def __init__(self, parameters: Parameters, seed: int) -> None:
        shape = parameters["rows"], parameters["columns"]
        self.start = np.random.default_rng(seed).random(shape, np.float32)
        self.plates = np.zeros_like(self.start), np.zeros_like(self.start)
        self.arrays = self.plates
        self.steps = parameters["steps"]
        self._extents = tuple(np.int32(extent) for extent in shape)
        self._global = tuple(whole_groups(extent, _TILE) for extent in reversed(shape))

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Two plates of 4 bytes a point, about as wide as they are high."""
        points = nbytes // 8
        rows = isqrt(points)
        return {"rows": rows, "columns": points // rows, "steps": 10}

    def run(self, queue: Queue) -> None:
        """Step to and fro between two plates."""
        old, new = self.plates
        old[:] = self.start
        queue.write(old)
        for _ in range(self.steps):
            queue.launch(
                "heat_step", self._global, (_TILE, _TILE), old, new, *self._extents, np.float32(_RATE)
            )
            old, new = new, old
        queue.read(old)

    def check(self) -> None:
        """Compare with the same steps in NumPy, in double precision."""
        # Each step averages, so that rounding errors do not grow.
        expect_close("temperature", self.plates[self.steps % 2], self._expected, rtol=1e-5)

    @cached_property
    def _expected(self) -> Array:
        plate = self.start.astype(np.float64)
        for _ in range(self.steps):
            inside = plate[1:-1, 1:-1]
            around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
            plate[1:-1, 1:-1] = inside + _RATE * (around - 4 * inside)
        return plate

"""Reduce the speckle of an image."""

from __future__ import annotations

from functools import cached_property
from math import exp, isqrt

import numpy as np

from crosscast.kernel import Argument
from crosscast.suite.application import Application, Array, Parameters, Queue, expect_close, whole_groups

_TILE = 16
_BYTES_PER_PIXEL = 24
_ITERATIONS = 4
_STEP = 0.5
_SPECKLE = 0.2  # standard deviation of the speckle over the mean
_DECAY = 1 / 6


class Srad(Application):
    """Smooth the speckle of an image, but not its edges (speckle-reducing anisotropic diffusion).

    The structured grid dwarf, after "Speckle reducing anisotropic diffusion", IEEE Trans. Image Process.
    11 (2002). What counts as speckle decays from one iteration to the next as that paper has it, so that
    the host need not look at the image in between. The image has bright rectangles under speckle.
    """

    name = "srad"
    kernels = ("srad_cuda_1", "srad_cuda_2")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        random = np.random.default_rng(seed)
        shape = parameters["rows"], parameters["columns"]
        self.original = _speckled(random, shape)
        self.image = self.original.copy()
        self.coefficient, *differences = (np.zeros(shape, np.float32) for _ in range(5))
        self.differences = tuple(differences)
        self.arrays = (self.image, self.coefficient, *self.differences)

        extents = [np.int32(extent) for extent in shape]
        self._arguments: tuple[Argument, ...] = *self.differences, self.image, self.coefficient, *extents
        self._sizes = tuple(whole_groups(extent, _TILE) for extent in reversed(shape)), (_TILE, _TILE)
        self._speckles = [np.float32((_SPECKLE * exp(-_DECAY * i)) ** 2) for i in range(_ITERATIONS)]

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Parameters of about the largest problem whose working set is at most `nbytes`."""
        pixels = nbytes // _BYTES_PER_PIXEL
        rows = isqrt(pixels)
        return {"rows": rows, "columns": pixels // rows}

    def run(self, queue: Queue) -> None:
        """Diffuse a few times."""
        np.copyto(self.image, self.original)
        queue.write(self.image)
        for speckle in self._speckles:
            queue.launch("srad_cuda_1", *self._sizes, *self._arguments, speckle)
            queue.launch("srad_cuda_2", *self._sizes, *self._arguments, np.float32(_STEP))
        queue.read(self.image)

    def check(self) -> None:
        """Compare with the same iterations in NumPy, in double precision."""
        # Each step only averages, so rounding errors stay of the order of a few units in the last place.
        expect_close("image", self.image, self._expected, rtol=1e-4)

    @cached_property
    def _expected(self) -> Array:
        image = self.original.astype(np.float64)
        for speckle in self._speckles:
            image = _diffused(image, float(speckle))
        return image


def _diffused(image: Array, speckle: float) -> Array:
    wide = np.pad(image, 1, mode="edge")
    up, left = wide[:-2, 1:-1], wide[1:-1, :-2]
    down, right = wide[2:, 1:-1], wide[1:-1, 2:]
    neighbours = np.stack([up, down, left, right])
    mean = neighbours.mean(axis=0) / image
    variation = (((neighbours / image - 1) ** 2).sum(axis=0) / 2 - (mean - 1) ** 2) / mean**2
    coefficient = np.clip(speckle * (1 + speckle) / (speckle**2 + variation), 0, 1)
    # What flows between two pixels has the second one's coefficient, and what one gains the other loses.
    down_flow = np.diff(image, axis=0) * coefficient[1:]
    right_flow = np.diff(image, axis=1) * coefficient[:, 1:]
    divergence = np.zeros_like(image)
    divergence[:-1] += down_flow
    divergence[:, :-1] += right_flow
    divergence[1:] -= down_flow
    divergence[:, 1:] -= right_flow
    return image + _STEP / 4 * divergence


def _speckled(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    """An image of positive brightness around 1 to 3."""
    image = np.ones(shape)
    rows, columns = shape
    image[rows // 4 : rows // 2, columns // 3 : -columns // 4] = 2
    image[rows // 3 : -rows // 5, columns // 5 : columns // 2] = 3
    speckle = np.clip(random.normal(1, _SPECKLE, shape), 0.4, 1.6)
    return (image * speckle).astype(np.float32)

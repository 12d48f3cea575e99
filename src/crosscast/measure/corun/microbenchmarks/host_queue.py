"""The microbenchmarks without OpenCL: a queue on which NumPy does what the kernels do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.measure.corun.microbenchmarks.images import PIXEL_BYTES, VECTOR_BYTES, image

__all__ = ["HostQueue"]

_PIXELS_OF_VECTOR = VECTOR_BYTES // PIXEL_BYTES
_MADE = 0x1D872B41

Words = npt.NDArray[np.uint32]


class HostQueue:
    """Runs the microbenchmarks in this process, on one core; an array is its own buffer.

    For machines without an OpenCL device: start one process for each core that should be busy.
    """

    def write(self, *arrays: npt.NDArray[Any]) -> None:
        """Nothing: there is no other memory."""

    def read(self, *arrays: npt.NDArray[Any]) -> None:
        """Nothing: there is no other memory."""

    def launch(
        self, kernel: str, global_size: tuple[int, ...], local_size: tuple[int, ...], *args: Any
    ) -> None:
        """Do what a kernel of the microbenchmarks does."""
        _KERNELS[kernel](*args)


def _make_images(pool: Words, pixels: np.uint64, made: Words) -> None:
    if made[0] != _MADE:
        pool[:] = image(0, int(pixels))
        made[0] = _MADE


def _read_images(
    pool: Words,
    vectors: int,
    images: int,
    stride: int,
    iterations: int,
    elements: Words,
    sums: Words,
    made: Words,
) -> None:
    pixels, elements_sum = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    for iteration in range(iterations):
        number = iteration % images
        first = int(number * stride) * _PIXELS_OF_VECTOR
        pixels += pool[first : first + int(vectors) * _PIXELS_OF_VECTOR].sum(dtype=np.uint32)
        elements_sum += elements[number] + np.uint32(1)
    sums[:] = elements_sum
    sums[:1] += pixels


def _add_images(
    pool: Words, vectors: int, images: int, iterations: int, even: Words, odd: Words, made: Words
) -> None:
    frames = pool.reshape(int(images), -1)
    for iteration in range(iterations):
        source, target = (odd, even) if iteration % 2 else (even, odd)
        if iteration == 0:
            source[:] = 0
        np.add(source, frames[iteration % images], out=target)


_KERNELS: Mapping[str, Callable[..., None]] = MappingProxyType(
    {"make_images": _make_images, "read_images": _read_images, "add_images": _add_images}
)

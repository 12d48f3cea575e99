"""Transform an image into wavelets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from math import isqrt

import numpy as np

from crosscast.kernel import Argument
from crosscast.suite.application import Application, Array, Parameters, Queue, expect_equal, whole_groups

_COMPONENTS = 3
_PIXELS = 256
_GROUP = 16
_TILE = 32
_LEVELS = 3
_LEVEL_SHIFT = 128
_BYTES_PER_PIXEL = _COMPONENTS * (1 + 4 + 4) + 1

_Sizes = tuple[tuple[int, ...], tuple[int, ...]]


class Dwt(Application):
    """Transform the colours of a picture into wavelets, three levels of them (forward 5/3 transform).

    The spectral methods dwarf: the reversible transform of JPEG 2000 (ISO/IEC 15444-1, annex F), by
    lifting. Coefficients are in the usual order, approximations in the upper left quarter of each level.
    The picture is a few waves of colour under noise.
    """

    name = "dwt"
    kernels = ("c_CopySrcToComponents", "cl_fdwt53Kernel")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        height, width = shape = parameters["height"], parameters["width"]
        self.picture = _picture(np.random.default_rng(seed), height, width)
        self.planes = tuple(np.zeros(shape, np.int32) for _ in range(_COMPONENTS))
        self.bands = tuple(np.zeros(shape, np.int32) for _ in range(_COMPONENTS))
        self.low = np.zeros((_half(height), _half(width)), np.int32)
        pixels = height * width
        self._split_sizes = (whole_groups(pixels, _PIXELS),), (_PIXELS,)
        self._split: tuple[Argument, ...] = *self.planes, self.picture, np.int32(pixels)
        self._transforms = [
            launch for pair in zip(self.planes, self.bands, strict=True) for launch in self._levels(*pair)
        ]
        self.arrays = (self.picture, *self.planes, *self.bands, self.low)

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Parameters of about the largest problem whose working set is at most `nbytes`."""
        # Halves are rounded up: leave room for a row and a column.
        pixels = nbytes // _BYTES_PER_PIXEL
        height = isqrt(pixels) - 1
        return {"height": height, "width": (pixels - height) // (height + 1)}

    def run(self, queue: Queue) -> None:
        """Split the picture into components, and transform each."""
        queue.write(self.picture)
        queue.launch("c_CopySrcToComponents", *self._split_sizes, *self._split)
        for sizes, arguments in self._transforms:
            queue.launch("cl_fdwt53Kernel", *sizes, *arguments)
        queue.read(*self.bands)

    def _levels(self, plane: Array, bands: Array) -> Iterator[tuple[_Sizes, tuple[Argument, ...]]]:
        height, width = plane.shape
        source, target = plane, self.low
        for level in range(_LEVELS):
            if level == _LEVELS - 1:
                target = bands
            global_size = -(-width // _TILE) * _GROUP, -(-height // _TILE) * _GROUP
            planes = *_with_stride(source), *_with_stride(target), *_with_stride(bands)
            yield (global_size, (_GROUP, _GROUP)), (*planes, np.int32(width), np.int32(height))
            height, width = _half(height), _half(width)
            # The plane is no longer needed once its approximations are in the smaller one.
            source, target = target, source

    def check(self) -> None:
        """Compare with lifting in NumPy."""
        for colour, found, expected in zip(("red", "green", "blue"), self.bands, self._expected, strict=True):
            expect_equal(f"{colour} wavelets", found, expected)

    @cached_property
    def _expected(self) -> list[Array]:
        planes = np.moveaxis(self.picture, -1, 0).astype(np.int64) - _LEVEL_SHIFT
        for plane in planes:
            part = plane
            for _ in range(_LEVELS):
                part[:] = _lifted(_lifted(part.T).T)
                part = part[: _half(len(part)), : _half(part.shape[1])]
        return list(planes)


def _lifted(plane: Array) -> Array:
    """One level along the first axis: approximations, then details."""
    extent = len(plane)
    wide = np.pad(plane, ((2, 3), (0, 0)), mode="reflect")
    even, odd = wide[::2], wide[1::2]
    details = odd[: len(even) - 1] - ((even[:-1] + even[1:]) >> 1)
    approximations = even[1:-1] + ((details[:-1] + details[1:] + 2) >> 2)
    return np.concatenate([approximations[: _half(extent)], details[1 : 1 + extent // 2]])


def _with_stride(plane: Array) -> tuple[Array, np.int32]:
    return plane, np.int32(plane.shape[1])


def _half(extent: int) -> int:
    """Approximations of so many samples."""
    return (extent + 1) // 2


def _picture(random: np.random.Generator, height: int, width: int) -> Array:
    y, x = np.linspace(0, 1, height)[:, None, None], np.linspace(0, 1, width)[:, None]
    waves = np.sin(
        2 * np.pi * (random.uniform(1, 6, _COMPONENTS) * x + random.uniform(1, 6, _COMPONENTS) * y)
    )
    noise = random.integers(-27, 28, (height, width, _COMPONENTS))
    return (128 + 100 * waves + noise).astype(np.uint8)

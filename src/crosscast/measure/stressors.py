"""Stressors: three microbenchmarks of increasing misses of the last-level cache."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crosscast.arrays import AnyArray
from crosscast.errors import InputError, expect_known
from crosscast.kernel import Argument
from crosscast.suite.application import Application, Array, Parameters, Queue, expect_equal

PIXEL_BYTES = 4
VECTOR_BYTES = 64
"""Bytes that a work-item reads at once."""

VGA_BYTES = 640 * 480 * PIXEL_BYTES
"""Bytes of a VGA image."""

_FACTOR = np.uint32(2654435761)
_SHIFT = np.uint32(15)


def image(number: int, pixels: int) -> npt.NDArray[np.uint32]:
    """Return the pixels of an image of the pool, ``(pixels,)``, as the kernel `make_images` makes them."""
    first = number * pixels
    value = np.arange(first, first + pixels, dtype=np.uint64).astype(np.uint32) * _FACTOR
    return value ^ (value >> _SHIFT)


IMAGES = 4
"""Number of images in the pool."""
ARRAYS = 2
"""Number of further arrays of the size of an image."""


def extents_of(image_bytes: int, groups: int = 8, items: int = 1) -> dict[str, int]:
    """Return the extents of a microbenchmark with one pass over the pool and images of whole vectors."""
    rounded = max(image_bytes // VECTOR_BYTES, 1) * VECTOR_BYTES
    return {"image_bytes": rounded, "images": IMAGES, "passes": 1, "groups": groups, "items": items}


class ImageReader(Application):
    """Base of the three: a pool of images, and a run that goes over it.

    Source: Moolchandani, Kumar and Sarangi 2022, section 5.1.4. There the images come from files; here they
    are made on the device before the first run, so that reading them is the only load.
    """

    kernels: ClassVar[tuple[str, ...]]

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self.images = parameters["images"]
        self.image_bytes = parameters["image_bytes"]
        self.iterations = self._iterations(parameters["passes"])
        self._groups, self._items = parameters["groups"], parameters["items"]
        # Never touched on the host: it stands for the buffer.
        self._pool = np.empty(self.images * self._pixels, np.uint32)
        self._made = np.zeros(1, np.uint32)
        self._queue: Queue | None = None

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Fit four images and the arrays."""
        return extents_of(nbytes // (IMAGES + ARRAYS))

    @classmethod
    def source_path(cls) -> Path:
        """Return the common file of the three."""
        return cls.folder() / "stressors.cl"

    @property
    @abstractmethod
    def moved_bytes(self) -> int:
        """Bytes that the program of a run reads and writes."""

    def _iterations(self, passes: int) -> int:
        return self.images * passes

    @property
    def _pixels(self) -> int:
        return self.image_bytes // PIXEL_BYTES

    @property
    def _vectors(self) -> np.uint32:
        return np.uint32(self.image_bytes // VECTOR_BYTES)

    def _make_images(self, queue: Queue) -> None:
        """Make the images unless they are made and intact."""
        if self._queue is not queue:
            # A new buffer may by chance contain the mark of made images.
            queue.write(self._made)
            self._queue = queue
        self._launch(queue, "make_images", self._pool, np.uint64(self._pool.size), self._made)

    def _launch(self, queue: Queue, kernel: str, *args: Array | np.generic) -> None:
        queue.launch(kernel, (self._groups * self._items,), (self._items,), *args)

    def _sum_of_images(self) -> npt.NDArray[np.uint32]:
        """Return the sum of the images over all iterations, by pixel."""
        total = np.zeros(self._pixels, np.uint32)
        for number in range(self.images):
            times = len(range(number, self.iterations, self.images))
            total += image(number, self._pixels) * np.uint32(times)
        return total


class Medium(ImageReader):
    """Read a new image and an element of an array in every iteration; increment the element."""

    name = "medium"
    kernels = ("make_images", "read_images")
    stride_images: ClassVar[int] = 1

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self._elements = np.arange(self.images, dtype=np.uint32)
        self._sums = np.zeros(self._groups * self._items, np.uint32)
        self.arrays = (self._pool, self._made, self._elements, self._sums)

    def run(self, queue: Queue) -> None:
        """Read images, as many as there are iterations."""
        queue.write(self._elements)
        self._make_images(queue)
        stride = np.uint32(self._vectors * self.stride_images)
        counts = (self._vectors, np.uint32(self.images), stride, np.uint32(self.iterations))
        self._launch(queue, "read_images", self._pool, *counts, self._elements, self._sums, self._made)
        queue.read(self._sums)

    def check(self) -> None:
        """Compare the sum of all pixels and incremented elements with NumPy's."""
        elements = (self._elements[np.arange(self.iterations) % self.images] + 1).sum(dtype=np.uint32)
        expected = self._sum_of_images().sum(dtype=np.uint32) + elements * np.uint32(self._sums.size)
        total = self._sums.sum(dtype=np.uint32)
        expect_equal("sum of the pixels", np.array([total]), np.array([expected], np.uint32))

    @property
    def moved_bytes(self) -> int:
        """Bytes of the images that are read."""
        return self.iterations * self.image_bytes


class Low(Medium):
    """Read the same VGA image and an element of an array in every iteration; increment the element.

    An iteration is shorter than with the images of a pool; a run has more of them, and reads as much.
    """

    name = "low"
    stride_images = 0

    def __init__(self, parameters: Parameters, seed: int) -> None:
        passes = parameters["passes"] * parameters["images"] * parameters["image_bytes"] // VGA_BYTES
        super().__init__(
            {**parameters, "image_bytes": VGA_BYTES, "images": 1, "passes": max(passes, 1)}, seed
        )


class High(ImageReader):
    """Add the pixels of a new image to a 2D array and store that in another, in every iteration."""

    name = "high"
    kernels = ("make_images", "add_images")

    def __init__(self, parameters: Parameters, seed: int) -> None:
        super().__init__(parameters, seed)
        self._even = np.zeros(self._pixels, np.uint32)
        self._odd = np.zeros(self._pixels, np.uint32)
        self.arrays = (self._pool, self._made, self._even, self._odd)

    def run(self, queue: Queue) -> None:
        """Add images, as many as there are iterations."""
        self._make_images(queue)
        counts = (self._vectors, np.uint32(self.images), np.uint32(self.iterations))
        self._launch(queue, "add_images", self._pool, *counts, self._even, self._odd, self._made)
        queue.read(self._result)

    @property
    def _result(self) -> npt.NDArray[np.uint32]:
        return self._odd if self.iterations % 2 else self._even

    def check(self) -> None:
        """Compare the sum of the images with NumPy's."""
        expect_equal("sum of the images", self._result, self._sum_of_images())

    @property
    def moved_bytes(self) -> int:
        """Bytes of the images and of one array that are read, and of the other that is written."""
        return 3 * self.iterations * self.image_bytes


LEVELS: Mapping[str, type[ImageReader]] = MappingProxyType({kind.name: kind for kind in (Low, Medium, High)})
"""The microbenchmarks by level, from the fewest misses."""


_PIXELS_OF_VECTOR = VECTOR_BYTES // PIXEL_BYTES
_MADE = 0x1D872B41

Words = npt.NDArray[np.uint32]


class HostQueue:
    """Runs the microbenchmarks in this process, on one core; an array is its own buffer.

    For machines without an OpenCL device: start one process for each core to load. Each private method
    is the kernel of its name.
    """

    def write(self, *arrays: AnyArray) -> None:
        """Do nothing: there is no other memory."""

    def read(self, *arrays: AnyArray) -> None:
        """Do nothing: there is no other memory."""

    def launch(
        self, kernel: str, global_size: tuple[int, ...], local_size: tuple[int, ...], *args: Argument
    ) -> None:
        """Execute a kernel of the microbenchmarks."""
        getattr(self, f"_{kernel}")(*args)

    def _make_images(self, pool: Words, pixels: np.uint64, made: Words) -> None:
        if made[0] != _MADE:
            pool[:] = image(0, int(pixels))
            made[0] = _MADE

    def _read_images(
        self, pool: Words, vectors: int, images: int, stride: int, iterations: int, *buffers: Words
    ) -> None:
        elements, sums, _ = buffers
        pixels, elements_sum = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        for iteration in range(iterations):
            number = iteration % images
            first = int(number * stride) * _PIXELS_OF_VECTOR
            pixels += pool[first : first + int(vectors) * _PIXELS_OF_VECTOR].sum(dtype=np.uint32)
            elements_sum += elements[number] + np.uint32(1)
        sums[:] = elements_sum
        sums[:1] += pixels

    def _add_images(self, pool: Words, vectors: int, images: int, iterations: int, *buffers: Words) -> None:
        even, odd, _ = buffers
        frames = pool.reshape(int(images), -1)
        for iteration in range(iterations):
            source, target = (odd, even) if iteration % 2 else (even, odd)
            if iteration == 0:
                source[:] = 0
            np.add(source, frames[iteration % images], out=target)


@dataclass(frozen=True)
class HostRun:
    """Result of a microbenchmark."""

    level: str  # `low`, `medium` or `high`
    runs: int  # Number of runs, each over all images
    elapsed_s: float  # Time of all runs, in seconds
    bandwidth_bytes_per_s: float  # Bytes read and written a second


def host_run(
    level: str, image_bytes: int, seconds: float, ready: Callable[[], None] = lambda: None
) -> HostRun:
    """Run a microbenchmark in this process, on one core, and check its result."""
    expect_known(level, LEVELS, field="level")
    if not math.isfinite(seconds) or seconds < 0:
        raise InputError.of(field="seconds", expected="a number of seconds", found=f"{seconds:g}")
    if image_bytes < VECTOR_BYTES:
        raise InputError.of(field="image_bytes", expected=f"at least {VECTOR_BYTES}", found=f"{image_bytes}")
    stressor, queue = LEVELS[level](extents_of(image_bytes, groups=1), 0), HostQueue()
    stressor.run(queue)
    ready()
    runs, start = 0, time.perf_counter()
    while (elapsed_s := time.perf_counter() - start) < seconds or runs == 0:
        stressor.run(queue)
        runs += 1
    stressor.check()
    return HostRun(level, runs, elapsed_s, runs * stressor.moved_bytes / elapsed_s)

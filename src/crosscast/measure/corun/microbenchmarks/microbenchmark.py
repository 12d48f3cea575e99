"""The three microbenchmarks as applications, which run wherever an application of the suite does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from crosscast.measure.corun.microbenchmarks.images import PIXEL_BYTES, VECTOR_BYTES, VGA_BYTES, image
from crosscast.suite.application import Application, Array, Parameters, Queue, expect_equal

__all__ = ["LEVELS", "High", "ImageReader", "Low", "Medium"]

_IMAGES = 4
_GROUPS = 8


class ImageReader(Application):
    """What the three have in common: a pool of images, and a run that goes over it.

    Source: paper 004, section 5.1.4. There the images come from files; here they are made on the device,
    before the first run, so that nothing but the reading of them is a neighbour's load.

    Parameters
    ----------
    parameters
        ``image_bytes`` of an image, a multiple of 64; ``images`` of the pool; ``passes`` over them in a
        run; ``groups`` and ``items``: work-groups, and work-items of each.
    seed
        Not used: the images are always the same.
    """

    kernels: ClassVar[tuple[str, ...]]

    def __init__(self, parameters: Parameters, seed: int) -> None:
        self.images = parameters["images"]
        self.image_bytes = parameters["image_bytes"]
        self.iterations = self._iterations(parameters["passes"])
        self._groups, self._items = parameters["groups"], parameters["items"]
        # Never touched on the host: it only stands for the buffer.
        self._pool = np.empty(self.images * self._pixels, np.uint32)
        self._made = np.zeros(1, np.uint32)
        self._queue: Queue | None = None

    @classmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Four images, of which the arrays leave room for."""
        whole = max(nbytes // (_IMAGES + 2) // VECTOR_BYTES, 1) * VECTOR_BYTES
        return {"image_bytes": whole, "images": _IMAGES, "passes": 1, "groups": _GROUPS, "items": 1}

    @classmethod
    def source_path(cls) -> Path:
        """One file for the three."""
        return cls.folder() / "microbenchmarks.cl"

    @property
    @abstractmethod
    def moved_bytes(self) -> int:
        """Bytes that a run reads and writes, as the program sees it."""

    def _iterations(self, passes: int) -> int:
        return self.images * passes

    @property
    def _pixels(self) -> int:
        return self.image_bytes // PIXEL_BYTES

    @property
    def _vectors(self) -> np.uint32:
        return np.uint32(self.image_bytes // VECTOR_BYTES)

    def _make_images(self, queue: Queue) -> None:
        """Make the images if this has not been done, or something has overwritten them since."""
        if self._queue is not queue:
            # A buffer that was never written may hold what says that they are made.
            queue.write(self._made)
            self._queue = queue
        self._launch(queue, "make_images", self._pool, np.uint64(self._pool.size), self._made)

    def _launch(self, queue: Queue, kernel: str, *args: Array | np.generic) -> None:
        queue.launch(kernel, (self._groups * self._items,), (self._items,), *args)

    def _sum_of_images(self) -> npt.NDArray[np.uint32]:
        """Sum over all iterations of the images that they read, pixel by pixel."""
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
        found = self._sums.sum(dtype=np.uint32)
        expect_equal("sum of the pixels", np.array([found]), np.array([expected], np.uint32))

    @property
    def moved_bytes(self) -> int:
        """Bytes of the images that are read."""
        return self.iterations * self.image_bytes


class Low(Medium):
    """Read the same VGA image and an element of an array in every iteration; increment the element.

    An iteration is shorter than with the images of a pool; a run has so many that it reads as much.
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

"""The images that the microbenchmarks read: made of their place, so that they need no file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["PIXEL_BYTES", "VECTOR_BYTES", "VGA_BYTES", "image"]

PIXEL_BYTES = 4
VECTOR_BYTES = 64
"""What a work-item reads at once."""

VGA_BYTES = 640 * 480 * PIXEL_BYTES
"""A regular VGA image."""

_FACTOR = np.uint32(2654435761)
_SHIFT = np.uint32(15)


def image(number: int, pixels: int) -> npt.NDArray[np.uint32]:
    """Pixels of an image of the pool, ``(pixels,)``, as the kernel `make_images` makes them.

    Parameters
    ----------
    number
        Place of the image in the pool, from 0.
    pixels
        Pixels of each image.
    """
    first = number * pixels
    value = np.arange(first, first + pixels, dtype=np.uint64).astype(np.uint32) * _FACTOR
    return value ^ (value >> _SHIFT)

"""Launch a kernel given as text."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import crosscast
from crosscast.arrays import AnyArray
from crosscast.characterization.engine.arguments import shared_empty
from crosscast.kernel import Argument, Kernel, Local
from crosscast.profile import Profile

LEVELS = ("-Oz", "-O0", "-O3")
"""Optimization levels at which the same kernel is quite different IR."""


def launch(
    source: str,
    global_size: int | Sequence[int],
    local_size: int | Sequence[int],
    *args: Argument,
    standard: str = "1.2",
    options: Sequence[str] = (),
    **more: Any,
) -> Profile:
    """Characterize kernel ``k`` of an OpenCL C text, on one thread unless told otherwise."""
    kernel = Kernel.from_source(source, "k", standard=standard, options=options)
    more.setdefault("threads", 1)
    return crosscast.characterize(kernel, global_size, local_size, args, **more)


def kernels(head: str, bodies: Iterable[str], before: str = "", **options: Any) -> dict[str, Kernel]:
    """Kernels of one program by their statements, which are behind the head and the first ones of ``k``.

    The compiler runs once for all.
    """
    texts = list(dict.fromkeys(bodies))
    source = before + "".join(
        f"{head.replace(' k(', f' k{number}(')} {body} }}\n" for number, body in enumerate(texts)
    )
    return {body: Kernel.from_source(source, f"k{n}", **options) for n, body in enumerate(texts)}


def zeros(count: int | tuple[int, ...], dtype: npt.DTypeLike = np.int32) -> npt.NDArray[Any]:
    """Buffer of zeros."""
    return np.zeros(count, dtype)


def ints(count: int) -> npt.NDArray[Any]:
    """Buffer of the integers from 0."""
    return np.arange(count, dtype=np.int32)


def in_shared_memory(array: AnyArray) -> AnyArray:
    """A copy that the engine does not copy again."""
    shared = shared_empty(array.shape, array.dtype)
    shared[...] = array
    return shared


def local_ints(count: int) -> Local:
    """Local memory for so many integers."""
    return Local(4 * count)

"""What a driver may pass to a kernel, whatever runs it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.errors import LaunchError
from crosscast.kernel import Argument, Image, Local, Sampler
from crosscast.suite.application import Array

__all__ = ["NO_BUFFER", "expect_arguments"]

NO_BUFFER = "expected one of the application's arrays (its `arrays`), found another"
"""What is wrong with an array that stands for no buffer."""


_KINDS = np.ndarray | np.generic | bytes | Local | Image | Sampler | None


def expect_arguments(kernel: str, args: Sequence[Argument], arrays: Sequence[Array], count: int) -> None:
    """Check the arguments of a launch.

    Parameters
    ----------
    kernel
        Name of the kernel.
    args
        Arguments, which are counted from 0 in messages.
    arrays
        Arrays that stand for buffers.
    count
        Number of arguments that the kernel takes.

    Raises
    ------
    LaunchError
        If there are fewer or more, an array is none of the buffers, or one is of another type.
    """
    buffers = set(map(id, arrays))
    for number, arg in enumerate(args):
        if not isinstance(arg, _KINDS):
            raise LaunchError(
                f"{kernel}: argument {number}: expected a NumPy scalar, found {type(arg).__name__}"
            )
        if isinstance(arg, np.ndarray) and id(arg) not in buffers:
            raise LaunchError(f"{kernel}: argument {number}: {NO_BUFFER}")
    if len(args) < count:
        raise LaunchError(f"{kernel}: argument {len(args)}: expected {count} arguments, found {len(args)}")
    if len(args) > count:
        raise LaunchError(f"{kernel}: argument {count}: expected {count} arguments, found {len(args)}")

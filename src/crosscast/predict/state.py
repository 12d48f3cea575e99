"""Arrays that a predictor is kept as, checked as they are read: a file may have come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError

__all__ = ["kept_integers", "kept_names", "kept_reals"]


def kept_reals(state: Mapping[str, npt.NDArray[Any]], name: str, axes: int) -> Reals:
    """Read an array of finite numbers in double precision.

    Parameters
    ----------
    state
        Arrays by name.
    name
        The array that is read.
    axes
        How many axes it has.

    Raises
    ------
    InputError
        If it is not there, or is another array than that.
    """
    array = _array(state, name, axes, "f", "numbers")
    if not np.isfinite(array).all():
        raise InputError(f"model: {name}: expected finite numbers, found others")
    return array.astype(np.float64)


def kept_integers(
    state: Mapping[str, npt.NDArray[Any]], name: str, axes: int, limits: tuple[int, int]
) -> Integers:
    """Read an array of integers from the first of two limits to below the second.

    Raises
    ------
    InputError
        If it is not there, or is another array than that.
    """
    array = _array(state, name, axes, "iu", "integers")
    low, high = limits
    if array.size and not (low <= array.min() and array.max() < high):
        raise InputError(
            f"model: {name}: expected integers from {low} to {high - 1}, found {array.min()} to {array.max()}"
        )
    return array.astype(np.int64)


def kept_names(state: Mapping[str, npt.NDArray[Any]], name: str) -> tuple[str, ...]:
    """Read an array of texts with one axis.

    Raises
    ------
    InputError
        If it is not there, or is another array than that.
    """
    return tuple(str(text) for text in _array(state, name, 1, "U", "texts"))


def _array(
    state: Mapping[str, npt.NDArray[Any]], name: str, axes: int, kinds: str, what: str
) -> npt.NDArray[Any]:
    if name not in state:
        raise InputError(f"model: expected an array {name!r}, found {', '.join(sorted(state)) or 'none'}")
    array = state[name]
    if array.ndim != axes or array.dtype.kind not in kinds:
        raise InputError(
            f"model: {name}: expected {what} along {axes} {'axis' if axes == 1 else 'axes'}, "
            f"found {array.dtype} of shape {array.shape}"
        )
    return array

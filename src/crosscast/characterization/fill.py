"""What buffers hold before the kernel runs: rules that make an array from a type, a length and a seed.

Each rule allocates its array once and works in place, as buffers may take most of the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.characterization.fields import Fields
from crosscast.characterization.value_type import ValueType
from crosscast.errors import InputError

__all__ = ["FILLS", "make_array", "read_array"]

Array = npt.NDArray[Any]
_Rule = Callable[[Fields, ValueType, tuple[int, ...], np.random.Generator], Array]


def make_array(fields: Fields, kind: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Make an array by the rule that the field ``fill`` names (``zeros`` if absent).

    Parameters
    ----------
    fields
        Table with ``fill`` and the rule's own fields.
    kind
        Type of the elements.
    shape
        Shape of the array, components of vectors included.
    rng
        Where random rules draw from.

    Raises
    ------
    InputError
        If a field is wrong, or the array does not fit into memory.
    """
    rule = FILLS[fields.choice("fill", tuple(FILLS), "zeros")]
    try:
        return rule(fields, kind, shape, rng)
    except MemoryError as error:
        size = int(np.prod(shape, dtype=object)) * kind.dtype.itemsize
        raise InputError(f"{fields.where}: an array of {size} bytes does not fit into memory") from error


def read_array(path: Path, kind: ValueType, where: str) -> Array:
    """Read the elements of ``.npy`` (which holds its type) or of a file of raw values.

    Raises
    ------
    InputError
        If the file cannot be read or does not hold values of the type.
    """
    try:
        if path.suffix == ".npy":
            return _read_npy(path, kind, where)
        size = path.stat().st_size
        if size == 0 or size % kind.dtype.itemsize:
            raise InputError(
                f"{where}: file: expected a multiple of {kind.dtype.itemsize} B ({kind.name}) in {path}, "
                f"found {size} bytes"
            )
        return np.fromfile(path, dtype=kind.dtype)
    except OSError as error:
        raise InputError(f"{where}: file: cannot read {path} ({error.strerror or error})") from error


def _read_npy(path: Path, kind: ValueType, where: str) -> Array:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{where}: file: {path} is not a readable .npy file ({error})") from error
    if array.dtype != kind.dtype:
        raise InputError(
            f"{where}: file: expected {kind.dtype} for {kind.name} in {path}, found {array.dtype}"
        )
    if array.size == 0:
        raise InputError(f"{where}: file: expected values in {path}, found an empty array")
    return np.require(array, requirements=["C", "W"])


def _zeros(fields: Fields, kind: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    del fields, rng
    return np.zeros(shape, dtype=kind.dtype)


def _constant(fields: Fields, kind: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    del rng
    fields.require("value", "the number that fills the buffer")
    return np.full(shape, _fitting(fields, "value", kind, 0), dtype=kind.dtype)


def _arange(fields: Fields, kind: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    del rng
    start = _fitting(fields, "start", kind, 0)
    step = _fitting(fields, "step", kind, 1)
    count = int(np.prod(shape, dtype=object))
    last = start + step * (count - 1)
    least, greatest = kind.limits
    if not least <= last <= greatest:
        raise InputError(
            f"{fields.where}: fill: the last of {count} numbers from {start} by {step} is {last}, "
            f"expected at most what {kind.name} holds ({least} to {greatest})"
        )
    # Whole numbers may wrap on the way (start of uchar -> step -1) and still end right: modular sums.
    values = np.arange(count, dtype=kind.dtype if kind.is_integer else np.float64)
    values *= _wrapped(step, values.dtype)
    values += _wrapped(start, values.dtype)
    return values.astype(kind.dtype, copy=False).reshape(shape)


def _wrapped(value: float, dtype: np.dtype[Any]) -> np.generic:
    """`value` in `dtype`, negative ones modulo its range where it has no sign."""
    if dtype.kind == "u":
        value = int(value) % (1 << (8 * dtype.itemsize))
    return dtype.type(value)  # type: ignore[no-any-return]


def _uniform(fields: Fields, kind: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    greatest = min(255, kind.limits[1]) if kind.is_integer else 1
    low = _fitting(fields, "low", kind, 0)
    high = _fitting(fields, "high", kind, greatest)
    if low > high:
        raise InputError(f"{fields.where}: high: expected at least low ({low}), found {high}")
    if kind.is_integer:
        return rng.integers(int(low), int(high), size=shape, dtype=kind.dtype.type, endpoint=True)
    values: Array = rng.random(size=shape, dtype=_draw_type(kind))
    values *= high - low
    values += low
    return values.astype(kind.dtype, copy=False)


def _normal(fields: Fields, kind: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    mean = fields.number("mean") or 0
    deviation = fields.number("sd")
    deviation = 1 if deviation is None else deviation
    if deviation < 0:
        raise fields.fail("sd", "a number of at least 0")
    values: Array = rng.standard_normal(size=shape, dtype=_draw_type(kind))
    values *= deviation
    values += mean
    if kind.is_integer:
        np.rint(values, out=values)
        least, greatest = kind.limits
        # A real that rounds up to 2^63 would wrap; the nearest real below the limit does not.
        np.clip(values, least, np.nextafter(greatest, 0) if greatest > 1 << 53 else greatest, out=values)
    return values.astype(kind.dtype, copy=False)


FILLS: dict[str, _Rule] = {
    "zeros": _zeros,
    "constant": _constant,
    "arange": _arange,
    "uniform": _uniform,
    "normal": _normal,
}
"""The rules by name."""


def _draw_type(kind: ValueType) -> np.dtype[Any]:
    """Type in which random reals are drawn: single precision is not drawn in double, for memory's sake."""
    return np.dtype(np.float32) if kind.dtype.itemsize <= 4 and not kind.is_integer else np.dtype(np.float64)


def _fitting(fields: Fields, name: str, kind: ValueType, default: float) -> int | float:
    """Field `name`, as a number that a component can hold (a step may be negative for any type)."""
    value = fields.number(name)
    if value is None:
        return default
    if kind.is_integer and not isinstance(value, int):
        raise fields.fail(name, f"a whole number for {kind.name}")
    least, greatest = kind.limits
    if not (-greatest if name == "step" else least) <= value <= greatest:
        raise fields.fail(name, f"a number from {least} to {greatest} for {kind.name}")
    return value

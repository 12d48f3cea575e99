"""Kernel arguments as a table describes them, in a launch file or on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from crosscast.characterization.launchfiles.fill import make_array, read_array
from crosscast.characterization.launchfiles.value_type import ValueType
from crosscast.errors import InputError, LaunchError
from crosscast.fields import Fields
from crosscast.kernel import Argument, Image, Local, Parameter, Sampler

__all__ = ["build_argument"]

_ORDERS = ("R", "A", "RG", "RGBA", "BGRA", "INTENSITY", "LUMINANCE", "DEPTH")
_ADDRESSING = ("none", "clamp_to_edge", "clamp", "repeat", "mirrored_repeat")


def build_argument(
    fields: Fields, base: Path, seed: tuple[int, ...], parameter: Callable[[], Parameter]
) -> Argument:
    """Make the argument that a table describes.

    Parameters
    ----------
    fields
        The table: one of ``null``, ``local``, ``sampler``, ``image``, ``value``, or else a buffer.
    base
        Folder that relative paths start from.
    seed
        What random fills start from unless the table has its own ``seed``.
    parameter
        Gives the kernel's parameter; called only where the table leaves the type out.

    Raises
    ------
    InputError
        If a field is missing, unknown or wrong; the message names it.
    """
    fields.take("name")
    own_seed = fields.integer("seed", 0)
    rng = np.random.Generator(np.random.PCG64(seed if own_seed is None else own_seed))
    try:
        argument = _build(fields, base, rng, parameter)
    except LaunchError as error:
        raise InputError(f"{fields.where}: {error}") from error
    fields.finish()
    return argument


def _build(
    fields: Fields, base: Path, rng: np.random.Generator, parameter: Callable[[], Parameter]
) -> Argument:
    if "null" in fields:
        if not fields.flag("null"):
            raise fields.fail("null", "true")
        return None
    if "local" in fields:
        return Local(cast(int, fields.integer("local", 1)))
    if "sampler" in fields:
        return _sampler(fields)
    if "image" in fields:
        return _image(fields, rng)
    kind = _value_type(fields, parameter)
    fields.flag("read_only")
    if "value" in fields and "fill" not in fields:
        return _value(fields, kind)
    return _buffer(fields, kind, base, rng)


def _value_type(fields: Fields, parameter: Callable[[], Parameter]) -> ValueType:
    name = fields.text("type")
    if name is None:
        declared = parameter()
        try:
            return ValueType.parse(declared.type_name)
        except InputError:
            raise InputError(
                f"{fields.where}: type is missing, and the kernel's {declared.type_name!r} "
                f"is not a plain scalar or vector type"
            ) from None
    try:
        return ValueType.parse(name)
    except InputError as error:
        raise InputError(f"{fields.where}: type: {error}") from None


def _value(fields: Fields, kind: ValueType) -> Argument:
    """Scalar, vector (one number for all components, or one each), or a struct's numbers."""
    if isinstance(fields.take("value"), list):
        numbers = fields.numbers("value") or []
    else:
        value = fields.take("value")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise fields.fail("value", "a number or a list of numbers")
        numbers = [value] * kind.width
    try:
        if kind.width == 1 and len(numbers) == 1:
            return kind.scalar(numbers[0])
        return kind.pack(numbers)
    except InputError as error:
        raise InputError(f"{fields.where}: value: {error}") from None


def _buffer(fields: Fields, kind: ValueType, base: Path, rng: np.random.Generator) -> Argument:
    if "file" in fields:
        return _buffer_of_file(fields, kind, base)
    if "values" in fields:
        return _buffer_of_values(fields, kind)
    length = fields.integer("length", 1)
    if length is None:
        fields.require("length", f"how many {kind.name} the buffer holds (or value, values, file or local)")
    assert length is not None
    return make_array(fields, kind, kind.shape(length), rng)


def _buffer_of_file(fields: Fields, kind: ValueType, base: Path) -> Argument:
    path = base / str(fields.text("file"))
    array = read_array(path, kind, fields.where)
    length = fields.integer("length", 1)
    if length is not None and array.size != length * kind.slots:
        raise InputError(
            f"{fields.where}: length: expected {length} x {kind.name} in {path}, "
            f"found {array.size // kind.slots} (of {array.size} numbers)"
        )
    return array


def _buffer_of_values(fields: Fields, kind: ValueType) -> Argument:
    numbers = fields.numbers("values") or []
    if len(numbers) % kind.width:
        raise fields.fail("values", f"a multiple of {kind.width} numbers for {kind.name}")
    rows = range(0, len(numbers), kind.width)
    try:
        return np.concatenate([kind.pack(numbers[row : row + kind.width]) for row in rows])
    except InputError as error:
        raise InputError(f"{fields.where}: values: {error}") from None


def _image(fields: Fields, rng: np.random.Generator) -> Argument:
    table = fields.table("image")
    assert table is not None
    table.require("shape", "the image's size, slowest axis first ([height, width])")
    table.require("type", "the type of its channels, such as float or uchar")
    kind = _value_type(table, lambda: Parameter("", "", "image", 8))
    if kind.width > 1:
        raise table.fail("type", "a scalar type (channel_order says how many channels)")
    shape = table.sizes("shape", 1) or ()
    order = table.choice("channel_order", _ORDERS, "RGBA")
    channels = {"RG": 2, "RGBA": 4, "BGRA": 4}.get(order, 1)
    normalized, layers = table.flag("normalized"), table.flag("layers")
    array: Any = make_array(table, kind, (*shape, channels) if channels > 1 else shape, rng)
    table.finish()
    return Image(array, order, normalized, layers)


def _sampler(fields: Fields) -> Argument:
    table = fields.table("sampler")
    assert table is not None
    addressing = cast(
        Literal["none", "clamp_to_edge", "clamp", "repeat", "mirrored_repeat"],
        table.choice("addressing", _ADDRESSING, "none"),
    )
    sampler = Sampler(addressing, table.flag("linear"), table.flag("normalized_coords"))
    table.finish()
    return sampler

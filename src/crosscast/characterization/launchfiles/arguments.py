"""Kernel arguments from tables, in a launch file or of the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import numpy as np

from crosscast.arrays import AnyArray
from crosscast.characterization.engine.arguments import shared_empty
from crosscast.characterization.value_types import ValueType
from crosscast.data.environment import memory_bytes
from crosscast.data.fields import Fields
from crosscast.errors import InputError
from crosscast.kernel import CHANNELS, Addressing, Argument, Image, Local, Parameter, Program, Sampler


@contextmanager
def within(where: str) -> Iterator[None]:
    """Prefix errors in the block by their position."""
    try:
        yield
    except InputError as error:
        raise InputError.of(where=where, problem=str(error)) from error


Array = AnyArray


def frontend_parameters(program: Program, kernel: str) -> tuple[Parameter, ...]:
    """Return the parameters of a kernel, by the compiler."""
    # Imported here, as the frontend imports the compiler, which most files do not need.
    from crosscast.characterization import frontend

    return frontend.parameters(program, kernel)


def _allocate(shape: tuple[int, ...], kind: ValueType, where: str) -> Array:
    """Return an array of zeros that the engine does not copy, with lazily allocated pages."""
    size = math.prod(shape) * kind.dtype.itemsize
    memory = memory_bytes()
    if size > memory:
        raise InputError.of(
            where=where, expected=f"at most this machine's memory ({memory} bytes)", found=f"{size} bytes"
        )
    return shared_empty(shape, kind.dtype)


def _read_array(path: Path, kind: ValueType, where: str) -> Array:
    """Read the elements of a ``.npy`` file, with its type, or of a file of raw values."""
    try:
        if path.suffix == ".npy":
            # Mapped, so that the only copy is in the engine's memory.
            content: Array = np.lib.format.open_memmap(path, mode="r")
        else:
            content = np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)
    except OSError as error:
        raise InputError.of(
            where=where, problem=f"file: cannot read {path} ({error.strerror or error})"
        ) from error
    except (ValueError, EOFError) as error:
        raise InputError.of(
            where=where, problem=f"file: {path} is not a readable .npy file ({error})"
        ) from error
    if path.suffix != ".npy":
        if not content.size or content.size % kind.dtype.itemsize:
            raise InputError.of(
                where=where,
                field="file",
                expected=f"a multiple of {kind.dtype.itemsize} B ({kind.name}) in {path}",
                found=f"{content.size} bytes",
            )
        content = content.view(kind.dtype)
    if content.dtype != kind.dtype:
        raise InputError.of(
            where=where,
            field="file",
            expected=f"{kind.dtype} for {kind.name} in {path}",
            found=f"{content.dtype}",
        )
    if not content.size:
        raise InputError.of(where=where, field="file", expected=f"values in {path}", found="an empty array")
    array = _allocate(content.shape, kind, where)
    array[...] = content
    return array


# Random numbers and rounding need temporaries; blocks of this many elements bound them.
_BLOCK = 1 << 20
_Draw = Callable[[int, int], Array | float]
"""Generates elements by start and number; called for one block after the other."""


def _make_array(fields: Fields, kind: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Make an array by the rule of the field ``fill`` (by default ``zeros``)."""
    name, count = fields.choice("fill", tuple(_FILLS), "zeros"), math.prod(shape)
    draw = _FILLS[name](fields, kind, count, rng)
    array = _allocate(shape, kind, fields.where)
    if name != "zeros":
        flat = array.reshape(-1)
        for start in range(0, count, _BLOCK):
            flat[start : start + _BLOCK] = draw(start, min(_BLOCK, count - start))
    return array


def _zeros(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    return lambda start, size: 0


def _constant(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    fields.require("value", "the number that fills the buffer")
    value = _fitting(fields, "value", kind, 0)
    return lambda start, size: value


def _arange(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    first, step = _fitting(fields, "start", kind, 0), _fitting(fields, "step", kind, 1)
    last = first + step * (count - 1)
    least, greatest = kind.limits
    if not least <= last <= greatest:
        raise InputError.of(
            where=fields.where,
            problem=(
                f"fill: the last of {count} numbers from {first} by {step} is {last}, expected "
                f"at most what {kind.name} holds ({least} to {greatest})"
            ),
        )
    if not kind.is_integer:
        return lambda start, size: np.arange(start, start + size, dtype=np.float64) * step + first
    # In unsigned 64 bits, where intermediate overflow is harmless.
    numbers = np.array([first % (1 << 64), step % (1 << 64)], np.uint64)
    return lambda start, size: np.arange(start, start + size, dtype=np.uint64) * numbers[1] + numbers[0]


def _uniform(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    low = _fitting(fields, "low", kind, 0)
    high = _fitting(fields, "high", kind, min(255, kind.limits[1]) if kind.is_integer else 1)
    if low > high:
        raise InputError.of(
            where=fields.where, field="high", expected=f"at least low ({low})", found=f"{high}"
        )
    if kind.is_integer:
        ends = int(low), int(high)
        return lambda start, size: rng.integers(*ends, size=size, dtype=kind.dtype.type, endpoint=True)
    return lambda start, size: rng.random(size=size, dtype=_draw_type(kind)) * (high - low) + low


def _normal(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    mean, deviation = fields.number("mean") or 0, fields.number("sd", ge=0)
    deviation = 1 if deviation is None else deviation
    least, greatest = kind.limits
    if kind.is_integer and greatest > 1 << 53:
        # A real that rounds up to 2^63 would wrap; the nearest real below the limit does not.
        greatest = float(np.nextafter(greatest, 0))

    def draw(start: int, size: int) -> Array:
        values: Array = rng.standard_normal(size=size, dtype=_draw_type(kind)) * deviation + mean
        return np.clip(np.rint(values), least, greatest) if kind.is_integer else values

    return draw


_FILLS = {"zeros": _zeros, "constant": _constant, "arange": _arange, "uniform": _uniform, "normal": _normal}


def _draw_type(kind: ValueType) -> type[np.float32] | type[np.float64]:
    """Return the type of random reals: single precision is not drawn in double, to save memory."""
    return np.float32 if kind.dtype.itemsize <= 4 and not kind.is_integer else np.float64


def _fitting(fields: Fields, name: str, kind: ValueType, default: float) -> float:
    """Return a field as a number in the range of a component (a step may be negative for any type)."""
    value = fields.number(name)
    if value is None:
        return default
    with within(f"{fields.where}: {name}"):
        kind.check(value, may_be_negative=name == "step")
    return value


def build_argument(
    fields: Fields, base: Path, seed: tuple[int, ...], parameter: Callable[[], Parameter]
) -> Argument:
    """Make the argument of a table."""
    fields.take("name")
    argument_seed = fields.integer("seed", 0)
    rng = np.random.Generator(np.random.PCG64(seed if argument_seed is None else argument_seed))
    argument = _build(fields, base, rng, parameter)
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
        return Local(fields.integer("local", 1) or 0)
    if sampler := fields.table("sampler"):
        return _sampler(sampler)
    if image := fields.table("image"):
        return _image(image, base, rng)
    kind = _value_type(fields, parameter)
    fields.flag("read_only")
    if kind.scalar != "bfloat16":
        return _numbers(fields, kind, base, rng)
    if "file" in fields:
        return _numbers(fields, ValueType.parse("ushort"), base, rng)
    floats = _numbers(fields, kind, base, rng)
    return _upper_halves(floats) if isinstance(floats, np.ndarray) else _upper_halves(np.array([floats]))[0]


def _upper_halves(floats: Array) -> Array:
    """Round to bfloat16, of which kernels and files know the bits alone, to nearest even."""
    halves = shared_empty(floats.shape, np.dtype(np.uint16))
    for start in range(0, floats.size, _BLOCK):
        bits = floats.reshape(-1)[start : start + _BLOCK].view(np.uint32)
        halves.reshape(-1)[start : start + _BLOCK] = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return halves


def _numbers(fields: Fields, kind: ValueType, base: Path, rng: np.random.Generator) -> Array | np.generic:
    if "value" in fields and "fill" not in fields:
        return _value(fields, kind)
    if "file" in fields:
        return _buffer_of_file(fields, kind, base)
    if "values" in fields:
        return _buffer_of_values(fields, kind)
    fields.require("length", f"how many {kind.name} the buffer holds (or value, values, file or local)")
    length = fields.integer("length", 1) or 0
    return _make_array(fields, kind, (length,) if kind.width == 1 else (length, kind.slots), rng)


def _value_type(fields: Fields, parameter: Callable[[], Parameter]) -> ValueType:
    name = fields.text("type")
    if name is not None:
        with within(f"{fields.where}: type"):
            return ValueType.parse(name)
    declared = parameter()
    # CUDA's vectors of three are structures.
    name = re.sub(r"^struct (u?[a-z]+)3$", r"\1", declared.type_name)
    try:
        return ValueType.parse(name)
    except InputError:
        raise InputError.of(
            where=fields.where,
            problem=(
                f"type is missing, and the kernel's {declared.type_name!r} is not a plain "
                "scalar or vector type; expected that of a structure's members, with a list of "
                "them as value"
            ),
        ) from None


def _value(fields: Fields, kind: ValueType) -> Array | np.generic:
    """Return a scalar, a vector (one number for all components, or one each), or a struct's numbers."""
    value = fields.take("value")
    if isinstance(value, list):
        numbers = fields.numbers("value") or []
    elif not isinstance(value, int | float) or (isinstance(value, bool) and kind.scalar != "bool"):
        raise fields.fail("value", "a number or a list of numbers")
    else:
        numbers = [value] * kind.width
    with within(f"{fields.where}: value"):
        return kind.fit(numbers[0]) if kind.width == 1 and len(numbers) == 1 else kind.pack(numbers)


def _buffer_of_file(fields: Fields, kind: ValueType, base: Path) -> Array:
    path = base / str(fields.text("file"))
    array = _read_array(path, kind, fields.where)
    length = fields.integer("length", 1)
    if length is not None and array.size != length * kind.slots:
        raise InputError.of(
            where=fields.where,
            field="length",
            expected=f"{length} x {kind.name} in {path}",
            found=f"{array.size // kind.slots} (of {array.size} numbers)",
        )
    return array


def _buffer_of_values(fields: Fields, kind: ValueType) -> Array:
    numbers = fields.numbers("values") or []
    if len(numbers) % kind.width:
        raise fields.fail("values", f"a multiple of {kind.width} numbers for {kind.name}")
    rows = range(0, len(numbers), kind.width)
    with within(f"{fields.where}: values"):
        return np.concatenate([kind.pack(numbers[row : row + kind.width]) for row in rows])


_ADDRESSING: tuple[Addressing, ...] = get_args(Addressing)
_SHAPE = "the image's size, slowest axis first ([height, width])"


def _image(table: Fields, base: Path, rng: np.random.Generator) -> Argument:
    file = table.text("file")
    if file is None or not file.endswith(".npy"):  # .npy has a shape
        table.require("shape", _SHAPE)
    table.require("type", "the type of its channels, such as float or uchar")
    kind = _value_type(table, lambda: Parameter("", "", "image", 8))
    if kind.width > 1:
        raise table.fail("type", "a scalar type (channel_order says how many channels)")
    shape = table.sizes("shape", 1) or ()
    order = table.choice("channel_order", tuple(CHANNELS), "RGBA")
    if shape and CHANNELS[order] > 1:
        shape = (*shape, CHANNELS[order])
    normalized, layers = table.flag("normalized"), table.flag("layers")
    array = (
        _make_array(table, kind, shape, rng) if file is None else _read_array(base / file, kind, table.where)
    )
    if shape and array.size != math.prod(shape):
        raise InputError.of(
            where=table.where, field="shape", expected=f"{shape} of {file}", found=f"{array.size} numbers"
        )
    table.finish()
    with within(table.where):
        return Image(array.reshape(shape) if shape else array, order, normalized, layers)


def _sampler(table: Fields) -> Argument:
    addressing = table.choice("addressing", _ADDRESSING, "none")
    sampler = Sampler(addressing, table.flag("linear"), table.flag("normalized_coords"))
    table.finish()
    return sampler

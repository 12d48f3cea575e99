"""Kernel arguments as a table describes them, in a launch file or on the command line, and their types."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from crosscast.characterization.builtins.declarations import SCALARS
from crosscast.characterization.engine.arguments import shared_empty
from crosscast.errors import InputError, LaunchError
from crosscast.fields import Fields
from crosscast.kernel import Argument, Image, Local, Parameter, Program, Sampler

SCALAR_DTYPES = {name: np.dtype(f"{scalar.kind}{scalar.nbytes}") for name, scalar in SCALARS.items()}
"""NumPy type of each scalar type."""

_WIDTHS = (1, 2, 3, 4, 8, 16)


def limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Least and greatest finite number of a type; whole numbers for whole types."""
    if dtype.kind in "iu":
        integers = np.iinfo(dtype)
        return int(integers.min), int(integers.max)
    reals = np.finfo(dtype)
    return float(reals.min), float(reals.max)


@dataclass(frozen=True)
class ValueType:
    """A scalar or vector type."""

    name: str  # Its name in OpenCL C, such as `float4`
    dtype: np.dtype[Any]  # NumPy type of one component
    width: int  # Components: 1 for a scalar

    @classmethod
    def parse(cls, name: str) -> ValueType:
        """Type called `name`; an optional ``*`` at its end is ignored."""
        match = re.fullmatch(r"([a-z]+?)(\d*)\s*\*?", name)
        if match is None or match[1] not in SCALAR_DTYPES or int(match[2] or 1) not in _WIDTHS:
            raise InputError(
                f"expected a type such as float, float4 or uchar "
                f"(scalars are {', '.join(SCALAR_DTYPES)}; vectors have 2, 3, 4, 8 or 16 components), "
                f"found {name!r}"
            )
        return cls(match[1] + match[2], SCALAR_DTYPES[match[1]], int(match[2] or 1))

    @property
    def is_integer(self) -> bool:
        """True for whole numbers."""
        return self.dtype.kind in "iu"

    @property
    def slots(self) -> int:
        """Components that one value takes in memory: 4 where there are 3."""
        return 4 if self.width == 3 else self.width

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest finite value of a component."""
        return limits(self.dtype)

    def shape(self, length: int) -> tuple[int, ...]:
        """Shape of an array of `length` values."""
        return (length,) if self.width == 1 else (length, self.slots)

    def check(self, value: float) -> None:
        """Refuse a number that the type cannot hold."""
        if self.is_integer and not isinstance(value, int):
            raise InputError(f"expected a whole number for {self.name}, found {value!r}")
        least, greatest = self.limits
        if abs(value) != float("inf") and not (least <= value <= greatest) and value == value:
            raise InputError(f"expected a number from {least} to {greatest} for {self.name}, found {value!r}")

    def scalar(self, value: float) -> np.generic:
        """`value` as a NumPy scalar; see `check` for what is refused."""
        self.check(value)
        packed: np.generic = self.dtype.type(value)
        return packed

    def pack(self, values: Sequence[float]) -> npt.NDArray[np.generic]:
        """Components in memory: one for each number, and a fourth of 0 after a vector of 3."""
        for value in values:
            self.check(value)
        if self.width > 1 and len(values) != self.width:
            raise InputError(f"expected {self.width} numbers for {self.name}, found {len(values)}")
        padding = [0] * (self.slots - self.width)
        return np.array([*values, *padding], dtype=self.dtype)


Array = npt.NDArray[Any]
Parameters = Callable[[Program, str], tuple[Parameter, ...]]
"""Finds the parameters of a kernel of a program."""
_Draw = Callable[[int], Array]
_Rule = Callable[[Fields, ValueType, int, np.random.Generator], _Draw]

# Random numbers and rounding take temporaries; a block of this many elements bounds them.
_BLOCK = 1 << 20


def frontend_parameters(program: Program, kernel: str) -> tuple[Parameter, ...]:
    """The parameters that the compiler finds."""
    # Imported here, as the frontend brings the compiler: a wrong file, or one without names, needs none.
    from crosscast.characterization import frontend

    return frontend.parameters(program, kernel)


def make_array(fields: Fields, kind: ValueType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Make an array by the rule that the field ``fill`` names (``zeros`` if absent)."""
    name = fields.choice("fill", tuple(FILLS), "zeros")
    count = int(np.prod(shape, dtype=object))
    draw = FILLS[name](fields, kind, count, rng)
    array = _allocate(shape, kind, fields.where)
    if name != "zeros":
        flat = array.reshape(-1)
        for start in range(0, count, _BLOCK):
            flat[start : start + _BLOCK] = draw(min(_BLOCK, count - start))
    return array


def _allocate(shape: tuple[int, ...], kind: ValueType, where: str) -> Array:
    """Array of zeros that the engine need not copy; its pages exist once they are written."""
    size = int(np.prod(shape, dtype=object)) * kind.dtype.itemsize
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory:
        raise InputError(
            f"{where}: expected at most this machine's memory ({memory} bytes), found {size} bytes"
        )
    return shared_empty(shape, kind.dtype)


def read_array(path: Path, kind: ValueType, where: str) -> Array:
    """Read the elements of ``.npy`` (which holds its type) or of a file of raw values."""
    try:
        return _read_npy(path, kind, where) if path.suffix == ".npy" else _read_raw(path, kind, where)
    except OSError as error:
        raise InputError(f"{where}: file: cannot read {path} ({error.strerror or error})") from error


def _read_raw(path: Path, kind: ValueType, where: str) -> Array:
    size = path.stat().st_size
    if size == 0 or size % kind.dtype.itemsize:
        raise InputError(
            f"{where}: file: expected a multiple of {kind.dtype.itemsize} B ({kind.name}) in {path}, "
            f"found {size} bytes"
        )
    array = _allocate((size // kind.dtype.itemsize,), kind, where)
    with path.open("rb") as file:
        file.readinto(array.view(np.uint8).data)
    return array


def _read_npy(path: Path, kind: ValueType, where: str) -> Array:
    try:
        # Mapped, so that its only copy is the one into the engine's memory.
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise InputError(f"{where}: file: {path} is not a readable .npy file ({error})") from error
    if array.dtype != kind.dtype:
        raise InputError(
            f"{where}: file: expected {kind.dtype} for {kind.name} in {path}, found {array.dtype}"
        )
    if array.size == 0:
        raise InputError(f"{where}: file: expected values in {path}, found an empty array")
    made = _allocate(array.shape, kind, where)
    made[...] = array
    return made


def _zeros(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    del fields, count, rng
    return lambda size: np.zeros(size, kind.dtype)


def _constant(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    del count, rng
    fields.require("value", "the number that fills the buffer")
    value = _fitting(fields, "value", kind, 0)
    return lambda size: np.full(size, value, dtype=kind.dtype)


def _arange(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    del rng
    start = _fitting(fields, "start", kind, 0)
    step = _fitting(fields, "step", kind, 1)
    last = start + step * (count - 1)
    least, greatest = kind.limits
    if not least <= last <= greatest:
        raise InputError(
            f"{fields.where}: fill: the last of {count} numbers from {start} by {step} is {last}, "
            f"expected at most what {kind.name} holds ({least} to {greatest})"
        )
    done = 0

    def draw(size: int) -> Array:
        nonlocal done
        # Whole numbers are computed in unsigned 64 bits: what leaves the type on the way comes back.
        values: Array = np.arange(done, done + size, dtype=np.uint64 if kind.is_integer else np.float64)
        values *= _wrapped(step, values.dtype)
        values += _wrapped(start, values.dtype)
        done += size
        return values.astype(kind.dtype)

    return draw


def _wrapped(value: float, dtype: np.dtype[Any]) -> Any:
    """`value` in `dtype`; negative ones modulo its range where it has no sign."""
    return dtype.type(int(value) % (1 << 64) if dtype.kind == "u" else value)


def _uniform(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    del count
    greatest = min(255, kind.limits[1]) if kind.is_integer else 1
    low = _fitting(fields, "low", kind, 0)
    high = _fitting(fields, "high", kind, greatest)
    if low > high:
        raise InputError(f"{fields.where}: high: expected at least low ({low}), found {high}")
    if kind.is_integer:
        return lambda size: rng.integers(int(low), int(high), size=size, dtype=kind.dtype.type, endpoint=True)

    def draw(size: int) -> Array:
        values: Array = rng.random(size=size, dtype=_draw_type(kind))
        values *= high - low
        values += low
        return values

    return draw


def _normal(fields: Fields, kind: ValueType, count: int, rng: np.random.Generator) -> _Draw:
    del count
    mean = fields.number("mean") or 0
    deviation = fields.number("sd")
    deviation = 1 if deviation is None else deviation
    if deviation < 0:
        raise fields.fail("sd", "a number of at least 0")
    least, greatest = kind.limits
    if kind.is_integer and greatest > 1 << 53:
        # A real that rounds up to 2^63 would wrap; the nearest real below the limit does not.
        greatest = float(np.nextafter(greatest, 0))

    def draw(size: int) -> Array:
        values: Array = rng.standard_normal(size=size, dtype=_draw_type(kind))
        values *= deviation
        values += mean
        if kind.is_integer:
            np.clip(np.rint(values, out=values), least, greatest, out=values)
        return values

    return draw


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


_ORDERS = ("R", "A", "RG", "RGBA", "BGRA", "INTENSITY", "LUMINANCE", "DEPTH")
_ADDRESSING = ("none", "clamp_to_edge", "clamp", "repeat", "mirrored_repeat")


def build_argument(
    fields: Fields, base: Path, seed: tuple[int, ...], parameter: Callable[[], Parameter]
) -> Argument:
    """Make the argument that a table describes."""
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
        return _image(fields, base, rng)
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


def _image(fields: Fields, base: Path, rng: np.random.Generator) -> Argument:
    table = fields.table("image")
    assert table is not None
    if "file" not in table:
        table.require("shape", "the image's size, slowest axis first ([height, width])")
    table.require("type", "the type of its channels, such as float or uchar")
    kind = _value_type(table, lambda: Parameter("", "", "image", 8))
    if kind.width > 1:
        raise table.fail("type", "a scalar type (channel_order says how many channels)")
    shape = table.sizes("shape", 1) or ()
    order = table.choice("channel_order", _ORDERS, "RGBA")
    channels = {"RG": 2, "RGBA": 4, "BGRA": 4}.get(order, 1)
    normalized, layers = table.flag("normalized"), table.flag("layers")
    if shape and channels > 1:
        shape = (*shape, channels)
    file = table.text("file")
    array: Any = (
        make_array(table, kind, shape, rng)
        if file is None
        else _image_of_file(table, base / file, kind, shape)
    )
    table.finish()
    return Image(array, order, normalized, layers)


def _image_of_file(table: Fields, path: Path, kind: ValueType, shape: tuple[int, ...]) -> Array:
    """Texels of ``.npy``, which holds its shape, or of raw values in this shape."""
    array = read_array(path, kind, table.where)
    if not shape and path.suffix != ".npy":
        table.require("shape", "the image's size, slowest axis first ([height, width])")
    if shape and array.size != math.prod(shape):
        raise InputError(f"{table.where}: shape: expected {shape} of {path}, found {array.size} numbers")
    return array.reshape(shape) if shape else array


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

"""Types of OpenCL C that kernels take: scalars, vectors, pointers to these, images and samplers.

An image argument is a pointer to a descriptor (``images.h``), a sampler argument a pointer whose value is
the bit mask of the sampler's constants. Every texel that a call fetches from memory or stores there is
reported to the engine as one access.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosscast.characterization.builtins import SCALARS
from crosscast.errors import InputError, LaunchError
from crosscast.kernel import Image, Sampler

SCALAR_DTYPES = {name: scalar.dtype for name, scalar in SCALARS.items()}
"""NumPy type of each scalar type, by name."""

SCALAR_NAMES = {dtype: name for name, dtype in SCALAR_DTYPES.items()}
"""Name of each scalar type, by NumPy type."""

_OTHER_NAMES = {f"unsigned {name}": f"u{name}" for name in ("char", "short", "int", "long")}
_OTHER_NAMES |= {"size_t": "ulong", "bool": "uchar"}
_WIDTHS = (1, 2, 3, 4, 8, 16)
_TYPE = re.compile(r"(?:const |volatile )*((?:unsigned )?[a-z_]+?)(\d{,2})\s*(\**)")
_BFLOAT16 = re.compile(r"(?:const |volatile )*(?:__nv_|__hip_|hip_)?bfloat16\s*\*?")


def limits(dtype: np.dtype[np.generic]) -> tuple[float, float]:
    """Return the least and greatest finite number of a type; integers for integer types."""
    if dtype.kind in "iu":
        integers = np.iinfo(dtype.str)
        return int(integers.min), int(integers.max)
    reals = np.finfo(dtype.str)
    return float(reals.min), float(reals.max)


@dataclass(frozen=True)
class ValueType:
    """A scalar or vector type, or a pointer to one."""

    scalar: str  # Name of a component's type in OpenCL C, such as `float`
    dtype: np.dtype[np.generic]  # NumPy type of one component
    width: int  # Components: 1 for a scalar
    pointer: str = ""  # `*` for a pointer, `**` for a pointer to a pointer

    @classmethod
    def find(cls, name: str) -> ValueType | None:
        """Return the type of a name; ``None`` for structures and the like."""
        match = _TYPE.fullmatch(name)
        dtype = SCALAR_DTYPES.get(_OTHER_NAMES.get(match[1], match[1])) if match else None
        if match is None or dtype is None or int(match[2] or 1) not in _WIDTHS:
            return None
        return cls(match[1], dtype, int(match[2] or 1), match[3])

    @classmethod
    def parse(cls, name: str) -> ValueType:
        """Return the type of a name, without ``*`` at its end. A ``bfloat16`` is held by a float."""
        if _BFLOAT16.fullmatch(name):
            return cls("bfloat16", SCALAR_DTYPES["float"], 1)
        kind = cls.find(name)
        if kind is None or len(kind.pointer) > 1:
            raise InputError.of(
                expected=(
                    f"a type such as float, float4 or uchar (scalars are {', '.join(SCALAR_DTYPES)}"
                    ", bfloat16; vectors have 2, 3, 4, 8 or 16 components)"
                ),
                found=repr(name),
            )
        return kind

    @property
    def name(self) -> str:
        """Name in OpenCL C, such as `float4`."""
        return f"{self.scalar}{'' if self.width == 1 else self.width}"

    @property
    def is_integer(self) -> bool:
        """Whether components are integers."""
        return self.dtype.kind in "iu"

    @property
    def slots(self) -> int:
        """Components of a value in memory: 4 for a width of 3."""
        return 4 if self.width == 3 else self.width

    @property
    def nbytes(self) -> int:
        """Bytes of a value in memory."""
        return self.slots * self.dtype.itemsize

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest finite value of a component."""
        return (0, 1) if self.scalar == "bool" else limits(self.dtype)

    def is_held_by(self, dtype: np.dtype[np.generic]) -> bool:
        """Whether an array of this type may hold components; integers may differ in signedness."""
        kinds = "biu" if self.scalar == "bool" else "iu" if self.is_integer else "f"
        return dtype.kind in kinds and dtype.itemsize == self.dtype.itemsize

    def check(self, value: float, *, may_be_negative: bool = False) -> None:
        """Raise for a number that the type cannot hold."""
        if self.is_integer and not isinstance(value, int):
            raise InputError.of(expected=f"a whole number for {self.name}", found=repr(value))
        least, greatest = self.limits
        if may_be_negative:
            least = -greatest
        if math.isfinite(value) and not least <= value <= greatest:
            raise InputError.of(
                expected=f"a number from {least} to {greatest} for {self.name}", found=repr(value)
            )

    def fit(self, value: float) -> np.generic:
        """Return `value` as a NumPy scalar; raises as `check`."""
        self.check(value)
        packed: np.generic = self.dtype.type(value)
        return packed

    def pack(self, values: Sequence[float]) -> npt.NDArray[np.generic]:
        """Return the components in memory, with a fourth one of 0 after a vector of 3."""
        for value in values:
            self.check(value)
        if self.width > 1 and len(values) != self.width:
            raise InputError.of(expected=f"{self.width} numbers for {self.name}", found=len(values))
        padding = [0] * (self.slots - self.width)
        return np.array([*values, *padding], dtype=self.dtype)


DESCRIPTOR = struct.Struct("<3Q8I")
"""Layout of `descriptor`: address of the texels, row and slice pitch, width, height, depth, layers,
channel order, channel type, channels, bytes of a channel."""

CHANNEL_ORDERS = {
    "R": 0x10B0,
    "A": 0x10B1,
    "RG": 0x10B2,
    "RGBA": 0x10B5,
    "BGRA": 0x10B6,
    "INTENSITY": 0x10B8,
    "LUMINANCE": 0x10B9,
    "DEPTH": 0x10BD,
}
"""OpenCL's number of each order of channels."""

_NORMALIZED = ("int8", "int16", "uint8", "uint16")
_PLAIN = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32")
CHANNEL_TYPES = {(name, True): 0x10D0 + n for n, name in enumerate(_NORMALIZED)}
CHANNEL_TYPES |= {(name, False): 0x10D7 + n for n, name in enumerate(_PLAIN)}
"""OpenCL's number of each channel type, by NumPy's name and whether it is normalized."""

_ADDRESSING = {"none": 0, "clamp_to_edge": 2, "clamp": 4, "repeat": 6, "mirrored_repeat": 8}
_NORMALIZED_COORDS = 0x01
_NEAREST, _LINEAR = 0x10, 0x20


def pack_descriptor(image: Image, data_address: int) -> bytes:
    """Pack the descriptor of an image whose texels, in C order, start at an address."""
    extents = image.array.shape[: image.spatial_ndim]
    if image.layers and len(extents) == 1:
        raise LaunchError(
            f"an array of images needs at least 2 axes, layers first; found shape {image.array.shape}"
        )
    width = extents[-1]
    layers = extents[0] if image.layers else 1
    spatial = extents[1:] if image.layers else extents
    height = spatial[-2] if len(spatial) > 1 else 1
    depth = spatial[-3] if len(spatial) > 2 else 1
    channel_size = image.array.dtype.itemsize
    row_pitch = width * image.channels * channel_size
    return DESCRIPTOR.pack(
        *(data_address, row_pitch, row_pitch * height, width, height, depth, layers),
        *(CHANNEL_ORDERS[image.channel_order], _channel_type(image), image.channels, channel_size),
    )


def sampler_bits(sampler: Sampler) -> int:
    """Return a sampler as a bit mask, such as ``CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR``."""
    bits = _ADDRESSING[sampler.addressing] | (_LINEAR if sampler.linear else _NEAREST)
    return bits | (_NORMALIZED_COORDS if sampler.normalized_coords else 0)


def _channel_type(image: Image) -> int:
    dtype = image.array.dtype
    if dtype.isnative and (dtype.name, image.normalized) in CHANNEL_TYPES:
        return CHANNEL_TYPES[dtype.name, image.normalized]
    kind, names = ("a normalized image", _NORMALIZED) if image.normalized else ("an image", _PLAIN)
    raise LaunchError(f"{kind} holds one of {', '.join(names)}; found {dtype.str} ({dtype.name})")

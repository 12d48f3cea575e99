"""Representation of images and samplers in the engine.

An image argument is a pointer to a descriptor (``images.h``), a sampler argument a pointer whose value is
the bit mask of the sampler's constants. Every texel that a call fetches from memory or stores there is
reported to the engine as one access.
"""

from __future__ import annotations

import struct

from crosscast.errors import LaunchError
from crosscast.kernel import Image, Sampler

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

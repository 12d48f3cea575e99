"""What the engine passes for images and samplers.

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

_CHANNEL_ORDERS = {
    "R": 0x10B0,
    "A": 0x10B1,
    "RG": 0x10B2,
    "RGBA": 0x10B5,
    "BGRA": 0x10B6,
    "INTENSITY": 0x10B8,
    "LUMINANCE": 0x10B9,
    "DEPTH": 0x10BD,
}
_CHANNEL_TYPES = {
    "int8": 0x10D7,
    "int16": 0x10D8,
    "int32": 0x10D9,
    "uint8": 0x10DA,
    "uint16": 0x10DB,
    "uint32": 0x10DC,
    "float16": 0x10DD,
    "float32": 0x10DE,
}
_NORMALIZED_TYPES = {"int8": 0x10D0, "int16": 0x10D1, "uint8": 0x10D2, "uint16": 0x10D3}

_ADDRESSING = {"none": 0, "clamp_to_edge": 2, "clamp": 4, "repeat": 6, "mirrored_repeat": 8}
_NORMALIZED_COORDS = 0x01
_NEAREST, _LINEAR = 0x10, 0x20


def pack_descriptor(image: Image, data_address: int) -> bytes:
    """Descriptor of an image whose texels, in C order, start at an address."""
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
        *(_CHANNEL_ORDERS[image.channel_order], _channel_type(image), image.channels, channel_size),
    )


def sampler_bits(sampler: Sampler) -> int:
    """The sampler as the bit mask that ``CLK_ADDRESS_CLAMP | CLK_FILTER_LINEAR`` and the like make."""
    bits = _ADDRESSING[sampler.addressing] | (_LINEAR if sampler.linear else _NEAREST)
    return bits | (_NORMALIZED_COORDS if sampler.normalized_coords else 0)


def _channel_type(image: Image) -> int:
    types = _NORMALIZED_TYPES if image.normalized else _CHANNEL_TYPES
    name = image.array.dtype.name
    if name not in types or not image.array.dtype.isnative:
        kind = "a normalized image" if image.normalized else "an image"
        raise LaunchError(f"{kind} holds one of {', '.join(types)}; found {image.array.dtype.str} ({name})")
    return types[name]

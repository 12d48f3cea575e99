"""Image functions (OpenCL C 1.2, section 6.12.14) and what the engine passes for images and samplers.

An image argument is a pointer to a descriptor (`cc_image` of ``images.h``), a sampler argument a
pointer whose value is the bit mask of the sampler's constants. Every texel that a call fetches
from memory or stores there is reported to the engine as one access.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from crosscast.characterization.builtins.declarations import Declaration, Type
from crosscast.errors import LaunchError
from crosscast.kernel import Image, Sampler

PRELUDE = (Path(__file__).parent / "images.h").read_text(encoding="utf-8")

DESCRIPTOR = struct.Struct("<3Q8I")
"""Layout of `cc_image`: address of the texels, row and slice pitch, width, height, depth, layers,
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

_IMAGE = re.compile(
    r"ocl_image(?P<spatial>[123])d(?P<buffer>_buffer)?(?P<array>_array)?(?P<depth>_depth)?_.."
)
_READ = re.compile(r"read_image(f|i|ui|h)")
_WRITE = re.compile(r"write_image(f|i|ui|h)")
_ELEMENTS = {"f": "float", "i": "int", "ui": "uint", "h": "half"}
_QUERIES = {
    "get_image_width": "int { return (int)image->width; }",
    "get_image_height": "int { return (int)image->height; }",
    "get_image_depth": "int { return (int)image->depth; }",
    "get_image_channel_data_type": "int { return (int)image->channel_type; }",
    "get_image_channel_order": "int { return (int)image->channel_order; }",
    "get_image_array_size": "size_t { return image->layers; }",
    "get_image_num_mip_levels": "int { return 1; }",
}
_DIMENSIONS = {
    2: "int2 { return (int2)((int)image->width, (int)image->height); }",
    3: "int4 { return (int4)((int)image->width, (int)image->height, (int)image->depth, 0); }",
}
# The image in the blocks above is the first argument.
_DESCRIPTOR_ARGUMENT = "((const global cc_image *)a0)"


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


def define(declaration: Declaration) -> str | None:
    """Result type and block of an image function; ``None`` for others."""
    parameters = declaration.parameters
    if not parameters or not (image := _IMAGE.fullmatch(parameters[0].base)):
        return None
    block = _query(declaration, image) or _read(declaration, image) or _write(declaration, image)
    return block and block.replace("image->", f"{_DESCRIPTOR_ARGUMENT}->")


def _query(declaration: Declaration, image: re.Match[str]) -> str | None:
    if len(declaration.parameters) != 1:
        return None
    if declaration.name == "get_image_dim":
        return _DIMENSIONS.get(int(image["spatial"]))
    return _QUERIES.get(declaration.name)


def _read(declaration: Declaration, image: re.Match[str]) -> str | None:
    """``read_image*`` with or without a sampler."""
    match = _READ.fullmatch(declaration.name)
    parameters = declaration.parameters
    if not match or len(parameters) < 2:
        return None
    sampled = parameters[1].base == "ocl_sampler"
    if len(parameters) != (3 if sampled else 2):
        return None
    coordinate = parameters[-1]
    if coordinate.base not in ("int", "float"):
        return None
    element = _ELEMENTS[match[1]]
    exact = "int" if element in ("int", "uint") else "float"
    sampler = "(uint)(ulong)a1" if sampled else "CC_IMAGE_NO_SAMPLER"
    position = _position(coordinate, f"a{len(parameters) - 1}", image)
    value = (
        f"cc_image_read_{exact}_at_{coordinate.base}"
        f"({_DESCRIPTOR_ARGUMENT}, {position}, {image['spatial']}, {sampler})"
    )
    if image["depth"]:
        return f"float {{ return {value}.x; }}"
    if element == "half":
        return f"half4 {{ return cc_image_half4({value}); }}"
    return f"{element}4 {{ return __builtin_astype({value}, {element}4); }}"


def _write(declaration: Declaration, image: re.Match[str]) -> str | None:
    match = _WRITE.fullmatch(declaration.name)
    parameters = declaration.parameters
    if not match or len(parameters) != 3 or parameters[1].base != "int":
        return None
    position = _position(parameters[1], "a1", image)
    element = _ELEMENTS[match[1]]
    if element in ("int", "uint"):
        call = f"cc_image_write_int({_DESCRIPTOR_ARGUMENT}, {position}, __builtin_convertvector(a2, long4))"
    else:
        colour = {"half": "cc_image_float4(a2)", "float": "(float4)(a2)"}[element]
        call = f"cc_image_write_float({_DESCRIPTOR_ARGUMENT}, {position}, {colour})"
    return f"void {{ {call}; }}"


def _position(coordinate: Type, name: str, image: re.Match[str]) -> str:
    """A coordinate as four elements: x, y, and z, which is the layer in an array of images."""
    vector = f"{coordinate.base}4"
    if coordinate.width == 1:
        return f"({vector})({name}, 0, 0, 0)"
    if coordinate.width == 4:
        return name
    if image["array"]:
        return f"({vector})({name}.x, 0, {name}.y, 0)"
    return f"({vector})({name}, 0, 0)"

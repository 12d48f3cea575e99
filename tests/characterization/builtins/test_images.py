"""Image functions against a sampler written with NumPy, and the descriptors they read."""

import ctypes
import itertools
import re
from collections.abc import Callable
from typing import Any, Literal

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest

from crosscast.characterization import builtins as library
from crosscast.characterization.value_types import pack_descriptor, sampler_bits
from crosscast.errors import LaunchError, UnsupportedError
from crosscast.kernel import Image, Sampler
from support.harness import compiled_ir, host_module
from support.refusals import refusals

Array = npt.NDArray[Any]
Addressing = Literal["none", "clamp_to_edge", "clamp", "repeat", "mirrored_repeat"]

KINDS = {
    "image1d": (7, 4),
    "image2d": (5, 7, 4),
    "image3d": (3, 5, 7, 4),
    "image1d_array": (3, 7, 4),
    "image2d_array": (3, 5, 7, 4),
}
"""Kinds of images, and the shape of one with four channels."""

_READS = "\n".join(
    f"""
kernel void {name}_{kind}_{base}(read_only {kind}_t im, sampler_t s, global {coordinate} *at,
                                 global {result} *out, int n) {{
  for (int k = 0; k < n; k++) out[k] = read_image{name}(im, s, at[k]);
}}"""
    for kind, width in zip(KINDS, (1, 2, 4, 2, 4), strict=True)
    for base in ("int", "float")
    for coordinate in [base if width == 1 else f"{base}{width}"]
    for name, result in (("f", "float4"), ("i", "int4"), ("ui", "uint4"), ("h", "half4"))
    if name == "f" or kind == "image2d"
)
_OTHERS = "\n".join(
    f"""
kernel void {name}({"read" if "read" in does else "write"}_only {kind}_t im, global {coordinate} *at,
                   global {colour} *colours, int n) {{
  for (int k = 0; k < n; k++) {does};
}}"""
    for name, kind, coordinate, colour, suffix in (
        ("plain_f", "image2d", "int2", "float4", "f"),
        ("plain_buffer", "image1d_buffer", "int", "int4", "i"),
        ("plain_3d", "image3d", "int4", "float4", "f"),
        ("write_f", "image2d", "int2", "float4", "f"),
        ("write_h", "image2d", "int2", "half4", "h"),
        ("write_i", "image2d", "int2", "int4", "i"),
        ("write_ui", "image2d", "int2", "uint4", "ui"),
        ("write_1d", "image1d", "int", "float4", "f"),
        ("write_1d_array", "image1d_array", "int2", "float4", "f"),
        ("write_2d_array", "image2d_array", "int4", "float4", "f"),
        ("write_3d", "image3d", "int4", "float4", "f"),
        ("write_depth", "image2d_depth", "int2", "float", "f"),
    )
    for does in [
        f"write_image{suffix}(im, at[k], colours[k])"
        if name.startswith("write")
        else f"colours[k] = read_image{suffix}(im, at[k])"
    ]
)
_PROGRAM = f"""
#pragma OPENCL EXTENSION cl_khr_3d_image_writes : enable
#pragma OPENCL EXTENSION cl_khr_depth_images : enable
{_READS}
{_OTHERS}
kernel void depth(read_only image2d_depth_t im, sampler_t s, global float2 *at, global float *out, int n) {{
  for (int k = 0; k < n; k++) out[k] = read_imagef(im, s, at[k]);
}}
kernel void own_sampler(read_only image2d_t im, global float2 *at, global float4 *out, int n) {{
  const sampler_t s = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR;
  for (int k = 0; k < n; k++) out[k] = read_imagef(im, s, at[k]);
}}
kernel void queries(read_only image2d_t a, write_only image3d_t b, read_only image2d_array_t c,
                    read_only image1d_array_t d, global int *out) {{
  out[0] = get_image_width(a); out[1] = get_image_height(a);
  out[2] = get_image_channel_data_type(a); out[3] = get_image_channel_order(a);
  out[4] = get_image_dim(a).x; out[5] = get_image_dim(a).y;
  int4 dim = get_image_dim(b);
  out[6] = dim.x; out[7] = dim.y; out[8] = dim.z; out[9] = dim.w; out[10] = get_image_depth(b);
  out[11] = (int)get_image_array_size(c); out[12] = get_image_height(c);
  out[13] = (int)get_image_array_size(d); out[14] = get_image_width(d);
}}
"""
_READ_WRITE_PROGRAM = """
kernel void swap(read_write image2d_t im) {
  float4 left = read_imagef(im, (int2)(0, 0));
  write_imagef(im, (int2)(0, 0), read_imagef(im, (int2)(1, 0)));
  atomic_work_item_fence(CLK_IMAGE_MEM_FENCE, memory_order_acq_rel, memory_scope_work_item);
  write_imagef(im, (int2)(1, 0), left);
}
"""
# What the engine otherwise brings: samplers of the program, and no other threads to order.
_RUNTIME = """
define ptr addrspace(2) @__translate_sampler_initializer(i32 %bits) {
  %wide = zext i32 %bits to i64
  %sampler = inttoptr i64 %wide to ptr addrspace(2)
  ret ptr addrspace(2) %sampler
}
define void @_Z22atomic_work_item_fencej12memory_order12memory_scope(i32 %0, i32 %1, i32 %2) {
  ret void
}
"""


class Machine:
    """Kernels compiled with the image functions, run on one work-item; keeps every texel access."""

    def __init__(self, source: str, standard: str) -> None:
        self.reads: list[int] = []
        self.writes: list[int] = []
        ir = compiled_ir(source, standard)
        demanded = re.findall(r"^declare .*@(_Z\w+image\w+)\(", ir, re.M)
        library_ir = library.llvm_ir(demanded)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        callback = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
        self._keep = [callback(self.reads.append), callback(self.writes.append)]
        for name, function in zip(("cc_texel_read", "cc_texel_write"), self._keep, strict=True):
            llvm.add_symbol(name, _address(ctypes.cast(function, ctypes.c_void_p)))
        module = host_module(ir)
        module.link_in(host_module(library_ir))
        module.link_in(host_module(_RUNTIME))
        target = llvm.Target.from_default_triple().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(module, target)
        self._engine.finalize_object()

    def run(self, kernel: str, *args: Image | Sampler | Array | int) -> None:
        self.reads.clear()
        self.writes.clear()
        keep: list[Any] = []
        values: list[ctypes.c_uint64 | ctypes.c_int32] = []
        for arg in args:
            if isinstance(arg, int):
                values.append(ctypes.c_int32(arg))
            elif isinstance(arg, Sampler):
                values.append(ctypes.c_uint64(sampler_bits(arg)))
            elif isinstance(arg, Image):
                keep.append(ctypes.create_string_buffer(pack_descriptor(arg, arg.array.ctypes.data)))
                values.append(ctypes.c_uint64(ctypes.addressof(keep[-1])))
            else:
                values.append(ctypes.c_uint64(arg.ctypes.data))
        address = self._engine.get_function_address(kernel)
        ctypes.CFUNCTYPE(None, *(type(value) for value in values))(address)(*values)


def _address(pointer: ctypes.c_void_p) -> int:
    assert pointer.value is not None
    return pointer.value


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine(_PROGRAM, "1.2")


# A sampler in NumPy, axis by axis: texel indexes (outside where they are out of range) and weights.


def _axis(
    s: Array, size: int, addressing: Addressing, linear: bool, normalized: bool
) -> list[tuple[Array, Array]]:
    s, length = s.astype(np.float32), np.float32(size if normalized else 1)
    if addressing == "repeat":
        u = (s - np.floor(s)) * length
    elif addressing == "mirrored_repeat":
        u = np.abs(s - np.float32(2) * np.rint(np.float32(0.5) * s)) * length
    else:
        u = s * length
    candidates = [(np.floor(u), np.ones_like(u))]
    if linear:
        below = np.floor(u - np.float32(0.5))
        weight = u - np.float32(0.5) - below
        candidates = [(below, 1 - weight), (below + 1, weight)]
    result = []
    for place, weight in candidates:
        index = place.astype(np.int64)
        if addressing == "repeat":
            index %= size
        elif addressing != "clamp":
            index = np.clip(index, 0, size - 1)
        result.append((index, weight.astype(np.float64)))
    return result


def _reference(image: Image, axes: list[list[tuple[Array, Array]]]) -> tuple[Array, int]:
    """Weighted sums of texels, and how many texels are read; the array's slowest axis comes first."""
    texels, fetched = _channels(image), 0
    total = np.zeros((len(axes[0][0][0]), 4))
    for choice in itertools.product(*axes):
        inside = np.ones(len(total), bool)
        index, weight = [], np.ones(len(total))
        for (place, share), size in zip(choice, texels.shape, strict=False):
            inside &= (place >= 0) & (place < size)
            index.append(np.clip(place, 0, size - 1))
            weight = weight * share
        total += np.where(inside[:, None], texels[tuple(index)], _border(image)) * weight[:, None]
        fetched += int(inside.sum())
    return total, fetched


def _channels(image: Image) -> Array:
    """RGBA of each texel, as numbers."""
    raw: Array = image.array.astype(np.float64)
    if image.normalized:
        raw = np.maximum(raw / np.iinfo(image.array.dtype.name).max, -1)
    if image.channels == 1:
        raw = raw[..., None]
    zero, one = np.zeros_like(raw[..., 0]), np.ones_like(raw[..., 0])
    first = raw[..., 0]
    second = raw[..., 1] if image.channels > 1 else zero
    picked = {
        "A": [zero, zero, zero, first],
        "INTENSITY": [first] * 4,
        "LUMINANCE": [first] * 3 + [one],
        "RGBA": [*np.moveaxis(raw, -1, 0)],
        "BGRA": [*np.moveaxis(raw, -1, 0)],
    }.get(image.channel_order, [first, second, zero, one])
    return np.stack(picked, axis=-1)[..., [2, 1, 0, 3] if image.channel_order == "BGRA" else slice(None)]


def _border(image: Image) -> Array:
    opaque = image.channel_order in ("R", "RG", "LUMINANCE", "DEPTH")
    return np.array([0, 0, 0, 1.0 if opaque else 0])


def _texels(shape: tuple[int, ...], dtype: str = "float32", seed: int = 1) -> Array:
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return rng.uniform(-4, 4, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


ADDRESSING: tuple[Addressing, ...] = ("none", "clamp_to_edge", "clamp", "repeat", "mirrored_repeat")
SAMPLERS = [
    Sampler(addressing, linear, normalized)
    for addressing, linear, normalized in itertools.product(ADDRESSING, (False, True), (False, True))
    if normalized or "repeat" not in addressing
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_float_coordinates_find_the_same_texels_as_the_reference(
    machine: Machine, sampler: Sampler, kind: str
) -> None:
    *shape, _ = KINDS[kind]
    dimensions, extents = len(shape), np.array(shape[::-1])
    image = Image(_texels(KINDS[kind]), layers="array" in kind)
    rng = np.random.default_rng(3)
    low, high = (0.01, 0.99) if sampler.addressing == "none" and not sampler.linear else (-1.7, 2.7)
    s = rng.uniform(low, high, (60, dimensions))
    s[:8] = np.round(s[:8] * 4) / 4
    coordinates = np.zeros((len(s), 4 if dimensions == 3 else dimensions), np.float32)
    coordinates[:, :dimensions] = s if sampler.normalized_coords else s * extents
    how = sampler.addressing, sampler.linear, sampler.normalized_coords
    axes = []
    if image.layers:
        # The layer is rounded to nearest even, and clamped.
        layers = [-3, 0, 0.5, 1.5, 1.51, 2.5, 9, 1e30, -1e30]
        coordinates[:, dimensions - 1] = np.resize(np.array(layers, np.float32), len(s))
        layer = np.clip(np.rint(coordinates[:, dimensions - 1]), 0, shape[0] - 1).astype(np.int64)
        axes = [[(layer, np.ones(len(layer)))]]
    for axis in reversed(range(dimensions - image.layers)):
        axes.append(_axis(coordinates[:, axis], int(extents[axis]), *how))
    out = np.zeros((len(s), 4), np.float32)
    machine.run(f"f_{kind}_float", image, sampler, coordinates, out, len(s))
    expected, fetched = _reference(image, axes)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=2e-6)
    assert len(machine.reads) == fetched


@pytest.mark.parametrize("addressing", ["clamp", "clamp_to_edge", "none"])
@pytest.mark.parametrize(("kind", "shape"), KINDS.items())
def test_integer_coordinates_find_texels_the_edge_or_the_border(
    machine: Machine, addressing: Addressing, kind: str, shape: tuple[int, ...]
) -> None:
    layers = "array" in kind
    image = Image(_texels(shape), layers=layers)
    extents = shape[:-1][::-1]
    corners = [np.array([-(2**31), -1, 0, 1, size - 1, size, 2**31 - 1]) for size in extents]
    places = np.stack(np.meshgrid(*corners), axis=-1).reshape(-1, len(extents))
    coordinates = np.zeros((len(places), 4 if len(extents) == 3 else len(extents)), np.int32)
    coordinates[:, : len(extents)] = places
    out = np.zeros((len(places), 4), np.float32)
    machine.run(f"f_{kind}_int", image, Sampler(addressing), coordinates, out, len(places))
    axes = []
    for axis in reversed(range(len(extents))):
        place = places[:, axis]
        if addressing != "clamp" or (layers and axis == len(extents) - 1):
            place = np.clip(place, 0, extents[axis] - 1)
        axes.append([(place, np.ones(len(place)))])
    np.testing.assert_array_equal(out, _reference(image, axes)[0].astype(np.float32))


ORDERS = ["R", "A", "RG", "RGBA", "BGRA", "INTENSITY", "LUMINANCE"]
CHANNELS = {"RG": 2, "RGBA": 4, "BGRA": 4}


def _image(order: str, dtype: str, normalized: bool = False) -> Image:
    shape = (3, 4, CHANNELS[order]) if order in CHANNELS else (3, 4)
    return Image(_texels(shape, dtype), order, normalized)


def _everywhere() -> Array:
    """Coordinates of each texel of 4 by 3, and of one outside."""
    inside = [(x, y) for y in range(3) for x in range(4)]
    return np.array([*inside, (-1, 0)], np.int32)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        *itertools.product(["uint8", "uint16", "int8", "int16", "float16", "float32"], ["f"]),
        *itertools.product(["int8", "int16", "int32"], ["i"]),
        *itertools.product(["uint8", "uint16", "uint32"], ["ui"]),
    ],
)
def test_every_format_is_read_in_rgba_order(machine: Machine, order: str, dtype: str, result: str) -> None:
    image, at = _image(order, dtype, result == "f" and "int" in dtype), _everywhere()
    expected = np.vstack([_channels(image).reshape(-1, 4), _border(image)])
    for base, places in (("int", at), ("float", at.astype(np.float32) + np.float32(0.5))):
        out = np.full((len(at), 4), 9, {"f": np.float32, "i": np.int32, "ui": np.uint32}[result])
        machine.run(f"{result}_image2d_{base}", image, Sampler("clamp"), places, out, len(at))
        np.testing.assert_allclose(out, expected, rtol=1e-7)
        assert len(machine.reads) == 12
    if result == "f":
        halves = np.zeros((len(at), 4), np.float16)
        machine.run("h_image2d_int", image, Sampler("clamp"), at, halves, len(at))
        np.testing.assert_array_equal(halves, out.astype(np.float16))


def test_reading_without_a_sampler_takes_the_texel_itself(machine: Machine) -> None:
    image = _image("RGBA", "float32")
    at, out = _everywhere()[:12], np.zeros((12, 4), np.float32)
    machine.run("plain_f", image, at, out, 12)
    np.testing.assert_array_equal(out, image.array.reshape(-1, 4))
    assert machine.reads == [image.array.ctypes.data + 16 * k for k in range(12)]
    buffer = Image(_texels((9,), "int32"), "R")
    places = np.arange(9, dtype=np.int32)
    integers = np.zeros((9, 4), np.int32)
    machine.run("plain_buffer", buffer, places, integers, 9)
    np.testing.assert_array_equal(integers[:, 0], buffer.array)
    volume = Image(_texels((2, 3, 4), "float32"), "R")
    at3 = np.array([(3, 2, 1, 0), (0, 1, 0, 0)], np.int32)
    machine.run("plain_3d", volume, at3, out, 2)
    np.testing.assert_array_equal(out[:2, 0], volume.array[[1, 0], [2, 1], [3, 0]])


def test_a_depth_image_gives_one_float(machine: Machine) -> None:
    image = Image(_texels((3, 4), "uint16"), "DEPTH", normalized=True)
    at = np.array([(0.5, 0.5), (3.0, 1.5), (9, 9)], np.float32)
    out = np.zeros(3, np.float32)
    machine.run("depth", image, Sampler("clamp_to_edge", True), at, out, 3)
    axes = [_axis(at[:, axis], (4, 3)[axis], "clamp_to_edge", True, False) for axis in (1, 0)]
    np.testing.assert_allclose(out, _reference(image, axes)[0][:, 0], rtol=1e-6)


def test_a_sampler_of_the_program_is_the_same_as_an_argument(machine: Machine) -> None:
    image = _image("RGBA", "float32")
    at = np.random.default_rng(2).uniform(-3, 3, (20, 2)).astype(np.float32)
    outs = np.zeros((2, 20, 4), np.float32)
    machine.run("own_sampler", image, at, outs[0], 20)
    machine.run("f_image2d_float", image, Sampler("repeat", True, True), at, outs[1], 20)
    np.testing.assert_array_equal(outs[0], outs[1])


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("addressing", ADDRESSING)
def test_no_coordinate_and_no_sampler_leads_outside_of_the_texels(
    machine: Machine, addressing: Addressing, linear: bool, normalized: bool
) -> None:
    odd = [np.nan, np.inf, -np.inf, 3e38, -3e38, 2.0**31, -(2.0**31), 1e-45, -1e-45, -0.0, 0.999999994]
    x, y = np.meshgrid(odd, odd)
    at = np.stack([x, y, np.flip(x), np.zeros_like(y)], axis=-1).reshape(-1, 4).astype(np.float32)
    image = Image(_texels((2, 3, 4, 4)))
    out = np.zeros((len(at), 4), np.float32)
    machine.run("f_image3d_float", image, Sampler(addressing, linear, normalized), at, out, len(at))
    offsets = np.array(machine.reads, np.int64) - image.array.ctypes.data
    assert ((offsets >= 0) & (offsets < image.array.nbytes) & (offsets % 16 == 0)).all()


def test_every_half_is_read_and_every_float_is_rounded_to_half(machine: Machine) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    image = Image(bits.view(np.float16).reshape(256, 256), "R")
    at = np.stack([bits & 255, bits >> 8], axis=-1).astype(np.int32)
    out = np.zeros((1 << 16, 4), np.float32)
    machine.run("plain_f", image, at, out, len(bits))
    np.testing.assert_array_equal(out[:, 0], image.array.reshape(-1).astype(np.float32))

    rng = np.random.default_rng(4)
    values = np.ldexp(rng.uniform(-1, 1, 4096), rng.integers(-30, 20, 4096)).astype(np.float32)
    between = image.array.reshape(-1)[:2048].astype(np.float32)
    values[:2047] = (between[1:] + between[:-1]) / 2
    values[2047:2052] = [65519.99, 65520, np.inf, -np.inf, np.nan]
    target = Image(np.zeros((16, 256), np.float16), "R")
    places = np.stack([np.arange(4096) & 255, np.arange(4096) >> 8], axis=-1).astype(np.int32)
    colour = np.repeat(values[:, None], 4, axis=1)
    machine.run("write_f", target, places, colour, 4096)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(target.array.reshape(-1), values.astype(np.float16))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int8", "int16"])
def test_floats_are_scaled_saturated_and_rounded_to_even(machine: Machine, order: str, dtype: str) -> None:
    image = _image(order, dtype, normalized=True)
    at = _everywhere()[:12]
    colour = np.random.default_rng(5).uniform(-1.5, 1.5, (12, 4)).astype(np.float32)
    limits = np.iinfo(dtype)
    colour[0] = [np.nan, np.inf, -np.inf, 1e30]
    colour[1] = (np.array([0.5, 1.5, 2.5, 3.5]) / np.float32(limits.max)).astype(np.float32)
    machine.run("write_f", image, at, colour, 12)
    scaled = np.nan_to_num(colour * np.float32(limits.max), nan=0.0, posinf=1e30, neginf=-1e30)
    stored = np.rint(np.clip(scaled.astype(np.float64), limits.min, limits.max)).astype(dtype)
    np.testing.assert_array_equal(image.array, _as_stored(order, stored, image.array.shape))


def _as_stored(order: str, rgba: Array, shape: tuple[int, ...]) -> Array:
    picked = {"RG": [0, 1], "RGBA": [0, 1, 2, 3], "BGRA": [2, 1, 0, 3], "A": [3]}.get(order, [0])
    return rgba[:, picked].reshape(shape)


@pytest.mark.parametrize("order", ["R", "A", "RG", "RGBA", "BGRA"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_integers_are_written_saturated(machine: Machine, order: str, dtype: str) -> None:
    image = _image(order, dtype)
    at = _everywhere()[:12]
    wide = "uint32" if dtype.startswith("u") else "int32"
    colour = _texels((12, 4), wide)
    colour[::2] //= 1 << 24
    machine.run("write_ui" if wide == "uint32" else "write_i", image, at, colour, 12)
    limits = np.iinfo(dtype)
    stored = np.clip(colour, limits.min, limits.max).astype(dtype)
    np.testing.assert_array_equal(image.array, _as_stored(order, stored, image.array.shape))


@pytest.mark.parametrize(
    ("kernel", "shape", "width", "layers"),
    [
        ("write_1d", (5,), 1, False),
        ("write_1d_array", (3, 5), 2, True),
        ("write_f", (4, 5), 2, False),
        ("write_2d_array", (3, 4, 5), 4, True),
        ("write_3d", (3, 4, 5), 4, False),
    ],
)
def test_a_write_stores_inside_and_is_ignored_outside(
    machine: Machine, kernel: str, shape: tuple[int, ...], width: int, layers: bool
) -> None:
    image = Image(np.zeros(shape, np.float32), "R", layers=layers)
    places = np.stack(np.meshgrid(*[np.arange(-1, n + 1) for n in shape[::-1]]), -1).reshape(-1, len(shape))
    at = np.zeros((len(places), width), np.int32)
    at[:, : len(shape)] = places
    colour = np.repeat(np.arange(1, len(places) + 1, dtype=np.float32)[:, None], 4, axis=1)
    machine.run(kernel, image, at, colour, len(places))
    expected = np.zeros(shape, np.float32)
    addresses = []
    for place, value in zip(places[:, ::-1], colour[:, 0], strict=True):
        if all(0 <= p < n for p, n in zip(place, shape, strict=True)):
            expected[tuple(place)] = value
            addresses.append(image.array.ctypes.data + 4 * int(np.ravel_multi_index(tuple(place), shape)))
    np.testing.assert_array_equal(image.array, expected)
    assert machine.writes == addresses


def test_halves_and_depths_are_written_as_floats_are(machine: Machine) -> None:
    image, at, colour = _image("RGBA", "float32"), _everywhere()[:12], _texels((12, 4), "float16")
    machine.run("write_h", image, at, colour, 12)
    np.testing.assert_array_equal(image.array.reshape(-1, 4), colour.astype(np.float32))
    depth = Image(np.zeros((3, 4), np.float32), "DEPTH")
    values = _texels((12,))
    machine.run("write_depth", depth, at, values, 12)
    np.testing.assert_array_equal(depth.array.reshape(-1), values)


def test_queries_answer_from_the_descriptor(machine: Machine) -> None:
    out = np.zeros(15, np.int32)
    machine.run(
        "queries",
        Image(_texels((3, 4, 2), "int16"), "RG", normalized=True),
        Image(_texels((5, 6, 7)), "R"),
        Image(_texels((8, 9, 10)), "R", layers=True),
        Image(_texels((11, 12)), "R", layers=True),
        out,
    )
    assert out.tolist() == [4, 3, 0x10D1, 0x10B2, 4, 3, 7, 6, 5, 0, 5, 8, 9, 11, 12]


def test_a_read_write_image_reads_what_it_wrote() -> None:
    image = Image(_texels((1, 2, 4)))
    before = image.array.copy()
    machine = Machine(_READ_WRITE_PROGRAM, "2.0")
    machine.run("swap", image)
    np.testing.assert_array_equal(image.array, before[:, ::-1])
    assert (len(machine.reads), len(machine.writes)) == (2, 2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Image(np.zeros(4, np.float64), "R"), "float64"),
        (lambda: Image(np.zeros(4, np.int32), "R", normalized=True), "normalized"),
        (lambda: Image(np.zeros(4, np.float32), "R", layers=True), "layers first"),
        (lambda: Image(np.zeros(4, ">i2"), "R"), ">i2"),
    ],
)
def test_an_image_that_has_no_format_is_refused(make: Callable[[], Image], words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        pack_descriptor(make(), 0)


@refusals("symbol")
def test_what_is_no_function_of_images_is_refused(symbol: str) -> None:
    with pytest.raises(UnsupportedError, match="neither defined"):
        library.llvm_ir([symbol])

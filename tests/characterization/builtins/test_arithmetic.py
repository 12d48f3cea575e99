"""Common functions against NumPy."""

import ctypes
import re
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import numpy.typing as npt
import pytest

from crosscast.characterization import builtins as library
from crosscast.kernel import Local
from support.exact import FLOATS, INTEGERS, MODES, interesting, limits, pairs, to_float, to_integer
from support.examples import one_in
from support.harness import DTYPES, compiled_ir, evaluate, run

Array = npt.NDArray[Any]
SMOOTH = "smoothstep(fmin(y, z), fmax(y, z), x)"
CASES = [("float", 1), ("float", 3), ("float", 16), ("double", 1), ("double", 4), ("half", 8)]


def inputs(base: str) -> dict[str, Array]:
    rng = np.random.default_rng(10)
    rows = {name: rng.uniform(-4, 4, 48).astype(DTYPES[base]) for name in "xyz"}
    rows["x"][:6] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1]
    return rows


def close(got: Array, expected: Array) -> bool:
    unit = np.finfo(got.dtype).eps
    return bool(
        np.allclose(got.astype(np.longdouble), expected, rtol=4 * unit, atol=16 * unit, equal_nan=True)
    )


@pytest.mark.parametrize(("base", "width"), CASES)
def test_common_functions(base: str, width: int) -> None:
    rows, type_ = inputs(base), f"({base}{'' if width == 1 else width})"
    x, y, z = (rows[name].astype(np.longdouble) for name in "xyz")
    low, high = np.minimum(y, z), np.maximum(y, z)
    with np.errstate(invalid="ignore"):
        t = np.clip((x - low) / (high - low), 0, 1)
        expected = {
            "clamp(x, fmin(y, z), fmax(y, z))": np.fmin(np.fmax(x, low), high),
            "degrees(x)": np.degrees(x),
            "radians(x)": np.radians(x),
            "max(y, z)": high,
            "min(y, z)": low,
            f"mix(y, z, (y + {type_}4) / {type_}8)": y + (z - y) * ((rows["y"] + 4) / 8),
            "step(y, x)": np.where(x < y, 0, 1),
            "sign(x)": np.where(np.isnan(x), 0, np.sign(x)),
        }
        smooth = np.where(np.isnan(t), 0, t * t * (3 - 2 * t))
    got = evaluate({e: e for e in [*expected, SMOOTH]}, base, rows, width)
    for expression, value in expected.items():
        assert close(got[expression], value), expression
    assert np.allclose(got[SMOOTH], smooth, atol=64 * np.finfo(DTYPES[base]).eps)
    assert np.signbit(got["sign(x)"])[:2].tolist() == [False, True]


SPREAD = {
    "step(0.5f, x)": [0, 0, 1, 1],
    "smoothstep(0.0f, 1.0f, x)": [0, 0.15625, 0.5, 1],
    "clamp(x, 0.0f, 1.0f)": [0, 0.25, 0.5, 1],
    "mix(x, x + 2, 0.5f)": [0, 1.25, 1.5, 3],
    "max(x, 0.0f)": [0, 0.25, 0.5, 2],
    "fmax(x, 1.0f)": [1, 1, 1, 2],
    "ldexp(x, (int)x.s3)": [-4, 1, 2, 8],
}


def test_scalars_are_spread_over_vectors() -> None:
    x = np.array([-1, 0.25, 0.5, 2], np.float32)
    got = evaluate({e: e for e in SPREAD}, "float", {"x": x}, 4)
    assert {e: row.tolist() for e, row in got.items()} == SPREAD


TYPES = (*INTEGERS, *FLOATS)
WIDTHS = (1, 2, 3, 4, 8, 16)
PAIRS = [(s, t, WIDTHS[k % len(WIDTHS)]) for k, (s, t) in enumerate(product(TYPES, TYPES))]


def named(target: str, width: int, *suffixes: str) -> str:
    return "_".join([f"convert_{target}{width if width > 1 else ''}", *filter(None, suffixes)]) + "(x)"


@pytest.mark.parametrize(("source", "target", "width"), one_in(3, (p for p in PAIRS if p[1] in INTEGERS)))
def test_conversions_to_integers(source: str, target: str, width: int) -> None:
    x = interesting(source)
    variants = list(product(("", "sat"), ("", *MODES)))
    got = evaluate({f"{v}": named(target, width, *v) for v in variants}, target, {"x": x}, width)
    low, high = limits(target)
    for saturating, mode in variants:
        exact = [to_integer(v, mode or "rtz") for v in x.tolist()]
        row = got[f"{(saturating, mode)}"].tolist()
        for value, whole, result in zip(x.tolist(), exact, row, strict=True):
            if saturating:
                bound = high if value > 0 else low if value < 0 else 0
                assert result == (bound if whole is None else min(max(whole, low), high)), (value, mode)
            elif whole is not None and (low <= whole <= high or source in INTEGERS):
                assert (result - whole) % (high - low + 1) == 0, (value, mode)


@pytest.mark.parametrize(("source", "target", "width"), one_in(2, (p for p in PAIRS if p[1] in FLOATS)))
def test_conversions_to_floating_point(source: str, target: str, width: int) -> None:
    x = interesting(source)
    got = evaluate({m: named(target, width, m) for m in ("", *MODES)}, target, {"x": x}, width)
    for mode, row in got.items():
        expected = np.array([to_float(v, target, mode or "rte") for v in x.tolist()], DTYPES[target])
        assert np.array_equal(row, expected, equal_nan=True), mode
        assert np.array_equal(np.signbit(row), np.signbit(expected)), mode


CASES_GEOMETRIC = [
    *[("float", 2, 1), ("float", 3, 1), ("double", 3, 1), ("half", 4, 1), ("float", 1, 1), ("double", 1, 1)],
    # Squares neither overflow nor vanish.
    *[("float", 4, 1e38), ("float", 3, 1e-36), ("double", 4, 4e307), ("double", 2, 1e-300), ("half", 4, 1e4)],
]


def vectors(base: str, width: int, scale: float = 1.0) -> tuple[Array, Array]:
    x, y = np.random.default_rng(11).uniform(-2, 2, (2, 24, width)) * scale
    return x.astype(DTYPES[base]), y.astype(DTYPES[base])


@pytest.mark.parametrize(("base", "width", "scale"), CASES_GEOMETRIC)
def test_products_lengths_and_directions(base: str, width: int, scale: float) -> None:
    x, y = vectors(base, width, scale)
    wide_x, wide_y = x.astype(np.longdouble), y.astype(np.longdouble)
    length = np.sqrt((wide_x**2).sum(axis=1))
    expected = {"length(x)": length}
    if scale == 1:
        apart = np.sqrt(((wide_x - wide_y) ** 2).sum(axis=1))
        expected |= {"dot(x, y)": (wide_x * wide_y).sum(axis=1), "distance(x, y)": apart}
        if base == "float":
            expected |= {"fast_length(x)": length, "fast_distance(x, y)": apart}
    type_ = f"({base}{'' if width == 1 else width})"
    rows, unit = {"x": x.ravel(), "y": y.ravel()}, 8 * np.finfo(x.dtype).eps
    got = evaluate({e: f"{type_}({e})" for e in expected}, base, rows, width)
    for expression, value in expected.items():
        found = got[expression].reshape(-1, width)[:, 0]
        assert np.allclose(found, value, rtol=unit, atol=4 * unit * scale), expression
    names = ["normalize(x)", *["fast_normalize(x)"] * (base == "float" and scale == 1)]
    for row in evaluate({n: n for n in names}, base, rows, width).values():
        assert np.allclose(row.reshape(x.shape), wide_x / length[:, None], rtol=unit)


@pytest.mark.parametrize("base", ["float", "double", "half"])
def test_the_direction_of_an_infinite_vector_and_of_zero(base: str) -> None:
    inf, nan = np.inf, np.nan
    x = np.array([[inf, 1, -2, 0], [inf, -inf, 1, 1], [inf, nan, 0, 0], [0, 0, 0, 0]], DTYPES[base])
    got = evaluate({"n": "normalize(x)"}, base, {"x": x.ravel()}, 4)["n"].reshape(x.shape)
    expected = [[1, 0, 0, 0], [0.5**0.5, -(0.5**0.5), 0, 0], [nan] * 4, [0, 0, 0, 0]]
    assert np.allclose(got, expected, rtol=1e-3, equal_nan=True)


@pytest.mark.parametrize("base", ["float", "double", "half"])
def test_cross_products(base: str) -> None:
    for width in (3, 4):
        x, y = vectors(base, width)
        got = evaluate({"c": "cross(x, y)"}, base, {"x": x.ravel(), "y": y.ravel()}, width)["c"]
        expected = np.zeros(x.shape, np.longdouble)
        expected[:, :3] = np.cross(x[:, :3].astype(np.longdouble), y[:, :3].astype(np.longdouble))
        assert np.allclose(got.reshape(x.shape), expected, atol=16 * np.finfo(x.dtype).eps)


WIDTHS_INTEGER = dict(zip(INTEGERS, (1, 16, 2, 3, 4, 1, 8, 3), strict=True))


def bits(base: str) -> int:
    return int(np.dtype(DTYPES[base]).itemsize) * 8


def saturate(value: int, base: str) -> int:
    low, high = limits(base)
    return min(max(value, low), high)


def wrap(value: int, base: str) -> int:
    value &= (1 << bits(base)) - 1
    return value if value <= limits(base)[1] else value - (1 << bits(base))


def bits_of(value: int, base: str) -> int:
    return value & ((1 << bits(base)) - 1)


def rotate(value: int, count: int, base: str) -> int:
    size, value = bits(base), bits_of(value, base)
    return wrap(value << count % size | value >> size - count % size, base)


REFERENCES: dict[str, Callable[[int, int, int, str], int]] = {
    "add_sat(x, y)": lambda x, y, z, t: saturate(x + y, t),
    "sub_sat(x, y)": lambda x, y, z, t: saturate(x - y, t),
    "hadd(x, y)": lambda x, y, z, t: (x + y) >> 1,
    "rhadd(x, y)": lambda x, y, z, t: (x + y + 1) >> 1,
    "clamp(x, min(y, z), max(y, z))": lambda x, y, z, t: min(max(x, min(y, z)), max(y, z)),
    "clz(x)": lambda x, y, z, t: bits(t) - bits_of(x, t).bit_length(),
    "ctz(x)": lambda x, y, z, t: (x & -x).bit_length() - 1 if x else bits(t),
    "mad_hi(x, y, z)": lambda x, y, z, t: wrap((x * y >> bits(t)) + z, t),
    "mul_hi(x, y)": lambda x, y, z, t: x * y >> bits(t),
    "mad_sat(x, y, z)": lambda x, y, z, t: saturate(x * y + z, t),
    "rotate(x, y)": lambda x, y, z, t: rotate(x, y, t),
    "popcount(x)": lambda x, y, z, t: bits_of(x, t).bit_count(),
    # Of `int` and `uint` only
    "mul24(x >> 8, y >> 8)": lambda x, y, z, t: wrap((x >> 8) * (y >> 8), t),
    "mad24(x >> 8, y >> 8, z)": lambda x, y, z, t: wrap((x >> 8) * (y >> 8) + z, t),
    # In the unsigned type
    "abs(x)": lambda x, y, z, t: wrap(abs(x), t),
    "abs_diff(x, y)": lambda x, y, z, t: wrap(abs(x - y), t),
    # One scalar for all elements
    "max(x, y.s1)": lambda x, y, z, t: max(x, z),
    "min(x, y.s1)": lambda x, y, z, t: min(x, z),
    "clamp(x, y.s1, y.s1)": lambda x, y, z, t: z,
}


def operands(base: str) -> list[Array]:
    """Pairs of extreme values and random ones, with a third operand: 48 elements."""
    low, high = limits(base)
    edges = np.array([low, low + 1, 0, 1, high - 1, high], DTYPES[base])
    rng = np.random.default_rng(5)
    x, y = (side.ravel() for side in np.meshgrid(edges, edges))
    rows = [x, y, rng.permutation(np.resize(edges, 36))]
    return [
        np.concatenate([row, rng.integers(low, high, 12, DTYPES[base], endpoint=True)]).astype(DTYPES[base])
        for row in rows
    ]


@pytest.mark.parametrize("base", INTEGERS)
def test_integer_functions_are_exact(base: str) -> None:
    x, y, z = operands(base)
    for scalar, width in ((False, WIDTHS_INTEGER[base]), (True, 2)):
        names = [name for name in REFERENCES if (".s1" in name) == scalar]
        names = [name for name in names if "24" not in name or base in ("int", "uint")]
        texts = {e: f"as_{base}{'' if width == 1 else width}({e})" if "abs" in e else e for e in names}
        got = evaluate(texts, base, {"x": x, "y": y, "z": z}, width, "2.0")
        third = np.repeat(y[1::2], 2) if scalar else z
        for e in names:
            rows = zip(x.tolist(), y.tolist(), third.tolist(), strict=True)
            assert got[e].tolist() == [REFERENCES[e](*row, base) for row in rows], e


@pytest.mark.parametrize(("base", "wide"), [*pairwise(["char", "short", "int", "long"])])
@pytest.mark.parametrize(("sign", "width"), [("", 1), ("u", 4)])
def test_upsample_joins_two_halves(base: str, wide: str, sign: str, width: int) -> None:
    base, wide = sign + base, sign + wide
    high, low, _ = operands(base)
    low = low.view(DTYPES[base if base.startswith("u") else f"u{base}"])
    got = evaluate({"r": "upsample(x, y)"}, wide, {"x": high, "y": low}, width)["r"]
    assert got.tolist() == [(int(a) << bits(base)) | int(b) for a, b in zip(high, low, strict=True)]


SAME_SIZE = {"half": "short", "float": "int", "double": "long"}
CASES_RELATIONAL = [("float", 1), ("float", 4), ("double", 1), ("double", 3), ("half", 1), ("half", 16)]


@pytest.mark.parametrize(("base", "width"), CASES_RELATIONAL)
def test_comparisons_and_classes(base: str, width: int) -> None:
    x, y = pairs(base)
    with np.errstate(invalid="ignore"):
        expected = {
            "isequal(x, y)": x == y,
            "isnotequal(x, y)": x != y,
            "isgreater(x, y)": x > y,
            "isgreaterequal(x, y)": x >= y,
            "isless(x, y)": x < y,
            "islessequal(x, y)": x <= y,
            "islessgreater(x, y)": (x < y) | (x > y),
            "isordered(x, y)": ~(np.isnan(x) | np.isnan(y)),
            "isunordered(x, y)": np.isnan(x) | np.isnan(y),
            "isfinite(x)": np.isfinite(x),
            "isinf(x)": np.isinf(x),
            "isnan(x)": np.isnan(x),
            "isnormal(x)": np.isfinite(x) & (np.abs(x) >= np.finfo(x.dtype).smallest_normal),
            "signbit(x)": np.signbit(x),
        }
    result = "int" if width == 1 else SAME_SIZE[base]
    got = evaluate({e: e for e in expected}, result, {"x": x, "y": y}, width)
    for expression, truth in expected.items():
        assert np.array_equal(got[expression], truth * (1 if width == 1 else -1)), expression


@pytest.mark.parametrize(("base", "width"), [("char", 1), ("short", 2), ("int", 3), ("long", 8)])
def test_any_and_all_look_at_the_top_bits(base: str, width: int) -> None:
    x = np.random.default_rng(7).choice(np.array([-1, -128, 1, 127, 0], DTYPES[base]), 48)
    x[:24] = -1
    spread = "" if width == 1 else str(width)
    got = evaluate({n: f"(int{spread})({n}(x))" for n in ("any", "all")}, "int", {"x": x}, width)
    top = (x < 0).reshape(-1, width)
    assert np.array_equal(got["any"].reshape(-1, width)[:, 0], top.any(axis=1))
    assert np.array_equal(got["all"].reshape(-1, width)[:, 0], top.all(axis=1))


@pytest.mark.parametrize(
    ("base", "width"),
    [("float", 1), ("float", 3), ("double", 2), ("half", 4), ("uchar", 16), ("short", 1), ("long", 8)],
)
def test_bits_chosen_one_by_one(base: str, width: int) -> None:
    bits = np.dtype(f"uint{np.dtype(DTYPES[base]).itemsize * 8}")
    raw = np.frombuffer(np.random.default_rng(8).bytes(3 * 48 * bits.itemsize), bits).reshape(3, 48)
    x, y, mask = (row.copy().view(DTYPES[base]) for row in raw)
    got = evaluate({"r": "bitselect(x, y, z)"}, base, {"x": x, "y": y, "z": mask}, width)["r"]
    assert np.array_equal(got.view(raw.dtype), (raw[0] & ~raw[2]) | (raw[1] & raw[2]))


@pytest.mark.parametrize(
    ("base", "width", "sign"),
    one_in(5, product(["float", "double", "half", "int", "ulong", "char"], [1, 3, 8], ["", "u"])),
)
def test_select_takes_the_top_bit_on_vectors_and_zero_on_scalars(base: str, width: int, sign: str) -> None:
    size = np.dtype(DTYPES[base]).itemsize * 8
    condition = np.dtype(f"{sign}int{size}")
    x, y = np.arange(48).astype(DTYPES[base]), (np.arange(48) + 50).astype(DTYPES[base])
    values = [0, 1, (1 << (size - 1)) - 1, 1 << (size - 1), (1 << size) - 1]
    c = np.random.default_rng(9).choice(np.array(values, f"uint{size}"), 48).view(condition)
    got = evaluate({"r": "select(x, y, c)"}, base, {"x": x, "y": y, "c": c}, width)["r"]
    chosen = c != 0 if width == 1 else c.view(f"int{size}") < 0
    assert np.array_equal(got, np.where(chosen, y, x))


MASKS = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}


@pytest.mark.parametrize(("base", "size"), one_in(3, product(DTYPES, [2, 4, 8, 16])))
def test_masks_pick_elements_modulo_the_size(base: str, size: int) -> None:
    dtype = np.dtype(DTYPES[base])
    mask_base = MASKS[dtype.itemsize]
    widths = (2, 4, 8, 16)
    stores = "".join(
        f"vstore{w}(shuffle(a, vload{w}(0, m)), 0, out + {16 * k});"
        f"vstore{w}(shuffle2(a, b, vload{w}(0, m)), 0, out + {64 + 16 * k});"
        for k, w in enumerate(widths)
    )
    source = f"""
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
kernel void k(global const {base} *x, global const {mask_base} *m, global {base} *out) {{
  {base}{size} a = vload{size}(0, x), b = vload{size}(1, x);
  {stores}
}}"""
    x = np.arange(2 * size).astype(dtype)
    mask = np.random.default_rng(13).integers(0, 127, 16).astype(DTYPES[mask_base])
    out = np.zeros(128, dtype)
    run(source, "k", [x, mask, out], 1)
    for k, width in enumerate(widths):
        assert np.array_equal(out[16 * k :][:width], x[mask[:width] % size])
        assert np.array_equal(out[64 + 16 * k :][:width], x[mask[:width] % (2 * size)])


WIDTHS_VECTOR_DATA = (2, 3, 4, 8, 16)


@pytest.mark.parametrize(("base", "standard"), one_in(3, product(DTYPES, ["1.2", "2.0"])))
def test_elements_move_to_where_the_index_says(base: str, standard: str) -> None:
    """In the reverse order, from addresses aligned to one element, through all address spaces."""
    moves = "".join(
        f"""
  for (int k = 0; k < 3; k++) {{
    {base}{w} v = vload{w}(k, x + 1);
    vstore{w}(v, k, near);
    vstore{w}(vload{w}(k, near), k, own);
    vstore{w}(vload{w}(k, own), 2 - k, out + {48 * n});
  }}"""
        for n, w in enumerate(WIDTHS_VECTOR_DATA)
    )
    source = f"""
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
constant {base} fixed[4] = {{1, 2, 3, 4}};
kernel void k(global const {base} *x, global {base} *out, local {base} *near) {{
  {base} own[49];{moves}
  vstore3(vload3(0, fixed + 1), 0, out + {48 * len(WIDTHS_VECTOR_DATA)});
}}"""
    x = (np.arange(49) + 3).astype(DTYPES[base])
    out = np.zeros(48 * len(WIDTHS_VECTOR_DATA) + 4, DTYPES[base])
    run(source, "k", [x, out, Local(49 * x.itemsize)], 1, standard)
    for n, width in enumerate(WIDTHS_VECTOR_DATA):
        expected = np.zeros(48, DTYPES[base])
        expected[: 3 * width] = x[1 : 1 + 3 * width].reshape(3, width)[::-1].ravel()
        assert np.array_equal(out[48 * n : 48 * n + 48], expected), width
    assert out[48 * len(WIDTHS_VECTOR_DATA) :].tolist() == [2, 3, 4, 0]


def test_halves_are_read_as_floats() -> None:
    h = interesting("half")
    loads = "".join(
        f"vstore{w}(vload_half{w}(1, h), 0, out + {32 * n});"
        f"vstore{w}(vloada_half{w}(1, h), 0, out + {32 * n + 16});"
        for n, w in enumerate(WIDTHS_VECTOR_DATA)
    )
    source = (
        f"kernel void k(global const half *h, global float *out) {{ {loads} out[160] = vload_half(5, h); }}"
    )
    out = np.zeros(161, np.float32)
    run(source, "k", [h, out], 1)
    wide = h.astype(np.float32)
    for n, width in enumerate(WIDTHS_VECTOR_DATA):
        aligned = 4 if width == 3 else width
        assert np.array_equal(out[32 * n :][:width], wide[width : 2 * width], equal_nan=True)
        assert np.array_equal(out[32 * n + 16 :][:width], wide[aligned : aligned + width], equal_nan=True)
    assert out[160] == wide[5]


@pytest.mark.parametrize("base", ["float", "double"])
@pytest.mark.parametrize("width", [1, 3, 4, 16])
def test_halves_are_rounded_when_stored(base: str, width: int) -> None:
    x = interesting(base)
    n = "" if width == 1 else str(width)
    modes = ("", *MODES)
    value = f"vload{width}(i, x)" if width > 1 else "x[i]"
    stores = "".join(
        f"vstore{a}_half{n}{'_' * bool(m)}{m}({value}, i, out + {(2 * k + (a == 'a')) * 128});"
        for k, m in enumerate(modes)
        for a in ("", "a")[: 2 if width > 1 else 1]  # one element has no aligned form
    )
    source = (
        f"kernel void k(global const {base} *x, global half *out) {{ size_t i = get_global_id(0); {stores} }}"
    )
    out = np.zeros((len(modes), 2, 128), np.float16)
    run(source, "k", [x, out], 96 // width)
    for k, mode in enumerate(modes):
        expected = np.array([to_float(v, "half", mode or "rte") for v in x.tolist()], np.float16)
        assert np.array_equal(out[k, 0, :96], expected, equal_nan=True), mode
        if width == 1:
            continue
        spread = out[k, 1].reshape(-1, 4)[:, :3].ravel() if width == 3 else out[k, 1]
        assert np.array_equal(spread[:96], expected, equal_nan=True), mode


def test_a_store_of_three_leaves_the_fourth_element_alone() -> None:
    out = np.full(8, 7, np.float32)
    run("kernel void k(global float *out) { vstore3((float3)(1, 2, 3), 1, out); }", "k", [out], 1)
    assert out.tolist() == [7, 7, 7, 1, 2, 3, 7, 7]


EVERY = np.arange(1 << 16, dtype=np.uint16)
NARROWED = {
    f"{name}_{source}": (target, source)
    for name, target in (("narrow", "half"), ("shorten", "__bf16"))
    for source in ("float", "double")
}


@pytest.fixture(scope="module")
def routines() -> llvm.ExecutionEngine:
    """Conversions for a processor that has none, which LLVM turns into calls of the routines."""
    conversions = "".join(
        f"kernel void {name}(global const {source} *x, global {target} *y, ulong n) {{"
        f" for (ulong k = 0; k < n; k++) y[k] = ({target})x[k]; }}\n"
        for name, (target, source) in {**NARROWED, "extend": ("float", "half")}.items()
    )
    made = [compiled_ir(conversions, "3.0", "-O2"), library.llvm_ir(sorted(library.HALF_RUNTIME))]
    kernels, runtime = (
        llvm.parse_assembly(re.sub(r"^target .*\n|spir_func |spir_kernel ", "", text, flags=re.MULTILINE))
        for text in made
    )
    kernels.link_in(runtime)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(cpu="", opt=1)
    engine = llvm.create_mcjit_compiler(kernels, machine)
    engine.finalize_object()
    return engine


def apply(routines: llvm.ExecutionEngine, name: str, x: Array, result: type[np.generic]) -> Array:
    y = np.zeros(len(x), result)
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
    prototype(routines.get_function_address(name))(x.ctypes.data, y.ctypes.data, len(x))
    return y


def test_every_half_becomes_its_float(routines: llvm.ExecutionEngine) -> None:
    got = apply(routines, "extend", EVERY, np.float32)
    expected = EVERY.view(np.float16).astype(np.float32)
    assert np.array_equal(got, expected, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(expected))


@pytest.mark.parametrize("name", NARROWED)
def test_narrowing_rounds_to_the_nearest_and_ties_to_even(routines: llvm.ExecutionEngine, name: str) -> None:
    target, source = NARROWED[name]
    dtype = DTYPES[source]

    def widened(codes: Array) -> Array:
        if target == "half":
            return codes.view(np.float16).astype(dtype)
        return (codes.astype(np.uint32) << 16).view(np.float32).astype(dtype)

    def narrowed(x: Array) -> Array:
        got = widened(apply(routines, name, x, np.uint16))
        assert np.array_equal(np.signbit(got[x == x]), np.signbit(x[x == x]))
        return got

    with np.errstate(all="ignore"):
        every = widened(EVERY)
        codes = EVERY[np.isfinite(every)]
        codes = codes[np.argsort(widened(codes), kind="stable")]
        finite = widened(codes)
        ties = finite[:-1] / 2 + finite[1:] / 2
        above, below = np.nextafter(ties, dtype(np.inf)), np.nextafter(ties, dtype(-np.inf))
        beyond = finite[-1:] * dtype(1.01)
    assert np.array_equal(narrowed(every), every, equal_nan=True)
    assert np.array_equal(narrowed(above), finite[1:])
    assert np.array_equal(narrowed(below), finite[:-1])
    assert np.array_equal(narrowed(ties), np.where(codes[1:] % 2, finite[:-1], finite[1:]))
    assert narrowed(beyond).tolist() == [np.inf]

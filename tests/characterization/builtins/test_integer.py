"""Integer functions against Python's integers, which have no width."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from harness import DTYPES, evaluate

Array = npt.NDArray[Any]

TYPES = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
WIDTHS = dict(zip(TYPES, (1, 16, 2, 3, 4, 1, 8, 3), strict=True))


def bits(base: str) -> int:
    return int(np.dtype(DTYPES[base]).itemsize) * 8


def limits(base: str) -> tuple[int, int]:
    info = np.iinfo(DTYPES[base])
    return int(info.min), int(info.max)


def saturate(value: int, base: str) -> int:
    low, high = limits(base)
    return min(max(value, low), high)


def wrap(value: int, base: str) -> int:
    value &= (1 << bits(base)) - 1
    return value if value <= limits(base)[1] else value - (1 << bits(base))


def rotate(value: int, count: int, base: str) -> int:
    size = bits(base)
    value &= (1 << size) - 1
    return wrap(value << count % size | value >> size - count % size, base)


def leading_zeros(value: int, base: str) -> int:
    return bits(base) - (value & ((1 << bits(base)) - 1)).bit_length()


def trailing_zeros(value: int, base: str) -> int:
    return bits(base) if value == 0 else (value & -value).bit_length() - 1


REFERENCES: dict[str, Callable[[int, int, int, str], int]] = {
    "add_sat(x, y)": lambda x, y, z, t: saturate(x + y, t),
    "sub_sat(x, y)": lambda x, y, z, t: saturate(x - y, t),
    "hadd(x, y)": lambda x, y, z, t: (x + y) >> 1,
    "rhadd(x, y)": lambda x, y, z, t: (x + y + 1) >> 1,
    "clamp(x, min(y, z), max(y, z))": lambda x, y, z, t: min(max(x, min(y, z)), max(y, z)),
    "clz(x)": lambda x, y, z, t: leading_zeros(x, t),
    "ctz(x)": lambda x, y, z, t: trailing_zeros(x, t),
    "mad_hi(x, y, z)": lambda x, y, z, t: wrap((x * y >> bits(t)) + z, t),
    "mul_hi(x, y)": lambda x, y, z, t: x * y >> bits(t),
    "mad_sat(x, y, z)": lambda x, y, z, t: saturate(x * y + z, t),
    "rotate(x, y)": lambda x, y, z, t: rotate(x, y, t),
    "popcount(x)": lambda x, y, z, t: (x & ((1 << bits(t)) - 1)).bit_count(),
}
UNSIGNED_REFERENCES: dict[str, Callable[[int, int], int]] = {
    "abs(x)": lambda x, y: abs(x),
    "abs_diff(x, y)": lambda x, y: abs(x - y),
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


@pytest.mark.parametrize("base", TYPES)
def test_integer_functions_are_exact(base: str) -> None:
    x, y, z = operands(base)
    inputs = {"x": x, "y": y, "z": z}
    got = evaluate({e: e for e in REFERENCES}, base, inputs, WIDTHS[base], "2.0")
    for expression, reference in REFERENCES.items():
        expected = [reference(int(a), int(b), int(c), base) for a, b, c in zip(x, y, z, strict=True)]
        assert got[expression].tolist() == expected, expression
    unsigned = base if base.startswith("u") else f"u{base}"
    got = evaluate({e: e for e in UNSIGNED_REFERENCES}, unsigned, {"x": x, "y": y}, WIDTHS[base])
    for expression, plain in UNSIGNED_REFERENCES.items():
        assert got[expression].tolist() == [plain(int(a), int(b)) for a, b in zip(x, y, strict=True)]


@pytest.mark.parametrize("base", TYPES)
def test_one_scalar_bounds_every_element(base: str) -> None:
    x, y, _ = operands(base)
    got = evaluate(
        {"max": "max(x, y.s1)", "min": "min(x, y.s1)", "clamp": "clamp(x, y.s0, y.s0)"},
        base,
        {"x": x, "y": y},
        2,
    )
    even, odd = np.repeat(y[::2], 2), np.repeat(y[1::2], 2)
    assert np.array_equal(got["max"], np.maximum(x, odd))
    assert np.array_equal(got["min"], np.minimum(x, odd))
    assert np.array_equal(got["clamp"], even)


@pytest.mark.parametrize(
    ("base", "wide"),
    [
        ("char", "short"),
        ("uchar", "ushort"),
        ("short", "int"),
        ("ushort", "uint"),
        ("int", "long"),
        ("uint", "ulong"),
    ],
)
@pytest.mark.parametrize("width", [1, 4])
def test_upsample_joins_two_halves(base: str, wide: str, width: int) -> None:
    high, low, _ = operands(base)
    low = low.view(DTYPES[base if base.startswith("u") else f"u{base}"])
    got = evaluate({"r": "upsample(x, y)"}, wide, {"x": high, "y": low}, width)["r"]
    assert got.tolist() == [(int(a) << bits(base)) | int(b) for a, b in zip(high, low, strict=True)]


@pytest.mark.parametrize(("base", "width"), [("int", 1), ("int", 3), ("uint", 8)])
def test_products_of_24_bits(base: str, width: int) -> None:
    low, high = (-(1 << 23), (1 << 23) - 1) if base == "int" else (0, (1 << 24) - 1)
    rng = np.random.default_rng(6)
    x, y = (rng.integers(low, high, 48, DTYPES[base], endpoint=True) for _ in range(2))
    x[:2], y[:2] = (low, high), (low, low)
    z = operands(base)[2]
    got = evaluate({"mul": "mul24(x, y)", "mad": "mad24(x, y, z)"}, base, {"x": x, "y": y, "z": z}, width)
    assert got["mul"].tolist() == [wrap(int(a) * int(b), base) for a, b in zip(x, y, strict=True)]
    assert got["mad"].tolist() == [
        wrap(int(a) * int(b) + int(c), base) for a, b, c in zip(x, y, z, strict=True)
    ]

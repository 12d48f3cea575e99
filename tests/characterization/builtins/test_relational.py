"""Relational functions: 1 for true on scalars, -1 on vectors, and what NaN makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from harness import DTYPES, evaluate

Array = npt.NDArray[Any]
SAME_SIZE = {"half": "short", "float": "int", "double": "long"}
CASES = [("float", 1), ("float", 4), ("double", 1), ("double", 3), ("half", 1), ("half", 16)]


def pairs(base: str) -> tuple[Array, Array]:
    info = np.finfo(DTYPES[base])
    values = [0.0, 1.0, np.inf, np.nan, info.max, info.smallest_normal, info.smallest_subnormal]
    edges = np.array([*values, *(-v for v in values)], DTYPES[base])
    x, y = (side.ravel() for side in np.meshgrid(edges, edges))
    return np.resize(x, 240), np.resize(y, 240)


@pytest.mark.parametrize(("base", "width"), CASES)
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


@pytest.mark.parametrize("base", ["char", "short", "int", "long"])
@pytest.mark.parametrize("width", [1, 2, 3, 8])
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


@pytest.mark.parametrize("base", ["float", "double", "half", "int", "ulong", "char"])
@pytest.mark.parametrize("width", [1, 3, 8])
@pytest.mark.parametrize("sign", ["", "u"])
def test_select_takes_the_top_bit_on_vectors_and_zero_on_scalars(base: str, width: int, sign: str) -> None:
    size = np.dtype(DTYPES[base]).itemsize * 8
    condition = np.dtype(f"{sign}int{size}")
    x, y = np.arange(48).astype(DTYPES[base]), (np.arange(48) + 50).astype(DTYPES[base])
    values = [0, 1, (1 << (size - 1)) - 1, 1 << (size - 1), (1 << size) - 1]
    c = np.random.default_rng(9).choice(np.array(values, f"uint{size}"), 48).view(condition)
    got = evaluate({"r": "select(x, y, c)"}, base, {"x": x, "y": y, "c": c}, width)["r"]
    chosen = c != 0 if width == 1 else c.view(f"int{size}") < 0
    assert np.array_equal(got, np.where(chosen, y, x))

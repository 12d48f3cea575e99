"""Geometric functions against NumPy, at sizes whose squares do not fit too."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from harness import DTYPES, evaluate

Array = npt.NDArray[Any]
CASES = [("float", 2), ("float", 3), ("float", 4), ("double", 3), ("half", 4), ("float", 1), ("double", 1)]


def vectors(base: str, width: int, scale: float = 1.0) -> tuple[Array, Array]:
    rng = np.random.default_rng(11)
    x, y = (rng.uniform(-2, 2, (24, width)) * scale for _ in range(2))
    return x.astype(DTYPES[base]), y.astype(DTYPES[base])


def scalars(expressions: dict[str, str], base: str, x: Array, y: Array) -> dict[str, Array]:
    """Results of functions from vectors to a scalar, which each element of the vector gets."""
    width = x.shape[1]
    suffix = "" if width == 1 else str(width)
    spread = {name: f"({base}{suffix})({e})" for name, e in expressions.items()}
    got = evaluate(spread, base, {"x": x.ravel(), "y": y.ravel()}, width)
    return {name: row.reshape(-1, width)[:, 0] for name, row in got.items()}


@pytest.mark.parametrize(("base", "width"), CASES)
def test_lengths_and_products(base: str, width: int) -> None:
    x, y = vectors(base, width)
    wide_x, wide_y = x.astype(np.longdouble), y.astype(np.longdouble)
    names = {"dot": "dot(x, y)", "length": "length(x)", "distance": "distance(x, y)"}
    if base == "float":
        names |= {"fast_length": "fast_length(x)", "fast_distance": "fast_distance(x, y)"}
    got = scalars(names, base, x, y)
    unit = 8 * np.finfo(DTYPES[base]).eps
    assert np.allclose(got["dot"], (wide_x * wide_y).sum(axis=1), rtol=unit, atol=4 * unit)
    for name in names.keys() - {"dot"}:
        side = wide_x - (wide_y if "distance" in name else 0)
        assert np.allclose(got[name], np.sqrt((side**2).sum(axis=1)), rtol=unit), name


@pytest.mark.parametrize(("base", "width"), CASES)
def test_directions(base: str, width: int) -> None:
    x, _ = vectors(base, width)
    x[0] = 0
    names = ["normalize", *(["fast_normalize"] if base == "float" else [])]
    got = evaluate({n: f"{n}(x)" for n in names}, base, {"x": x.ravel()}, width)
    length = np.sqrt((x.astype(np.longdouble) ** 2).sum(axis=1, keepdims=True))
    expected = x / np.where(length == 0, 1, length)
    for name in names:
        assert np.allclose(got[name].reshape(x.shape), expected, rtol=8 * np.finfo(x.dtype).eps), name


@pytest.mark.parametrize(
    ("base", "width", "scale"),
    [("float", 4, 1e38), ("float", 3, 1e-36), ("double", 4, 4e307), ("double", 2, 1e-300), ("half", 4, 1e4)],
)
def test_squares_neither_overflow_nor_vanish(base: str, width: int, scale: float) -> None:
    x, _ = vectors(base, width, scale)
    wide = x.astype(np.longdouble)
    length = np.sqrt((wide**2).sum(axis=1, keepdims=True))
    assert np.allclose(
        scalars({"l": "length(x)"}, base, x, x)["l"] / length[:, 0], 1, rtol=1e-2 if base == "half" else 1e-6
    )
    got = evaluate({"n": "normalize(x)"}, base, {"x": x.ravel()}, width)["n"].reshape(x.shape)
    assert np.allclose(got, wide / length, rtol=8 * np.finfo(x.dtype).eps)


@pytest.mark.parametrize("base", ["float", "double", "half"])
def test_the_direction_of_an_infinite_vector(base: str) -> None:
    x = np.array([[np.inf, 1, -2, 0], [np.inf, -np.inf, 1, 1], [np.inf, np.nan, 0, 0]], DTYPES[base])
    got = evaluate({"n": "normalize(x)"}, base, {"x": x.ravel()}, 4)["n"].reshape(x.shape)
    assert got[0].tolist() == [1, 0, 0, 0]
    assert np.allclose(got[1], [0.5**0.5, -(0.5**0.5), 0, 0], rtol=1e-3)
    assert np.all(np.isnan(got[2]))


@pytest.mark.parametrize("base", ["float", "double", "half"])
def test_cross_products(base: str) -> None:
    for width in (3, 4):
        x, y = vectors(base, width)
        got = evaluate({"c": "cross(x, y)"}, base, {"x": x.ravel(), "y": y.ravel()}, width)["c"].reshape(
            x.shape
        )
        expected = np.cross(x[:, :3].astype(np.longdouble), y[:, :3].astype(np.longdouble))
        assert np.allclose(got[:, :3], expected, atol=16 * np.finfo(x.dtype).eps)
        assert np.all(got[:, 3:] == 0)

"""Common functions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from harness import DTYPES, evaluate

Array = npt.NDArray[Any]
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
    rows = inputs(base)
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
            "mix(y, z, (y + 4) / 8)": y + (z - y) * ((rows["y"] + 4) / 8),
            "step(y, x)": np.where(x < y, 0, 1),
            "sign(x)": np.where(np.isnan(x), 0, np.sign(x)),
        }
        smooth = np.where(np.isnan(t), 0, t * t * (3 - 2 * t))
    scalar = "" if width == 1 else str(width)
    constants = {"mix(y, z, (y + 4) / 8)": f"mix(y, z, (y + ({base}{scalar})4) / ({base}{scalar})8)"}
    got = evaluate({e: constants.get(e, e) for e in expected}, base, rows, width)
    for expression, value in expected.items():
        assert close(got[expression], value), expression
    got = evaluate({"s": "smoothstep(fmin(y, z), fmax(y, z), x)"}, base, rows, width)
    assert np.allclose(got["s"], smooth, atol=64 * np.finfo(DTYPES[base]).eps)


@pytest.mark.parametrize("base", ["float", "double", "half"])
def test_signs_of_zero_stay(base: str) -> None:
    x = np.array([0.0, -0.0], DTYPES[base])
    got = evaluate({"sign": "sign(x)"}, base, {"x": x}, 2)["sign"]
    assert np.signbit(got).tolist() == [False, True]


def test_scalar_edges_are_spread_over_vectors() -> None:
    x = np.array([-1, 0.25, 0.5, 2], np.float32)
    got = evaluate(
        {
            "step": "step(0.5f, x)",
            "smooth": "smoothstep(0.0f, 1.0f, x)",
            "clamp": "clamp(x, 0.0f, 1.0f)",
            "mix": "mix(x, x + 2, 0.5f)",
            "max": "max(x, 0.0f)",
        },
        "float",
        {"x": x},
        4,
    )
    assert got["step"].tolist() == [0, 0, 1, 1]
    assert got["smooth"].tolist() == [0, 0.15625, 0.5, 1]
    assert got["clamp"].tolist() == [0, 0.25, 0.5, 1]
    assert got["mix"].tolist() == [0, 1.25, 1.5, 3]
    assert got["max"].tolist() == [0, 0.25, 0.5, 2]

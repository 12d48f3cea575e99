"""``convert_*`` for every pair of types, rounding mode and width, against exact arithmetic."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from exact import FLOATS, INTEGERS, MODES, interesting, limits, to_float, to_integer
from harness import DTYPES, evaluate

TYPES = (*INTEGERS, *FLOATS)
WIDTHS = (1, 2, 3, 4, 8, 16)
PAIRS = [(s, t, WIDTHS[k % len(WIDTHS)]) for k, (s, t) in enumerate(product(TYPES, TYPES))]


def named(target: str, width: int, *suffixes: str) -> str:
    return "_".join([f"convert_{target}{width if width > 1 else ''}", *filter(None, suffixes)]) + "(x)"


@pytest.mark.parametrize(("source", "target", "width"), [p for p in PAIRS if p[1] in INTEGERS])
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


@pytest.mark.parametrize(("source", "target", "width"), [p for p in PAIRS if p[1] in FLOATS])
def test_conversions_to_floating_point(source: str, target: str, width: int) -> None:
    x = interesting(source)
    got = evaluate({m: named(target, width, m) for m in ("", *MODES)}, target, {"x": x}, width)
    for mode, row in got.items():
        expected = np.array([to_float(v, target, mode or "rte") for v in x.tolist()], DTYPES[target])
        assert np.array_equal(row, expected, equal_nan=True), mode
        assert np.array_equal(np.signbit(row), np.signbit(expected)), mode


def test_reinterpretation_keeps_the_bits() -> None:
    x = interesting("float")
    got = evaluate({"a": "as_int4(x)", "b": "as_int4(as_short8(x))"}, "int", {"x": x}, 4)
    assert np.array_equal(got["a"], x.view(np.int32))
    assert np.array_equal(got["b"], x.view(np.int32))

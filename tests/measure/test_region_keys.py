"""What is told of an argument: sizes, and never contents."""

import math
import pickle
from array import array
from enum import Enum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from crosscast.measure.regions.history import RegionKey, described


class Method(Enum):
    JACOBI = 1


class Solver:
    def __init__(self) -> None:
        self.shape = "an attribute of the object, not of its type"


class Buffer:
    size = 4096


class Frame:
    shape = (10, 3)


ARRAYS = hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))


@given(ARRAYS, ARRAYS)
@settings(deadline=None)
def test_arrays_are_told_apart_by_type_and_shape_and_by_nothing_else(
    one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]
) -> None:
    same = one.shape == other.shape and one.dtype == other.dtype
    assert (described(one) == described(other)) == same


@given(st.integers(), st.integers())
def test_whole_numbers_are_told_by_value(one: int, other: int) -> None:
    assert (described(one) == described(other)) == (one == other)


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False).filter(bool))
def test_other_numbers_are_told_by_the_power_of_two_below_them(value: float) -> None:
    word = described(value).removeprefix("float ")
    sign, power = (-1, word[1:]) if word.startswith("-") else (1, word)
    assert power.startswith("2^")
    below = math.ldexp(1.0, int(power[2:]))
    assert below <= value * sign < 2 * below if below < 2.0**1023 else below <= value * sign


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.binary()
        | st.complex_numbers(),
        lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    )
)
@settings(deadline=None)
def test_whatever_is_given_is_told_always_the_same(value: object) -> None:
    assert described(value) == described(value) != ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (1, "1"),
        (0.0, "float 0"),
        (-0.0, "float 0"),
        (math.inf, "float inf"),
        (math.nan, "float nan"),
        ("/home/someone/input.dat", "str[23]"),
        ("sor", "sor"),
        (memoryview(array("d", [0.0] * 6)), "memoryview[6]"),
        ((np.zeros(2), 3), "(float64[2], 3)"),
        (tuple(range(9)), "tuple[9]"),
        (range(9), "range"),
        (Method.JACOBI, "Method.JACOBI"),
        (Solver(), "Solver"),
        (Buffer(), "Buffer[4096 B]"),
        (Frame(), "Frame[10x3]"),
        (np.float32(0.3), "float32 2^-2"),
        (np.bool_(True), "bool[]"),
        (np.zeros(()), "float64[]"),
        (3j, "complex"),
        (print, "builtin_function_or_method"),
    ],
)
def test_each_kind_has_its_words(value: object, text: str) -> None:
    assert described(value) == text


def test_a_key_is_shown_as_a_call_and_goes_to_other_processes() -> None:
    key = RegionKey("stencil", ("float64[8x8]", "64"), ("model.step:12",))
    assert str(key) == "stencil(float64[8x8], 64) at model.step:12"
    assert str(RegionKey("stencil")) == "stencil()"
    assert pickle.loads(pickle.dumps(key)) == key

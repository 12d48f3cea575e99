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

from crosscast.measure.regions.key import MOST_ARGUMENTS, MOST_CHARACTERS, RegionKey, arguments_of, described


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
def test_whole_numbers_of_up_to_64_bits_are_told_by_value(one: int, other: int) -> None:
    if max(one.bit_length(), other.bit_length()) <= 64:
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
def test_whatever_is_given_is_told_shortly_and_always_the_same(value: object) -> None:
    text = described(value)
    assert 0 < len(text) <= MOST_CHARACTERS
    assert described(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (1, "1"),
        (0.0, "float 0"),
        (-0.0, "float 0"),
        (math.inf, "float inf"),
        (math.nan, "float nan"),
        (1 << 100, "int of 101 bits"),
        ("/home/someone/input.dat", "str[23]"),
        ("sor", "sor"),
        (memoryview(array("d", [0.0] * 6)), "memoryview[48 B]"),
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


@given(st.lists(st.integers(-99, 99) | st.text(max_size=3), max_size=5))
def test_equal_arguments_have_equal_keys(values: list[object]) -> None:
    assert arguments_of(values) == arguments_of(list(values))
    assert hash(RegionKey("a", arguments_of(values))) == hash(RegionKey("a", arguments_of(list(values))))


def test_names_arguments_and_places_tell_keys_apart() -> None:
    keys = {
        RegionKey(name, arguments_of([array]), (place,))
        for name in ("a", "b")
        for array in (np.zeros(3), np.zeros(4))
        for place in ("m.f:1", "m.f:2")
    }
    assert len(keys) == 8


def test_of_very_many_arguments_the_last_are_counted() -> None:
    found = arguments_of(range(100))
    assert len(found) == MOST_ARGUMENTS
    assert found[-2:] == ("62", "37 more")


def test_a_key_is_shown_as_a_call_and_goes_to_other_processes() -> None:
    key = RegionKey("stencil", ("float64[8x8]", "64"), ("model.step:12",))
    assert str(key) == "stencil(float64[8x8], 64) at model.step:12"
    assert str(RegionKey("stencil")) == "stencil()"
    assert pickle.loads(pickle.dumps(key)) == key

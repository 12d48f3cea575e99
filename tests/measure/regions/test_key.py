"""Keys of regions."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crosscast.measure.regions.key import MOST_ARGUMENTS, RegionKey, arguments_of


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

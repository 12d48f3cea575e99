"""A space puts configurations in order, and tells their knobs, words and devices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.configuration import Configuration
from crosscast.errors import InputError
from crosscast.predict.configuration.data import Space

MIXED = (
    Configuration("cpu", {"cores": 1, "governor": "low"}),
    Configuration("cpu", {"cores": 1, "governor": "swift"}),
    Configuration("cpu", {"cores": 12, "governor": "low"}),
    Configuration("gpu", {"clock_hz": 5e8}),
    Configuration("gpu", {"clock_hz": 1e9}),
    Configuration("gpu", {"clock_hz": 2e9}),
)


@given(st.permutations(MIXED))
def test_the_order_does_not_depend_on_that_of_the_input(found: list[Configuration]) -> None:
    # Thus clocks that do not rise in the data do so here; and 12 comes after 1 as a number, not as a text.
    space = Space(tuple(found))
    assert space.configurations == MIXED
    assert [space.number_of(each) for each in MIXED] == list(range(6))


def test_a_knob_that_a_device_lacks_is_not_a_number() -> None:
    space = Space(MIXED)
    assert space.devices == ("cpu", "gpu")
    assert space.device_numbers.tolist() == [0, 0, 0, 1, 1, 1]
    assert space.knobs == ("clock_hz", "cores")
    assert space.words == ("governor",)
    none = np.nan
    np.testing.assert_array_equal(
        space.matrix, [[none, 1], [none, 1], [none, 12], [5e8, none], [1e9, none], [2e9, none]]
    )


def test_what_is_the_same_on_each_device_is_no_knob() -> None:
    space = Space(
        (Configuration("a", {"cores": 4, "mode": "x"}), Configuration("b", {"cores": 8, "mode": "y"}))
    )
    assert space.knobs == ()
    assert space.words == ()
    assert space.matrix.shape == (2, 0)


def test_a_knob_that_some_configurations_of_a_device_lack_varies() -> None:
    space = Space((Configuration("a", {"cores": 4}), Configuration("a", {})))
    assert [str(each) for each in space.configurations] == ["a", "a: cores 4"]
    assert space.knobs == ("cores",)
    np.testing.assert_array_equal(space.matrix, [[np.nan], [4]])


@pytest.mark.parametrize(
    ("configurations", "sentence"),
    [
        ((), "expected at least one, found none"),
        ((*MIXED, Configuration("gpu", {"clock_hz": 1000000000})), "found gpu: clock_hz 1e.09 twice"),
        (
            (Configuration("a", {"mode": "x"}), Configuration("b", {"mode": 2})),
            "mode: expected numbers or words, found both",
        ),
    ],
)
def test_what_is_no_space_is_refused(configurations: tuple[Configuration, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Space(configurations)


def test_only_known_configurations_are_found() -> None:
    space = Space(MIXED)
    with pytest.raises(InputError, match="expected one of the 6 that are known, such as cpu: "):
        space.number_of(Configuration("cpu", {}))

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.cluster.jobs import texts_of


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_every_number_is_read_back_the_same(numbers: list[float]) -> None:
    assert list(map(float, texts_of(np.array(numbers), "?"))) == numbers


@given(st.lists(st.integers(-(2**53), 2**53)), st.booleans())
def test_whole_numbers_have_no_fraction(numbers: list[int], with_another: bool) -> None:
    others = [0.5] if with_another else []
    texts = texts_of(np.array([*numbers, *others], dtype=np.float64), "?")
    assert texts[: len(numbers)] == [str(number) for number in numbers]


@pytest.mark.parametrize("number", [0.1, 1 / 3, 1e-7, 5e-324, 1e300])
def test_no_text_is_longer_than_python_needs(number: float) -> None:
    assert texts_of(np.array([number]), "?") == [repr(number)]


def test_what_is_missing_is_written_as_said() -> None:
    assert texts_of(np.array([np.nan, 2, -0.0]), "-1") == ["-1", "2", "0"]

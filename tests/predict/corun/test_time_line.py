"""Lines through times: least squares, in both forms, that never tell a time below what was seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.errors import InputError
from crosscast.predict.corun.translation import LOGARITHMIC, PLAIN, TimeLine

TIMES = st.lists(st.floats(1e-4, 1e3), min_size=3, max_size=20, unique=True).map(np.array)


@given(TIMES, st.floats(0.1, 10), st.floats(0.3, 2))
def test_a_power_law_is_found_by_the_logarithmic_form(times, factor, exponent):  # type: ignore[no-untyped-def]
    line = TimeLine.fit(LOGARITHMIC, times, factor * times**exponent)
    np.testing.assert_allclose(line(2 * times), factor * (2 * times) ** exponent, rtol=1e-6)
    # A slowdown there is that here, to the power.
    np.testing.assert_allclose(line.slowdown(times, np.full(len(times), 1.7)), 1.7**exponent, rtol=1e-6)


@given(TIMES)
def test_plain_lines_are_those_of_numpy(times):  # type: ignore[no-untyped-def]
    wanted = np.random.default_rng(0).uniform(1, 2, len(times)) * times
    line = TimeLine.fit(PLAIN, times, wanted)
    slope, intercept = np.polyfit(times, wanted, 1)
    expected = np.maximum(slope * times + intercept, wanted.min())
    np.testing.assert_allclose(line(times), expected, rtol=1e-5, atol=1e-7)


def test_no_time_is_below_the_least_that_was_seen() -> None:
    line = TimeLine.fit(PLAIN, np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    assert line(np.array([0.1])).tolist() == [1.0]


def test_a_line_takes_two_different_times() -> None:
    with pytest.raises(InputError, match="at least 2 different ones to draw a line, found 1"):
        TimeLine.fit(PLAIN, np.array([1.0, 1.0]), np.array([1.0, 2.0]))

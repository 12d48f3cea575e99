"""Scales on which slowdowns add up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.predict.corun.slowdowns import LINKS, Scale, links_for


@given(st.sampled_from(sorted(LINKS)), st.floats(0.05, 49), st.integers(2, 9), st.floats(-0.5, 0.5))
def test_slowdowns_come_back(link: str, slowdown: float, members: int, slope: float) -> None:
    scale = Scale(link, -0.3, slope, 0.2)
    values, count = np.array([slowdown]), np.array([float(members)])
    assert scale.back(scale.to(values, count), count)[0] == pytest.approx(slowdown, rel=1e-9)


@given(st.sampled_from(sorted(LINKS)), st.floats(-1e6, 1e6))
def test_whatever_the_number_the_slowdown_is_one(link: str, number: float) -> None:
    slowdown = LINKS[link].back(np.array([number]))[0]
    assert 0 <= slowdown <= 50 + 1e-9
    assert np.isfinite(slowdown)


@given(st.sampled_from(sorted(LINKS)), st.floats(0.1, 40), st.floats(0.01, 5))
def test_larger_numbers_are_larger_slowdowns(link: str, slowdown: float, more: float) -> None:
    first, second = LINKS[link].to(np.array([slowdown, slowdown + more]))
    assert first < second


def test_there_is_no_choice_where_traits_tell() -> None:
    assert links_for(("utilisation",)) == ("logarithm",)
    assert set(links_for(())) == set(LINKS)

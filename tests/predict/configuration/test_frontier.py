"""The frontier has what no other configuration beats."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crosscast.predict.configuration.data import pareto_frontier

# Few values, so that many agree.
POINT = st.tuples(
    st.sampled_from([1.0, 2.0, 3.0, np.nan, np.inf]), st.sampled_from([5.0, 6.0, 7.0, np.nan, np.inf])
)


def is_beaten(point: tuple[float, float], place: int, points: list[tuple[float, float]]) -> bool:
    """Whether another is as good in both, and better in one or earlier."""
    return any(
        np.isfinite(other).all()
        and other[0] <= point[0]
        and other[1] <= point[1]
        and (other != point or number < place)
        for number, other in enumerate(points)
        if number != place
    )


@given(st.lists(POINT, max_size=12))
def test_it_is_that_found_by_comparing_all_with_all(points: list[tuple[float, float]]) -> None:
    time, power = (np.array([each[axis] for each in points], np.float64) for axis in (0, 1))
    expected = [
        place
        for place, point in enumerate(points)
        if np.isfinite(point).all() and not is_beaten(point, place, points)
    ]
    found = pareto_frontier(time, power)
    assert sorted(found.tolist()) == expected
    assert (np.diff(power[found]) > 0).all()
    assert (np.diff(time[found]) < 0).all()


def test_of_those_that_agree_in_both_the_first_is_taken() -> None:
    assert pareto_frontier(np.array([2.0, 1.0, 1.0]), np.array([5.0, 6.0, 6.0])).tolist() == [0, 1]


def test_without_any_finite_point_there_is_no_frontier() -> None:
    assert pareto_frontier(np.array([np.nan, 1.0]), np.array([1.0, np.nan])).tolist() == []

"""Weighted means and medians are those of values that are there as often as their weight says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from crosscast.evaluate.confidence import Grouped, average, least

numbers = st.floats(-1e6, 1e6)
groups = 4


@given(
    st.lists(st.tuples(numbers, st.integers(0, groups - 1)), min_size=1, max_size=30),
    st.lists(st.lists(st.integers(0, 3), min_size=groups, max_size=groups), min_size=1, max_size=5),
)
def test_weights_are_repetitions(pairs: list[tuple[float, int]], weights: list[list[int]]) -> None:
    values = np.array([pair[0] for pair in pairs])
    numbers = np.array([pair[1] for pair in pairs])
    grouped = Grouped(values, numbers, groups)
    means, medians = grouped.mean(np.array(weights, float)), grouped.median(np.array(weights, float))
    for place, weight in enumerate(weights):
        repeated = np.repeat(values, np.array(weight)[numbers])
        if repeated.size:
            np.testing.assert_allclose(means[place], repeated.mean(), atol=1e-6)
            assert medians[place] == np.median(repeated)
        else:
            assert np.isnan(means[place])
            assert np.isnan(medians[place])


def test_groups_alone() -> None:
    grouped = Grouped(np.array([1.0, 2.0, 6.0, 5.0]), np.array([0, 0, 0, 2]), 3)
    np.testing.assert_equal(grouped.means(), [3.0, np.nan, 5.0])
    np.testing.assert_equal(grouped.medians(), [2.0, np.nan, 5.0])


def test_groups_without_a_value_do_not_count() -> None:
    weights = np.array([[1.0, 1.0, 2.0], [0.0, 3.0, 0.0]])
    np.testing.assert_equal(average(np.array([1.0, np.nan, 4.0]), weights), [3.0, np.nan])
    np.testing.assert_equal(least(np.array([1.0, np.nan, 4.0]), weights), [1.0, np.nan])


def test_an_infinite_group_that_is_not_there_does_not_count() -> None:
    weights = np.array([[1.0, 0.0], [1.0, 1.0]])
    np.testing.assert_equal(average(np.array([2.0, np.inf]), weights), [2.0, np.inf])


def test_no_value_at_all_is_no_number() -> None:
    nothing = Grouped(np.zeros(0), np.zeros(0, dtype=np.int64), 2)
    assert np.isnan(nothing.mean(np.ones((3, 2)))).all()
    assert np.isnan(nothing.median(np.ones((3, 2)))).all()

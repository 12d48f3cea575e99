"""Kendall's tau over shared configurations is what counting pairs gives."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.predict.configuration.bailey2014 import (
    dissimilarities,
    rank_correlation,
    rank_correlations,
)

frontiers = st.lists(st.integers(0, 12), unique=True, max_size=12)


def counted(first: list[int], second: list[int]) -> float:
    shared = [each for each in first if each in second]
    pairs = list(combinations(shared, 2))
    agree = sum(second.index(before) < second.index(after) for before, after in pairs)
    return (2 * agree - len(pairs)) / len(pairs)


@given(frontiers, frontiers)
def test_it_is_concordant_less_discordant_pairs_over_all(first: list[int], second: list[int]) -> None:
    found = rank_correlation(np.array(first, np.int64), np.array(second, np.int64))
    if len(set(first) & set(second)) < 2:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(counted(first, second))


@given(frontiers.filter(lambda each: len(each) > 1))
def test_an_order_agrees_with_itself_and_is_opposite_to_itself_backwards(order: list[int]) -> None:
    frontier = np.array(order, np.int64)
    assert rank_correlation(frontier, frontier) == 1
    assert rank_correlation(frontier, frontier[::-1]) == pytest.approx(-1)


def test_the_matrix_has_each_pair_and_is_symmetric() -> None:
    orders = [np.array(each) for each in ([0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1], [9, 8])]
    found = rank_correlations(orders)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1)
    assert found[0, 1] == -1
    assert found[0, 2] == pytest.approx(1 / 3)
    assert np.isnan(found[3, :3]).all()


def test_dissimilarity_is_none_for_equal_orders_and_a_half_where_there_is_no_order() -> None:
    assert dissimilarities(np.array([1.0, 0.0, -1.0, np.nan])).tolist() == [0, 0.5, 1, 0.5]

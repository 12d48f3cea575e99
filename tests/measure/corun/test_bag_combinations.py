"""Bags by number and by lot."""

from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.measure.corun.campaign import combination, combinations, drawn

THINGS, SIZES = st.integers(1, 7), st.integers(1, 5)


@given(things=THINGS, size=SIZES)
def test_all_bags_are_those_of_itertools_in_its_order(things: int, size: int) -> None:
    expected = list(combinations_with_replacement(range(things), size))
    assert drawn(things, size, None, 0) == expected
    assert combinations(things, size) == len(expected)
    assert [combination(things, size, number) for number in range(len(expected))] == expected


@given(things=THINGS, size=SIZES, most=st.integers(1, 60), seed=st.integers(0, 99))
def test_a_lot_draws_different_bags_and_more_begin_with_fewer(
    things: int, size: int, most: int, seed: int
) -> None:
    chosen = drawn(things, size, most, seed)
    assert len(set(chosen)) == len(chosen) == min(most, combinations(things, size))
    assert set(chosen) <= set(combinations_with_replacement(range(things), size))
    if most + 1 < combinations(things, size):
        assert drawn(things, size, most + 1, seed)[:most] == chosen


def test_seeds_draw_different_bags() -> None:
    assert drawn(28, 3, 10, 0) != drawn(28, 3, 10, 1)


@pytest.mark.parametrize(("things", "size", "count"), [(28, 2, 406), (28, 3, 4060), (60, 5, 7_624_512)])
def test_numbers_of_bags_are_known_without_listing_them(things: int, size: int, count: int) -> None:
    assert combinations(things, size) == count
    assert combination(things, size, count - 1) == (things - 1,) * size
    assert len(drawn(things, size, 3, 0)) == 3

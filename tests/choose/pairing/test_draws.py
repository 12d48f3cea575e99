"""Errors that are drawn for bags."""

import numpy as np

from crosscast.decide.pairing import ErrorBags
from crosscast.predict.corun.forecast import LeftOut

# Two groups; the first has a bag of two and one of three, the second a bag of two.
ERRORS = LeftOut(
    np.array([0.1, 0.2, 0.3, 0.4, 0.5, -1.0, -2.0]),
    np.array([0, 0, 0, 0, 0, 1, 1]),
    ("a", "b"),
    np.array([0, 0, 1, 1, 1, 2, 2]),
)
PAIRS = [{0.1, 0.2}, {0.3, 0.4}, {0.3, 0.5}, {0.4, 0.5}, {-1.0, -2.0}]


def test_members_of_a_pair_get_the_errors_of_one_bag() -> None:
    drawn = ErrorBags.of(ERRORS).drawn(2, 200, seed=0)
    assert drawn.shape == (400, 2)
    found = {frozenset(row) for row in drawn.tolist()}
    assert found == {frozenset(pair) for pair in PAIRS}


def test_each_draw_is_there_in_both_orders() -> None:
    drawn = ErrorBags.of(ERRORS).drawn(2, 50, seed=0).tolist()
    assert sorted(drawn) == sorted(row[::-1] for row in drawn)


def test_the_same_seed_draws_the_same() -> None:
    bags = ErrorBags.of(ERRORS)
    assert bags.drawn(3, 9, seed=4).tolist() == bags.drawn(3, 9, seed=4).tolist()
    assert bags.drawn(3, 9, seed=4).tolist() != bags.drawn(3, 9, seed=5).tolist()


def test_larger_bags_take_errors_of_a_smaller_one_again() -> None:
    for row in ErrorBags.of(ERRORS).drawn(5, 100, seed=0).tolist():
        assert set(row) in ({0.1, 0.2}, {0.3, 0.4, 0.5}, {-1.0, -2.0})


def test_errors_whose_bags_are_not_known_are_drawn_one_by_one() -> None:
    alone = LeftOut(ERRORS.log_error, ERRORS.group, ERRORS.groups)
    drawn = ErrorBags.of(alone).drawn(2, 100, seed=0)
    assert (drawn[:, 0] == drawn[:, 1]).all()


def test_errors_are_relative_to_what_they_are_at_their_slowdown() -> None:
    values = np.log(np.array([1.0, 1.0, 2.0, 2.0]))
    errors = np.array([0.1, -0.1, 0.3, -0.3])
    spread = LeftOut(errors, np.array([0, 0, 1, 1]), ("a", "b"), np.array([0, 0, 1, 1]), values)
    drawn = ErrorBags.of(spread).drawn(2, 100, seed=0)
    assert np.allclose(np.abs(drawn), 1.0)

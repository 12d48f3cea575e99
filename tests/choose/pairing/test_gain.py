"""What pairs and bags gain: two ways to count, and cases that can be counted by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crosscast.decide.pairing import bag_gain, expected_gain, pair_gain

LENGTHS = arrays(np.float64, (7, 2), elements=st.floats(0.01, 100))
SLOWDOWNS = arrays(np.float64, (7, 2), elements=st.floats(1, 10))


@given(LENGTHS, SLOWDOWNS)
def test_a_pair_gains_what_a_bag_of_two_gains(lengths: np.ndarray, slowdowns: np.ndarray) -> None:
    bags = bag_gain(lengths, slowdowns, lambda running: np.ones(running.shape))
    assert pair_gain(lengths, slowdowns) == pytest.approx(bags, rel=1e-9, abs=1e-9)


@given(LENGTHS, SLOWDOWNS)
def test_both_members_of_a_pair_are_treated_alike(lengths: np.ndarray, slowdowns: np.ndarray) -> None:
    assert pair_gain(lengths, slowdowns).tolist() == pair_gain(lengths[:, ::-1], slowdowns[:, ::-1]).tolist()


def test_jobs_that_do_not_disturb_each_other_save_the_shorter() -> None:
    assert pair_gain(np.array([2.0, 3.0]), np.ones(2)).tolist() == 2.0


def test_a_pair_that_takes_longer_together_has_a_gain_below_zero() -> None:
    assert pair_gain(np.ones(2), np.array([3.0, 3.0])) == pytest.approx(-1.0)


def test_three_jobs_gain_what_is_left_of_their_sum() -> None:
    # All end after 1.5 of the first; then two of length 1 left over run at 1.2 each.
    gain = bag_gain(
        np.array([[1.0, 2.0, 2.0]]),
        np.full((1, 3), 1.5),
        lambda running: np.where(running, 1.2, 1.0),
    )
    assert gain.tolist() == pytest.approx([5.0 - (1.5 + 1.2)])


def test_losses_are_cut_off_before_the_mean_and_bags_that_do_not_fit_gain_nothing() -> None:
    gains = np.array([[3.0, 3.0, 3.0], [-1.0, -1.0, -1.0]])
    assert expected_gain(gains, np.array([1.0, 0.5, np.nan])).tolist() == [1.5, 0.75, 1.5]

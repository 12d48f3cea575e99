"""Scores of predicted vectors: cases that can be counted by hand, and laws."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.evaluate.relative import RowScores, metrics_of, row_scores
from crosscast.predict.relative.data import relative_to_slowest

TIMES = arrays(np.float64, (4, 3), elements=st.floats(1e-3, 1e3))


def scored(times: list[list[float]], predicted: list[list[float]]) -> RowScores:
    return row_scores(np.array(times), np.array(predicted))


def same(rows: Reals) -> Reals:
    return np.full(len(rows), 1 / len(rows))


def test_a_row_is_scored_as_by_hand() -> None:
    # The vector is (0.5, 0.25, 1); the prediction takes the first device for the fastest.
    found = scored([[2.0, 1.0, 4.0]], [[0.2, 0.4, 0.9]])
    assert found.absolute_error.tolist() == [pytest.approx((0.3 + 0.15 + 0.1) / 3)]
    assert found.same_order.tolist() == [0]
    assert found.top1.tolist() == [0]
    assert found.regret.tolist() == [1]
    # ln(p_i / v_i) is ln 0.4, ln 1.6 and ln 0.9: the pairs differ by ln 4, ln 2.25 and ln 1.777...
    pairs = (log(4), log(0.9 / 0.4), log(1.6 / 0.9))
    assert found.log_error.tolist() == [pytest.approx(sum(pairs) / 3)]


def test_two_devices_have_one_ratio_that_may_be_off() -> None:
    found = metrics_of(scored([[1.0, 2.0], [1.0, 8.0]], [[1.0, 1.0], [0.25, 1.0]]), np.ones(2))
    # The ratios 1/2 and 1/8 are predicted as 1 and 1/4: twice too much both times.
    assert found.typical_factor == pytest.approx(2)
    assert found.mae == pytest.approx((0.5 + 0.0 + 0.125 + 0.0) / 4)


def test_the_typical_factor_of_two_devices_is_that_of_their_ratio() -> None:
    times, predicted = np.array([[3.0, 2.0], [1.0, 5.0]]), np.array([[0.9, 0.8], [0.7, 0.6]])
    off = np.log(predicted[:, 0] / predicted[:, 1]) - np.log(times[:, 0] / times[:, 1])
    found = metrics_of(row_scores(times, predicted), np.ones(2))
    assert found.typical_factor == pytest.approx(exp(np.abs(off).mean()))


def test_true_ties_are_right_in_either_order_and_predicted_ones_are_wrong() -> None:
    assert scored([[1.0, 1.0, 2.0]], [[0.5, 0.4, 0.9]]).same_order.tolist() == [1]
    assert scored([[1.0, 1.0, 2.0]], [[0.4, 0.5, 0.9]]).same_order.tolist() == [1]
    assert scored([[1.0, 1.5, 2.0]], [[0.5, 0.5, 0.9]]).same_order.tolist() == [0]


def test_of_devices_predicted_to_tie_the_first_is_chosen() -> None:
    assert scored([[1.0, 3.0]], [[0.5, 0.5]]).regret.tolist() == [0]
    assert scored([[3.0, 1.0]], [[0.5, 0.5]]).regret.tolist() == [2]


def test_either_of_two_fastest_devices_is_the_fastest() -> None:
    assert scored([[2.0, 2.0, 4.0]], [[0.9, 0.1, 1.0]]).top1.tolist() == [1]


def test_means_and_the_median_heed_weights() -> None:
    scores = scored([[1.0, 2.0], [1.0, 4.0], [1.0, 11.0]], [[0.5, 1.0], [1.0, 0.5], [1.0, 0.5]])
    assert scores.regret.tolist() == [0, 3, 10]
    evenly = metrics_of(scores, np.ones(3))
    assert [evenly.regret, evenly.top1] == pytest.approx([13 / 3, 1 / 3])
    assert evenly.median_regret == 3
    heavy = metrics_of(scores, np.array([8.0, 1.0, 1.0]))
    assert [heavy.regret, heavy.top1] == pytest.approx([1.3, 0.8])
    assert heavy.median_regret == 0


def test_a_row_without_weight_does_not_count() -> None:
    scores = scored([[1.0, 2.0], [1.0, 4.0]], [[0.5, 1.0], [1.0, 0.5]])
    assert metrics_of(scores, np.array([1.0, 0.0])).mae == 0


@given(TIMES)
def test_the_truth_has_no_error_and_no_regret(times: Reals) -> None:
    found = metrics_of(row_scores(times, relative_to_slowest(times)), same(times))
    assert (found.mae, found.same_order, found.top1, found.regret) == (0, 1, 1, 0)
    assert found.typical_factor == pytest.approx(1)


@given(TIMES, TIMES)
def test_mae_is_0_only_for_the_truth(times: Reals, other: Reals) -> None:
    vector, predicted = relative_to_slowest(times), relative_to_slowest(other)
    found = metrics_of(row_scores(times, predicted), same(times))
    assert (found.mae == 0) == np.array_equal(vector, predicted)


@given(TIMES, TIMES)
def test_regret_is_never_below_0(times: Reals, other: Reals) -> None:
    found = row_scores(times, other)
    assert (found.regret >= 0).all()
    assert ((found.regret == 0) == (found.top1 == 1)).all()


@given(TIMES, arrays(np.float64, (4, 3), elements=st.sampled_from([0.125, 0.25, 0.5, 1.0, 2.0, 3.0])))
def test_order_and_choice_stay_under_rising_maps(times: Reals, predicted: Reals) -> None:
    before, after = row_scores(times, predicted), row_scores(times, predicted**3 + 7)
    for name in ("same_order", "top1", "regret"):
        assert np.array_equal(getattr(before, name), getattr(after, name))


@given(TIMES, TIMES, st.permutations(range(3)))
def test_the_order_of_devices_changes_no_order(times: Reals, other: Reals, order: list[int]) -> None:
    before, after = row_scores(times, other), row_scores(times[:, order], other[:, order])
    assert np.array_equal(before.same_order, after.same_order)
    np.testing.assert_allclose(before.log_error, after.log_error, atol=1e-9)
    np.testing.assert_allclose(
        row_scores(times, relative_to_slowest(other)).absolute_error,
        row_scores(times[:, order], relative_to_slowest(other)[:, order]).absolute_error,
    )


@given(TIMES, TIMES)
def test_the_same_order_has_the_right_choice(times: Reals, other: Reals) -> None:
    found = row_scores(times, other)
    assert (found.top1[found.same_order == 1] == 1).all()


@given(TIMES, TIMES, st.floats(0.01, 100))
def test_ratios_do_not_depend_on_what_they_are_relative_to(times: Reals, other: Reals, scale: float) -> None:
    np.testing.assert_allclose(
        row_scores(times, other).log_error, row_scores(times, scale * other).log_error, atol=1e-9
    )


@pytest.mark.parametrize(
    ("times", "predicted"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0, 3.0]]),
        ([[1.0]], [[1.0]]),
        ([[1.0, 2.0]], [[1.0, 0.0]]),
        ([[1.0, 2.0]], [[1.0, np.nan]]),
        ([[1.0, 2.0]], [[-1.0, 1.0]]),
        ([[0.0, 2.0]], [[1.0, 1.0]]),
        ([[np.inf, 2.0]], [[1.0, 1.0]]),
    ],
)
def test_what_is_no_vector_is_refused(times: list[list[float]], predicted: list[list[float]]) -> None:
    with pytest.raises(InputError, match=r"^(times_s|predicted): expected"):
        scored(times, predicted)


def test_nothing_has_no_metrics() -> None:
    with pytest.raises(InputError, match="at least one row"):
        metrics_of(scored([[1.0, 2.0]], [[0.5, 1.0]]), np.zeros(1))

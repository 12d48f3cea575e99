"""Weighted means and medians are those of values that are there as often as their weight says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crosscast.errors import InputError
from crosscast.evaluation.confidence import (
    Confidence,
    Difference,
    Grouped,
    Interval,
    average,
    difference_of,
    interval_of,
    least,
)
from crosscast.evaluation.time import evaluate
from crosscast.evaluation.time_study import bootstrap
from support.models import MeanModel, Oracle, make_grid, random_grid


def test_an_interval_leaves_a_fortieth_on_either_side_and_what_is_not_finite() -> None:
    drawn = np.concatenate([np.arange(401.0), [np.nan, np.inf, -np.inf]])
    found = interval_of(drawn)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((10.0, 390.0))


@pytest.mark.parametrize(
    ("shift", "sign", "better"),
    [(1.0, 1, True), (1.0, -1, False), (-1.0, -1, True), (0.0, 1, False), (0.0, -1, False)],
)
def test_a_difference_is_better_where_its_interval_is_on_the_good_side_of_0(
    shift: float, sign: int, better: bool
) -> None:
    found = difference_of("mean", shift, np.linspace(-0.5, 0.5, 101) + shift, sign)
    assert found is not None
    assert (found.baseline, found.value, found.better) == ("mean", shift, better)


def test_nothing_is_said_of_differences_that_are_not_finite() -> None:
    assert difference_of("mean", np.nan, np.zeros(3), 1) is None
    assert difference_of("mean", 0.0, np.full(3, np.nan), 1) is None


def test_it_is_written_by_names() -> None:
    sure = Confidence(
        {"mae": Interval(1.0, 2.0)}, {"mae": Difference("mean", -3.0, Interval(-4.0, -2.0), True)}
    )
    assert json.loads(json.dumps(sure.to_dict())) == {
        "intervals": {"mae": [1.0, 2.0]},
        "against_baseline": {
            "mae": {"baseline": "mean", "difference": -3.0, "low": -4.0, "high": -2.0, "better": True}
        },
    }


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


def test_intervals_are_those_of_scipy() -> None:
    # Applications of equal size, so that the mean over cells is the mean over applications.
    grid = random_grid(n=40, applications=8)
    evaluation = evaluate(grid, [MeanModel()])
    errors = np.array([each.mae_log for each in evaluation.results[0].applications.values()])
    reference = stats.bootstrap(
        (errors,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    (confidence,) = bootstrap(evaluation, draws=20_000)
    interval = confidence.intervals["mae_log"]
    assert interval.low == pytest.approx(reference.low, rel=0.01)
    assert interval.high == pytest.approx(reference.high, rel=0.01)


def test_a_model_that_is_always_better_is_better_beyond_doubt() -> None:
    grid = random_grid()
    evaluation = evaluate(grid, [MeanModel(), Oracle(grid)], probes=(0, 1))
    baseline, _, oracle, _ = bootstrap(evaluation)
    assert not baseline.differences
    difference = oracle.differences["rmse_log"]
    assert difference.baseline == "device-mean"
    score = evaluation.results[0].scores.rmse_log
    assert score is not None
    assert difference.value == pytest.approx(-score)
    assert difference.better
    assert difference.interval.high < 0
    assert oracle.differences["top1"].better
    assert oracle.differences["top1"].interval.low > 0
    assert "coverage" not in oracle.differences


def test_draws_are_of_pairs() -> None:
    # The other model errs by the same factor more on every cell, so the difference does not vary.
    grid = make_grid(np.arange(24.0).reshape(8, 3) ** 2 / 50, list("aabbccdd"))
    worse = MeanModel("shifted", shift=200.0)
    evaluation = evaluate(grid, [MeanModel(shift=100.0), worse])
    _, shifted = bootstrap(evaluation)
    difference = shifted.differences["mae_log"]
    assert difference.value == pytest.approx(100)
    assert difference.interval.low == pytest.approx(100)
    assert difference.interval.high == pytest.approx(100)
    assert not difference.better


def test_the_best_baseline_is_compared_with() -> None:
    grid = random_grid()
    models = [MeanModel(), MeanModel("nearest", shift=9.0), MeanModel("other", shift=3.0)]
    *_, other = bootstrap(evaluate(grid, models))
    assert other.differences["rmse_log"].baseline == "device-mean"
    *_, other = bootstrap(evaluate(grid, models), baselines=("nearest",))
    assert other.differences["rmse_log"].baseline == "nearest"
    assert other.differences["rmse_log"].better


def test_without_a_baseline_there_are_intervals_alone() -> None:
    grid = random_grid()
    (confidence,) = bootstrap(evaluate(grid, [Oracle(grid)]))
    assert not confidence.differences
    assert confidence.intervals["slowdown_mean"].low == 1


def test_a_seed_says_the_draws() -> None:
    evaluation = evaluate(random_grid(), [MeanModel()])
    assert bootstrap(evaluation, draws=50) == bootstrap(evaluation, draws=50)
    assert bootstrap(evaluation, draws=50) != bootstrap(replace(evaluation, seed=1), draws=50)


def test_scores_that_nothing_defines_have_no_interval() -> None:
    (confidence,) = bootstrap(evaluate(random_grid(), [MeanModel()], "leave-device-out"))
    assert "kendall_tau" not in confidence.intervals
    assert "rmse_log" in confidence.intervals


def test_no_draw_is_refused() -> None:
    with pytest.raises(InputError, match="draws: expected at least 1, found 0"):
        bootstrap(evaluate(random_grid(), [MeanModel()]), draws=0)

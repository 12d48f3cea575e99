"""The bootstrap draws whole applications, the same for all models."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crosscast.errors import InputError
from crosscast.evaluate.time import evaluate
from crosscast.evaluate.time_study import bootstrap
from stand_in_models import MeanModel, Oracle, make_grid, random_grid


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

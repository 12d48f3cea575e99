"""The noise floor is the spread of runs; the best fixed device is found by its slowdown."""

from typing import Any

import numpy as np
import pytest

from crosscast.evaluate.time_study import always_the_same, noise_floor
from crosscast.predict.time.observed import grid_of
from crosscast.tables.bundled import bundled_dataset
from stand_in_models import make_grid


@pytest.fixture(scope="module")
def bundled() -> Any:
    dataset = bundled_dataset()
    return dataset, grid_of(dataset)


def test_the_floor_is_the_spread_of_single_runs(bundled: Any) -> None:
    dataset, grid = bundled
    found = noise_floor(dataset, grid, seed=0).scores
    # About the median instead of the mean, so a little more than the standard deviation.
    spread = np.sqrt(np.mean(grid.spread**2))
    assert found.rmse_log == pytest.approx(spread, rel=0.15)
    assert found.coverage == pytest.approx(0.9, abs=0.02)
    assert found.slowdown_mean is not None
    assert found.slowdown_mean > 1


def test_the_floor_follows_the_seed(bundled: Any) -> None:
    dataset, grid = bundled
    assert noise_floor(dataset, grid, 0).scores == noise_floor(dataset, grid, 0).scores
    assert noise_floor(dataset, grid, 0).scores != noise_floor(dataset, grid, 1).scores


def test_intervals_of_the_floor_follow_the_level(bundled: Any) -> None:
    dataset, grid = bundled
    wide, narrow = (noise_floor(dataset, grid, 0, level).scores for level in (0.9, 0.5))
    assert narrow.coverage == pytest.approx(0.5, abs=0.05)
    assert wide.width is not None and narrow.width is not None
    assert wide.width > narrow.width


def test_the_best_fixed_device_by_hand() -> None:
    # d1 is the fastest for two kernels, and far off for the third; d2 is never far off.
    grid = make_grid(np.log([[9.0, 1.0, 2.0], [9.0, 1.0, 2.0], [9.0, 30.0, 3.0]]), ["a", "a", "b"])
    always = always_the_same(grid)
    assert always is not None
    assert always.device == "d2"
    found = always.result.scores
    assert found.slowdown_mean == pytest.approx((2 + 2 + 1) / 3)
    assert found.top1 == pytest.approx(1 / 3)
    assert found.rmse_log is found.coverage is None


def test_a_device_that_lacks_a_kernel_is_not_taken_always() -> None:
    grid = make_grid(np.log([[2.0, 1.0], [2.0, np.nan], [2.0, 1.0]]), ["a", "a", "b"])
    always = always_the_same(grid)
    assert always is not None
    assert always.device == "d0"


def test_one_device_is_no_choice() -> None:
    assert always_the_same(make_grid(np.zeros((2, 1)), ["a", "b"])) is None

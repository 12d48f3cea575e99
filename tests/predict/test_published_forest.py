"""The published forest on a grid."""

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.time.data import Grid
from crosscast.predict.time.johnston2018 import FittedForest, PublishedForest, device_codes
from crosscast.predict.time.observed import grid_of
from published_data import made_up

SMALL = PublishedForest(trees=40, tried=4, node_size=1)


@pytest.fixture(scope="module")
def grid() -> Grid:
    return grid_of(made_up())


def test_it_has_the_parameters_of_the_paper() -> None:
    model = PublishedForest()
    assert (model.name, model.trees, model.tried, model.node_size) == ("published-forest", 505, 30, 9)


def test_it_knows_the_cells_that_it_was_fitted_to(grid: Grid) -> None:
    predicted = PublishedForest(60, 30, 1).fit(grid, 0).log_time(grid.profiles)
    assert predicted.shape == grid.log_time.shape
    assert np.corrcoef(predicted.ravel(), grid.log_time.ravel())[0, 1] > 0.97


def test_the_same_seed_makes_the_same_forest(grid: Grid) -> None:
    first, second, other = (SMALL.fit(grid, seed).log_time(grid.profiles) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_cells_without_a_time_are_left_out(grid: Grid) -> None:
    log_time = grid.log_time.copy()
    log_time[::2, 1] = np.nan
    gaps = Grid(grid.profiles, grid.devices, log_time, grid.spread, grid.runs)
    assert np.isfinite(SMALL.fit(gaps, 0).log_time(grid.profiles)).all()
    log_time[:] = np.nan
    with pytest.raises(InputError, match="found none"):
        SMALL.fit(Grid(grid.profiles, grid.devices, log_time, grid.spread, grid.runs), 0)


def test_it_is_made_again_from_its_arrays(grid: Grid) -> None:
    fitted = SMALL.fit(grid, 0)
    again = FittedForest.from_state(fitted.state())
    np.testing.assert_array_equal(again.log_time(grid.profiles), fitted.log_time(grid.profiles))
    with pytest.raises(InputError, match="names of metrics, found luck"):
        FittedForest.from_state({**fitted.state(), "metrics": np.array(["luck"])})


def test_arrays_of_trees_with_more_than_one_output_are_refused(grid: Grid) -> None:
    state = dict(SMALL.fit(grid, 0).state())
    state["leaf_value"] = np.hstack([state["leaf_value"]] * 2)
    with pytest.raises(InputError, match="expected one output, found 2"):
        FittedForest.from_state(state)


def test_devices_are_told_apart_by_the_order_of_their_means() -> None:
    codes = device_codes(np.array([0, 0, 1, 2]), np.array([5.0, 7.0, 1.0, 9.0]), 4)
    assert codes.tolist() == [1, 0, 2, 3]

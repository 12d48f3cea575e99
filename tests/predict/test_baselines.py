"""One time a device, and the most similar kernel."""

import numpy as np
import pytest
from small_grids import grid_of_times, small_grid, small_profiles

from crosscast.errors import InputError
from crosscast.predict.time.baselines import DeviceMean, FittedMean, FittedNearest, Nearest
from crosscast.predict.time.data import Grid


def three_kernels() -> Grid:
    columns = {
        "total_instruction_count": np.array([1e3, 1e6, 1e9]),
        "work_items": np.array([1e2, 1e3, 1e4]),
        "total_memory_footprint": np.array([1e2, 1e3, 1e4]),
    }
    return grid_of_times(small_profiles(3, columns), np.log([[1e-6, 2e-6], [1e-4, 1e-5], [1e-2, 1e-2]]))


def test_the_mean_of_a_device_is_geometric() -> None:
    grid = three_kernels()
    found = np.exp(DeviceMean().fit(grid, 0).log_time(grid.profiles))
    assert found.shape == (3, 2)
    np.testing.assert_allclose(found, np.tile([1e-4, (2e-6 * 1e-5 * 1e-2) ** (1 / 3)], (3, 1)))


def test_the_mean_chooses_the_same_device_for_all() -> None:
    grid = small_grid()
    chosen = DeviceMean().fit(grid, 0).log_time(grid.profiles).argmin(axis=1)
    assert len(set(chosen.tolist())) == 1


def test_a_training_kernel_is_nearest_to_itself() -> None:
    grid = small_grid()
    np.testing.assert_allclose(Nearest().fit(grid, 0).log_time(grid.profiles), grid.log_time, atol=1e-12)


def test_a_kernel_gets_the_times_of_the_most_similar_one() -> None:
    grid = three_kernels()
    columns = {
        "total_instruction_count": np.array([3e8, 2e3]),
        "work_items": np.array([7e3, 3e2]),
        "total_memory_footprint": np.array([3e4, 50.0]),
    }
    found = Nearest().fit(grid, 0).log_time(small_profiles(2, columns))
    np.testing.assert_array_equal(found, grid.log_time[[2, 0]])


def test_kernels_that_look_the_same_count_as_one() -> None:
    grid = grid_of_times(small_profiles(4, {}), np.log([[1.0], [4.0], [1.0], [4.0]]))
    np.testing.assert_allclose(np.exp(Nearest().fit(grid, 0).log_time(grid.profiles)), 2.0)


def test_many_kernels_are_looked_up_as_one_by_one() -> None:
    predictor, many = Nearest().fit(small_grid(), 0), small_grid(n=5000, seed=2).profiles
    found = predictor.log_time(many)
    some = np.arange(0, 5000, 500)
    np.testing.assert_array_equal(found[some], predictor.log_time(many.take(some)))


def test_points_that_do_not_fit_the_features_are_refused() -> None:
    state = Nearest().fit(small_grid(), 0).state()
    with pytest.raises(InputError, match=r"^model: points: expected shape"):
        FittedNearest.from_state({**state, "points": state["points"][:, :1]})


def test_means_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(InputError, match=r"^model: mean: expected finite numbers, found others$"):
        FittedMean.from_state({"mean": np.array([1.0, np.nan])})

"""Grids without gaps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_grids import grid_of_times, small_grid, small_profiles

from crosscast.errors import InputError
from crosscast.predict.time.data import device_effects, filled


def test_a_complete_grid_stays_as_it_is() -> None:
    grid = small_grid()
    np.testing.assert_array_equal(filled(grid).log_time, grid.log_time)


def test_measured_cells_stay_as_they_are() -> None:
    grid = small_grid(gaps=0.4)
    known = np.isfinite(grid.log_time)
    times = filled(grid).log_time
    assert np.isfinite(times).all()
    assert not known.all()
    np.testing.assert_array_equal(times[known], grid.log_time[known])


def test_a_kernel_without_times_is_left_out() -> None:
    grid = small_grid(n=6)
    grid.log_time[2] = np.nan
    assert filled(grid).profiles.kernel == ("k0", "k1", "k3", "k4", "k5")


@given(st.integers(0, 2**32), st.floats(0, 0.8))
@settings(max_examples=50, deadline=None)
def test_sums_of_a_kernels_and_a_devices_effect_are_filled_exactly(seed: int, gaps: float) -> None:
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(12, 1)) + rng.normal(size=5)
    log_time = np.where(rng.random(whole.shape) < gaps, np.nan, whole)
    # One kernel on all devices joins them; one device joins all kernels.
    log_time[0], log_time[:, 1] = whole[0], whole[:, 1]
    np.testing.assert_allclose(
        filled(grid_of_times(small_profiles(12, {}), log_time)).log_time, whole, atol=1e-9
    )


def test_a_device_does_not_look_slow_for_having_had_long_kernels() -> None:
    log_time = np.array([[0.0, np.nan], [1.0, 1.0], [5.0, 5.0], [np.nan, 9.0]])
    np.testing.assert_allclose(device_effects(log_time), [0.0, 0.0], atol=1e-12)


def test_devices_that_share_no_kernel_do_not_disturb_each_other() -> None:
    log_time = np.array([[0.0, 2.0, np.nan, np.nan], [np.nan, np.nan, 7.0, 8.0]])
    np.testing.assert_allclose(device_effects(log_time), [-1.0, 1.0, -0.5, 0.5], atol=1e-12)


def test_a_grid_without_times_is_refused() -> None:
    grid = grid_of_times(small_profiles(2, {}), np.full((2, 2), np.nan))
    with pytest.raises(InputError, match=r"^grid: expected kernels with times, found none$"):
        filled(grid)


def test_a_device_without_times_is_refused_by_name() -> None:
    grid = small_grid(n=6)
    grid.log_time[:, 1] = np.nan
    with pytest.raises(InputError, match=r"^grid: expected times on every device, found none on d1$"):
        filled(grid)

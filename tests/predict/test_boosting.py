"""Boosted trees as a model."""

from dataclasses import replace

import numpy as np
import pytest
from small_grids import small_grid

from crosscast.predict.time.regressors import Boosting
from crosscast.profile import METRICS


def test_more_instructions_never_take_less_time_on_the_mean_of_the_devices() -> None:
    grid = small_grid(n=60)
    predictor = Boosting(rounds=40).fit(grid, 0)
    place = [each.name for each in METRICS].index("total_instruction_count")
    means = []
    for factor in np.geomspace(1, 1e4, 30):
        metrics = grid.profiles.metrics.copy()
        metrics[:, place] *= factor
        # Preferences have mean 0 over the devices, so this is the level.
        means.append(predictor.log_time(replace(grid.profiles, metrics=metrics)).mean(axis=1))
    assert (np.diff(means, axis=0) >= -1e-9).all()


@pytest.mark.parametrize("devices", [1, 2, 5])
def test_it_fits_grids_of_few_and_more_devices(devices: int) -> None:
    grid = small_grid(n=60, devices=devices)
    found = Boosting().fit(grid, 0).log_time(grid.profiles)
    assert np.abs(found - grid.log_time).mean() < 0.25


def test_more_directions_fit_the_training_kernels_more_closely() -> None:
    grid = small_grid(n=60, devices=5)
    errors = [
        np.abs(Boosting(directions=count).fit(grid, 0).log_time(grid.profiles) - grid.log_time).mean()
        for count in (0, 1, 3)
    ]
    assert errors[0] > errors[1] > errors[2]

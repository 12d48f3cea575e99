"""The combination is the physical model with its correction, no worse where nothing is to correct."""

from dataclasses import replace

import numpy as np
import pytest
from made_grids import grid_with

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.time.combined import Combined, CombinedPredictor
from crosscast.predict.time.data import Grid
from crosscast.predict.time.physical import Physical


def rms(values: Reals) -> float:
    return float(np.sqrt((values**2).mean()))


def split(grid: Grid) -> tuple[Grid, Grid]:
    out = grid.profiles.groups("application") == 2
    return grid.take(~out), grid.take(out)


def errors(model: Physical | Combined, grid: Grid) -> Reals:
    train, test = split(grid)
    return model.fit(train, 0).log_time(test.profiles) - test.log_time


def test_a_law_of_physics_is_told_as_well_as_by_physics_alone(lawful: Grid) -> None:
    assert rms(errors(Combined(), lawful)) < 1.1 * rms(errors(Physical(), lawful)) + 0.02


def test_it_learns_what_no_term_says(lawful: Grid) -> None:
    # Kernels launched alone take long on the red device, whatever they do.
    alone = np.arange(len(lawful.profiles)) % 2 == 0
    profiles = replace(lawful.profiles, invocations=np.where(alone, 1, 100))
    times = lawful.log_time.copy()
    times[alone, 2] += 0.8
    grid = grid_with(profiles, times)

    def apart(model: Physical | Combined) -> Reals:
        wrong = errors(model, grid)
        rest: Reals = wrong - wrong.mean(axis=1, keepdims=True)
        return rest

    assert rms(apart(Combined())) < 0.8 * rms(apart(Physical()))


def test_it_is_as_good_on_what_was_measured_here(bundled: Grid) -> None:
    assert rms(errors(Combined(), bundled)) < 1.1 * rms(errors(Physical(), bundled))


def test_it_comes_back_from_its_arrays(lawful: Grid) -> None:
    predictor = Combined().fit(lawful, 0)
    again = CombinedPredictor.from_state(predictor.state())
    np.testing.assert_array_equal(again.log_time(lawful.profiles), predictor.log_time(lawful.profiles))


def test_a_correction_of_other_devices_is_refused(lawful: Grid) -> None:
    state = Combined().fit(lawful, 0).state()
    halved = {name: array[:, :2] for name, array in state.items() if name in ("by_launch", "by_work")}
    with pytest.raises(InputError, match="model: by_launch: expected 4 devices, found 2"):
        CombinedPredictor.from_state(state | halved)

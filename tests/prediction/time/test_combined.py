"""The correction learns what kernels alike share, and little where they share nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.time.combined import Combined, CombinedPredictor, KernelCorrection, fit_correction
from crosscast.prediction.time.data import Grid, ProfileBatch
from crosscast.prediction.time.gaussian import out_of_fold_residuals
from crosscast.prediction.time.models import DeviceMean, FittedMean, model_named
from crosscast.prediction.time.physical import Physical, quantities_of
from support.grids import DEVICES, NAMES, grid_with, noisy_grid, profiles_of

D = len(DEVICES)
RED = 2


def branchy(profiles: ProfileBatch) -> Reals:
    """1 for kernels with many branches, -1 for those with few."""
    branches = profiles.metrics[:, NAMES.index("unique_branches")]
    return np.where(branches > 4, 1.0, -1.0)


def fitted(profiles: ProfileBatch, errors: Reals, shares: Reals) -> KernelCorrection:
    return fit_correction(profiles, quantities_of(profiles), errors, shares, DEVICES)


def found(correction: KernelCorrection, profiles: ProfileBatch, shares: Reals) -> Reals:
    return correction.log_factor(profiles, quantities_of(profiles), shares)


def error_of_branches(profiles: ProfileBatch, seed: int = 5) -> Reals:
    """Branches cost the red device more than the others; and something of each kernel, the same on all."""
    errors = np.random.default_rng(seed).normal(0, 0.5, (len(profiles), 1)) + np.zeros(D)
    errors[:, RED] += 0.8 * branchy(profiles)
    return errors


@pytest.fixture(scope="module")
def profiles() -> ProfileBatch:
    return profiles_of("abcdefgh", 12)


@pytest.fixture(scope="module")
def others() -> ProfileBatch:
    return profiles_of("xyz", 12, seed=1)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_what_a_metric_costs_one_device_is_learned_for_other_applications(
    profiles: ProfileBatch, others: ProfileBatch, share: float
) -> None:
    correction = fitted(profiles, error_of_branches(profiles), np.full((len(profiles), D), share))
    factors = found(correction, others, np.full((len(others), D), share))
    apart = factors[:, RED] - factors[:, [0, 1, 3]].mean(axis=1)
    wanted = 0.8 * branchy(others)
    assert np.sqrt(((apart - wanted) ** 2).mean()) < 0.7 * np.sqrt((wanted**2).mean())
    assert np.corrcoef(apart, wanted)[0, 1] > 0.7


def test_what_is_learned_of_launches_is_not_told_of_work(
    profiles: ProfileBatch, others: ProfileBatch
) -> None:
    correction = fitted(profiles, error_of_branches(profiles), np.ones((len(profiles), D)))
    np.testing.assert_array_equal(found(correction, others, np.zeros((len(others), D))), 0)


def test_where_applications_share_nothing_it_does_little(
    profiles: ProfileBatch, others: ProfileBatch
) -> None:
    noise = np.random.default_rng(2).normal(0, 0.3, (len(profiles), D))
    correction = fitted(profiles, noise, np.full((len(profiles), D), 0.5))
    factors = found(correction, others, np.full((len(others), D), 0.5))
    assert np.sqrt((factors**2).mean()) < 0.3 / 4


def test_errors_that_all_devices_share_are_left_alone(profiles: ProfileBatch) -> None:
    same = np.repeat(3 * branchy(profiles)[:, None], D, axis=1)
    correction = fitted(profiles, same, np.full(same.shape, 0.5))
    np.testing.assert_allclose(found(correction, profiles, np.full(same.shape, 0.5)), 0, atol=1e-12)


def test_one_wild_cell_does_not_set_the_correction(profiles: ProfileBatch, others: ProfileBatch) -> None:
    errors, shares = error_of_branches(profiles), np.full((len(profiles), D), 0.5)
    wild = errors.copy()
    wild[0, RED] += 100
    calm, shaken = (
        found(fitted(profiles, each, shares), others, shares[: len(others)]) for each in (errors, wild)
    )
    assert np.abs(shaken - calm).max() < 1


def test_cells_that_were_not_measured_are_not_needed(profiles: ProfileBatch, others: ProfileBatch) -> None:
    errors, shares = error_of_branches(profiles), np.ones((len(profiles), D))
    gaps = errors.copy()
    gaps[::6, 0] = np.nan
    gaps[1::6, RED] = np.nan
    whole, holed = (
        found(fitted(profiles, each, shares), others, shares[: len(others)])[:, RED]
        for each in (errors, gaps)
    )
    assert np.isfinite(holed).all()
    assert np.corrcoef(whole, holed)[0, 1] > 0.95


def test_kernels_that_were_measured_nowhere_or_on_one_device_teach_nothing(profiles: ProfileBatch) -> None:
    errors = np.full((len(profiles), D), np.nan)
    errors[::2, 1] = 5.0
    correction = fitted(profiles, errors, np.full(errors.shape, 0.5))
    np.testing.assert_array_equal(found(correction, profiles, np.full(errors.shape, 0.5)), 0)


def test_many_kernels_are_corrected_as_each_alone(profiles: ProfileBatch) -> None:
    shares = np.random.default_rng(4).uniform(size=(len(profiles), D))
    correction = fitted(profiles, error_of_branches(profiles), shares)
    many = np.tile(np.arange(len(profiles)), 50)
    np.testing.assert_allclose(
        found(correction, profiles.take(many), shares[many])[-len(profiles) :],
        found(correction, profiles, shares),
        rtol=1e-9,
        atol=1e-12,
    )


def test_a_kernel_whose_branches_are_not_known_is_refused(profiles: ProfileBatch) -> None:
    metrics = profiles.metrics.copy()
    metrics[3, NAMES.index("unique_branches")] = np.nan
    with pytest.raises(InputError, match="profile of a3: metric unique_branches: expected a number"):
        fitted(replace(profiles, metrics=metrics), error_of_branches(profiles), np.ones((len(profiles), D)))


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


def test_a_correction_of_other_devices_is_refused(lawful: Grid) -> None:
    state = Combined().fit(lawful, 0).state()
    halved = {name: array[:, :2] for name, array in state.items() if name in ("by_launch", "by_work")}
    with pytest.raises(InputError, match="model: by_launch: expected 4 devices, found 2"):
        CombinedPredictor.from_state(state | halved)


def test_where_times_are_chance_the_mean_of_each_device_is_predicted() -> None:
    grid = noisy_grid()
    chance = replace(grid, log_time=np.random.default_rng(0).normal(-8, 1, grid.log_time.shape))
    predictor, errors = model_named("combined").fit_with_errors(chance, 0, None)
    assert isinstance(predictor.point, FittedMean)
    assert np.array_equal(errors, out_of_fold_residuals(DeviceMean(), chance, 0))

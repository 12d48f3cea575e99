"""The correction learns what kernels alike share, and little where they share nothing."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern
from sklearn.preprocessing import StandardScaler

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.time.combined import (
    Combined,
    CombinedPredictor,
    KernelCorrection,
    Neighbours,
    fit_correction,
)
from crosscast.prediction.time.data import Grid, ProfileBatch
from crosscast.prediction.time.gaussian import covariance_of, out_of_fold_residuals
from crosscast.prediction.time.models import DeviceMean, FittedMean, model_named
from crosscast.prediction.time.physical import quantities_of
from support.grids import DEVICES, NAMES, noisy_grid, profiles_of

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


def test_a_kernel_whose_branches_are_not_known_is_refused(profiles: ProfileBatch) -> None:
    metrics = profiles.metrics.copy()
    metrics[3, NAMES.index("unique_branches")] = np.nan
    with pytest.raises(InputError, match="profile of a3: metric unique_branches: expected a number"):
        fitted(replace(profiles, metrics=metrics), error_of_branches(profiles), np.ones((len(profiles), D)))


def test_a_correction_of_other_devices_is_refused(lawful: Grid) -> None:
    state = Combined().fit(lawful, 0).state()
    halved = {name: array[:, :2] for name, array in state.items() if name in ("by_launch", "by_work")}
    with pytest.raises(InputError, match="model: by_launch: expected 4 devices, found 2"):
        CombinedPredictor.from_state(state | halved)


def test_where_times_are_chance_the_mean_of_each_device_is_predicted() -> None:
    grid = noisy_grid()
    chance = replace(grid, log_time=np.random.default_rng(0).normal(-8, 1, grid.log_time.shape))
    predictor = model_named("combined").fit_with_residuals(chance, 0)
    assert isinstance(predictor.point, FittedMean)
    errors = out_of_fold_residuals(DeviceMean(), chance, 0)
    assert np.array_equal(predictor.covariance, covariance_of(errors, chance))


def test_similarity_is_materns_covariance_of_standardized_features_as_in_scikit_learn() -> None:
    known, queries = (np.random.default_rng(seed).normal(5, [1, 10, 100], (20, 3)) for seed in (0, 1))
    scaler = StandardScaler().fit(known)
    wanted = Matern(length_scale=np.sqrt(3), nu=1.5)(scaler.transform(queries), scaler.transform(known))
    # Neither is beyond three deviations.
    np.testing.assert_allclose(Neighbours.of(known).similarity(queries), wanted, atol=1e-6)

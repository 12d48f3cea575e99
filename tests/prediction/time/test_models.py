"""Models of times from metrics: what all keep to, and what the terms, corrections and baselines learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import logsumexp
from sklearn.gaussian_process.kernels import Matern
from sklearn.preprocessing import StandardScaler

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.time import Grid, ProfileBatch
from crosscast.prediction.time.gaussian import Gaussian, covariance_of, out_of_fold_residuals
from crosscast.prediction.time.models import (
    MODELS,
    Combined,
    CombinedPredictor,
    DeviceMean,
    FittedMean,
    KernelCorrection,
    Nearest,
    Neighbours,
    PublishedForest,
    Regression,
    fit_correction,
    model_named,
)
from crosscast.prediction.time.physical import (
    VARIANTS,
    Data,
    Physical,
    PhysicalPredictor,
    fit_coefficients,
    loads,
    log_sum,
    modifiers_of,
    quantities_of,
    standardized,
)
from crosscast.profile import METRICS
from support.examples import one_in
from support.grids import (
    DEVICES,
    NAMES,
    grid_of_times,
    lawful_grid,
    noisy_grid,
    profiles_of,
    small_grid,
    small_profiles,
)
from support.refusals import refusal


@pytest.fixture(scope="module")
def small(noisy: Grid) -> Grid:
    return noisy.take(noisy.profiles.groups("application") < 4)


def light(name: str) -> Any:
    """The point model of a model, with few trees where it grows many."""
    model = model_named(name)
    point = model.refit or model.point
    return replace(point, trees=20) if isinstance(point, PublishedForest) else point


@pytest.mark.parametrize("name", one_in(4, MODELS))
def test_a_model_answers_for_kernels_it_never_saw(name: str, noisy: Grid, small: Grid) -> None:
    model = model_named(name)
    assert model.name == name
    unseen = noisy.profiles.take(noisy.profiles.groups("application") == 5)
    predicted = Gaussian(light(name)).fit(small, 0).predict(unseen)
    assert predicted.devices == tuple(device.key for device in noisy.devices)
    assert predicted.centre.shape == (len(unseen), len(noisy.devices))
    assert (predicted.low < predicted.centre).all()
    assert (predicted.centre < predicted.high).all()
    assert np.isfinite(predicted.high).all()


by_name = pytest.mark.parametrize("model", [DeviceMean(), Nearest()], ids=lambda model: model.name)


@by_name
def test_a_kernel_without_times_changes_nothing_and_some_have_to_have_times(model: Any) -> None:
    nothing = grid_of_times(small_profiles(2, {}), np.full((2, 2), np.nan))
    assert refusal(model.fit, nothing, 0) == "grid: expected kernels with times, found none"
    grid = small_grid(n=20)
    grid.log_time[7] = np.nan
    rest = grid.take(np.flatnonzero(np.arange(20) != 7))
    predicted, wanted = (model.fit(each, 0).log_time(grid.profiles) for each in (grid, rest))
    np.testing.assert_array_equal(predicted, wanted)


def test_metrics_that_a_kernel_lacks_are_left_out_in_the_training_and_refused_later() -> None:
    grid = small_grid()
    lacking, place = grid.profiles.metrics.copy(), NAMES.index("work_items")
    lacking[4, place] = np.nan
    profiles = replace(grid.profiles, metrics=lacking)
    with pytest.raises(InputError, match=r"^profile of k4: metric work_items: expected a number .* nothing$"):
        Nearest().fit(grid, 0).log_time(profiles)
    assert Nearest().fit(replace(grid, profiles=profiles), 0).features == ("instructions", "footprint")
    nothing = replace(grid.profiles, metrics=np.full_like(lacking, np.nan))
    with pytest.raises(InputError, match=r"^profiles: expected one of the metrics .* found none$"):
        Nearest().fit(replace(grid, profiles=nothing), 0)


def three_kernels() -> Grid:
    columns = {
        "total_instruction_count": np.array([1e3, 1e6, 1e9]),
        "work_items": np.array([1e2, 1e3, 1e4]),
        "total_memory_footprint": np.array([1e2, 1e3, 1e4]),
    }
    return grid_of_times(small_profiles(3, columns), np.log([[1e-6, 2e-6], [1e-4, 1e-5], [1e-2, 1e-2]]))


def test_the_mean_of_a_device_is_geometric() -> None:
    grid = three_kernels()
    predicted = np.exp(DeviceMean().fit(grid, 0).log_time(grid.profiles))
    assert predicted.shape == (3, 2)
    np.testing.assert_allclose(predicted, np.tile([1e-4, (2e-6 * 1e-5 * 1e-2) ** (1 / 3)], (3, 1)))


def test_a_kernel_gets_the_times_of_the_most_similar_ones() -> None:
    grid = three_kernels()
    columns = {
        "total_instruction_count": np.array([3e8, 2e3]),
        "work_items": np.array([7e3, 3e2]),
        "total_memory_footprint": np.array([3e4, 50.0]),
    }
    predicted = Nearest().fit(grid, 0).log_time(small_profiles(2, columns))
    np.testing.assert_array_equal(predicted, grid.log_time[[2, 0]])
    grid = small_grid()
    np.testing.assert_allclose(Nearest().fit(grid, 0).log_time(grid.profiles), grid.log_time, atol=1e-12)
    grid = grid_of_times(small_profiles(4, {}), np.log([[1.0], [4.0], [1.0], [4.0]]))
    np.testing.assert_allclose(np.exp(Nearest().fit(grid, 0).log_time(grid.profiles)), 2.0)


def test_many_kernels_are_looked_up_as_one_by_one() -> None:
    predictor, many = Nearest().fit(small_grid(), 0), small_grid(n=5000, seed=2).profiles
    predicted = predictor.log_time(many)
    some = np.arange(0, 5000, 500)
    np.testing.assert_array_equal(predicted[some], predictor.log_time(many.take(some)))


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


def test_sizes_are_judged_by_a_process_that_was_fitted_without_each_application() -> None:
    rng = np.random.default_rng(0)
    roots, target, groups = rng.normal(size=(2, 9, 9)), rng.normal(size=9), np.repeat([0, 1, 2], 3)
    launches, works = (root @ root.T for root in roots)
    weights = rng.uniform(0.5, 2, 9)
    covariance, expected = 2 * launches + works, 0.0
    for out in (groups == group for group in range(3)):
        known = covariance[~out][:, ~out] + np.diag(1 / weights[~out])
        error = target[out] - covariance[out][:, ~out] @ np.linalg.solve(known, target[~out])
        expected += float(weights[out] @ np.sqrt(1 + (error / 0.6) ** 2))
    regression = Regression(launches, works, target, np.zeros(9), weights, groups)
    assert regression.loss((2.0, 1.0)) == pytest.approx(expected)


def test_where_times_are_chance_the_mean_of_each_device_is_predicted() -> None:
    grid = noisy_grid()
    chance = replace(grid, log_time=np.random.default_rng(0).normal(-8, 1, grid.log_time.shape))
    predictor = model_named("combined").fit(chance, 0, others=False)
    assert isinstance(predictor.point, FittedMean)
    errors = out_of_fold_residuals(DeviceMean(), chance, 0)
    assert np.array_equal(predictor.covariance, covariance_of(errors, chance))


def test_similarity_is_materns_covariance_of_standardized_features_as_in_scikit_learn() -> None:
    known, queries = (np.random.default_rng(seed).normal(5, [1, 10, 100], (20, 3)) for seed in (0, 1))
    scaler = StandardScaler().fit(known)
    wanted = Matern(length_scale=np.sqrt(3), nu=1.5)(scaler.transform(queries), scaler.transform(known))
    # Neither is beyond three deviations.
    np.testing.assert_allclose(Neighbours.of(known).similarity(queries), wanted, atol=1e-6)


VALUES = {
    "opcode": 7,
    "total_instruction_count": 4000,
    "work_items": 100,
    "total_barriers_hit": 200,
    "max_itb": 90,
    "total_memory_footprint": 900,
    "footprint_90": 800,
    "global_memory_address_entropy": 9.0,
} | {f"local_memory_address_entropy_{bits}": 9.0 - max(0, bits - 2) for bits in range(1, 11)}


def profile(**changes: float) -> ProfileBatch:
    metrics = np.full((1, len(METRICS)), np.nan)
    for name, value in (VALUES | changes).items():
        metrics[0, NAMES.index(name)] = value
    return ProfileBatch(("app",), ("saxpy",), ("tiny",), metrics, np.array([2]))


def test_each_quantity_is_worked_out_by_hand() -> None:
    quantities = quantities_of(profile())
    assert quantities.per_item == 40
    assert quantities.critical_path == 90
    assert quantities.barriers == 2
    assert quantities.addresses_per_item == 8
    assert quantities.repetition == pytest.approx(np.log(2))
    assert quantities.locality == pytest.approx(8 / 9)
    # Elements of four bytes leave two address bits still, those of one byte none.
    assert quantities.bytes == 800 * 4
    entropies = {f"local_memory_address_entropy_{bits}": 9.0 - bits for bits in range(1, 10)}
    assert quantities_of(profile(**entropies, local_memory_address_entropy_10=0.0)).bytes == 800
    # Where barriers cut the longest work-item short, the mean is the critical path.
    assert quantities_of(profile(max_itb=5)).critical_path == 40
    # What is done a hundred times is done often.
    often = replace(profile(), invocations=np.array([100])), replace(profile(), invocations=np.array([1000]))
    assert [quantities_of(each).repetition for each in often] == [pytest.approx(3)] * 2
    limited = standardized(np.array([[-100.0], [0.0], [3.0]]), np.zeros(1), np.ones(1))
    assert limited.ravel().tolist() == [-2.5, 0.0, 2.5]


def data(log_time: Reals, loads: Reals, groups: list[int]) -> Data:
    n = len(log_time)
    return Data(
        loads, np.zeros((n, 0)), np.zeros((0, *loads.shape[1:])), log_time, np.ones(n), np.array(groups)
    )


@given(arrays.arrays(np.float64, (3, 4, 2), elements=st.floats(-50, 50)))
def test_the_logarithm_of_a_sum_is_scipys(parts: Reals) -> None:
    total, shares = log_sum(parts)
    np.testing.assert_allclose(total, logsumexp(parts, axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_a_device_without_times_gets_the_coefficients_of_its_group() -> None:
    rng = np.random.default_rng(1)
    work = rng.uniform(0, 12, 50)
    loads = np.repeat(np.stack([np.zeros(50), work], 1)[:, :, None], 3, axis=2)
    time, _ = log_sum(loads + np.array([[1.0, 1.0, 4.0], [-5.0, -5.0, -2.0]]))
    time[:, 1] = np.nan
    terms, _ = fit_coefficients(data(time, loads, [0, 0, 1]), 0.5)
    alike, unknown, other = terms.T
    assert (np.abs(unknown - alike) < 0.3 * np.abs(unknown - other)).all()


@pytest.fixture(scope="module")
def predictor() -> PhysicalPredictor:
    return Physical().fit(lawful_grid(), 0)


def term_by_term(predictor: PhysicalPredictor, rows: int) -> Reals:
    """The mean over the variants of the logarithm of the sum of their terms."""
    quantities = quantities_of(profiles_of("xyz", rows, seed=3))
    modifiers = standardized(modifiers_of(quantities), predictor.centre, predictor.scale)
    each = [
        log_sum(
            loads(quantities, predictor.gpu, variant.form)
            + terms
            + np.tensordot(modifiers * strengths, predictor.masks, 1)
        )[0]
        for variant, terms, strengths in zip(VARIANTS, predictor.terms, predictor.strengths, strict=True)
    ]
    mean: Reals = np.mean(each, axis=0)
    return mean


def test_together_is_what_it_is_term_by_term(predictor: PhysicalPredictor) -> None:
    predicted = predictor.log_time(profiles_of("xyz", 40, seed=3))
    assert predicted.shape == (120, len(DEVICES))
    np.testing.assert_allclose(predicted, term_by_term(predictor, 40), rtol=0, atol=1e-12)
    alone = predictor.log_time(profiles_of("xyz", 40, seed=3).take(np.array([17])))
    np.testing.assert_allclose(alone[0], predicted[17], rtol=0, atol=1e-12)
    assert predictor.log_time(profiles_of("", 0)).shape == (0, len(DEVICES))

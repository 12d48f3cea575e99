"""Gaussian processes are those of other implementations; speeds keep to what cores and clocks allow."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad
from sklearn.gaussian_process.kernels import Matern
from threadpoolctl import threadpool_limits

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.configuration import Configuration
from crosscast.prediction.configuration import ConfigurationSpace, KernelAt, Surfaces
from crosscast.prediction.configuration.features import SpeedLimits
from crosscast.prediction.configuration.gaussian_process import (
    Covariance,
    Marginals,
    QuantityPosterior,
    TrainingCovariances,
    _Likelihood,
    inducing_points,
    small_product,
    sum_of_parts,
)
from crosscast.prediction.configuration.gaussian_process import fit_covariance as fit_with_threads
from crosscast.prediction.configuration.process import ProcessModel
from support.surfaces import FEATURES, made_covariance, made_points, made_surfaces


def test_both_parts_are_those_of_scikit_learn() -> None:
    covariance = made_covariance()
    ones, others = made_points(seed=1)[0], made_points(seed=2)[0][:7]
    shared = covariance.variance * Matern(covariance.lengths, nu=2.5)(ones, others)
    np.testing.assert_allclose(covariance.shared(ones, others), shared, rtol=1e-10)
    one, other = ones[:, FEATURES:], others[:, FEATURES:]
    own_part = covariance.own_variance * Matern(covariance.own_lengths, nu=2.5)(one, other)
    np.testing.assert_allclose(covariance.own(one, other), own_part, rtol=1e-10)


def fit_covariance(points: Reals, features: int, kernels: Integers, values: Reals) -> Covariance:
    """As the model calls it: on a busy machine threads make it many times slower."""
    with threadpool_limits(1):
        return fit_with_threads(points, features, kernels, values)


def joint(covariance: Covariance, points: Reals, kernels: Integers) -> Reals:
    """Covariance of all values, with noise."""
    settings = points[:, FEATURES:]
    own_part = covariance.own(settings, settings) * np.equal.outer(kernels, kernels)
    noise: Reals = covariance.noise * np.eye(len(points))
    total: Reals = covariance.shared(points, points) + own_part + noise
    return total


def logarithms(covariance: Covariance) -> Reals:
    variances = [covariance.variance, covariance.own_variance, covariance.noise]
    logs: Reals = np.log(np.concatenate([covariance.lengths, covariance.own_lengths, variances]))
    return logs


def likelihood(points: Reals, kernels: Integers, values: Reals) -> _Likelihood:
    squared = (points.T[:, :, None] - points.T[:, None, :]) ** 2
    return _Likelihood(squared, np.equal.outer(kernels, kernels).astype(np.float64), values, FEATURES)


def drawn(covariance: Covariance, kernels: int, settings: int) -> tuple[Reals, Integers, Reals]:
    points, of = made_points(kernels, settings)
    values = np.random.default_rng(3).multivariate_normal(np.zeros(len(of)), joint(covariance, points, of))
    return points, of, values


@pytest.mark.parametrize("change", [0.0, 1.0, -1.5])
def test_the_gradient_is_that_of_finite_differences(change: float) -> None:
    points, kernels, values = drawn(made_covariance(), 4, 6)
    cost = likelihood(points, kernels, values).cost
    start = logarithms(made_covariance()) + change
    error = check_grad(lambda x: cost(x)[0], lambda x: cost(x)[1], start, epsilon=1e-6)
    assert error < 1e-4 * np.abs(cost(start)[1]).max()


@pytest.mark.parametrize(
    ("points", "kernels", "values"),
    [
        (made_points()[0], made_points()[1], np.zeros(24)),
        (made_points()[0], made_points()[1], np.full(24, 3.0)),
        (np.zeros((6, 4)), np.arange(6), np.arange(6.0)),
        (np.repeat(made_points(2, 3)[0], 4, axis=0), np.repeat(np.arange(6), 4), np.arange(24.0)),
        (made_points(1, 1)[0], np.zeros(1, np.int64), np.array([0.3])),
        (np.empty((5, 0)), np.arange(5), np.arange(5.0)),
        (made_points()[0] * 1e-9, made_points()[1], np.arange(24) * 1e-6),
        (made_points()[0] * 1e3, made_points()[1], np.arange(24) * 1e3),
    ],
    ids=["zero", "constant", "one point", "duplicates", "one value", "no coordinates", "tiny", "huge"],
)
def test_odd_values_have_a_likeliest_covariance_too(points: Reals, kernels: Integers, values: Reals) -> None:
    features = min(FEATURES, points.shape[1])
    covariance = fit_covariance(points, features, kernels, values)
    variances = [covariance.variance, covariance.own_variance, covariance.noise]
    every = [*covariance.lengths, *covariance.own_lengths, *variances]
    assert np.isfinite(every).all() and min(every) > 0


COVARIANCE = made_covariance()
COUNT = 9


def posterior() -> QuantityPosterior:
    points, _ = made_points(5, 6)
    training = TrainingCovariances.of(COVARIANCE, points, inducing_points(COVARIANCE, points, 20))
    values = np.cos(points.sum(axis=1))
    return training.condition_on(values, np.ones(30, np.bool_)).at(made_points(1, COUNT, seed=5)[0], FEATURES)


POSTERIOR = posterior()
EVERY = POSTERIOR.rows(np.arange(COUNT))
VALUES = np.random.default_rng(1).normal(size=COUNT)


def conditioned(at: list[int], values: Reals) -> tuple[Reals, Reals]:
    """Mean and variance of a run, from the joint covariance of all values and these runs."""
    inner = EVERY[np.ix_(at, at)] + COVARIANCE.noise * np.eye(len(at))
    gain = EVERY[:, at] @ np.linalg.inv(inner)
    mean = POSTERIOR.mean + gain @ (values - POSTERIOR.mean[at])
    return mean, np.diag(EVERY - gain @ EVERY[at]) + COVARIANCE.noise


@given(st.lists(st.integers(0, COUNT - 1), max_size=COUNT, unique=True))
def test_runs_condition_as_a_joint_gaussian_does(at: list[int]) -> None:
    posterior = POSTERIOR.condition_on(np.array(at, np.int64), VALUES[at])
    mean, variance = conditioned(at, VALUES[at])
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-9)
    np.testing.assert_allclose(posterior.variance, variance, atol=1e-9)
    assert (posterior.variance >= COVARIANCE.noise).all()


@pytest.mark.parametrize("rows", [0, 1, 3, 700])
def test_a_product_in_pieces_is_the_product(rows: int) -> None:
    rng = np.random.default_rng(0)
    ones, others = rng.normal(size=(rows, 90)), rng.normal(size=(90, 101))
    np.testing.assert_allclose(small_product(ones, others), ones @ others, atol=1e-11)
    wide = rng.normal(size=(90, 3000))
    np.testing.assert_allclose(small_product(ones, wide), ones @ wide, atol=1e-11)


def test_a_total_is_that_of_many_draws() -> None:
    rng = np.random.default_rng(4)
    parts = {
        "cpu": Marginals(np.log([60.0, 100.0]), np.array([0.02, 0.001]) ** 2),
        "gpu": Marginals(np.log([150.0, 20.0]), np.array([0.03, 0.05]) ** 2),
    }
    draws = sum(
        np.exp(part.mean + np.sqrt(part.variance) * rng.standard_normal((200_000, 2)))
        for part in parts.values()
    )
    total = sum_of_parts(parts)
    np.testing.assert_allclose(total.mean, np.log(draws).mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(np.sqrt(total.variance), np.log(draws).std(axis=0), rtol=0.01)


HARDLY_OWN = made_covariance(own=0.0001)
POINTS, KERNELS = made_points(5, 6)
TRAINING_VALUES = np.sin(POINTS[:, 0] + 2 * POINTS[:, 2]) + 0.1 * np.random.default_rng(0).normal(size=30)
NEW = made_points(1, 8, seed=9)[0]


def exact(used: Flags, new: Reals = NEW) -> tuple[Reals, Reals]:
    """Mean and covariance, without own part and noise, by the formulas of a textbook."""
    points = POINTS[used]
    noise = HARDLY_OWN.noise + HARDLY_OWN.own_variance
    inner = HARDLY_OWN.shared(points, points) + noise * np.eye(len(points))
    near = HARDLY_OWN.shared(new, points)
    before = HARDLY_OWN.shared(new, new)
    return near @ np.linalg.solve(inner, TRAINING_VALUES[used]), before - near @ np.linalg.solve(
        inner, near.T
    )


def shared_of(posterior: QuantityPosterior) -> Reals:
    """All covariances, without the kernel's own part."""
    settings = posterior.points[:, FEATURES:]
    return posterior.rows(np.arange(len(posterior.mean))) - HARDLY_OWN.own(settings, settings)


@pytest.mark.parametrize("used", [np.ones(30, np.bool_), KERNELS != 2])
def test_with_all_points_inducing_it_is_exact(used: Flags) -> None:
    training = TrainingCovariances.of(HARDLY_OWN, POINTS, np.arange(30))
    posterior = training.condition_on(np.where(used, TRAINING_VALUES, np.nan), used).at(NEW, FEATURES)
    mean, covariance = exact(used)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-5)
    np.testing.assert_allclose(shared_of(posterior), covariance, atol=1e-5)


CORES = ConfigurationSpace(tuple(Configuration("xeon", {"cores": cores}) for cores in range(1, 21)))
CLOCKS = ConfigurationSpace(
    tuple(
        Configuration("gpu", {"core_clock_hz": core, "memory_clock_hz": memory})
        for core in (1e9, 2e9)
        for memory in (1e9, 4e9)
    )
)


def limits(space: ConfigurationSpace, *runs: tuple[int, float]) -> tuple[list[float], list[float]]:
    numbers, times = np.array([number for number, _ in runs]), np.array([time for _, time in runs])
    least, most = SpeedLimits.of(space).times(numbers, times)
    return least.tolist(), most.tolist()


def test_twenty_cores_are_at_most_twenty_times_as_fast_as_one_but_for_caches() -> None:
    least, most = limits(CORES, (0, 20.0))
    assert least[-1] == pytest.approx(20 / 20 / 1.05)
    assert most[-1] == pytest.approx(20 * 1.05)
    least, most = limits(CORES, (19, 1.0))
    assert (least[0], most[0]) == pytest.approx((1 / 1.05, 20 * 1.05))


def test_clocks_that_rise_more_count_and_other_settings_devices_and_contradictions_limit_nothing() -> None:
    least, most = limits(CLOCKS, (0, 1.0))
    assert least == pytest.approx([1 / 1.02, 1 / 4 / 1.02, 1 / 2 / 1.02, 1 / 4 / 1.02])
    assert most == pytest.approx([1.02] * 4)
    others = (("a", 1, "big"), ("a", 2, "little"), ("b", 2, "big"))
    space = ConfigurationSpace(
        tuple(Configuration(key, {"cores": cores, "cluster": word}) for key, cores, word in others)
    )
    least, most = limits(space, (0, 1.0))
    assert least[1:] == [0.0, 0.0] and most[1:] == [np.inf, np.inf]
    least, most = limits(CORES, (0, 1.0), (1, 0.1))
    assert (least[5], most[5]) == (0.0, np.inf)


@given(st.floats(0.1, 1.0), st.lists(st.integers(0, 19), min_size=1, max_size=4, unique=True))
def test_what_follows_amdahl_is_within_its_limits(parallel: float, numbers: list[int]) -> None:
    times = 1 - parallel + parallel / np.arange(1, 21)
    least, most = limits(CORES, *((number, times[number]) for number in numbers))
    assert (np.array(least) <= times).all() and (times <= np.array(most)).all()


def test_a_process_keeps_to_the_limits_and_intervals_come_from_the_programs_that_are_tested() -> None:
    rng = np.random.default_rng(0)
    kernels = tuple(KernelAt(f"app{number}", f"app{number}", "big") for number in range(6))
    share = rng.uniform(0.5, 1.0, (6, 1))
    time_s = (1 - share + share / np.arange(1, 21)) * np.exp(rng.normal(0, 0.5, (6, 20)))
    surfaces = Surfaces("made up", kernels, CORES, time_s, np.full((6, 20), 50.0) + np.arange(20))
    predictor = ProcessModel().fit(surfaces, (19, 0))
    forecast = predictor.forecast(surfaces.observed(0, (19, 0)))
    least, most = SpeedLimits.of(CORES).times(np.array([19, 0]), time_s[0, [19, 0]])
    predicted = ~forecast.measured
    for values in (forecast.time.centre, *forecast.time.limits(0.99)):
        assert (least[predicted] <= values[predicted]).all() and (values[predicted] <= most[predicted]).all()
    assert forecast.time.programs == 6
    few = ProcessModel(tested=("app1", "app2")).fit(surfaces, (19, 0)).fitted
    assert few.held_out is not None and few.held_out.programs == 2
    assert few.time_errors.tolist() == predictor.fitted.time_errors.tolist()


def test_a_model_without_errors_of_programs_has_pooled_intervals() -> None:
    surfaces = made_surfaces(noise=0.02)
    predictor = ProcessModel().fit(surfaces, (0, 11))
    older = replace(predictor, fitted=replace(predictor.fitted, held_out=None, plain=None))
    time = older.forecast(surfaces.observed(0, (0, 11))).time
    assert time.limits(0.8)[0] == pytest.approx(time.quantile(0.1))

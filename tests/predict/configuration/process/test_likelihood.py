"""The likeliest covariance is found by its gradient, whatever the values are."""

import numpy as np
import pytest
from made_points import FEATURES, made_covariance, made_points
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_limits

from crosscast.arrays import Integers, Reals
from crosscast.predict.configuration.gaussian_process import Covariance, _cost, _parts
from crosscast.predict.configuration.gaussian_process import likeliest as likeliest_with_threads


def likeliest(points: Reals, features: int, kernels: Integers, values: Reals) -> Covariance:
    """As the model calls it: on a busy machine threads make it many times slower."""
    with threadpool_limits(1):
        return likeliest_with_threads(points, features, kernels, values)


def joint(covariance: Covariance, points: Reals, kernels: Integers) -> Reals:
    """Covariance of all values, with noise."""
    settings = points[:, FEATURES:]
    own = covariance.own(settings, settings) * np.equal.outer(kernels, kernels)
    noise: Reals = covariance.noise * np.eye(len(points))
    total: Reals = covariance.shared(points, points) + own + noise
    return total


def logarithms(covariance: Covariance) -> Reals:
    variances = [covariance.variance, covariance.own_variance, covariance.noise]
    found: Reals = np.log(np.concatenate([covariance.lengths, covariance.own_lengths, variances]))
    return found


def drawn(covariance: Covariance, kernels: int, settings: int) -> tuple[Reals, Integers, Reals]:
    points, of = made_points(kernels, settings)
    values = np.random.default_rng(3).multivariate_normal(np.zeros(len(of)), joint(covariance, points, of))
    return points, of, values


@pytest.mark.parametrize("change", [0.0, 1.0, -1.5])
def test_the_gradient_is_that_of_finite_differences(change: float) -> None:
    points, kernels, values = drawn(made_covariance(), 4, 6)
    parts = _parts(points, FEATURES, kernels, values)
    start = logarithms(made_covariance()) + change
    error = check_grad(lambda x: _cost(x, parts)[0], lambda x: _cost(x, parts)[1], start, epsilon=1e-6)
    assert error < 1e-4 * np.abs(_cost(start, parts)[1]).max()


def test_the_cost_is_that_of_the_likelihood_but_for_a_constant_and_the_prior() -> None:
    points, kernels, values = drawn(made_covariance(), 4, 6)
    parts = _parts(points, FEATURES, kernels, values)
    ones, others = made_covariance(), made_covariance(own=0.5, noise=0.2)
    costs = [_cost(logarithms(each), parts)[0] for each in (ones, others)]
    # With the same lengths the prior is the same.
    expected = [
        -multivariate_normal(np.zeros(len(values)), joint(each, points, kernels)).logpdf(values)
        for each in (ones, others)
    ]
    assert costs[0] - costs[1] == pytest.approx(expected[0] - expected[1], rel=1e-5)


def test_the_found_one_is_likelier_than_that_from_which_values_were_drawn() -> None:
    true = made_covariance()
    points, kernels, values = drawn(true, 12, 10)
    found = likeliest(points, FEATURES, kernels, values)
    parts = _parts(points, FEATURES, kernels, values)
    assert _cost(logarithms(found), parts)[0] <= _cost(logarithms(true), parts)[0]
    assert 0.02 < found.noise < 0.1


def test_a_coordinate_that_does_not_matter_gets_a_great_length() -> None:
    points, kernels = made_points(12, 10)
    found = likeliest(points, FEATURES, kernels, np.sin(2 * points[:, 2]))
    assert found.lengths[2] < 0.5 * found.lengths[[0, 1, 3]].min()


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
    found = likeliest(points, features, kernels, values)
    every = [*found.lengths, *found.own_lengths, found.variance, found.own_variance, found.noise]
    assert np.isfinite(every).all()
    assert min(every) > 0

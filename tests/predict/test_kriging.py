"""Kriging is best linear unbiased prediction by sizes that are the most likely ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kin_devices import kin_devices, kin_times
from scipy.linalg import helmert
from scipy.stats import multivariate_normal, norm

from crosscast.arrays import Reals
from crosscast.predict.time.features import Descriptors, Pairs
from crosscast.predict.time.unseen import Kriging, fit_kriging

SIZES = np.log([0.1, 0.1, 0.05, 0.1, 0.1, 0.01, 1.0, np.e])


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    devices = kin_devices(3)
    return Descriptors.of(devices).pairs(len(devices))


def covariance(sizes: Reals, pairs: Pairs) -> Reals:
    """As the module describes it, part by part."""
    gpus, makers, series, near, linear, own = np.exp(sizes[:6])
    total: Reals = (
        gpus * pairs.gpus
        + makers * pairs.types * pairs.vendors
        + series * pairs.series
        + near * np.exp(-pairs.squares / 2 / np.exp(sizes[6]) ** 2)
        + linear * pairs.products
        + own * np.eye(len(pairs))
    )
    return total


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=8))
def test_no_other_weights_that_add_up_to_one_err_less(moves: list[float]) -> None:
    devices = kin_devices(3)
    pairs = Descriptors.of(devices).pairs(len(devices))
    kriging = Kriging(SIZES)
    weights, _ = kriging.weights(pairs)
    assert weights.sum() == pytest.approx(1)
    others = weights + np.array(moves) - np.mean(moves)
    assert kriging.sd(others, pairs) >= kriging.sd(weights, pairs) - 1e-9


def test_the_error_is_that_of_the_covariance(pairs: Pairs) -> None:
    whole = np.append(np.full(8, -1 / 8), 1.0)
    expected = np.sqrt(whole @ covariance(SIZES, pairs) @ whole * (1 + np.e))
    assert Kriging(SIZES).sd(np.full(8, 1 / 8), pairs) == pytest.approx(expected)


def log_posterior(sizes: Reals, pairs: Pairs, times: Reals) -> float:
    """Of sizes, given times of kernels that count alike and for as many as they are."""
    contrasts = helmert(len(pairs))
    seen = (times - 0.8 * pairs.trend) @ contrasts.T
    within = contrasts @ covariance(sizes, pairs) @ contrasts.T
    mean = seen.mean(axis=0)
    likely = multivariate_normal(cov=within).logpdf(seen - mean).sum()
    likely += multivariate_normal(cov=np.exp(sizes[7]) * within).logpdf(mean)
    prior = norm(SIZES, [1.5] * 6 + [0.7, 1.0]).logpdf(sizes).sum()
    return float(likely + prior)


@pytest.mark.parametrize("place", range(8))
def test_the_sizes_are_the_most_likely_ones(pairs: Pairs, place: int) -> None:
    times = kin_times(kin_devices(3), 20)
    fitted = fit_kriging(pairs, times, np.ones(20), 20).sizes
    best = log_posterior(fitted, pairs, times)
    for step in (-0.05, 0.05):
        moved = fitted.copy()
        moved[place] += step
        assert log_posterior(moved, pairs, times) < best


def test_a_device_far_from_all_others_is_less_sure() -> None:
    devices = kin_devices(3)
    twin, stranger = devices[0], devices[-1]
    known = Descriptors.of(devices[:-1])
    kriging = Kriging(SIZES)
    errors = []
    for device in (twin, stranger):
        pairs = known.joined(device).pairs(len(devices) - 1)
        weights, _ = kriging.weights(pairs)
        errors.append(kriging.sd(weights, pairs))
    assert errors[0] < errors[1]

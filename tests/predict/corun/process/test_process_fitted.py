"""A process that knows what was measured: closed forms beside fits, and sizes that are found again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_co_runs import NAMES, made_solo
from numpy.testing import assert_allclose

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.corun.features import MemberRows, Traits, distinct
from crosscast.predict.corun.fit import conditioned, fitted_sizes, inverse_of
from crosscast.predict.corun.slowdowns import Sizes, Training


def covariance_of(seed: int, count: int = 15) -> Reals:
    half = np.random.default_rng(seed).normal(size=(count, 4))
    found: Reals = half @ half.T
    return found


@given(st.integers(0, 1000), st.integers(1, 10))
@settings(max_examples=25, deadline=None)
def test_what_is_said_without_some_rows_is_what_a_fit_without_them_says(seed: int, out: int) -> None:
    random = np.random.default_rng(seed)
    covariance, values = covariance_of(seed), random.normal(size=15)
    rows = random.choice(15, out, replace=False)
    rest = np.setdiff1d(np.arange(15), rows)
    refit = conditioned(covariance[np.ix_(rest, rest)], 0.1, values[rest])
    assert_allclose(
        conditioned(covariance, 0.1, values).without(rows),
        covariance[np.ix_(rows, rest)] @ refit.weights,
        rtol=1e-8,
        atol=1e-8,
    )


def test_inverse_and_determinant_are_those_of_numpy() -> None:
    covariance = covariance_of(5)
    noisy = covariance + 0.2 * np.eye(15)
    inverse, log_determinant = inverse_of(covariance, 0.2)
    assert_allclose(inverse, np.linalg.inv(noisy), rtol=1e-10, atol=1e-10)
    assert log_determinant == pytest.approx(np.linalg.slogdet(noisy)[1], rel=1e-12)


def test_rows_that_are_all_alike_have_an_inverse() -> None:
    """The least noise that is fitted, beside the largest variance."""
    inverse, _ = inverse_of(np.full((400, 400), 40.0), 2.5e-4)
    noisy = np.full((400, 400), 40.0) + 2.5e-4 * np.eye(400)
    assert_allclose(inverse @ noisy, np.eye(400), atol=1e-5)


def test_what_is_no_covariance_is_refused() -> None:
    with pytest.raises(InputError, match=r"^bags: expected slowdowns and features of usual size"):
        inverse_of(-np.eye(3), 0.1)


def test_sizes_that_are_fitted_are_likelier_than_others_and_find_the_noise() -> None:
    solos = [made_solo(name, size) for name in NAMES[:4] for size in ("small", "tiny")]
    bags = [(first, second) for first in solos for second in solos]
    known, places = distinct(bags)
    training = Training(Traits.of(known).traited(known), MemberRows.of(bags, places))
    start = Sizes.unfitted(training.traited.near.shape[1])
    random = np.random.default_rng(0)
    n = len(training.rows)
    truth = np.linalg.cholesky(training.covariance(start) + 1e-9 * np.eye(n)) @ random.normal(size=n)
    values = truth + random.normal(0, 0.2, n)
    found = fitted_sizes(training, values - values.mean())
    assert found.noise == pytest.approx(0.04, rel=0.4)

    def likelihood(sizes: Sizes) -> float:
        inverse, log_determinant = inverse_of(training.covariance(sizes), sizes.noise)
        away = (sizes.vector - start.vector) / start.prior_spread
        centred = values - values.mean()
        return float(-(centred @ inverse @ centred + log_determinant + away @ away) / 2)

    best = likelihood(found)
    assert best > likelihood(start)
    for _ in range(5):
        other = found.moved(found.vector + random.normal(0, 0.3, len(found.vector)))
        assert likelihood(other) < best

"""What runs tell of a kernel is what a joint Gaussian says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_points import FEATURES, made_covariance, made_points

from crosscast.arrays import Reals
from crosscast.predict.configuration.gaussian_process import (
    Belief,
    Posterior,
    Weighed,
    pivots,
    small_product,
    total_of,
)

COVARIANCE = made_covariance()
COUNT = 9


def belief() -> Belief:
    points, _ = made_points(5, 6)
    weighed = Weighed.of(COVARIANCE, points, pivots(COVARIANCE, points, 20))
    values = np.cos(points.sum(axis=1))
    return weighed.fitted(values, np.ones(30, np.bool_)).at(made_points(1, COUNT, seed=5)[0], FEATURES)


BELIEF = belief()
EVERY = BELIEF.rows(np.arange(COUNT))
VALUES = np.random.default_rng(1).normal(size=COUNT)


def conditioned(at: list[int], values: Reals) -> tuple[Reals, Reals]:
    """Mean and variance of a run, from the joint covariance of all values and these runs."""
    inner = EVERY[np.ix_(at, at)] + COVARIANCE.noise * np.eye(len(at))
    gain = EVERY[:, at] @ np.linalg.inv(inner)
    mean = BELIEF.mean + gain @ (values - BELIEF.mean[at])
    return mean, np.diag(EVERY - gain @ EVERY[at]) + COVARIANCE.noise


def test_covariances_are_those_of_a_joint_gaussian() -> None:
    np.testing.assert_allclose(EVERY, EVERY.T, atol=1e-12)
    assert np.linalg.eigvalsh(EVERY).min() > -1e-9
    np.testing.assert_allclose(BELIEF.rows(np.array([4, 1])), EVERY[[4, 1]], atol=1e-12)


@given(st.lists(st.integers(0, COUNT - 1), max_size=COUNT, unique=True))
def test_runs_condition_as_a_joint_gaussian_does(at: list[int]) -> None:
    found = BELIEF.given(np.array(at, np.int64), VALUES[at])
    mean, variance = conditioned(at, VALUES[at])
    np.testing.assert_allclose(found.mean, mean, atol=1e-9)
    np.testing.assert_allclose(found.variance, variance, atol=1e-9)
    assert (found.variance >= COVARIANCE.noise).all()


@given(st.permutations([0, 3, 5, 8]))
def test_the_order_of_runs_does_not_matter(at: list[int]) -> None:
    one, other = (BELIEF.given(np.array(each), VALUES[each]) for each in (at, sorted(at)))
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-10)
    np.testing.assert_allclose(one.variance, other.variance, atol=1e-10)


def test_what_is_not_a_number_is_left_out() -> None:
    with_it = BELIEF.given(np.array([2, 3, 6]), np.array([0.3, np.nan, -np.inf]))
    without = BELIEF.given(np.array([2]), np.array([0.3]))
    np.testing.assert_array_equal(with_it.mean, without.mean)
    np.testing.assert_array_equal(with_it.variance, without.variance)


def test_no_runs_change_nothing() -> None:
    found = BELIEF.given(np.empty(0, np.int64), np.empty(0))
    np.testing.assert_array_equal(found.mean, BELIEF.mean)
    np.testing.assert_allclose(found.variance, np.diag(EVERY) + COVARIANCE.noise, atol=1e-12)


def test_more_runs_never_make_it_less_sure() -> None:
    variances = [BELIEF.given(np.arange(count), VALUES[:count]).variance for count in range(COUNT + 1)]
    assert (np.diff(variances, axis=0) < 1e-12).all()


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
        "cpu": Posterior(np.log([60.0, 100.0]), np.array([0.02, 0.001]) ** 2),
        "gpu": Posterior(np.log([150.0, 20.0]), np.array([0.03, 0.05]) ** 2),
    }
    draws = sum(
        np.exp(part.mean + np.sqrt(part.variance) * rng.standard_normal((200_000, 2)))
        for part in parts.values()
    )
    found = total_of(parts)
    np.testing.assert_allclose(found.mean, np.log(draws).mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(np.sqrt(found.variance), np.log(draws).std(axis=0), rtol=0.01)


def test_the_total_of_one_part_is_that_part() -> None:
    part = Posterior(np.array([1.0, 2.0]), np.array([0.1, 0.2]))
    found = total_of({"power": part})
    np.testing.assert_allclose(found.mean, part.mean)
    np.testing.assert_allclose(found.variance, part.variance)

"""The covariance between members of bags: its laws, and its slope beside finite differences."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_co_runs import NAMES, made_solo
from numpy.testing import assert_allclose, assert_array_equal

from crosscast.predict.corun.features import MemberRows, Traits, distinct
from crosscast.predict.corun.slowdowns import Sizes, Training
from crosscast.tables.corun.solo import Solo

WITH = [made_solo(name, size) for name in NAMES for size in ("small", "tiny")]
WITHOUT = [replace(solo, features={}) for solo in WITH]


def training(bags: list[tuple[Solo, ...]]) -> Training:
    solos, places = distinct(bags)
    return Training(Traits.of(solos).traited(solos), MemberRows.of(bags, places))


def bags_of(solos: list[Solo], seed: int, count: int = 12) -> list[tuple[Solo, ...]]:
    random = np.random.default_rng(seed)
    return [
        tuple(solos[place] for place in random.choice(len(solos), size=random.integers(2, 5)))
        for _ in range(count)
    ]


def moved(asked: Training, seed: int) -> Sizes:
    sizes = Sizes.unfitted(asked.traited.near.shape[1])
    return sizes.moved(sizes.vector + np.random.default_rng(seed).normal(0, 0.7, len(sizes.vector)))


@pytest.mark.parametrize("solos", [WITH, WITHOUT], ids=["traits", "no traits"])
@given(seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_it_is_symmetric_and_never_negative(solos: list[Solo], seed: int) -> None:
    asked = training(bags_of(solos, seed))
    covariance = asked.covariance(moved(asked, seed))
    assert_allclose(covariance, covariance.T, rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9 * np.trace(covariance)


@pytest.mark.parametrize("solos", [WITH, WITHOUT], ids=["traits", "no traits"])
def test_its_slope_is_that_of_finite_differences(solos: list[Solo]) -> None:
    asked = training(bags_of(solos, 3))
    sizes = moved(asked, 3)
    half = np.random.default_rng(3).normal(size=(len(asked.rows), len(asked.rows)))
    weights = half + half.T
    slope = asked.slope(sizes, asked.products(sizes), weights)
    assert len(slope) == len(sizes.vector) - 1
    for place, found in enumerate(slope):
        step = np.zeros(len(sizes.vector))
        step[place] = 1e-5
        up, down = (
            (weights * asked.covariance(sizes.moved(sizes.vector + way * step))).sum() for way in (1, -1)
        )
        assert found == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-5)


def test_the_order_of_those_beside_does_not_matter() -> None:
    bag = (WITH[0], WITH[3], WITH[5])
    orders = [(bag[0], *others) for others in permutations(bag[1:])]
    asked = training(orders)
    covariance = asked.covariance(moved(asked, 0))
    first = [0, 3]
    assert_array_equal(covariance[np.ix_(first, first)], np.full((2, 2), covariance[0, 0]))


def test_sizes_come_back_from_their_vector() -> None:
    sizes = moved(training(bags_of(WITH, 0)), 1)
    again = sizes.moved(sizes.vector)
    assert_allclose(again.variances, sizes.variances, rtol=1e-12)
    assert_allclose(again.lengths, sizes.lengths, rtol=1e-12)
    assert again.noise == pytest.approx(sizes.noise, rel=1e-12)
    assert len(sizes.prior_spread) == len(sizes.vector)

"""Prices: the slope is the loss's, what is exact is found, and few cells are drawn to the group."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from crosscast.arrays import Reals
from crosscast.predict.time.physical import Data, fit_prices, log_sum, standardized


def data(log_time: Reals, loads: Reals, groups: list[int]) -> Data:
    n = len(log_time)
    return Data(
        loads, np.zeros((n, 0)), np.zeros((0, *loads.shape[1:])), log_time, np.ones(n), np.array(groups)
    )


@given(arrays.arrays(np.float64, (3, 4, 2), elements=st.floats(-50, 50)))
def test_the_logarithm_of_a_sum_is_scipys(parts: Reals) -> None:
    from scipy.special import logsumexp

    total, shares = log_sum(parts)
    np.testing.assert_allclose(total, logsumexp(parts, axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(shares.sum(axis=1), 1)


def test_a_sum_of_two_terms_is_found_again() -> None:
    rng = np.random.default_rng(0)
    work = rng.uniform(0, 12, 60)
    loads = np.repeat(np.stack([np.zeros(60), work], 1)[:, :, None], 3, axis=2)
    truth = np.array([[1.0, 1.5, 0.7], [-5.0, -4.5, -5.2]])
    time, _ = log_sum(loads + truth)
    prices = fit_prices(data(time, loads, [0, 0, 1]), 0.5)
    np.testing.assert_allclose(prices.log_time(loads, np.zeros((60, 0)), np.zeros((0, 2, 3))), time, atol=0.1)
    np.testing.assert_allclose(prices.terms, truth, atol=0.15)


def test_a_device_without_times_gets_the_prices_of_its_group() -> None:
    rng = np.random.default_rng(1)
    work = rng.uniform(0, 12, 50)
    loads = np.repeat(np.stack([np.zeros(50), work], 1)[:, :, None], 3, axis=2)
    time, _ = log_sum(loads + np.array([[1.0, 1.0, 4.0], [-5.0, -5.0, -2.0]]))
    time[:, 1] = np.nan
    prices = fit_prices(data(time, loads, [0, 0, 1]), 0.5)
    unknown, alike, other = prices.terms[:, 1], prices.terms[:, 0], prices.terms[:, 2]
    assert (np.abs(unknown - alike) < 0.3 * np.abs(unknown - other)).all()


def test_one_wild_kernel_does_not_move_the_others() -> None:
    rng = np.random.default_rng(2)
    work = rng.uniform(0, 12, 40)
    loads = np.stack([np.zeros(40), work], 1)[:, :, None]
    time, _ = log_sum(loads + np.array([[1.0], [-5.0]]))
    wild = time.copy()
    wild[0] += 6
    calm = fit_prices(data(time, loads, [0]), 0.3)
    shaken = fit_prices(data(wild, loads, [0]), 0.3)
    np.testing.assert_allclose(shaken.terms, calm.terms, atol=0.1)


def test_a_term_of_which_no_kernel_has_any_changes_nothing() -> None:
    work = np.linspace(0, 12, 40)
    loads = np.stack([np.zeros(40), work, np.full(40, np.log(1e-30))], 1)[:, :, None]
    time, _ = log_sum(loads[:, :2] + np.array([[1.0], [-5.0]]))
    prices = fit_prices(data(time, loads, [0]), 0.3)
    np.testing.assert_allclose(
        prices.log_time(loads, np.zeros((40, 0)), np.zeros((0, 3, 1))), time, atol=0.15
    )


def test_standardized_bends_are_limited() -> None:
    found = standardized(np.array([[-100.0], [0.0], [3.0]]), np.zeros(1), np.ones(1))
    assert found.ravel().tolist() == [-2.5, 0.0, 2.5]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000))
def test_fitting_twice_gives_the_same_bytes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loads = rng.normal(size=(12, 3, 2))
    time = rng.normal(size=(12, 2))
    first, second = (fit_prices(data(time, loads, [0, 1]), 0.4) for _ in range(2))
    assert first.terms.tobytes() == second.terms.tobytes()


def test_larger_quantities_never_take_less_time() -> None:
    rng = np.random.default_rng(5)
    loads = rng.normal(size=(30, 3, 2))
    prices = fit_prices(data(rng.normal(size=(30, 2)), loads, [0, 0]), 0.4)
    none = np.zeros((30, 0)), np.zeros((0, 3, 2))
    more = prices.log_time(loads + rng.uniform(0, 1, loads.shape), *none)
    assert (more >= prices.log_time(loads, *none) - 1e-12).all()

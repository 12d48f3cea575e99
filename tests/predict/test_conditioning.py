"""Conditioning is that of normal distributions, and knows a shift that several devices share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_grids import DEVICES

from crosscast.arrays import Reals
from crosscast.predict.time.data import kinds_of
from crosscast.predict.time.gaussian import Scatter, conditional, shared_shifts, spread


def test_conditioning_is_that_of_the_normal_distribution() -> None:
    covariance = np.array([[2.0, 1.2, 0.4], [1.2, 1.5, 0.3], [0.4, 0.3, 1.0]])
    measured = np.array([[np.nan, 0.7, np.nan]])
    mean, sd = conditional(np.array([[0.1, 0.2, 0.3]]), Scatter(covariance), measured, noise=0.0)
    assert mean[0] == pytest.approx([0.1 + 1.2 / 1.5 * 0.5, 0.7, 0.3 + 0.3 / 1.5 * 0.5])
    assert sd[0] == pytest.approx([np.sqrt(2 - 1.2**2 / 1.5), 0.0, np.sqrt(1 - 0.3**2 / 1.5)])


def test_two_at_once_are_as_one_after_the_other() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    covariance, centre = root @ root.T, rng.normal(size=(1, 4))
    measured = np.array([[0.3, np.nan, -0.2, np.nan]])
    together, _ = conditional(centre, Scatter(covariance), measured, noise=0.0)
    first, known = (
        covariance[:, [0]] / covariance[0, 0],
        centre + (0.3 - centre[0, 0]) * covariance[0] / covariance[0, 0],
    )
    left = covariance - first @ covariance[[0]]
    second = known + (-0.2 - known[0, 2]) * left[2] / left[2, 2]
    assert together[0] == pytest.approx(second[0])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.lists(st.integers(0, 4), unique=True, max_size=4))
def test_knowing_more_never_widens(seed: int, known: list[int]) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(5, 5))
    covariance = root @ root.T + 0.1 * np.eye(5)
    measured = np.full((1, 5), np.nan)
    _, before = conditional(np.zeros((1, 5)), Scatter(covariance), measured)
    for device in known:
        measured[0, device] = rng.normal()
        _, after = conditional(np.zeros((1, 5)), Scatter(covariance), measured)
        assert (after <= before + 1e-9).all()
        before = after


def sampled(covariance: Reals, shifts: Reals, measured: Reals, noise: float) -> tuple[Reals, Reals]:
    """Mean and standard deviation of errors drawn from the mixture, weighted by how well they fit."""
    rng = np.random.default_rng(0)
    d, draws = len(covariance), 400_000
    errors = rng.multivariate_normal(np.zeros(d), covariance, draws)
    odds = np.array([1.0] + [0.03] * len(shifts))
    which = rng.choice(len(odds), draws, p=odds / odds.sum())
    sizes = rng.normal(0, np.sqrt(2), draws)
    errors += np.vstack([np.zeros(d), shifts])[which] * sizes[:, None]
    known = np.isfinite(measured)
    far = (errors[:, known] - measured[known]) / noise
    weights = np.exp(-0.5 * (far**2).sum(axis=1))
    weights /= weights.sum()
    mean = weights @ errors
    return mean, np.sqrt(weights @ (errors - mean) ** 2)


@pytest.mark.parametrize("error", [0.1, 1.0, 2.0])
def test_moments_are_those_of_draws_that_fit_what_was_measured(error: float) -> None:
    covariance = np.array([[0.3, 0.2, 0.1], [0.2, 0.3, 0.1], [0.1, 0.1, 0.4]])
    shifts = np.array([[True, True, True], [True, True, False]])
    measured = np.array([[error, np.nan, np.nan]])
    mean, sd = conditional(np.zeros((1, 3)), Scatter(covariance, shifts), measured, noise=0.2)
    wanted_mean, wanted_sd = sampled(covariance, shifts.astype(np.float64), measured[0], 0.2)
    assert mean[0, 1:] == pytest.approx(wanted_mean[1:], abs=0.07)
    assert sd[0, 1:] == pytest.approx(wanted_sd[1:], rel=0.07)


def test_a_large_error_on_one_maker_alone_stays_with_that_maker() -> None:
    alike = np.array([0, 0, 1, 1])
    covariance = 0.1 * np.eye(4) + 0.3 + 0.1 * (alike[:, None] == alike)
    shifts = np.array([[True] * 4, [True, True, False, False]])
    measured = np.array([[3.0, np.nan, 0.0, np.nan]])
    plain, _ = conditional(np.zeros((1, 4)), Scatter(covariance), measured)
    aware, _ = conditional(np.zeros((1, 4)), Scatter(covariance, shifts), measured)
    assert aware[0, 1] > plain[0, 1] > 1
    assert abs(aware[0, 3]) < abs(plain[0, 3])


def test_small_errors_are_taken_as_if_there_were_no_shifts() -> None:
    covariance = 0.1 * np.eye(4) + 0.3
    shifts = np.array([[True] * 4, [True, True, False, False]])
    measured = np.array([[0.2, np.nan, 0.1, np.nan]])
    plain, _ = conditional(np.zeros((1, 4)), Scatter(covariance), measured)
    aware, _ = conditional(np.zeros((1, 4)), Scatter(covariance, shifts), measured)
    np.testing.assert_allclose(aware, plain, atol=0.02)


def test_the_spread_of_a_device_alone_is_its_standard_deviation() -> None:
    covariance = 0.1 * np.eye(4) + 0.3
    scatter = Scatter(covariance, shared_shifts(DEVICES))
    errors = np.array([[np.nan, 2.0, np.nan, 0.3], [np.nan] * 4])
    _, sd = conditional(np.zeros((2, 4)), scatter, errors)
    np.testing.assert_allclose(spread(scatter, errors, np.eye(4)), sd, rtol=2e-3)


def test_what_devices_share_cancels_in_their_difference() -> None:
    scatter = Scatter(0.01 * np.eye(4) + 0.5, np.ones((1, 4), dtype=np.bool_))
    nothing = np.full((1, 4), np.nan)
    apart = spread(scatter, nothing, np.array([[1.0, -1.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]]))
    assert apart[0] == pytest.approx([np.sqrt(0.02), np.sqrt(0.505 + 2 * 0.03 / 1.03)])


def test_all_devices_and_each_kind_with_several_may_be_shifted() -> None:
    assert shared_shifts(DEVICES).tolist() == [[True] * 4, [True, True, False, False]]
    assert shared_shifts(DEVICES[:2]).tolist() == [[True, True]]
    assert shared_shifts(DEVICES[3:]).shape == (0, 1)


def test_devices_are_of_a_kind_by_type_and_vendor() -> None:
    assert kinds_of(DEVICES).tolist() == [2, 2, 1, 0]

"""Conditioning is that of normal distributions; intervals hold, and are as wide as errors scatter."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.prediction.time import Grid
from crosscast.prediction.time.gaussian import Gaussian, GaussianPredictor, Scatter, covariance_of, fit_spread
from crosscast.prediction.time.models import model_named
from crosscast.prediction.time.physical import Physical
from support.examples import examples
from support.grids import noisy_grid


def conditional(centre: Reals, scatter: Scatter, measured: Reals, noise: float = 0.03) -> tuple[Reals, Reals]:
    """Means and standard deviations of logarithms of times, of which some were measured."""
    mean, sd = scatter.moments(measured - centre, np.eye(len(scatter.covariance)), noise)
    known = np.isfinite(measured)
    return np.where(known, measured, centre + mean), np.where(known, noise, sd)


def test_conditioning_is_that_of_the_normal_distribution() -> None:
    covariance = np.array([[2.0, 1.2, 0.4], [1.2, 1.5, 0.3], [0.4, 0.3, 1.0]])
    measured = np.array([[np.nan, 0.7, np.nan]])
    mean, sd = conditional(np.array([[0.1, 0.2, 0.3]]), Scatter(covariance), measured, noise=0.0)
    assert mean[0] == pytest.approx([0.1 + 1.2 / 1.5 * 0.5, 0.7, 0.3 + 0.3 / 1.5 * 0.5])
    assert sd[0] == pytest.approx([np.sqrt(2 - 1.2**2 / 1.5), 0.0, np.sqrt(1 - 0.3**2 / 1.5)])


@examples(30)
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


@pytest.mark.parametrize("error", [0.1, 2.0])
def test_moments_are_those_of_draws_that_fit_what_was_measured(error: float) -> None:
    covariance = np.array([[0.3, 0.2, 0.1], [0.2, 0.3, 0.1], [0.1, 0.1, 0.4]])
    shifts = np.array([[True, True, True], [True, True, False]])
    measured = np.array([[error, np.nan, np.nan]])
    mean, sd = conditional(np.zeros((1, 3)), Scatter(covariance, shifts), measured, noise=0.2)
    wanted_mean, wanted_sd = sampled(covariance, shifts.astype(np.float64), measured[0], 0.2)
    assert mean[0, 1:] == pytest.approx(wanted_mean[1:], abs=0.07)
    assert sd[0, 1:] == pytest.approx(wanted_sd[1:], rel=0.07)


@pytest.fixture(scope="module")
def predictor(noisy: Grid) -> GaussianPredictor:
    return Gaussian(Physical()).fit(noisy.take(noisy.profiles.groups("application") > 0), 0)


@pytest.fixture(scope="module")
def held_out(noisy: Grid) -> Grid:
    return noisy.take(noisy.profiles.groups("application") == 0)


def test_intervals_hold_as_told_on_a_new_application(predictor: GaussianPredictor, held_out: Grid) -> None:
    widths = []
    for level, least in ((0.5, 0.35), (0.9, 0.8)):
        forecast = predictor.predict(held_out.profiles, level=level)
        times = np.exp(held_out.log_time)
        assert ((times >= forecast.low) & (times <= forecast.high)).mean() >= least
        assert (forecast.low < forecast.centre).all()
        assert (forecast.centre < forecast.high).all()
        widths.append(forecast.high / forecast.low)
    assert (widths[0] < widths[1]).all()


def test_too_few_applications_are_refused(noisy: Grid) -> None:
    with pytest.raises(InputError, match="applications: expected at least 3"):
        Gaussian(Physical()).fit(noisy.take(noisy.profiles.groups("application") < 2), 0)


def test_a_device_without_a_held_out_error_is_as_unsure_as_the_others(noisy: Grid) -> None:
    errors = np.random.default_rng(0).normal(size=noisy.log_time.shape)
    whole = covariance_of(errors, noisy)
    errors[:, 2] = np.nan
    covariance = covariance_of(errors, noisy)
    others = np.delete(np.diag(covariance), 2)
    assert others.min() < covariance[2, 2] < others.max()
    np.testing.assert_allclose(others, np.delete(np.diag(whole), 2), rtol=0.2)


GRID = noisy_grid()


TIMES = np.linspace(-12, -2, GRID.log_time.size).reshape(GRID.log_time.shape)


def test_the_power_of_the_time_is_found() -> None:
    spread = fit_spread(np.exp(0.2 * TIMES), TIMES, GRID)
    assert spread is not None
    assert spread.power == pytest.approx(0.2, abs=0.02)
    near = np.array([spread.centre, spread.centre + 1, spread.high + 5])
    assert spread.at(near)[0] == 1
    assert spread.at(near)[2] == spread.at(np.array([spread.high]))[0]


def test_of_few_applications_or_one_time_nothing_is_learned() -> None:
    few = GRID.take(np.isin(GRID.profiles.groups("application"), range(4)))
    assert fit_spread(np.ones_like(few.log_time), few.log_time, few) is None
    assert fit_spread(np.ones_like(TIMES), np.full_like(TIMES, -5.0), GRID) is None


def test_the_default_has_wider_intervals_at_longer_times_where_these_are_less_sure() -> None:
    random = np.random.default_rng(1)
    noise = random.normal(size=GRID.log_time.shape) * np.exp(0.4 * (GRID.log_time - GRID.log_time.mean()))
    grid = replace(GRID, log_time=GRID.log_time + 0.2 * noise)
    predictor = replace(model_named("combined"), trivial=None).fit(grid, 0, others=False)
    assert predictor.spread is not None
    assert predictor.spread.power > 0.1
    forecast = predictor.predict(grid.profiles)
    width = np.log(forecast.high / forecast.low).mean(axis=1)
    order = np.argsort(forecast.centre.mean(axis=1))
    assert width[order[-10:]].mean() > 1.2 * width[order[:10]].mean()

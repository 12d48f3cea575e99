"""Intervals cover, probes help as conditioning says, and wrong questions are refused."""

import numpy as np
import pytest

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.time.data import Grid
from crosscast.predict.time.gaussian import Gaussian, GaussianPredictor, covariance_of
from crosscast.predict.time.physical import Physical


@pytest.fixture(scope="module")
def predictor(noisy: Grid) -> GaussianPredictor:
    return Gaussian(Physical()).fit(noisy.take(noisy.profiles.groups("application") > 0), 0)


@pytest.fixture(scope="module")
def held_out(noisy: Grid) -> Grid:
    return noisy.take(noisy.profiles.groups("application") == 0)


def probes(grid: Grid, *devices: int) -> Reals:
    measured = np.full(grid.log_time.shape, np.nan)
    measured[:, list(devices)] = np.exp(grid.log_time[:, list(devices)])
    return measured


def test_intervals_hold_what_they_say_on_an_application_never_seen(
    predictor: GaussianPredictor, held_out: Grid
) -> None:
    for level, least in ((0.5, 0.35), (0.9, 0.8)):
        found = predictor.predict(held_out.profiles, level=level)
        times = np.exp(held_out.log_time)
        assert ((times >= found.low) & (times <= found.high)).mean() >= least
        assert (found.low < found.centre).all()
        assert (found.centre < found.high).all()


def test_a_higher_level_makes_a_wider_interval(predictor: GaussianPredictor, held_out: Grid) -> None:
    narrow, wide = (predictor.predict(held_out.profiles, level=level) for level in (0.5, 0.95))
    assert (narrow.high / narrow.low < wide.high / wide.low).all()


def test_a_probe_sharpens_the_other_devices(predictor: GaussianPredictor, held_out: Grid) -> None:
    without = predictor.predict(held_out.profiles)
    known = predictor.predict(held_out.profiles, probes=probes(held_out, 0))
    others = [1, 2, 3]

    def error(centre: Reals) -> float:
        return float(np.abs(np.log(centre) - held_out.log_time)[:, others].mean())

    assert error(known.centre) < 0.6 * error(without.centre)
    assert np.median((known.high / known.low)[:, others]) < np.median((without.high / without.low)[:, others])


def test_a_probed_device_is_told_as_measured(predictor: GaussianPredictor, held_out: Grid) -> None:
    found = predictor.predict(held_out.profiles, probes=probes(held_out, 2))
    np.testing.assert_allclose(found.centre[:, 2], np.exp(held_out.log_time[:, 2]))
    assert (found.high[:, 2] / found.low[:, 2] < 1.2).all()


def test_devices_are_told_in_the_order_asked(predictor: GaussianPredictor, held_out: Grid) -> None:
    everything = predictor.predict(held_out.profiles)
    some = predictor.predict(held_out.profiles, ["host", predictor.devices[0]])
    assert some.devices == ("host", "big")
    np.testing.assert_array_equal(some.centre, everything.centre[:, [3, 0]])


def test_the_same_seed_gives_the_same_forecast(noisy: Grid) -> None:
    first, second = (Gaussian(Physical()).fit(noisy, 3).predict(noisy.profiles) for _ in range(2))
    assert first.high.tobytes() == second.high.tobytes()


def test_a_device_that_is_not_known_is_refused_with_those_that_are(
    predictor: GaussianPredictor, held_out: Grid
) -> None:
    with pytest.raises(InputError, match=r"big, bigger, red, host.*found 'gtx'"):
        predictor.predict(held_out.profiles, ["gtx"])


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 2.0])
def test_a_level_that_is_no_probability_is_refused(
    predictor: GaussianPredictor, held_out: Grid, level: float
) -> None:
    with pytest.raises(InputError, match="level: expected a probability between 0 and 1"):
        predictor.predict(held_out.profiles, level=level)


@pytest.mark.parametrize("time", [0.0, -1.0, np.inf])
def test_a_probe_that_is_no_time_is_refused(
    predictor: GaussianPredictor, held_out: Grid, time: float
) -> None:
    measured = probes(held_out, 1)
    measured[0, 1] = time
    with pytest.raises(InputError, match="probes: expected times above 0 s"):
        predictor.predict(held_out.profiles, probes=measured)


def test_too_few_applications_are_refused(noisy: Grid) -> None:
    with pytest.raises(InputError, match="applications: expected at least 3"):
        Gaussian(Physical()).fit(noisy.take(noisy.profiles.groups("application") < 2), 0)


def test_a_device_without_a_held_out_error_is_as_unsure_as_the_others(noisy: Grid) -> None:
    errors = np.random.default_rng(0).normal(size=noisy.log_time.shape)
    whole = covariance_of(errors, noisy)
    errors[:, 2] = np.nan
    found = covariance_of(errors, noisy)
    others = np.delete(np.diag(found), 2)
    assert others.min() < found[2, 2] < others.max()
    np.testing.assert_allclose(others, np.delete(np.diag(whole), 2), rtol=0.2)

"""Gaussian processes over a space, searches with known times, and the expectation of random ones."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from crosscast.arrays import Reals
from crosscast.tuning.evaluation import expected_of_random, searched
from crosscast.tuning.search import Candidates, Prior, Search, TuningProcess, expected_gain

PRIOR = Prior(constant=0.5, linear=0.5, smooth=0.5, noise=0.05)


def made(seed: int, n: int = 400, error: float = 0.3) -> tuple[Candidates, Reals]:
    """A space whose times the forecast misses by a bias, by a share of a term, and by a smooth part."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-1.5, 1.5, (n, 3))
    shares = rng.dirichlet((1, 1, 1), n)
    forecast = (points**2).sum(axis=1)
    errors = 0.4 + error * (np.sin(2 * points[:, 0]) + shares[:, 1])
    return Candidates(forecast, np.full(n, 0.5), shares, points, np.zeros((n, 0))), np.exp(forecast + errors)


def test_a_process_passes_through_its_points() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(25, 2))
    values = np.stack([np.sin(points[:, 0]), points @ [1.0, 2.0]], axis=1)
    fitted = TuningProcess.fit(points, points, values, PRIOR)
    means, deviations = fitted.predict(points, points)
    assert np.abs(means - values).max() < 0.15
    far = fitted.predict(points + 50, points + 50)[1]
    assert far.min() > deviations.max()


def test_leave_one_out_is_the_prediction_of_the_others() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(12, 2))
    fitted = TuningProcess.fit(points, points, np.cos(points), PRIOR)
    others = np.arange(12) != 4
    again = TuningProcess(points[others], points[others], np.cos(points)[others], fitted.logs)
    assert fitted.leave_one_out()[4] == pytest.approx(again.predict(points[[4]], points[[4]])[0][0], abs=1e-6)


def test_a_process_knows_of_values_that_lie_on_a_line() -> None:
    points = np.linspace(-1, 1, 8)[:, None]
    fitted = TuningProcess.fit(points, points, 3 * points, PRIOR)
    assert fitted.predict(np.array([[2.0]]), np.array([[2.0]]))[0][0, 0] == pytest.approx(6, rel=0.1)


@given(st.floats(-3, 3), st.floats(0.05, 2), st.floats(-3, 3))
@settings(max_examples=25, deadline=None)
def test_the_expected_gain_is_its_integral(mean: float, deviation: float, best: float) -> None:
    gain = quad(
        lambda t: (best - t) * norm.pdf(t, mean, deviation), mean - 12 * deviation, best, limit=200
    )[0] if best > mean - 12 * deviation else 0.0  # fmt: skip
    value = np.exp(expected_gain(np.array([mean]), np.array([deviation]), best))[0]
    assert value == pytest.approx(gain, rel=0.05, abs=1e-7)


def test_gains_far_below_are_still_in_order() -> None:
    gains = expected_gain(np.array([10.0, 20.0, 40.0]), np.full(3, 0.5), 0.0)
    assert gains[0] > gains[1] > gains[2] > -np.inf


@pytest.mark.parametrize("misled", [False, True])
def test_a_forecast_is_weighted_by_the_likelihood_of_measurements(misled: bool) -> None:
    """A forecast without error finds the best at once; one of another space delays it by a few runs."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(400, 3))
    log_time = np.sin(points[:, 0]) + 0.5 * points[:, 1] ** 2
    forecast = rng.permutation(log_time) if misled else log_time
    search = Search(Candidates(forecast, np.full(400, 0.3), np.zeros((400, 0)), points, np.zeros((400, 0))))
    for _ in range(30):
        (row,) = search.next()
        search.add({int(row): float(np.exp(log_time[row]))})
    runs = list(search.log_times.values())
    assert (runs[0] == log_time.min()) is not misled
    assert min(runs) <= np.quantile(log_time, 0.01)


def test_the_first_is_the_fastest_forecast() -> None:
    candidates, _ = made(0)
    search = Search(candidates)
    assert search.next().tolist() == [int(np.argmin(candidates.log_time))] == [search.best()]


def test_the_first_runs_keep_apart_where_the_forecast_prefers_one_corner() -> None:
    candidates, time_s = made(3)
    wrong = replace(candidates, log_time=candidates.points.sum(axis=1))
    search = Search(wrong)
    for _ in range(10):
        (row,) = search.next()
        search.add({int(row): float(time_s[row])})
    points = wrong.points[list(search.log_times)]
    squares = ((points[:, None] - points) ** 2).sum(axis=2)
    assert squares[np.triu_indices(10, 1)].min() > 0.3


def test_variants_are_measured_once_and_failed_ones_not_again() -> None:
    candidates, times = made(1, 30)
    search, measured = Search(candidates), []
    while rows := search.next(2).tolist():
        measured += rows
        search.add({row: None if row % 5 == 0 else float(times[row]) for row in rows})
    assert sorted(measured) == list(range(30))
    assert search.best() == min((r for r in range(30) if r % 5), key=lambda r: times[r])
    assert search.likely_better(0.0) == 0.0 and search.is_over(0.02)


def test_variants_that_cannot_run_are_not_measured_and_do_not_disturb_the_others() -> None:
    candidates, times = made(1, 40)
    can_run = np.arange(40) >= 25  # Less than half
    broken = replace(candidates, log_time=np.where(can_run, candidates.log_time, np.inf))
    search, measured = Search(broken), []
    while rows := search.next().tolist():
        measured += rows
        search.add({row: float(times[row]) for row in rows})
        assert np.isfinite(search.posterior()).all()
    assert sorted(measured) == np.flatnonzero(can_run).tolist() != measured
    assert search.is_over(0.02)
    assert searched(broken, times, 10)[-1] >= times[can_run].min()
    assert searched(broken.take(np.arange(25)), times[:25], 10).tolist() == [np.inf]


@pytest.mark.parametrize("seed", range(4))
def test_a_search_beats_random_with_a_fifth_of_the_runs(seed: int) -> None:
    candidates, times = made(seed)
    least = searched(candidates, times, 10)
    assert (np.diff(least) <= 0).all()
    assert times.min() / least[-1] > expected_of_random(times, 50)


def test_the_posterior_passes_through_measured_times() -> None:
    candidates, times = made(2, 60)
    search = Search(candidates)
    search.add({row: float(times[row]) for row in range(20)})
    log_time, deviation = search.posterior()
    assert log_time[:20] == pytest.approx(np.log(times[:20]))
    assert deviation[:20].max() < deviation[20:].min() + 0.1
    before = np.abs(candidates.log_time - np.log(times))[20:].mean()
    assert np.abs(log_time - np.log(times))[20:].mean() < 0.5 * before


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=6), st.integers(1, 7))
def test_random_search_is_the_mean_over_all_choices(times: list[float], runs: int) -> None:
    values = np.array(times)
    choices = itertools.combinations(times, min(runs, len(times)))
    expected = float(np.mean([values.min() / min(each) for each in choices]))
    assert expected_of_random(values, runs) == pytest.approx(expected)

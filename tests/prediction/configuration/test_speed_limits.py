"""Cores and clocks limit how much faster a configuration is, and how much slower."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data.configuration import Configuration
from crosscast.prediction.configuration.data import ConfigurationSpace, KernelAt, Surfaces
from crosscast.prediction.configuration.features import SpeedLimits
from crosscast.prediction.configuration.process import ProcessModel
from support.surfaces import made_surfaces

CORES = ConfigurationSpace(tuple(Configuration("xeon", {"cores": cores}) for cores in range(1, 21)))
CLOCKS = ConfigurationSpace(
    tuple(
        Configuration("gpu", {"core_clock_hz": core, "memory_clock_hz": memory})
        for core in (1e9, 2e9)
        for memory in (1e9, 4e9)
    )
)


def limits(space: ConfigurationSpace, *runs: tuple[int, float]) -> tuple[list[float], list[float]]:
    numbers, times = np.array([number for number, _ in runs]), np.array([time for _, time in runs])
    least, most = SpeedLimits.of(space).times(numbers, times)
    return least.tolist(), most.tolist()


def test_twenty_cores_are_at_most_twenty_times_as_fast_as_one_but_for_caches() -> None:
    least, most = limits(CORES, (0, 20.0))
    assert least[-1] == pytest.approx(20 / 20 / 1.05)
    assert most[-1] == pytest.approx(20 * 1.05)
    least, most = limits(CORES, (19, 1.0))
    assert (least[0], most[0]) == pytest.approx((1 / 1.05, 20 * 1.05))


def test_of_two_clocks_the_one_that_rises_more_counts() -> None:
    least, most = limits(CLOCKS, (0, 1.0))
    assert least == pytest.approx([1 / 1.02, 1 / 4 / 1.02, 1 / 2 / 1.02, 1 / 4 / 1.02])
    assert most == pytest.approx([1.02] * 4)


def test_other_settings_and_devices_limit_nothing() -> None:
    space = ConfigurationSpace(
        (
            Configuration("a", {"cores": 1, "cluster": "big"}),
            Configuration("a", {"cores": 2, "cluster": "little"}),
            Configuration("b", {"cores": 2, "cluster": "big"}),
        )
    )
    least, most = limits(space, (0, 1.0))
    assert least[1:] == [0.0, 0.0] and most[1:] == [np.inf, np.inf]


def test_runs_that_contradict_each_other_limit_nothing() -> None:
    least, most = limits(CORES, (0, 1.0), (1, 0.1))
    assert (least[5], most[5]) == (0.0, np.inf)


@given(st.floats(0.1, 1.0), st.lists(st.integers(0, 19), min_size=1, max_size=4, unique=True))
def test_what_follows_amdahl_is_within_its_limits(parallel: float, numbers: list[int]) -> None:
    times = 1 - parallel + parallel / np.arange(1, 21)
    least, most = limits(CORES, *((number, times[number]) for number in numbers))
    assert (np.array(least) <= times).all() and (times <= np.array(most)).all()


def test_a_process_keeps_to_the_limits_and_intervals_come_from_the_programs_that_are_tested() -> None:
    rng = np.random.default_rng(0)
    kernels = tuple(KernelAt(f"app{number}", f"app{number}", "big") for number in range(6))
    share = rng.uniform(0.5, 1.0, (6, 1))
    time_s = (1 - share + share / np.arange(1, 21)) * np.exp(rng.normal(0, 0.5, (6, 20)))
    surfaces = Surfaces("made up", kernels, CORES, time_s, np.full((6, 20), 50.0) + np.arange(20))
    predictor = ProcessModel().fit(surfaces, (19, 0))
    forecast = predictor.forecast(surfaces.observed(0, (19, 0)))
    least, most = SpeedLimits.of(CORES).times(np.array([19, 0]), time_s[0, [19, 0]])
    predicted = ~forecast.measured
    for values in (forecast.time.centre, *forecast.time.limits(0.99)):
        assert (least[predicted] <= values[predicted]).all() and (values[predicted] <= most[predicted]).all()
    assert forecast.time.programs == 6
    few = ProcessModel(tested=("app1", "app2")).fit(surfaces, (19, 0)).fitted
    assert few.held_out is not None and few.held_out.programs == 2
    assert few.time_errors.tolist() == predictor.fitted.time_errors.tolist()


def test_a_model_without_errors_of_programs_has_pooled_intervals() -> None:
    surfaces = made_surfaces(noise=0.02)
    predictor = ProcessModel().fit(surfaces, (0, 11))
    older = replace(predictor, fitted=replace(predictor.fitted, held_out=None, plain=None))
    time = older.forecast(surfaces.observed(0, (0, 11))).time
    assert time.limits(0.8)[0] == pytest.approx(time.quantile(0.1))

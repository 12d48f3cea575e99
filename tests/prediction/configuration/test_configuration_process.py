"""The power is predicted by its parts where they add up to it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.arrays import Flags, Reals
from crosscast.data.configuration import Configuration, Setting
from crosscast.data.views import configured
from crosscast.errors import InputError
from crosscast.prediction.configuration.bailey2014 import PublishedModel
from crosscast.prediction.configuration.data import (
    ConfigurationModel,
    ConfigurationSpace,
    Observed,
    Quantity,
    SurfaceForecast,
    Surfaces,
    machines_of,
)
from crosscast.prediction.configuration.features import SampleFeatures
from crosscast.prediction.configuration.models import NearestKernels
from crosscast.prediction.configuration.process import (
    TOTAL,
    FittedProcess,
    ProcessModel,
    ProcessPredictor,
    SettingInputs,
    logarithms,
    power_parts,
)
from support.examples import one_in
from support.shared import published
from support.surfaces import made_surfaces

SURFACES = made_surfaces(2)


def test_domains_that_add_up_are_the_parts() -> None:
    assert power_parts(SURFACES) == ("cpu", "gpu")
    # The whole is no part of itself.
    assert power_parts(replace(SURFACES, domains={**SURFACES.domains, "node": SURFACES.power_w})) == (
        "cpu",
        "gpu",
    )


def test_domains_that_do_not_add_up_are_not() -> None:
    cpu, gpu = SURFACES.domains["cpu"], SURFACES.domains["gpu"]
    unknown = cpu.copy()
    unknown[0, 0] = np.nan
    for domains in ({}, {"cpu": cpu}, {"cpu": cpu, "gpu": 1.01 * gpu}, {"cpu": unknown, "gpu": gpu}):
        assert power_parts(replace(SURFACES, domains=domains)) == (TOTAL,)
    assert power_parts(replace(SURFACES, power_w=cpu, domains={"cpu": cpu, "gpu": 0 * gpu})) == (TOTAL,)


def one(settings: Mapping[str, Setting], *, device: str = "a") -> Configuration:
    return Configuration(device, settings)


def run(power_w: float, **domains: float) -> Observed:
    watts = {name: np.array([value]) for name, value in domains.items()}
    return Observed(np.array([0]), np.ones(1), np.array([power_w]), watts)


NOTHING = SampleFeatures((), np.empty(0), np.empty(0), (), "")


def seen(inputs: SettingInputs, observed: Observed, indices: list[int]) -> Reals:
    """Coordinates of the settings alone."""
    return inputs.points(NOTHING, observed, indices)


def test_a_cap_counts_by_how_far_it_is_below_what_the_kernel_takes() -> None:
    space = ConfigurationSpace(tuple(one({"cpu_cap_w": cap}) for cap in (50.0, 100.0, 110.0, 400.0)))
    inputs = SettingInputs.of(space, (3,), ("cpu",))
    result = seen(inputs, run(500.0, cpu=100.0), [0])[:, 1]
    assert result == pytest.approx(np.array([np.log(0.5), 0, np.log(1.1), 0.3]) / 0.3)
    # Twice the power with twice the caps looks the same.
    other = SettingInputs.of(
        ConfigurationSpace(tuple(one({"cpu_cap_w": cap}) for cap in (100.0, 200.0, 220.0, 800.0))),
        (3,),
        ("cpu",),
    )
    assert seen(other, run(900.0, cpu=200.0), [0])[:, 1] == pytest.approx(result)


@pytest.mark.parametrize("unknown", [{}, {"cpu": np.nan}, {"cpu": 0.0}])
def test_without_the_domain_a_cap_is_compared_with_all_power(unknown: dict[str, float]) -> None:
    space = ConfigurationSpace(tuple(one({"cpu_cap_w": cap}) for cap in (50.0, 100.0)))
    inputs = SettingInputs.of(space, (1,), ("cpu",))
    assert seen(inputs, run(100.0, **unknown), [0])[:, 1] == pytest.approx(np.array([np.log(0.5), 0]) / 0.3)


def test_each_device_is_seen_from_its_own_sample() -> None:
    space = ConfigurationSpace(
        tuple(one({"cap_w": cap}, device=key) for key in "ab" for cap in (50.0, 100.0))
    )
    inputs = SettingInputs.of(space, (1, 3), ())
    observed = Observed(np.array([3, 1]), np.ones(2), np.array([50.0, 100.0]))
    result = seen(inputs, observed, [1, 0])[:, -1]
    assert result == pytest.approx(np.clip(np.array([np.log(0.5), 0, 0, np.log(2)]) / 0.3, -9, 1))


SIX = made_surfaces(6, noise=0.01)
SAMPLES = (11, 0)
ROW = 2


@pytest.fixture(scope="module")
def fitted() -> ProcessPredictor:
    """Of all programs but the one of `ROW`."""
    return ProcessModel().fit(SIX.take(~SIX.rows_of(["app1"])), SAMPLES)


def observed(*numbers: int) -> Observed:
    return SIX.observed(ROW, (*SAMPLES, *numbers))


def shuffled(runs: Observed, order: list[int]) -> Observed:
    return Observed(
        runs.numbers[order],
        runs.time_s[order],
        runs.power_w[order],
        {name: values[order] for name, values in runs.domains.items()},
        {name: values[order] for name, values in runs.counters.items()},
    )


def same(one: SurfaceForecast, other: SurfaceForecast, relative: float = 1e-9) -> None:
    for result, expected in ((one.time, other.time), (one.power, other.power)):
        np.testing.assert_allclose(result.centre, expected.centre, rtol=relative)
        np.testing.assert_allclose(result.spread, expected.spread, rtol=relative, atol=1e-12)
        np.testing.assert_array_equal(result.errors, expected.errors)
    np.testing.assert_array_equal(one.measured, other.measured)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("quantities.1.mean", lambda a: a[1:], "cpu: expected .* and 12 configurations, found .* 11"),
        ("domains", lambda a: np.array(["disk"]), "domains: expected domains that a cap is of, found disk"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    fitted: ProcessPredictor, name: str, change: Any, sentence: str
) -> None:
    state = fitted.fitted.state()
    with pytest.raises(InputError, match=f"model: {sentence}"):
        ProcessPredictor(
            fitted.space, SAMPLES, FittedProcess.from_state({**state, name: change(state[name])})
        )


def test_logarithms_of_parts_are_not_numbers_where_they_are_not_told() -> None:
    runs = Observed(np.arange(2), np.ones(2), np.array([1.0, 2.0]), {"cpu": np.array([1.0, 0.0])})
    assert logarithms(("time", TOTAL), runs)[TOTAL].tolist() == [0, np.log(2)]
    logs = logarithms(("time", "cpu", "gpu"), runs)
    assert logs["cpu"].tolist() == [0, -np.inf]
    assert np.isnan(logs["gpu"]).tolist() == [True, True]


def test_all_is_forecast_and_what_was_measured_is_exact(fitted: ProcessPredictor) -> None:
    forecast = fitted.forecast(observed(5, 7))
    at = [*SAMPLES, 5, 7]
    assert np.flatnonzero(forecast.measured).tolist() == sorted(at)
    assert forecast.time.centre[at].tolist() == SIX.time_s[ROW, at].tolist()
    assert forecast.power.centre[at].tolist() == SIX.power_w[ROW, at].tolist()
    assert not forecast.time.spread[at].any()
    others = ~forecast.measured
    assert (forecast.time.spread[others] > 0).all()
    assert (forecast.power.spread[others] > 0).all()
    assert np.abs(np.log(forecast.power.centre / SIX.power_w[ROW])).max() < 0.1


@settings(max_examples=20)
@given(st.permutations(range(5)))
def test_the_order_of_runs_does_not_matter(fitted: ProcessPredictor, order: list[int]) -> None:
    runs = observed(4, 9, 6)
    same(fitted.forecast(shuffled(runs, order)), fitted.forecast(runs), 1e-8)


@settings(max_examples=20)
@given(st.floats(1e-6, 1e6))
def test_a_kernel_that_always_takes_longer_is_forecast_so(fitted: ProcessPredictor, factor: float) -> None:
    runs = observed(4)
    longer = fitted.forecast(replace(runs, time_s=factor * runs.time_s))
    plain = fitted.forecast(runs)
    np.testing.assert_allclose(longer.time.centre, factor * plain.time.centre, rtol=1e-8)
    np.testing.assert_allclose(longer.time.spread, plain.time.spread, rtol=1e-6)
    np.testing.assert_allclose(longer.power.centre, plain.power.centre, rtol=1e-8)


def test_runs_may_come_one_by_one(fitted: ProcessPredictor) -> None:
    posterior = fitted.posterior(observed())
    step = observed().with_runs(SIX.observed(ROW, (5,))).with_runs(SIX.observed(ROW, (8,)))
    same(posterior.forecast(step), fitted.forecast(observed(5, 8)))


@pytest.mark.parametrize("value", [np.nan, 0.0, np.inf, -3.0])
def test_a_run_without_a_sensors_power_is_no_measurement(fitted: ProcessPredictor, value: float) -> None:
    runs = observed(5)
    lost = np.where(runs.numbers == 5, value, runs.power_w)
    forecast = fitted.forecast(replace(runs, power_w=lost, domains={}))
    assert not forecast.measured[5]
    assert forecast.power.centre[5] > 0
    assert forecast.time.centre[5] == SIX.time_s[ROW, 5]


PROGRAMS = ("cfd", "nw", "sort")


@pytest.fixture(scope="module")
def surfaces() -> Surfaces:
    (machine,) = machines_of(configured(published("powercap", "powercap")), "powercap")
    return machine


def samples_of(surfaces: Surfaces) -> tuple[int, ...]:
    """The highest and the lowest caps."""
    return tuple(
        surfaces.space.number_of(Configuration("node", {"cpu_cap_w": cpu, "gpu_cap_w": gpu}))
        for cpu, gpu in ((120.0, 260.0), (65.0, 100.0))
    )


def off(forecast: Quantity, true: Reals, cells: Flags) -> Reals:
    """Errors of the logarithm."""
    errors: Reals = np.log(true[cells] / forecast.centre[cells])
    return errors


def covered(forecast: Quantity, true: Reals, cells: Flags) -> Flags:
    """Whether the interval of 90 % holds the truth."""
    inside: Flags = (forecast.quantile(0.05) <= true) & (true <= forecast.quantile(0.95))
    return inside[cells]


@pytest.mark.system
def test_programs_that_were_left_out_are_forecast_as_well_as_measured(surfaces: Surfaces) -> None:
    # Each of all 15 left out alone: 0.086 of time and 0.029 of power; 0.89 and 0.90 of 0.90 are covered.
    samples = samples_of(surfaces)
    out = surfaces.rows_of(PROGRAMS)
    fitted = ProcessModel().fit(surfaces.take(~out), samples)
    times, powers, inside = list[Reals](), list[Reals](), list[Flags]()
    for row in np.flatnonzero(out).tolist():
        forecast = fitted.forecast(surfaces.observed(row, samples))
        unmeasured = surfaces.known[row] & ~forecast.measured
        times.append(off(forecast.time, surfaces.time_s[row], unmeasured))
        powers.append(off(forecast.power, surfaces.power_w[row], unmeasured))
        inside.append(covered(forecast.power, surfaces.power_w[row], unmeasured))
    assert np.sqrt(np.mean(np.concatenate(times) ** 2)) <= 0.10
    assert np.sqrt(np.mean(np.concatenate(powers) ** 2)) <= 0.04
    assert 0.75 <= np.concatenate(inside).mean() < 1


def errors(model: ConfigurationModel, surfaces: Surfaces) -> tuple[float, float]:
    """Root mean square errors of the logarithms of time and power on programs that were left out."""
    samples, squares = samples_of(surfaces), []
    for first in range(3):
        out = surfaces.rows_of(surfaces.applications[first::3])
        fitted = model.fit(surfaces.take(~out), samples)
        for row in np.flatnonzero(out).tolist():
            forecast = fitted.forecast(surfaces.observed(row, samples))
            pairs = (
                (forecast.time.centre, surfaces.time_s[row]),
                (forecast.power.centre, surfaces.power_w[row]),
            )
            squares.append([np.mean(np.log(centre / true) ** 2) for centre, true in pairs])
    time, power = np.sqrt(np.mean(squares, axis=0))
    return float(time), float(power)


@pytest.mark.parametrize(
    ("model", "time", "power"),
    one_in(
        3,
        [
            (PublishedModel(), 0.15, 0.2),
            (NearestKernels(), 0.12, 0.08),
        ],
    ),
    ids=lambda value: getattr(value, "name", ""),
)
def test_programs_that_were_left_out_are_told_about_as_well_as_measured(
    surfaces: Surfaces, model: ConfigurationModel, time: float, power: float
) -> None:
    result = errors(model, surfaces)
    assert result[0] < time
    assert result[1] < power


def test_at_clocks_of_one_gpu_there_is_nothing_to_cluster() -> None:
    machines = machines_of(configured(published("gpu_dvfs", "gpu_dvfs")), "gpu_dvfs", ["titanx"])
    (surfaces,) = machines
    clocks = surfaces.space.matrix.sum(axis=1)
    clusters = PublishedModel(5).fit(surfaces, (int(clocks.argmax()), int(clocks.argmin()))).fitted.clusters
    assert clusters.nothing_to_cluster
    assert len(clusters.members) == 1

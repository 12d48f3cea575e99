"""The process: what it sees of settings and powers, what it forecasts, and to what it can be fitted."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from crosscast.arrays import Flags, Reals
from crosscast.data.configuration import Configuration
from crosscast.data.views import configured
from crosscast.errors import InputError
from crosscast.prediction import configuration as data
from crosscast.prediction.configuration.features import SampleFeatures, TrainingRuns
from crosscast.prediction.configuration.process import (
    TOTAL,
    FittedProcess,
    ProcessModel,
    ProcessPredictor,
    SettingInputs,
    _Training,
    power_parts,
)
from support.grids import linear_surfaces
from support.refusals import refusal
from support.shared import published
from support.surfaces import made_surfaces

SURFACES = made_surfaces(2, noise=0.0)


def test_domains_that_add_up_are_the_parts() -> None:
    assert power_parts(SURFACES) == ("cpu", "gpu")
    # The whole is no part of itself.
    whole = replace(SURFACES, domains={**SURFACES.domains, "node": SURFACES.power_w})
    assert power_parts(whole) == ("cpu", "gpu")
    cpu, gpu = SURFACES.domains["cpu"], SURFACES.domains["gpu"]
    unknown = cpu.copy()
    unknown[0, 0] = np.nan
    for domains in ({}, {"cpu": cpu}, {"cpu": cpu, "gpu": 1.01 * gpu}, {"cpu": unknown, "gpu": gpu}):
        assert power_parts(replace(SURFACES, domains=domains)) == (TOTAL,)
    assert power_parts(replace(SURFACES, power_w=cpu, domains={"cpu": cpu, "gpu": 0 * gpu})) == (TOTAL,)


def capped(*caps: float, devices: str = "a") -> data.ConfigurationSpace:
    return data.ConfigurationSpace(
        tuple(Configuration(key, {"cpu_cap_w": cap}) for key in devices for cap in caps)
    )


def run(power_w: float, **domains: float) -> data.Observed:
    watts = {name: np.array([value]) for name, value in domains.items()}
    return data.Observed(np.array([0]), np.ones(1), np.array([power_w]), watts)


NOTHING = SampleFeatures((), np.empty(0), np.empty(0), (), "")


def seen(inputs: SettingInputs, observed: data.Observed, indices: list[int]) -> Reals:
    """Coordinates of the settings alone."""
    return inputs.points(NOTHING, observed, indices)


def test_a_cap_counts_by_how_far_it_is_below_what_the_kernel_takes() -> None:
    inputs = SettingInputs.of(capped(50, 100, 110, 400), (3,), ("cpu",))
    result = seen(inputs, run(500.0, cpu=100.0), [0])[:, 1]
    assert result == pytest.approx(np.array([np.log(0.5), 0, np.log(1.1), 0.3]) / 0.3)
    # Twice the power with twice the caps looks the same.
    other = SettingInputs.of(capped(100, 200, 220, 800), (3,), ("cpu",))
    assert seen(other, run(900.0, cpu=200.0), [0])[:, 1] == pytest.approx(result)
    # Without the domain a cap is compared with all power.
    inputs = SettingInputs.of(capped(50, 100), (1,), ("cpu",))
    for unknown in ({}, {"cpu": np.nan}, {"cpu": 0.0}):
        result = seen(inputs, run(100.0, **unknown), [0])[:, 1]
        assert result == pytest.approx(np.array([np.log(0.5), 0]) / 0.3)


SIX = made_surfaces(6, noise=0.01)
SAMPLES = (11, 0)
ROW = 2


@pytest.fixture(scope="module")
def fitted() -> ProcessPredictor:
    """Of all programs but the one of `ROW`."""
    return ProcessModel().fit(SIX.take(~SIX.rows_of(["app1"])), SAMPLES)


def observed(*numbers: int) -> data.Observed:
    return SIX.observed(ROW, (*SAMPLES, *numbers))


def same(one: data.SurfaceForecast, other: data.SurfaceForecast, relative: float = 1e-9) -> None:
    for result, expected in ((one.time, other.time), (one.power, other.power)):
        np.testing.assert_allclose(result.centre, expected.centre, rtol=relative)
        np.testing.assert_allclose(result.spread, expected.spread, rtol=relative, atol=1e-12)
        np.testing.assert_array_equal(result.errors, expected.errors)
    np.testing.assert_array_equal(one.measured, other.measured)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("quantities.1.mean", np.ones(11), "cpu: expected .* and 12 configurations, found .* 11"),
        ("domains", np.array(["disk"]), "domains: expected domains that a cap is of, found disk"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    fitted: ProcessPredictor, name: str, value: Any, sentence: str
) -> None:
    read = FittedProcess.from_state({**fitted.fitted.state(), name: value})
    with pytest.raises(InputError, match=f"model: {sentence}"):
        ProcessPredictor(fitted.space, SAMPLES, read)


@settings(max_examples=20)
@given(st.permutations((4, 9, 6)))
def test_the_order_of_runs_does_not_matter(fitted: ProcessPredictor, order: list[int]) -> None:
    same(fitted.forecast(observed(*order)), fitted.forecast(observed(4, 9, 6)), 1e-8)


@settings(max_examples=20)
@given(st.floats(1e-6, 1e6))
def test_a_kernel_that_always_takes_longer_is_forecast_so(fitted: ProcessPredictor, factor: float) -> None:
    runs = observed(4)
    longer = fitted.forecast(replace(runs, time_s=factor * runs.time_s))
    plain = fitted.forecast(runs)
    np.testing.assert_allclose(longer.time.centre, factor * plain.time.centre, rtol=1e-8)
    np.testing.assert_allclose(longer.time.spread, plain.time.spread, rtol=1e-6)
    np.testing.assert_allclose(longer.power.centre, plain.power.centre, rtol=1e-8)


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
def surfaces() -> data.Surfaces:
    (machine,) = data.machines_of(configured(published("powercap", "powercap")), "powercap")
    return machine


def samples_of(surfaces: data.Surfaces) -> tuple[int, ...]:
    """The highest and the lowest caps."""
    return tuple(
        surfaces.space.number_of(Configuration("node", {"cpu_cap_w": cpu, "gpu_cap_w": gpu}))
        for cpu, gpu in ((120.0, 260.0), (65.0, 100.0))
    )


@pytest.mark.system
def test_programs_that_were_left_out_are_forecast_as_well_as_measured(surfaces: data.Surfaces) -> None:
    # Each of all 15 left out alone: 0.086 of time and 0.029 of power; 0.89 and 0.90 of 0.90 are covered.
    samples, out = samples_of(surfaces), surfaces.rows_of(PROGRAMS)
    fitted = ProcessModel().fit(surfaces.take(~out), samples)
    times, powers, inside = list[Reals](), list[Reals](), list[Flags]()
    for row in np.flatnonzero(out).tolist():
        forecast, power_w = fitted.forecast(surfaces.observed(row, samples)), surfaces.power_w[row]
        cells = surfaces.known[row] & ~forecast.measured
        times.append(np.log(surfaces.time_s[row] / forecast.time.centre)[cells])
        powers.append(np.log(power_w / forecast.power.centre)[cells])
        low, high = (forecast.power.quantile(share) for share in (0.05, 0.95))
        inside.append(((low <= power_w) & (power_w <= high))[cells])
    assert np.sqrt(np.mean(np.concatenate(times) ** 2)) <= 0.10
    assert np.sqrt(np.mean(np.concatenate(powers) ** 2)) <= 0.04
    assert 0.75 <= np.concatenate(inside).mean() < 1


FOUR = made_surfaces(4, noise=0.01)


def digest(fitted: FittedProcess) -> str:
    state = sorted(fitted.state().items())
    return hashlib.sha256(b"".join(name.encode() + array.tobytes() for name, array in state)).hexdigest()


def made_of(
    space: data.ConfigurationSpace, time_s: list[list[float]], power_w: list[list[float]]
) -> data.Surfaces:
    """A program a row."""
    kernels = tuple(data.KernelAt(f"app{number}", f"app{number}", "only") for number in range(len(time_s)))
    return data.Surfaces("made up", kernels, space, np.array(time_s), np.array(power_w))


def check(fitted: ProcessPredictor, surfaces: data.Surfaces, row: int) -> None:
    """All cells are forecast, with numbers that can be."""
    forecast = fitted.forecast(surfaces.observed(row, fitted.samples))
    for each in (forecast.time, forecast.power):
        assert np.isfinite(each.centre).all()
        assert (each.centre > 0).all()
        assert (each.spread[~forecast.measured] > 0).all()
        assert (np.diff(each.errors) >= 0).all()


def test_what_is_said_of_a_left_out_program_does_not_come_from_its_values() -> None:
    out = FOUR.rows_of(["app2"])
    unmeasured = ~np.isin(np.arange(12), SAMPLES)
    wrong = np.where(out[:, None] & unmeasured, 7.0, 1.0)
    domains = {name: values * wrong for name, values in FOUR.domains.items()}
    changed = replace(FOUR, time_s=FOUR.time_s * wrong, power_w=FOUR.power_w * wrong, domains=domains)
    with threadpool_limits(1):
        one, other = (_Training.of(TrainingRuns.of(each, SAMPLES), SAMPLES) for each in (FOUR, changed))
        everyone, covariances = np.ones(len(out), np.bool_), one.covariances(0)
        left, wrongly = (each.conditioned(covariances, ~out) for each in (one, other))
        whole, other_whole = (each.conditioned(covariances, everyone) for each in (one, other))
    assert digest(left) == digest(wrongly)
    assert digest(whole) != digest(other_whole)
    # Nor does it remember the program's points.
    points = np.unique(left.quantities[0].process.points, axis=0)
    held_out_points = one.points[out[one.kernels]]
    assert not (points[:, None] == held_out_points[None]).all(axis=2).any()


def test_two_programs_are_needed() -> None:
    assert "made up: expected at least 2 programs that ran at all samples, found app0" in refusal(
        ProcessModel().fit, FOUR.take(FOUR.rows_of(["app0"])), SAMPLES
    )
    lost = replace(FOUR, time_s=FOUR.time_s.copy())
    lost.time_s[:, 0] = np.nan
    assert "expected a kernel that ran at all samples" in refusal(ProcessModel().fit, lost, SAMPLES)
    assert "samples: expected at least one" in refusal(ProcessModel().fit, FOUR, ())
    assert "from 0 to 11, each once, found 3, 3" in refusal(ProcessModel().fit, FOUR, (3, 3))
    check(ProcessModel().fit(FOUR.take(FOUR.rows_of(["app0", "app1"])), SAMPLES), FOUR, 6)


def test_a_device_that_no_kernel_with_the_samples_ran_on_is_forecast_without_much_trust() -> None:
    surfaces = linear_surfaces(5)
    space = surfaces.space
    on_gpu = space.device_numbers == 1
    # The last program ran on the GPU, but not at the sample.
    holes = np.broadcast_to(on_gpu, surfaces.time_s.shape).copy()
    holes[-1] = space.device_numbers == 0
    time_s, power_w = (np.where(holes, np.nan, each) for each in (surfaces.time_s, surfaces.power_w))
    fitted = ProcessModel().fit(replace(surfaces, time_s=time_s, power_w=power_w), (8,))
    check(fitted, surfaces, 0)
    forecast = fitted.forecast(surfaces.observed(0, (8,)))
    assert forecast.time.spread[on_gpu].min() > np.median(forecast.time.spread[~on_gpu])


@pytest.mark.parametrize("count", [1, 2])
def test_a_machine_of_one_or_two_configurations_is_a_machine(count: int) -> None:
    space = data.ConfigurationSpace(tuple(Configuration("a", {"cores": n}) for n in range(1, count + 1)))
    rows = [[1.0 + n, 0.6 + n][:count] for n in range(3)]
    surfaces = made_of(space, rows, [[50.0 + n, 60.0][:count] for n in range(3)])
    fitted = ProcessModel().fit(surfaces, (0,))
    forecast = fitted.forecast(surfaces.observed(0, (0,)))
    assert forecast.time.centre[0] == 1
    assert np.isfinite(forecast.time.quantile(0.9)).all()

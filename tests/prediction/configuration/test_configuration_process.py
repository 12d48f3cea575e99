"""The power is predicted by its parts where they add up to it."""

from __future__ import annotations

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
from crosscast.prediction.configuration.models import GaussianProcess, GlobalRegression, NearestKernels
from crosscast.prediction.configuration.process import (
    TOTAL,
    FittedProcess,
    ProcessModel,
    ProcessPredictor,
    SettingInputs,
    cap_domains,
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


def test_parts_are_told_where_runs_are_and_none_is_called_time() -> None:
    lacking = np.where(np.arange(12) == 5, np.nan, 1.0)
    domains = {name: values * lacking for name, values in SURFACES.domains.items()}
    incomplete = replace(
        SURFACES, time_s=SURFACES.time_s * lacking, power_w=SURFACES.power_w * lacking, domains=domains
    )
    assert power_parts(incomplete) == ("cpu", "gpu")
    domains = {"time": SURFACES.domains["cpu"], "gpu": SURFACES.domains["gpu"]}
    assert power_parts(replace(SURFACES, domains=domains)) == (TOTAL,)


def one(settings: Mapping[str, Setting], *, device: str = "a") -> Configuration:
    return Configuration(device, settings)


def run(power_w: float, **domains: float) -> Observed:
    watts = {name: np.array([value]) for name, value in domains.items()}
    return Observed(np.array([0]), np.ones(1), np.array([power_w]), watts)


NOTHING = SampleFeatures((), np.empty(0), np.empty(0), (), "")


def width(inputs: SettingInputs) -> int:
    return int(inputs.fixed.shape[1] + inputs.caps.shape[1])


def seen(inputs: SettingInputs, observed: Observed, indices: list[int]) -> Reals:
    """Coordinates of the settings alone."""
    return inputs.points(NOTHING, observed, indices)


def test_caps_are_known_by_their_names() -> None:
    space = ConfigurationSpace(
        tuple(
            one({"cpu_cap_w": n, "power_limit_w": n, "cap_w": n, "clock_hz": n, "tall_cap_width_w": n})
            for n in (1.0, 2.0)
        )
    )
    assert cap_domains(space, ["cpu", "gpu"]) == {"cap_w": "", "cpu_cap_w": "cpu", "power_limit_w": ""}
    assert cap_domains(space, [])["cpu_cap_w"] == ""


def test_knobs_act_by_ratios_but_where_they_can_be_zero() -> None:
    space = ConfigurationSpace(tuple(one({"clock_hz": clock}) for clock in (1e9, 2e9, 4e9)))
    inputs = SettingInputs.of(space, (0,), ())
    assert width(inputs) == 1
    assert np.diff(inputs.fixed[:, 0])[0] == pytest.approx(np.diff(inputs.fixed[:, 0])[1])
    np.testing.assert_allclose([inputs.fixed.mean(), inputs.fixed.std()], [0, 1], atol=1e-12)
    space = ConfigurationSpace(tuple(one({"offset": value}) for value in (-1.0, 0.0, 1.0)))
    assert SettingInputs.of(space, (0,), ()).fixed[:, 0] == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])


def test_words_and_devices_are_columns_and_a_missing_knob_is_in_the_middle() -> None:
    space = ConfigurationSpace(
        (
            *(one({"cores": n, "mode": word}, device="cpu") for n in (1, 4) for word in ("x", "y", "z")),
            one({}, device="gpu"),
        )
    )
    # One knob, three of four words ("" is a word that the GPU has), one of two devices.
    inputs = SettingInputs.of(space, (0,), ())
    assert width(inputs) == 5
    assert inputs.fixed[6, 0] == pytest.approx(0)
    assert len(np.unique(inputs.fixed, axis=0)) == 7


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


def test_what_has_no_cap_is_not_limited_and_one_configuration_has_no_coordinates() -> None:
    space = ConfigurationSpace((one({"cap_w": 50.0}), one({"cap_w": 100.0}), one({"cores": 1.0}, device="b")))
    result = seen(SettingInputs.of(space, (1,), ()), run(100.0), [0])[:, -1]
    assert result[2] == 0
    inputs = SettingInputs.of(ConfigurationSpace((one({"cores": 2}),)), (0,), ())
    assert seen(inputs, run(100.0), [0]).shape == (1, 0)


def points(space: ConfigurationSpace, samples: tuple[int, ...], observed: Observed) -> Reals:
    return seen(SettingInputs.of(space, samples, ("cpu", "gpu")), observed, list(range(len(samples))))


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


def test_more_runs_bring_it_nearer(fitted: ProcessPredictor) -> None:
    def error(*numbers: int) -> float:
        forecast = fitted.forecast(observed(*numbers))
        unmeasured = ~np.isin(np.arange(12), (*SAMPLES, 3, 6))
        return float(np.mean(np.log(forecast.time.centre / SIX.time_s[ROW])[unmeasured] ** 2))

    assert error(3, 6) < error()
    before, after = (fitted.forecast(observed(*numbers)).time.spread for numbers in ((), (3, 6)))
    assert (after <= before).all()


@settings(max_examples=20)
@given(st.permutations(range(5)))
def test_the_order_of_runs_does_not_matter(fitted: ProcessPredictor, order: list[int]) -> None:
    runs = observed(4, 9, 6)
    same(fitted.forecast(shuffled(runs, order)), fitted.forecast(runs), 1e-8)


@settings(max_examples=20)
@given(st.floats(1e-6, 1e6))
def test_a_kernel_that_takes_longer_throughout_is_forecast_so(
    fitted: ProcessPredictor, factor: float
) -> None:
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


@pytest.mark.parametrize("gone", ["all", "one", "nan", "zero"])
def test_a_kernel_that_does_not_tell_its_domains_is_forecast_too(fitted: ProcessPredictor, gone: str) -> None:
    runs = observed(5)
    cpu = runs.domains["cpu"]
    domains = {
        "all": {},
        "one": {"cpu": cpu},
        "nan": {**runs.domains, "gpu": np.full(3, np.nan)},
        "zero": {**runs.domains, "gpu": np.zeros(3)},
    }[gone]
    forecast = fitted.forecast(replace(runs, domains=domains))
    assert np.isfinite(forecast.power.centre).all()
    assert forecast.power.centre[[*SAMPLES, 5]].tolist() == runs.power_w.tolist()
    assert (forecast.power.spread[~forecast.measured] > 0).all()
    # As by a model that never knew of domains.
    bare = replace(SIX.take(~SIX.rows_of(["app1"])), domains={})
    same(forecast, ProcessModel().fit(bare, SAMPLES).forecast(replace(runs, domains={})))


def test_a_domain_that_only_some_runs_tell_counts_there(fitted: ProcessPredictor) -> None:
    runs = observed(5, 8)
    without = {name: np.where(runs.numbers == 8, np.nan, values) for name, values in runs.domains.items()}
    forecast = fitted.forecast(replace(runs, domains=without))
    expected = fitted.forecast(observed(5))
    others = ~forecast.measured
    np.testing.assert_allclose(forecast.power.centre[others], expected.power.centre[others])
    assert forecast.power.centre[8] == SIX.power_w[ROW, 8]


@pytest.mark.parametrize("value", [np.nan, 0.0, np.inf, -3.0])
def test_a_run_of_which_a_sensor_told_nothing_is_no_measurement(
    fitted: ProcessPredictor, value: float
) -> None:
    runs = observed(5)
    lost = np.where(runs.numbers == 5, value, runs.power_w)
    forecast = fitted.forecast(replace(runs, power_w=lost, domains={}))
    assert not forecast.measured[5]
    assert forecast.power.centre[5] > 0
    assert forecast.time.centre[5] == SIX.time_s[ROW, 5]


def test_forecasts_do_not_change_what_was_told(fitted: ProcessPredictor) -> None:
    runs = observed(5)
    posterior = fitted.posterior(runs)
    first = posterior.forecast(runs)
    first.time.centre[:] = 0
    same(posterior.forecast(runs), fitted.forecast(runs))
    np.testing.assert_array_equal(runs.time_s, SIX.time_s[ROW, [11, 0, 5]])


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
            (PublishedModel(logarithms=True), 0.15, 0.2),
            (NearestKernels(), 0.12, 0.08),
            (GlobalRegression(), 0.14, 0.08),
            (GaussianProcess(), 0.13, 0.08),
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


def test_clusters_pay_and_the_tree_is_asked(surfaces: Surfaces) -> None:
    # The power of clusters was told to within 0.2 above.
    assert errors(PublishedModel(1), surfaces)[1] > 0.25
    fitted = PublishedModel().fit(surfaces, samples_of(surfaces))
    assert len(fitted.fitted.clusters.members) > 1
    assert "gpu" in fitted.fitted.tree.text()


def test_at_clocks_of_one_gpu_there_is_nothing_to_cluster() -> None:
    machines = machines_of(configured(published("gpu_dvfs", "gpu_dvfs")), "gpu_dvfs", ["titanx"])
    (surfaces,) = machines
    clocks = surfaces.space.matrix.sum(axis=1)
    clusters = PublishedModel(5).fit(surfaces, (int(clocks.argmax()), int(clocks.argmin()))).fitted.clusters
    assert clusters.nothing_to_cluster
    assert len(clusters.members) == 1

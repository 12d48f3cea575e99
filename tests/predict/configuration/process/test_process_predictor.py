"""A fitted process forecasts from any runs that hold the samples, and comes back from its arrays."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_surfaces import made_surfaces

from crosscast.errors import InputError
from crosscast.predict.configuration.data import Observed
from crosscast.predict.configuration.forecast import SurfaceForecast
from crosscast.predict.configuration.process import ProcessModel, ProcessPredictor

SURFACES = made_surfaces(6, noise=0.01)
SAMPLES = (11, 0)
ROW = 2


@pytest.fixture(scope="module")
def fitted() -> ProcessPredictor:
    """Of all programs but the one of `ROW`."""
    return ProcessModel().fit(SURFACES.take(~SURFACES.rows_of(["app1"])), SAMPLES)


def observed(*numbers: int) -> Observed:
    return SURFACES.observed(ROW, (*SAMPLES, *numbers))


def shuffled(runs: Observed, order: list[int]) -> Observed:
    return Observed(
        runs.numbers[order],
        runs.time_s[order],
        runs.power_w[order],
        {name: values[order] for name, values in runs.domains.items()},
        {name: values[order] for name, values in runs.counters.items()},
    )


def same(one: SurfaceForecast, other: SurfaceForecast, relative: float = 1e-9) -> None:
    for found, expected in ((one.time, other.time), (one.power, other.power)):
        np.testing.assert_allclose(found.centre, expected.centre, rtol=relative)
        np.testing.assert_allclose(found.spread, expected.spread, rtol=relative, atol=1e-12)
        np.testing.assert_array_equal(found.errors, expected.errors)
    np.testing.assert_array_equal(one.measured, other.measured)


def test_it_comes_back_from_its_arrays(fitted: ProcessPredictor) -> None:
    back = ProcessPredictor.from_state(fitted.state())
    same(back.forecast(observed(5)), fitted.forecast(observed(5)), 0.0)
    assert back.samples == SAMPLES
    assert back.domains == ("cpu", "gpu")


def damages(fitted: ProcessPredictor) -> list[tuple[str, str, Any]]:
    found: list[tuple[str, str, Any]] = []
    for name, array in fitted.state().items():
        found += [(name, "missing", None), (name, "an axis too many", array[None])]
        if array.dtype.kind == "f":
            found += [
                (name, "not a number", np.full_like(array, np.nan)),
                (name, "texts", array.astype(np.str_)),
            ]
        else:
            found.append((name, "numbers", np.ones(array.shape)))
        if name.removeprefix("plain:") not in (
            "time_errors",
            "power_errors",
            "domains",
            "feature_counts",
            "samples",
        ):
            found.append((name, "short", array[:-1]))
    return found


def test_each_damaged_array_is_refused(fitted: ProcessPredictor) -> None:
    for name, what, array in damages(fitted):
        state = fitted.state()
        del state[name]
        if array is not None:
            state[name] = array
        with pytest.raises(InputError, match="model: "):
            ProcessPredictor.from_state(state)
            pytest.fail(f"{name}: {what} was accepted")


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("time_errors", lambda a: a[::-1], "time_errors: expected rising numbers"),
        ("quantities", lambda a: a[1:], "quantities: expected time and powers"),
        ("quantities", lambda a: a[[0, 1, 1]], "quantities: expected time and powers, each once"),
        ("samples", lambda a: a[:1], "feature_names: expected kind:name@sample with one of the samples"),
        ("samples", lambda a: a + 1, "samples: expected integers from 0 to 11"),
        ("plain:quantities", lambda a: a[[0, 0]], "plain:quantities: expected time and power, found"),
        ("plain:samples", lambda a: a[::-1], "plain:samples: expected the same configurations"),
        ("cpu.mean", lambda a: a[1:], "cpu.mean: expected 12 values, found 11"),
        ("domains", lambda a: np.array(["disk"] * 3), "domains: expected domains that a cap is of"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    fitted: ProcessPredictor, name: str, change: Any, sentence: str
) -> None:
    state = fitted.state()
    with pytest.raises(InputError, match=sentence):
        ProcessPredictor.from_state({**state, name: change(state[name])})


def test_a_sample_that_is_missing_is_named(fitted: ProcessPredictor) -> None:
    with pytest.raises(InputError, match="expected a run at node: cpu_cap_w 60, gpu_cap_w 100, found none"):
        fitted.forecast(SURFACES.observed(ROW, (11, 5)))


def test_all_is_forecast_and_what_was_measured_is_exact(fitted: ProcessPredictor) -> None:
    found = fitted.forecast(observed(5, 7))
    at = [*SAMPLES, 5, 7]
    assert np.flatnonzero(found.measured).tolist() == sorted(at)
    assert found.time.centre[at].tolist() == SURFACES.time_s[ROW, at].tolist()
    assert found.power.centre[at].tolist() == SURFACES.power_w[ROW, at].tolist()
    assert not found.time.spread[at].any()
    others = ~found.measured
    assert (found.time.spread[others] > 0).all()
    assert (found.power.spread[others] > 0).all()
    assert np.abs(np.log(found.power.centre / SURFACES.power_w[ROW])).max() < 0.1


def test_more_runs_bring_it_nearer(fitted: ProcessPredictor) -> None:
    def error(*numbers: int) -> float:
        found = fitted.forecast(observed(*numbers))
        asked = ~np.isin(np.arange(12), (*SAMPLES, 3, 6))
        return float(np.mean(np.log(found.time.centre / SURFACES.time_s[ROW])[asked] ** 2))

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
    prior = fitted.prior(observed())
    step = observed().and_run(SURFACES.observed(ROW, (5,))).and_run(SURFACES.observed(ROW, (8,)))
    same(prior.forecast(step), fitted.forecast(observed(5, 8)))


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
    found = fitted.forecast(replace(runs, domains=domains))
    assert np.isfinite(found.power.centre).all()
    assert found.power.centre[[*SAMPLES, 5]].tolist() == runs.power_w.tolist()
    assert (found.power.spread[~found.measured] > 0).all()
    # As by a model that never knew of domains.
    bare = replace(SURFACES.take(~SURFACES.rows_of(["app1"])), domains={})
    same(found, ProcessModel().fit(bare, SAMPLES).forecast(replace(runs, domains={})))


def test_a_domain_that_only_some_runs_tell_counts_there(fitted: ProcessPredictor) -> None:
    runs = observed(5, 8)
    without = {name: np.where(runs.numbers == 8, np.nan, values) for name, values in runs.domains.items()}
    found = fitted.forecast(replace(runs, domains=without))
    expected = fitted.forecast(observed(5))
    others = ~found.measured
    np.testing.assert_allclose(found.power.centre[others], expected.power.centre[others])
    assert found.power.centre[8] == SURFACES.power_w[ROW, 8]


@pytest.mark.parametrize("value", [np.nan, 0.0, np.inf, -3.0])
def test_a_run_of_which_a_sensor_told_nothing_is_no_measurement(
    fitted: ProcessPredictor, value: float
) -> None:
    runs = observed(5)
    lost = np.where(runs.numbers == 5, value, runs.power_w)
    found = fitted.forecast(replace(runs, power_w=lost, domains={}))
    assert not found.measured[5]
    assert found.power.centre[5] > 0
    assert found.time.centre[5] == SURFACES.time_s[ROW, 5]


def test_forecasts_do_not_change_what_was_told(fitted: ProcessPredictor) -> None:
    runs = observed(5)
    prior = fitted.prior(runs)
    first = prior.forecast(runs)
    first.time.centre[:] = 0
    same(prior.forecast(runs), fitted.forecast(runs))
    np.testing.assert_array_equal(runs.time_s, SURFACES.time_s[ROW, [11, 0, 5]])

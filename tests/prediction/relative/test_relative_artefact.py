"""Forecasts of relative times: what a model is asked and warns of, and what intervals and shares promise."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from msgspec import structs

from crosscast.arrays import Reals
from crosscast.data.profiles import from_row
from crosscast.errors import InputError
from crosscast.evaluation.relative.question import train_relative
from crosscast.prediction.named_models import load_model
from crosscast.prediction.relative import NO_SOURCE, Observations, RelativeResiduals
from crosscast.prediction.relative.artefact import (
    RelativeForecast,
    TrainedRelativeModel,
    forecast_of,
)
from crosscast.prediction.relative.models import models_named
from crosscast.prediction.relative.nichols2024 import FixedVector, PublishedMean
from crosscast.prediction.relative.observed import observations_of, vectors_of
from crosscast.prediction.time import ProfileBatch
from support.johnston2018 import made_up
from support.refusals import refusal
from support.vectors import COUNTERS, DEVICES, made_vectors, trained, with_predictor


def runs() -> Observations:
    return made_vectors().observations


def test_a_model_of_other_devices_than_its_errors_is_refused(tmp_path: Path) -> None:
    two = FixedVector(np.array([0.5, 1.0]))
    with_predictor(trained(), two).save(tmp_path / "rpv")
    refused = refusal(load_model(tmp_path / "rpv", "relative").predict, runs())
    assert "expected a model of 3 devices as its card says, found one that pred" in refused


def one_run(**changed: Any) -> Observations:
    return replace(runs().rows(np.array([0])), **changed)


def test_counters_that_are_passed_over_are_named() -> None:
    seen = one_run(names=(*COUNTERS, "MYSTERY"), counters=np.append(runs().counters[:1], [[3.0]], axis=1))
    model = trained()
    forecast = model.predict(seen)
    assert forecast.warnings == (("counters that the model does not know are passed over: MYSTERY",),)
    np.testing.assert_array_equal(forecast.centre, model.predict(one_run()).centre)


def test_a_run_that_lacks_nearly_all_counters_is_a_warning() -> None:
    # As what perf stat counts on a CPU, asked of a model of GPUs: it was answered without a word.
    model = trained()
    many = structs.replace(model.card, counters=(*COUNTERS, *(f"other{number}" for number in range(40))))
    seen = one_run(names=COUNTERS[:1], counters=runs().counters[:1, :1])
    ((warning,),) = TrainedRelativeModel(many, model.source).predict(seen).warnings
    assert warning == (
        f"of its counters the model knows {COUNTERS[0]} only, and has learned from {len(COUNTERS) + 40}: "
        "this is near to what it says of any run"
    )
    assert model.predict(seen).warnings == ((),)
    # Metrics that profiles have since are no warning.
    of_profiles = TrainedRelativeModel(structs.replace(model.card, sources=(NO_SOURCE,)), model.source)
    counters = np.append(runs().counters[:1], [[3.0]], axis=1)
    seen = one_run(names=(*COUNTERS, "new_metric"), counters=counters, source=(NO_SOURCE,))
    assert of_profiles.predict(seen).warnings == ((),)


def test_a_source_that_was_not_in_the_training_is_a_warning() -> None:
    model = trained()
    ((warning,),) = model.predict(one_run(source=("gpu",))).warnings
    assert warning.startswith("counted on gpu, and the model was trained on what was counted on cpu, fast")
    ((warning,),) = model.predict(one_run(source=(NO_SOURCE,))).warnings
    assert warning == "the profile does not say on which device it was counted"


@pytest.mark.parametrize("name", ["published-mean", "published-linear"])
def test_counters_of_another_tool_are_known_if_the_model_knows_what_they_mean(name: str) -> None:
    """perf has other names for branches than PAPI; features know both, and a mean has none."""
    model = with_predictor(trained(), models_named([name])[0].fit(made_vectors(), 0))
    seen = one_run(names=("instructions", "branches"), counters=runs().counters[:1, :2])
    if name == "published-mean":
        assert "expected counters that the model knows" in refusal(model.predict, seen)
    else:
        assert "branches" not in str(model.predict(seen).warnings)


TWO = runs().rows(np.array([0, 1]))
"""One counted on the CPU, one on the fast one."""


def test_a_forecast_is_a_table_of_runs_and_devices() -> None:
    forecast = trained().predict(TWO, relative_to="gpu")
    table = forecast.to_pandas()
    assert table.device.tolist() == [*DEVICES, *DEVICES]
    assert table.source.tolist() == ["cpu"] * 3 + ["fast"] * 3
    for row in range(2):
        devices: Any = forecast[row].to_dict()["devices"]
        for name in ("relative", "low", "high", "rank", "probability_fastest", "time_s", "time_low_s"):
            assert table[name][3 * row : 3 * row + 3].tolist() == [each[name] for each in devices]


def test_a_time_that_is_told_takes_the_place_of_the_runs_own() -> None:
    forecast = trained().predict(TWO, timed_on="gpu", time_s=2.0)
    assert (forecast.timed_on[0], forecast.timed_s(0), forecast.time_s[0, 2, 0]) == ("gpu", 2.0, 2.0)


@pytest.mark.parametrize(
    "changed", [{"time_s": np.full(2, np.nan)}, {"source": (NO_SOURCE, "elsewhere")}], ids=["time", "device"]
)
def test_without_a_time_or_its_device_there_are_no_seconds(changed: dict[str, Any]) -> None:
    forecast = trained().predict(replace(TWO, **changed))
    assert forecast.timed_on == (None, None)
    assert np.isnan(forecast.time_s).all()
    answer: dict[str, Any] = forecast[0].to_dict()
    assert answer["time"] is None
    assert all(each["time_s"] is None and each["time_low_s"] is None for each in answer["devices"])
    assert answer["source"] == ("cpu" if "time_s" in changed else None)


def test_unknown_counters_alone_and_what_is_no_time_or_on_an_unknown_device_are_refused() -> None:
    seen = one_run(names=("one", "two"), counters=np.array([[1.0, 2.0]]))
    known = ", ".join(COUNTERS)
    sentence = f"app00 kernel0 size0: expected counters that the model knows, such as {known}, found one, two"
    assert refusal(trained().predict, seen) == sentence
    for seconds in (0.0, -1.0, float("nan"), float("inf"), 1e12):
        assert "time: expected from 1e-09 to 1e" in refusal(trained().predict, TWO, time_s=seconds)
    predict, unknown = trained().predict, replace(TWO, source=(NO_SOURCE,) * 2)
    assert "source: expected one of cpu, fast, gpu" in refusal(predict, TWO, timed_on="lassen", time_s=1.0)
    assert "time: expected the device that it was measured on" in refusal(predict, unknown, time_s=1.0)


def test_an_interval_reaches_to_quantiles_of_errors_or_of_their_differences() -> None:
    result = errors_of(np.array([[0.1], [-0.9], [0.3], [0.2], [-0.5], [0.4], [0.8], [-0.7], [0.6]]), 9)
    # Nine errors and the one to come: half of the ten is the fifth.
    assert [result.half_width(level, None).tolist() for level in (0.9, 0.8, 0.5)] == [[0.9], [0.8], [0.5]]
    result = errors_of(np.array([[0.1, 0.3], [0.2, 0.2], [-0.4, 0.4]]), 3)
    np.testing.assert_allclose(result.half_width(0.75, 0), [0, 0.8])
    np.testing.assert_allclose(result.half_width(0.5, 1), [0.2, 0])


def test_errors_may_be_of_one_source_or_without_a_group() -> None:
    errors = np.array([[1.0], [2.0], [3.0], [4.0]])
    result = RelativeResiduals.of(["g0", "g0", "g1", "g2"], ["s0", "s1", "s1", "s0"], errors)
    of_source = result.of_source("s1")
    assert of_source.log_error[:, 0].tolist() == [2, 3]
    assert (of_source.groups, of_source.group.tolist(), of_source.sources) == (("g0", "g1"), [0, 1], ("s1",))
    assert result.of_source("another") is result
    rows = result.rows(result.group != 1)
    assert (rows.log_error[:, 0].tolist(), rows.group.tolist()) == ([1, 2, 4], [0, 0, 1])


KEYS = ("a", "b", "c", "d")


@dataclass(frozen=True, eq=False)
class Case:
    """Predicted vectors of runs without names, and errors that were made before."""

    predicted: Reals
    errors: RelativeResiduals
    sources: tuple[str, ...]
    devices: tuple[str, ...] = KEYS

    def forecast(self, relative_to: str | None = None, level: float = 0.9) -> RelativeForecast:
        none, empty = ("",) * len(self.sources), np.empty((len(self.sources), 0))
        time_s = np.full(len(self.sources), np.nan)
        runs = Observations(none, none, none, none, self.sources, (), empty, (), empty, time_s)
        options: dict[str, Any] = {"relative_to": relative_to, "level": level}
        return forecast_of(runs, self.devices, self.predicted, self.errors, **options)


def errors_of(log_error: Reals, groups: int, sources: tuple[str, ...] = ("x",)) -> RelativeResiduals:
    """Errors in groups and of sources, dealt in turn."""
    numbers = range(len(log_error))
    names = [f"g{number % groups}" for number in numbers]
    return RelativeResiduals.of(names, [sources[number % len(sources)] for number in numbers], log_error)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    runs, errors = draw(st.integers(1, 3)), draw(st.integers(2, 9))
    logs = st.floats(-3, 3, width=32)
    # Distinct values, as devices that tie are in the order of their names.
    rows = [draw(st.lists(st.integers(-300, 300), min_size=4, max_size=4, unique=True)) for _ in range(runs)]
    log_error = draw(arrays(np.float64, (errors, 4), elements=logs))
    source = st.sampled_from(("x", "y", "another"))
    return Case(
        np.exp(np.array(rows) / 100),
        errors_of(log_error, draw(st.integers(1, errors // 2)), ("x", "y")),
        tuple(draw(source) for _ in range(runs)),
    )


anything = st.sampled_from((None, *KEYS))
levels = st.floats(0.05, 0.99)


@given(cases(), anything, levels)
def test_an_interval_holds_its_centre_and_what_times_are_relative_to_is_1(
    case: Case, relative_to: str | None, level: float
) -> None:
    forecast = case.forecast(relative_to, level)
    assert (forecast.low > 0).all()
    assert (forecast.low <= forecast.centre).all()
    assert (forecast.centre <= forecast.high).all()
    if relative_to is None:
        assert (forecast.centre.max(axis=1) == 1).all()
        assert (forecast.high <= 1).all()
    else:
        for values in (forecast.low, forecast.centre, forecast.high):
            assert (values[:, KEYS.index(relative_to)] == 1).all()


@given(cases(), levels, st.sampled_from(KEYS), st.sampled_from(KEYS))
def test_ratios_are_the_same_relative_to_any_device(case: Case, level: float, one: str, other: str) -> None:
    to_one, to_other = case.forecast(one, level), case.forecast(other, level)
    first, second = KEYS.index(one), KEYS.index(other)
    np.testing.assert_allclose(to_one.centre, to_other.centre / to_other.centre[:, [first]], rtol=1e-12)
    # One over the other and the other over the one: each interval is the other one's inverse.
    np.testing.assert_allclose(to_one.low[:, second], 1 / to_other.high[:, first], rtol=1e-12)
    np.testing.assert_allclose(to_one.high[:, second], 1 / to_other.low[:, first], rtol=1e-12)
    slowest = case.forecast(None, level).centre
    np.testing.assert_allclose(slowest / slowest[:, [first]], to_one.centre, rtol=1e-12)
    # What the predicted vector was relative to does not matter.
    scaled = Case(case.predicted * 7.5, case.errors, case.sources).forecast(one, level)
    np.testing.assert_allclose([scaled.centre, scaled.high], [to_one.centre, to_one.high], rtol=1e-12)
    assert (scaled.order == to_one.order).all()


@given(cases(), st.permutations(range(4)), levels)
def test_the_order_of_devices_does_not_matter(case: Case, order: list[int], level: float) -> None:
    moved = replace(case.errors, log_error=case.errors.log_error[:, order])
    devices = tuple(KEYS[index] for index in order)
    one = case.forecast(None, level)
    other = Case(case.predicted[:, order], moved, case.sources, devices).forecast(None, level)
    for name in ("centre", "low", "high", "fastest"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name)[:, order], rtol=1e-9, atol=1e-12)
    for row in range(len(one)):
        assert other.in_order(row) == one.in_order(row)


@given(cases())
def test_probabilities_are_shares(case: Case) -> None:
    forecast = case.forecast()
    np.testing.assert_allclose(forecast.fastest.sum(axis=1), 1)
    assert ((forecast.fastest >= 0) & (forecast.fastest <= 1)).all()
    for row, share in enumerate(forecast.same_order):
        # Where the whole order is right, so is the first.
        assert 0 <= share <= forecast.fastest[row, forecast.order[row, 0]] + 1e-9 or _ties(case)


def _ties(case: Case) -> bool:
    """Whether devices may tie as the fastest, which then share the probability."""
    truths = np.log(case.predicted)[:, None] - case.errors.log_error
    return bool((np.diff(np.sort(truths, axis=2), axis=2)[:, :, 0] < 1e-9).any())


def test_without_errors_all_is_sure_and_a_tie_is_shared() -> None:
    case = Case(np.array([[0.4, 0.1, 0.2, 0.3]]), errors_of(np.zeros((9, 4)), 9), ("x",))
    forecast = case.forecast("a")
    assert forecast.in_order(0) == ("b", "c", "d", "a")
    np.testing.assert_allclose(forecast.centre, [[1, 0.25, 0.5, 0.75]])
    np.testing.assert_array_equal(forecast.low, forecast.high)
    assert (forecast.fastest.tolist(), forecast.same_order.tolist()) == ([[0, 1, 0, 0]], [1])
    case = Case(np.array([[0.5, 0.5, 1.0, 1.0]]), errors_of(np.zeros((4, 4)), 4), ("x",))
    assert case.forecast().fastest.tolist() == [[0.5, 0.5, 0, 0]]


def test_a_probability_is_the_share_of_errors_that_make_a_device_the_fastest() -> None:
    """Errors of three groups: one of two runs swaps the first two devices, which is a sixth in all."""
    swap = [np.log(3.0), 0.0, 0.0, 0.0]
    log_error = np.array([swap, [0.0] * 4, [0.0] * 4, [0.0] * 4])
    errors = RelativeResiduals.of(["one", "one", "two", "three"], ["x"] * 4, log_error)
    # True over predicted is one over the error: device a was a third of what was predicted.
    case = Case(np.array([[0.2, 0.1, 0.5, 1.0]]), errors, ("x",))
    forecast = case.forecast()
    np.testing.assert_allclose(forecast.fastest, [[1 / 6, 5 / 6, 0, 0]])
    np.testing.assert_allclose(forecast.same_order, [5 / 6])


def test_what_is_no_forecast_is_refused() -> None:
    case = Case(np.ones((1, 4)), errors_of(np.ones((4, 4)), 4), ("x",))
    assert "relative_to: expected one of a, b, c, d, found 'lassen'" in refusal(case.forecast, "lassen")
    assert "level: expected a probability between 0 and 1" in refusal(case.forecast, level=1.0)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="model: expected numbers above 0"):
            Case(np.full((1, 4), wrong), case.errors, ("x",)).forecast()


def test_profiles_are_predicted_as_they_are() -> None:
    dataset = made_up()
    model, seen = train_relative(vectors_of(dataset), PublishedMean()), observations_of(dataset)
    profiles = [from_row(row) for row in dataset.profiles.to_pylist()]
    for batch in (profiles, ProfileBatch.of(profiles)):
        np.testing.assert_array_equal(model.predict(batch).centre, model.predict(seen).centre)

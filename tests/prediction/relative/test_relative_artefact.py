"""Artefacts of models of relative vectors: what comes back, what is refused, and that bytes stay the same."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from crosscast.data.profiles import from_row
from crosscast.evaluation.relative.question import train_relative
from crosscast.prediction.relative import NO_SOURCE, Observations
from crosscast.prediction.relative.artefact import TrainedRelativeModel, open_model
from crosscast.prediction.relative.models import models_named
from crosscast.prediction.relative.nichols2024 import FixedVector, PublishedMean
from crosscast.prediction.relative.observed import observations_of, vectors_of
from crosscast.prediction.store import read
from crosscast.prediction.time import ProfileBatch
from support.johnston2018 import made_up
from support.refusals import refusal
from support.vectors import COUNTERS, DEVICES, made_vectors, trained, with_predictor


def load(folder: Path) -> TrainedRelativeModel:
    return open_model(read(folder, "relative"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    trained().save(tmp_path / "rpv")
    return tmp_path / "rpv"


def runs() -> Observations:
    return made_vectors().observations


def test_a_model_of_other_devices_than_its_errors_is_refused(tmp_path: Path) -> None:
    two = FixedVector(np.array([0.5, 1.0]))
    with_predictor(trained(), two).save(tmp_path / "rpv")
    assert "expected a model of 3 devices as its card says, found one that pred" in refusal(
        load(tmp_path / "rpv").predict, runs()
    )


def one_run(**changed: Any) -> Observations:
    return replace(runs().rows(np.array([0])), **changed)


def test_counters_that_are_passed_over_are_named(folder: Path) -> None:
    seen = one_run(names=(*COUNTERS, "MYSTERY"), counters=np.append(runs().counters[:1], [[3.0]], axis=1))
    model = load(folder)
    forecast = model.predict(seen)
    assert forecast.warnings == (("counters that the model does not know are passed over: MYSTERY",),)
    np.testing.assert_array_equal(forecast.centre, model.predict(one_run()).centre)


def test_a_run_that_lacks_nearly_all_counters_is_a_warning(folder: Path) -> None:
    # As what perf stat counts on a CPU, asked of a model of GPUs: it was answered without a word.
    model = load(folder)
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


def test_a_profile_of_unknown_counters_alone_is_refused(folder: Path) -> None:
    seen = one_run(names=("one", "two"), counters=np.array([[1.0, 2.0]]))
    known = ", ".join(COUNTERS)
    sentence = f"app00 kernel0 size0: expected counters that the model knows, such as {known}, found one, two"
    assert refusal(load(folder).predict, seen) == sentence


def test_a_source_that_was_not_in_the_training_is_a_warning(folder: Path) -> None:
    model = load(folder)
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


def test_what_is_no_time_or_on_an_unknown_device_is_refused() -> None:
    for seconds in (0.0, -1.0, float("nan"), float("inf"), 1e12):
        assert "time: expected from 1e-09 to 1e" in refusal(trained().predict, TWO, time_s=seconds)
    predict, unknown = trained().predict, replace(TWO, source=(NO_SOURCE,) * 2)
    assert "source: expected one of cpu, fast, gpu" in refusal(predict, TWO, timed_on="lassen", time_s=1.0)
    assert "time: expected the device that it was measured on" in refusal(predict, unknown, time_s=1.0)


def test_profiles_are_predicted_as_they_are() -> None:
    dataset = made_up()
    model = train_relative(vectors_of(dataset), PublishedMean())
    profiles = [from_row(row) for row in dataset.profiles.to_pylist()]
    seen = observations_of(dataset)
    for batch in (profiles, ProfileBatch.of(profiles)):
        np.testing.assert_array_equal(model.predict(batch).centre, model.predict(seen).centre)

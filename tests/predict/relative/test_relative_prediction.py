"""The answer for each run: ranks, seconds where a time is known, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.relative.artefact import (
    TrainedRelativeModel,
    load_relative_model,
    relative_predictions_of,
)
from crosscast.predict.relative.data import NO_SOURCE, Observations
from made_vectors import DEVICES, kept_relative, made_vectors


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedRelativeModel:
    return load_relative_model(kept_relative(tmp_path_factory.mktemp("kept") / "rpv"))


@pytest.fixture
def runs() -> Observations:
    """One counted on the CPU, one on the fast one."""
    return made_vectors().observations.rows(np.array([0, 1]))


def test_ranks_follow_the_times_and_the_first_is_recommended(
    model: TrainedRelativeModel, runs: Observations
) -> None:
    for found in relative_predictions_of(model, runs):
        by_time = sorted(found.devices, key=lambda each: each.relative)
        assert [each.rank for each in by_time] == [1, 2, 3]
        assert found.order == tuple(by_time)
        answer = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert answer["recommended"] == answer["order"][0] == by_time[0].device
        assert [each["device"] for each in answer["devices"]] == list(DEVICES)
        assert answer["devices"][0]["speed_up"] == pytest.approx(1 / found.devices[0].relative)


def test_a_time_on_the_source_gives_seconds_on_each_device(
    model: TrainedRelativeModel, runs: Observations
) -> None:
    for row, found in enumerate(relative_predictions_of(model, runs, relative_to="gpu")):
        assert (found.timed_on, found.timed_s) == (DEVICES[row], runs.time_s[row])
        assert found.devices[row].time_s == found.devices[row].time_low_s == runs.time_s[row]
        ratios = [each.time_s / found.devices[2].time_s for each in found.devices]  # type: ignore[operator]
        np.testing.assert_allclose(ratios, [each.relative for each in found.devices])
        for each in found.devices:
            assert each.time_low_s is not None and each.time_high_s is not None
            assert 0 < each.time_low_s <= (each.time_s or 0) <= each.time_high_s


def test_a_time_that_is_told_takes_the_place_of_the_runs_own(
    model: TrainedRelativeModel, runs: Observations
) -> None:
    one, _ = relative_predictions_of(model, runs, timed_on="gpu", time_s=2.0)
    assert (one.timed_on, one.timed_s, one.devices[2].time_s) == ("gpu", 2.0, 2.0)


def test_without_a_time_there_are_no_seconds(model: TrainedRelativeModel, runs: Observations) -> None:
    unknown = replace(runs, time_s=np.full(2, np.nan))
    for found in relative_predictions_of(model, unknown):
        assert found.timed_s is None
        assert found.to_dict()["time"] is None
        assert all(each.time_s is None and each.time_low_s is None for each in found.devices)


def test_a_run_of_no_device_has_no_seconds_of_its_own(
    model: TrainedRelativeModel, runs: Observations
) -> None:
    nowhere = replace(runs, source=(NO_SOURCE, "elsewhere"))
    for found in relative_predictions_of(model, nowhere):
        assert found.timed_on is None
    assert relative_predictions_of(model, nowhere)[0].source is None


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e12])
def test_what_is_no_time_is_refused(model: TrainedRelativeModel, runs: Observations, seconds: float) -> None:
    with pytest.raises(InputError, match="time: expected from 1e-09 to 1e"):
        relative_predictions_of(model, runs, time_s=seconds)


def test_a_time_on_an_unknown_device_is_refused(model: TrainedRelativeModel, runs: Observations) -> None:
    with pytest.raises(InputError, match="source: expected one of cpu, fast, gpu, found 'lassen'"):
        relative_predictions_of(model, runs, timed_on="lassen", time_s=1.0)
    nowhere = replace(runs, source=(NO_SOURCE,) * 2)
    with pytest.raises(InputError, match=r"time: expected the device that it was measured on.*found none"):
        relative_predictions_of(model, nowhere, time_s=1.0)

"""The answer for a kernel: times, ranks, the device to take, how sure that is, and what is doubtful."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from crosscast.errors import InputError
from crosscast.predict.time.artefact import Effect, TrainedModel, load_model, metric_ranges
from crosscast.predict.time.data import Asked, Profiles, Toolchain
from crosscast.predict.time.gaussian import GaussianPredictor
from crosscast.predict.time.prediction import Prediction, predictions_of
from support.grids import DEVICES, NAMES, profiles_of
from support.models import TOOLCHAIN, fitted, kept

KEYS = [device.key for device in DEVICES]
OWN = profiles_of("abcdef", 8)
LONGEST = int(np.argmax(OWN.metrics[:, NAMES.index("total_instruction_count")]))


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    return load_model(kept(tmp_path / "model"))


def asked_of(profiles: Profiles, toolchain: Toolchain = TOOLCHAIN) -> Asked:
    return Asked(profiles, ((toolchain,),) * len(profiles))


def one(row: int = 3, **changed: float) -> Asked:
    """A training kernel, with some metrics changed."""
    profiles = OWN.take(np.array([row]))
    metrics = profiles.metrics.copy()
    for name, value in changed.items():
        metrics[0, NAMES.index(name)] = value
    return asked_of(replace(profiles, metrics=metrics))


def predicted(model: TrainedModel, asked: Asked, **options: Any) -> Prediction:
    (found,) = predictions_of(model, asked, **options)
    return found


def test_ranks_follow_the_times_and_the_first_is_recommended(model: TrainedModel) -> None:
    found = predicted(model, one())
    by_rank = sorted(found.devices, key=lambda each: each.rank)
    assert [each.rank for each in by_rank] == [1, 2, 3, 4]
    assert sorted(each.time_s for each in by_rank) == [each.time_s for each in by_rank]
    assert (found.choice.device, found.choice.runner_up) == (by_rank[0].device, by_rank[1].device)
    assert found.choice.factor == pytest.approx(by_rank[1].time_s / by_rank[0].time_s)
    assert all(each.low_s < each.time_s < each.high_s and not each.measured for each in found.devices)


def test_several_kernels_are_what_they_are_alone(model: TrainedModel) -> None:
    rows = [3, 11, 20]
    together = predictions_of(model, asked_of(OWN.take(np.array(rows))))
    for row, found in zip(rows, together, strict=True):
        alone = predicted(model, one(row))
        assert found.choice.device == alone.choice.device
        for here, there in zip(found.devices, alone.devices, strict=True):
            assert here.time_s == pytest.approx(there.time_s, rel=1e-12)


def test_a_subset_of_the_devices_is_ranked_by_itself(model: TrainedModel) -> None:
    found = predicted(model, one(), devices=["host", "red"])
    assert [each.device for each in found.devices] == ["host", "red"]
    assert {each.rank for each in found.devices} == {1, 2}


def test_one_device_has_no_runner_up(model: TrainedModel) -> None:
    found = predicted(model, one(), devices=["host"])
    assert found.choice.runner_up is None
    assert found.to_dict()["runner_up"] is None


def test_the_doubt_is_that_of_the_errors_which_the_two_do_not_share(model: TrainedModel) -> None:
    found = predicted(model, one(), devices=["big", "bigger"])
    # The fixture: own variances of 0.04 each, and errors that reach 1.5 deviations at one half.
    sd = np.sqrt(0.08) * 1.5 / NormalDist().inv_cdf(0.75)
    assert found.choice.factor is not None
    assert found.choice.doubt == pytest.approx(NormalDist().cdf(-np.log(found.choice.factor) / sd))


def test_a_measured_device_moves_the_others_and_the_doubt(model: TrainedModel) -> None:
    before = {each.device: each for each in predicted(model, one()).devices}
    slower = predicted(model, one(), probes={"host": before["host"].time_s * 2})
    after = {each.device: each for each in slower.devices}
    assert after["host"].measured
    assert after["host"].time_s == pytest.approx(2 * before["host"].time_s)
    assert 1.5 < after["red"].time_s / before["red"].time_s < 2
    assert after["red"].high_s / after["red"].low_s < before["red"].high_s / before["red"].low_s
    assert slower.probes == 1
    assert not slower.warnings


def test_a_device_that_is_only_described_is_predicted_without_a_doubt_that_nobody_knows(
    model: TrainedModel,
) -> None:
    device = replace(DEVICES[0], key="next")
    found = predicted(model, one(), devices=[*KEYS, device])
    assert [each.device for each in found.devices] == [*KEYS, "next"]
    pair = predicted(model, one(), devices=["big", device])
    assert pair.choice.doubt is None


def test_a_kernel_like_those_of_the_training_has_no_warning(model: TrainedModel) -> None:
    assert not predicted(model, one()).warnings


def test_a_metric_beyond_the_training_is_named(model: TrainedModel) -> None:
    (warning,) = predicted(model, one(opcode=99.0)).warnings
    assert warning.startswith("outside of what the model was trained on: opcode 99 (trained on 6 to 1")


def test_a_metric_that_the_model_does_not_look_at_may_be_anything(model: TrainedModel) -> None:
    assert not predicted(model, one(unique_branches=1e9, total_reads=np.nan)).warnings


def test_a_time_beyond_the_training_is_named(model: TrainedModel) -> None:
    warnings = predicted(model, one(total_instruction_count=1e13)).warnings
    assert any("is outside of the times that the model was trained on" in each for each in warnings)


def test_another_toolchain_is_named_with_how_much_instructions_matter(model: TrainedModel) -> None:
    asked = asked_of(OWN.take(np.array([LONGEST])), Toolchain("gcc", ("-O0",)))
    (warning,) = predicted(model, asked).warnings
    assert "was made with gcc -O0, those that the model was trained on with clang 22" in warning
    assert "25 % more instructions would change the predicted times by +" in warning


def test_another_toolchain_whose_effect_was_measured_is_named_with_it(tmp_path: Path) -> None:
    other = Toolchain("gcc")
    effects = (Effect(other, 17, 1.02, 0.84, 3.5),)
    model = load_model(kept(tmp_path / "model", effects=effects))
    (warning,) = predicted(model, asked_of(OWN.take(np.array([3])), other)).warnings
    assert (
        "on 17 kernels profiled with both, that gives 1.02 times the predicted time in the median" in warning
    )
    assert "0.84 to 3.5 times for 80 %" in warning


def test_a_missing_metric_names_kernel_and_metric(model: TrainedModel) -> None:
    with pytest.raises(InputError, match=r"profile of a3: metric opcode: expected a number .* found nothing"):
        predicted(model, one(opcode=np.nan))
    with pytest.raises(InputError, match=r"metric footprint_90: .* found inf"):
        predicted(model, one(footprint_90=np.inf))


def test_a_probe_outside_of_the_wide_interval_is_doubted(model: TrainedModel) -> None:
    host = predicted(model, one()).devices[3]
    (warning,) = predicted(model, one(), probes={"host": host.time_s * 30}).warnings
    assert "the time measured on host" in warning
    assert "is outside of the model's 99.9 % interval" in warning


@pytest.mark.parametrize("factor", [1e6, 1e-5])
def test_an_absurd_probe_is_refused_with_what_was_expected(model: TrainedModel, factor: float) -> None:
    host = predicted(model, one(LONGEST)).devices[3]
    with pytest.raises(InputError, match=r"probe: host: expected about .* is it in seconds"):
        predicted(model, one(LONGEST), probes={"host": host.time_s * factor})


@pytest.mark.parametrize("seconds", [1e-10, 1e7, float("nan")])
def test_a_probe_that_no_kernel_takes_is_refused(model: TrainedModel, seconds: float) -> None:
    with pytest.raises(InputError, match="probe: host: expected a time from 1e-09 to 1e"):
        predicted(model, one(), probes={"host": seconds})


def test_a_probe_on_an_unknown_device_names_the_known_ones(model: TrainedModel) -> None:
    with pytest.raises(InputError, match=r"probe: expected a device that the model knows .*big, bigger"):
        predicted(model, one(), probes={"none": 1e-3})


def test_a_probe_of_several_kernels_is_refused(model: TrainedModel) -> None:
    with pytest.raises(InputError, match="probe: expected one kernel to predict, found 2"):
        predictions_of(model, asked_of(OWN.take(np.array([3, 4]))), probes={"host": 1e-3})


def test_the_metrics_that_a_model_needs_are_found_by_taking_each_away() -> None:
    known, predictor, _ = fitted()
    assert isinstance(predictor, GaussianPredictor)
    ranges = {each.name: each for each in metric_ranges(predictor.point, known.profiles)}
    assert "unique_branches" not in ranges
    assert ranges["opcode"].required
    opcodes = known.profiles.metrics[:, NAMES.index("opcode")]
    assert (ranges["opcode"].low, ranges["opcode"].high) == (opcodes.min(), opcodes.max())

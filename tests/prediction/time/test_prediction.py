"""Forecasts of a kernel: times, ranks, the device to take, how sure that is, and what is doubtful.

A model of times comes back as it was, and parts that do not fit together are refused. Suggested probes are
those that tell most. Batches take what fits together; grids are what records and profiles say.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.data import schema
from crosscast.data.dataset import Dataset
from crosscast.data.profiles import PROFILES, to_row
from crosscast.data.table import table_of
from crosscast.errors import InputError
from crosscast.prediction.store import read
from crosscast.prediction.time import Grid, ProfileBatch, Toolchain, impute
from crosscast.prediction.time.artefact import TrainedTimeModel, metric_ranges, open_model
from crosscast.prediction.time.card import Effect, suggest_probes
from crosscast.prediction.time.datasets import grid_of
from crosscast.prediction.time.forecast import TimeForecast
from crosscast.prediction.time.gaussian import GaussianPredictor, Scatter
from crosscast.prediction.time.models import DeviceMean
from crosscast.profile import METRICS, Profile
from crosscast.report.prediction import trained_on
from support.examples import examples
from support.grids import DEVICES, NAMES, grid_of_times, profiles_of, small_grid, small_profiles
from support.models import TOOLCHAIN, fitted, kept, model_refusal
from support.refusals import refusal

KEYS = [device.key for device in DEVICES]
Maker = Callable[..., Profile]
OWN = profiles_of("abcdef", 8)
LONGEST = int(np.argmax(OWN.metrics[:, NAMES.index("total_instruction_count")]))


@pytest.fixture
def model(tmp_path: Path) -> TrainedTimeModel:
    model = open_model(read(kept(tmp_path / "model")))
    assert isinstance(model, TrainedTimeModel)
    return model


def told(profiles: ProfileBatch, toolchain: Toolchain = TOOLCHAIN) -> ProfileBatch:
    return replace(profiles, toolchains=((toolchain,),) * len(profiles))


def one(row: int = 3, **changed: float) -> ProfileBatch:
    """A training kernel, with some metrics changed."""
    profiles = OWN.take(np.array([row]))
    metrics = profiles.metrics.copy()
    for name, value in changed.items():
        metrics[0, NAMES.index(name)] = value
    return told(replace(profiles, metrics=metrics))


def times(forecast: TimeForecast) -> dict[str, float]:
    """Of a single kernel, by device."""
    return dict(zip(forecast.devices, forecast.centre[0].tolist(), strict=True))


def test_ranks_follow_the_times_and_the_first_is_recommended(model: TrainedTimeModel) -> None:
    forecast = model.predict(one())
    order = np.argsort(forecast.ranks[0])
    assert forecast.ranks[0, order].tolist() == [1, 2, 3, 4]
    assert (np.diff(forecast.centre[0, order]) > 0).all()
    (choice,) = forecast.recommended
    assert (choice.device, choice.runner_up) == tuple(forecast.devices[index] for index in order[:2])
    assert choice.times_longer == pytest.approx(forecast.centre[0, order[1]] / forecast.centre[0, order[0]])
    assert (
        (forecast.low < forecast.centre) & (forecast.centre < forecast.high) & ~forecast.is_measured
    ).all()


def test_a_forecast_is_a_table_with_a_row_for_each_kernel_and_device(model: TrainedTimeModel) -> None:
    predicted = model.predict(told(OWN.take(np.array([3, 11])))).with_recorded(
        {("a", "a3", "tiny"): {"red": 2.0}}
    )
    table = predicted.to_pandas()
    assert len(table) == 8
    assert table[table["rank"] == 1]["device"].tolist() == [each.device for each in predicted.recommended]
    assert table["recorded_s"].notna().sum() == 1
    kernels: Any = predicted.to_dict()["kernels"]
    assert [each["kernel"] for each in kernels] == ["a3", "b3"]
    assert [each["recorded_s"] for each in kernels[0]["devices"]] == [None, None, 2.0, None]
    assert "<table>" in predicted._repr_html_()


def test_profiles_of_launches_are_grouped_to_kernels(model: TrainedTimeModel, make_profile: Maker) -> None:
    values = {name: float(value) for name, value in zip(NAMES, OWN.metrics[3], strict=True)}
    launches = [make_profile("k", number, **values) for number in range(2)]
    together, alone = model.predict(launches), model.predict(launches[0])
    assert together.profiles.invocations.tolist() == [2]
    assert together.centre.shape == alone.centre.shape == (1, 4)


def test_the_probability_is_that_of_the_errors_which_the_two_do_not_share(model: TrainedTimeModel) -> None:
    (choice,) = model.predict(one(), devices=["big", "bigger"]).recommended
    # The fixture: own variances of 0.04 each, and errors that reach 1.5 deviations at one half.
    sd = np.sqrt(0.08) * 1.5 / NormalDist().inv_cdf(0.75)
    assert choice.times_longer is not None
    assert choice.probability_faster == pytest.approx(NormalDist().cdf(-np.log(choice.times_longer) / sd))


def test_a_measured_device_moves_the_others(model: TrainedTimeModel) -> None:
    before = model.predict(one())
    after = model.predict(one(), probes={"host": times(before)["host"] * 2})
    assert after.is_measured.tolist() == [[False, False, False, True]]
    assert times(after)["host"] == pytest.approx(2 * times(before)["host"])
    assert 1.5 < times(after)["red"] / times(before)["red"] < 2
    assert ((after.high / after.low)[0, :3] < (before.high / before.low)[0, :3]).all()
    assert not after.warnings[0]


def test_a_device_that_is_only_described_is_predicted_without_a_probability_that_nobody_knows(
    model: TrainedTimeModel,
) -> None:
    device = replace(DEVICES[0], key="next")
    assert model.predict(one(), devices=[*KEYS, device]).devices == (*KEYS, "next")
    assert model.predict(one(), devices=["big", device]).recommended[0].probability_faster is None


def test_times_and_metrics_beyond_the_training_are_named(model: TrainedTimeModel) -> None:
    (warning,) = model.predict(one(opcode=99.0)).warnings[0]
    # Those that the model does not look at may be anything.
    assert not model.predict(one(unique_branches=1e9, total_reads=np.nan)).warnings[0]
    assert not model.predict(one()).warnings[0]
    assert warning.startswith("outside of what the model was trained on in: opcodes that make up 90 % ")
    warnings = model.predict(one(total_instruction_count=1e13)).warnings[0]
    assert any("is outside of the times that the model was trained on" in each for each in warnings)


def test_another_toolchain_is_named_with_how_much_instructions_matter(model: TrainedTimeModel) -> None:
    queries = told(OWN.take(np.array([LONGEST])), Toolchain("gcc", ("-O0",)))
    (warning,) = model.predict(queries).warnings[0]
    assert "its profile was made with gcc -O0, and those of the model's training with clang 22" in warning
    assert "25 % more instructions would change the predicted times by +" in warning


def test_another_toolchain_whose_effect_was_measured_is_no_warning_but_is_told(tmp_path: Path) -> None:
    other = Toolchain("gcc")
    effects = (Effect(other.compiler, other.options, 17, 1.02, 0.84, 3.5),)
    model = open_model(read(kept(tmp_path / "model", other_toolchains=effects)))
    assert model.predict(told(OWN.take(np.array([3])), other)).warnings == ((),)
    said = trained_on(model.card)
    assert "gives 1.02 times the predicted time in the median, and 0.84 to 3.5 times for 80 %" in said


def test_a_missing_metric_names_kernel_and_metric(model: TrainedTimeModel) -> None:
    with pytest.raises(InputError, match=r"profile of a3: metric opcode: expected a number .* found nothing"):
        model.predict(one(opcode=np.nan))
    with pytest.raises(InputError, match=r"metric footprint_90: .* found inf"):
        model.predict(one(footprint_90=np.inf))


def test_a_probe_outside_of_the_wide_interval_is_doubted(model: TrainedTimeModel) -> None:
    host = times(model.predict(one()))["host"]
    (warning,) = model.predict(one(), probes={"host": host * 30}).warnings[0]
    assert "the time measured on host" in warning
    assert "is outside of the model's 99.9 % interval" in warning


@pytest.mark.parametrize("factor", [1e6, 1e-5])
def test_an_absurd_probe_is_refused_with_what_was_expected(model: TrainedTimeModel, factor: float) -> None:
    host = times(model.predict(one(LONGEST)))["host"]
    with pytest.raises(InputError, match=r"probe: host: expected about .* is it in seconds"):
        model.predict(one(LONGEST), probes={"host": host * factor})


def test_a_probe_is_a_time_of_one_kernel_on_a_known_device(model: TrainedTimeModel) -> None:
    for seconds in (1e-10, 1e7, float("nan")):
        with pytest.raises(InputError, match="probe: host: expected a time from 1e-09 to 1e"):
            model.predict(one(), probes={"host": seconds})
    for seconds in (0.0, -1.0, np.inf):
        with pytest.raises(InputError, match=r"^probes: expected times above 0 s, found"):
            model.predict(one(), probes=np.array([[seconds, *[np.nan] * 3]]))
    with pytest.raises(InputError, match=r"^level: expected a probability between 0 and 1, found 2$"):
        model.predict(one(), level=2.0)
    with pytest.raises(InputError, match=r"probe: expected a device that the model knows .*big, bigger"):
        model.predict(one(), probes={"none": 1e-3})
    with pytest.raises(InputError, match="probe: expected one kernel to predict, found 2"):
        model.predict(told(OWN.take(np.array([3, 4]))), probes={"host": 1e-3})


def test_the_metrics_that_a_model_needs_are_found_by_taking_each_away() -> None:
    known, predictor, _ = fitted()
    assert isinstance(predictor, GaussianPredictor)
    ranges = {each.name: each for each in metric_ranges(predictor.point, known.profiles)}
    assert "unique_branches" not in ranges
    assert ranges["opcode"].required
    opcodes = known.profiles.metrics[:, NAMES.index("opcode")]
    assert (ranges["opcode"].low, ranges["opcode"].high) == (opcodes.min(), opcodes.max())


def test_sound_checksums_of_wrong_contents_are_refused(tmp_path: Path) -> None:
    known, predictor, card = fitted()
    two = DeviceMean().fit(known.on([0, 1]), 0)
    cases = {
        "expected a model of 4 devices, found one of 3": replace(predictor, covariance=np.eye(3)),
        "covariance: expected a positive definite one, found another": replace(
            predictor, covariance=-np.eye(4)
        ),
        "expected a model of 4 devices, found one of 2": replace(predictor, point=two),
    }
    for number, (reason, wrong) in enumerate(cases.items()):
        TrainedTimeModel(card, wrong).save(tmp_path / str(number))
        assert reason in model_refusal(tmp_path / str(number))


DEVICE_KEYS = ("a", "b", "c", "d")


class Errors(GaussianPredictor):
    """A predictor of which only the scatter of its errors matters."""

    def __init__(self, covariance: list[list[float]]) -> None:
        object.__setattr__(self, "covariance", np.array(covariance))

    keys = DEVICE_KEYS

    @property
    def scatter(self) -> Scatter:
        return Scatter(self.covariance)


# b hangs together with c and d, and a with nothing.
STAR = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.8, 0.8], [0.0, 0.8, 1.0, 0.64], [0.0, 0.8, 0.64, 1.0]]


def test_the_device_that_the_others_hang_on_is_named_first() -> None:
    suggestion = suggest_probes(Errors(STAR), 1)
    assert suggestion.devices == ("b",)
    # Of three devices one is as unknown as before, and two have 0.6 of their standard deviation left.
    left = np.sqrt(2 / np.pi) * (1 + 2 * 0.6) / 3
    assert suggestion.error == pytest.approx(np.expm1(left), rel=0.05)
    assert suggestion.error_before == pytest.approx(np.expm1(np.sqrt(2 / np.pi)), rel=0.05)


def test_what_is_measured_is_not_named_again_and_counts() -> None:
    suggestion = suggest_probes(Errors(STAR), 1, measured=["b"])
    assert suggestion.devices == ("a",)
    assert suggestion.error < suggestion.error_before < suggest_probes(Errors(STAR), 1).error_before


def test_only_devices_of_interest_are_named_and_those_measured_are_known() -> None:
    assert refusal(suggest_probes, Errors(STAR), 1, measured=["e"]) == (
        "measured: expected one of a, b, c, d, found 'e'"
    )
    assert suggest_probes(Errors(STAR), 1, among=["a", "c", "d"]).devices[0] in ("c", "d")


@pytest.mark.parametrize("count", [0, 4])
def test_too_few_or_many_are_refused(count: int) -> None:
    with pytest.raises(InputError, match="suggest-probes: expected from 1 to 3, as 4 devices"):
        suggest_probes(Errors(STAR), count)


def test_groups_number_applications_and_their_kernels() -> None:
    profiles = ProfileBatch(("b", "a", "b"), ("k", "k", "k"), ("s", "s", "t"), np.zeros((3, len(METRICS))))
    assert profiles.invocations.tolist() == [1, 1, 1]
    assert profiles.groups("application").tolist() == [1, 0, 1]
    assert profiles.groups("kernel").tolist() == [1, 0, 1]


def test_shapes_that_do_not_fit_are_refused(lawful: Grid) -> None:
    with pytest.raises(InputError, match="profiles: sizes: expected 1, one a profile, found 0"):
        ProfileBatch(("a",), ("k",), (), np.zeros((1, len(METRICS))))
    with pytest.raises(InputError, match="profiles: invocations: expected 1, one a profile, found 2"):
        ProfileBatch(("a",), ("k",), ("s",), np.zeros((1, len(METRICS))), np.array([1, 2]))
    with pytest.raises(InputError, match="grid: log_time: expected shape"):
        Grid(lawful.profiles, lawful.devices[:2], lawful.log_time, lawful.spread, lawful.runs)


@given(st.integers(0, 2**32), st.floats(0, 0.8))
@examples(50)
def test_sums_of_a_kernels_and_a_devices_effect_are_filled_exactly(seed: int, gaps: float) -> None:
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(12, 1)) + rng.normal(size=5)
    log_time = np.where(rng.random(whole.shape) < gaps, np.nan, whole)
    # One kernel on all devices joins them; one device joins all kernels.
    log_time[0], log_time[:, 1] = whole[0], whole[:, 1]
    np.testing.assert_allclose(
        impute(grid_of_times(small_profiles(12, {}), log_time)).log_time, whole, atol=1e-9
    )


def test_a_device_without_times_is_refused_by_name() -> None:
    grid = small_grid(n=6)
    grid.log_time[:, 1] = np.nan
    assert refusal(impute, grid) == "grid: expected times on every device, found none on d1"


def test_kernels_of_other_programs_sizes_and_applications_are_others(make_profile: Maker) -> None:
    one = make_profile("k")
    others = [
        replace(one, application="a"),
        replace(one, size="tiny"),
        replace(one, program={**one.program, "sha256": "cd" * 32}),
    ]
    assert len(ProfileBatch.of([one, *others, one])) == 4
    assert "expected at least one, found none" in refusal(ProfileBatch.of, [])
    assert ProfileBatch.of([make_profile()], invocations=9).invocations.tolist() == [9]
    with pytest.raises(InputError, match="invocations: expected at least 1, found 0"):
        ProfileBatch.of([make_profile()], invocations=0)


def test_it_agrees_with_the_grid_of_a_dataset(make_profile: Maker) -> None:
    cell = {"application": "sums", "size": "tiny"}
    profiles = [
        replace(make_profile("k", number, opcode=3 + number), application="sums", size="tiny")
        for number in range(3)
    ]
    run = {**cell, "kernel": "k", "device": "cpu", "configuration": "{}", "repeat": 0, "run": 0}
    dataset = Dataset(
        "small",
        devices=table_of(schema.DEVICES, [{"device": "cpu", "name": "cpu", "type": "cpu", "sources": {}}]),
        profiles=table_of(PROFILES, map(to_row, profiles)),
        records=table_of(schema.RECORDS, [{**run, "time_s": [1e-3] * 3, "invocations": 3}]),
    )
    grid, batch = grid_of(dataset), ProfileBatch.of(profiles)
    np.testing.assert_allclose(batch.metrics, grid.profiles.metrics)
    assert batch.invocations.tolist() == grid.profiles.invocations.tolist() == [3]


def test_a_toolchain_is_a_compiler_and_what_it_was_told_about_optimizing(make_profile: Maker) -> None:
    program = {"compiler": "clang 22", "options": ["-DN=3", "-D", "M", "-O0", "-Ix", "-cl-mad-enable"]}
    assert Toolchain.of(program) == Toolchain("clang 22", ("-O0", "-cl-mad-enable"))
    assert str(Toolchain.of(program)) == "clang 22 -O0 -cl-mad-enable"
    assert Toolchain.of({"tool": "AIWC 2018", "published": {}}) == Toolchain("AIWC 2018")
    assert str(Toolchain.of({})) == "an unknown compiler"
    assert ProfileBatch.of([replace(make_profile(), program=program)]).toolchains == (
        (Toolchain.of(program),),
    )

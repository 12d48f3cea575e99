"""A mix that was measured is what was measured, within the noise of measurements."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_corun_artefact import left_out

from crosscast.data.corun import IsolatedRun
from crosscast.decide.colocation_gains import pair_gain
from crosscast.prediction.corun.artefact import FittedCoRun, TrainedCoRunModel
from crosscast.prediction.corun.forecast import CoRunPrediction, Mix
from crosscast.prediction.corun.probes import NO_MIXES
from crosscast.prediction.corun.process import Process
from support.corun_models import kept
from support.examples import examples
from support.mixes import NAMES, made_co_runs

RUNS = made_co_runs(NAMES[:4], mixes=(2, 3))
A, B, C, _ = RUNS.isolated_runs
SLOWDOWNS = st.floats(0.5, 20)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    errors = {"known": {"slowdown": left_out(0.5), "time": left_out(0.4)}}
    errors["new"] = errors["known"]
    folder: Path = tmp_path_factory.mktemp("kept") / "co"
    return kept(Process(trees=False).fit(RUNS, 0), errors, folder, (2, 3))


@given(SLOWDOWNS, SLOWDOWNS)
@examples(10)
def test_a_measured_mix_is_what_was_measured_in_any_order(
    model: TrainedCoRunModel, first: float, second: float
) -> None:
    told = model.with_probes([((B, A), (second, first))])
    for mix, expected in (((A, B), [first, second]), ((B, A), [second, first])):
        (forecast,) = told.predict([mix])
        values = [each.value for each in forecast.slowdown if each is not None]
        assert values == pytest.approx(expected)
        assert all(each is not None and each.low <= each.value <= each.high for each in forecast.slowdown)
        assert forecast.measured and forecast.to_dict()["measured"]
        alone = np.array([run.time_s for run in mix])
        time = told.predictor.time_factor * (alone.sum() - float(pair_gain(alone, np.array(expected))))  # type: ignore[attr-defined]
        assert forecast.time_s is not None and forecast.time_s.value == pytest.approx(time)
        assert forecast.time_s.low <= time <= forecast.time_s.high


@pytest.mark.parametrize("slowdown", [1.0, 0.8])
def test_a_mix_takes_as_long_as_each_alone_or_as_that_was_measured(
    model: TrainedCoRunModel, slowdown: float
) -> None:
    # Mixes that are faster than their slowdowns, as those of short jobs.
    source = FittedCoRun(replace(model.predictor, time_factor=0.9), model.errors)  # type: ignore[type-var]
    told = replace(model, source=source).with_probes([((A, B), (slowdown, slowdown))])
    time_s = told.predict([(A, B)])[0].time_s
    assert A.time_s is not None and time_s is not None
    assert time_s.low == pytest.approx(time_s.value) == pytest.approx(A.time_s * slowdown)


def test_other_mixes_are_still_predictions_within_physical_limits(model: TrainedCoRunModel) -> None:
    told = model.with_probes([((A, B), (0.9, 0.9))])
    (other,) = told.predict([(A, C)])
    assert not other.measured
    assert all(each is not None and each.value >= 1 for each in other.slowdown)


def test_intervals_are_the_noise_and_narrower_with_repeats(model: TrainedCoRunModel) -> None:
    once, often = ([((A, B), (1.5, 1.5))] * count for count in (1, 4))
    widths = []
    for probes in (once, often):
        (forecast,) = model.with_probes(probes).predict([(A, B)])
        first = forecast.slowdown[0]
        assert first is not None and first.value == pytest.approx(1.5)
        widths.append(math.log(first.high / first.value))
    process = model.predictor.process
    assert process is not None and process.scale.link == "logarithm"
    assert widths[0] == pytest.approx(1.645 * process.scale.spread * math.sqrt(process.sizes.noise), rel=1e-3)
    assert widths[1] == pytest.approx(widths[0] / 2)


def test_repeats_are_averaged_and_equal_applications_keep_their_order() -> None:
    pair: Mix = (A, A)
    measured = NO_MIXES.with_mixes([(pair, (1.0, 2.0)), (pair, (4.0, 2.0))])
    nothing = np.array([np.nan])
    predicted = CoRunPrediction((np.array([1.5, 1.5]),), np.ones(1), nothing, nothing)
    replaced = measured.replaced(predicted, [pair], predicted, lambda _: predicted)
    assert replaced.slowdown[0].tolist() == pytest.approx([2.0, 2.0])
    assert measured.repeats(pair) == 2


def test_a_mix_of_three_goes_on_as_predicted_when_the_first_has_ended() -> None:
    runs = tuple(IsolatedRun(name, "small", "cpu", 1.0) for name in "abc")
    measured = NO_MIXES.with_mixes([(runs, (1.0, 2.0, 2.0))])
    nothing = np.array([np.nan])

    def predict(mixes: object) -> CoRunPrediction:
        return CoRunPrediction((np.array([1.5, 1.5]),), nothing, nothing, nothing)

    predicted = CoRunPrediction((np.full(3, 3.0),), np.array([3.0]), nothing, nothing)
    replaced = measured.replaced(predicted, [runs], predicted, predict)
    # After a second the first has ended, and half of the others is left.
    assert replaced.time_s.tolist() == pytest.approx([1 + 0.5 * 1.5])

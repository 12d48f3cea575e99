"""Trained models of co-running: forecasts, their warnings, measured mixes, and times that are translated."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crosscast.data.corun import CoRuns, IsolatedRun
from crosscast.decide.colocation_gains import pair_gain
from crosscast.errors import InputError
from crosscast.evaluation.corun.evaluation import of_one_device
from crosscast.evaluation.corun.question import train_corun
from crosscast.prediction.corun import CoRunPrediction, CoRunPredictor, CoRunResiduals, Mix
from crosscast.prediction.corun.artefact import KNOWN, NEW, CoRunCard, FittedCoRun, TrainedCoRunModel
from crosscast.prediction.corun.models import Process, models_named
from crosscast.prediction.corun.moolchandani2022 import Published
from crosscast.prediction.corun.probes import NO_MIXES
from crosscast.prediction.corun.translation import (
    LOGARITHMIC,
    PLAIN,
    SharedTimes,
    TimeLine,
    TranslationCard,
    TranslationErrors,
    read_translation,
    shared_times,
    train_translation,
    translated_forecasts,
    write_translation,
)
from crosscast.prediction.named_models import load_model
from support import corun_models
from support.examples import examples
from support.mixes import (
    NAMES,
    counted_co_runs,
    made_co_runs,
    make_isolated_run,
    mix_elsewhere,
)
from support.refusals import refusal, refusals

BOTH = made_co_runs(NAMES[:4], mixes=(2, 3))
A, B, C, _ = BOTH.isolated_runs
X, Y = make_isolated_run("x"), make_isolated_run("y")
GROUPS = np.array([0, 0, 1, 1, 2, 2])


def left_out(size: float) -> CoRunResiduals:
    return CoRunResiduals(size * np.array([1, -1, 1, 1, -1, 1.0]), GROUPS, ("a", "b", "c"))


QUANTITIES = {"slowdown": 0.1, "time": 0.2, "power": 0.05}


def kept(
    folder: Path, predictor: CoRunPredictor, quantities: Mapping[str, float] = QUANTITIES, runs: CoRuns = BOTH
) -> TrainedCoRunModel:
    """A model with errors of new applications that are twice those of known ones."""
    errors = {
        whose: {name: left_out(factor * size) for name, size in quantities.items()}
        for whose, factor in ((NEW, 2.0), (KNOWN, 1.0))
    }
    sizes = tuple(sorted({len(mix.members) for mix in runs.mixes}))
    return corun_models.kept(predictor, errors, folder, sizes, 1 << 30)


@pytest.fixture(scope="module")
def predictor() -> CoRunPredictor:
    return Process(trees=False).fit(BOTH, 0)


@pytest.fixture(scope="module")
def model(predictor: CoRunPredictor, tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    return kept(tmp_path_factory.mktemp("kept") / "co", predictor)


def test_an_application_that_is_there_twice_is_named_twice(model: TrainedCoRunModel) -> None:
    (same,) = model.predict([(A, B, A)])
    assert same.labels() == ["bfs small (1)", "cfd small", "bfs small (2)"]
    first, _, last = same.slowdown
    assert first == last
    (sizes,) = model.predict([(A, make_isolated_run("bfs", "tiny"))])
    assert sizes.labels() == ["bfs small", "bfs tiny"]


LARGE = (
    "4 applications at once, and the model was trained on mixes of 2 and 3: it is asked beyond what it was "
    "tested on, and its intervals are those of these"
)
ALL_NEW = "x, y are all new to the model, and its intervals come from mixes with one new application"
UNTIMED = "no isolated time is known of cfd small, so that no time of the mix is told"


@pytest.mark.parametrize(
    ("mix", "warnings"),
    [
        ((A, B, C, A), (LARGE,)),
        ((X, Y), (ALL_NEW,)),
        ((A, X), ()),
        ((A, replace(B, time_s=None, memory_bytes=None, power_w=None)), (UNTIMED,)),
    ],
)
def test_what_was_not_tested_or_is_not_known_is_a_warning(
    model: TrainedCoRunModel, mix: Mix, warnings: tuple[str, ...]
) -> None:
    (predicted,) = model.predict([mix])
    assert predicted.warnings == warnings
    assert all(predicted.slowdown)
    numbers = (predicted.time_s, predicted.serial_s, predicted.power_w, predicted.memory_bytes)
    assert [each is None for each in numbers] == [warnings == (UNTIMED,)] * 4


def test_what_is_outside_of_the_training_is_warned_of(model: TrainedCoRunModel) -> None:
    assert model.ranges == {}
    known = replace(model, card=structs.replace(model.card, runs=(A, B, C)))
    name = "utilisation"
    low, high = known.ranges[name]
    assert {low, high} <= {run.features[name] for run in (A, B, C)}
    (inside,) = known.predict([(A, replace(X, features=B.features))])
    assert inside.warnings == ()
    (predicted,) = known.predict([(A, replace(X, features={**B.features, name: high + 0.1}))])
    assert predicted.warnings == (
        f"outside of what the model was trained on in: {name} of {X.name} {high + 0.1:.4g} "
        f"({low:.4g} to {high:.4g})",
    )


@pytest.mark.parametrize(
    ("errors", "reach"),
    [({"slowdown": 0.1}, 0.1), (dict.fromkeys(QUANTITIES, 1e9), 100)],
    ids=["as sure as slowdowns", "never beyond numbers"],
)
def test_limits_of_times_are_those_of_their_errors_or_of_slowdowns(
    predictor: CoRunPredictor, tmp_path: Path, errors: dict[str, float], reach: float
) -> None:
    (model,) = kept(tmp_path / "co", predictor, errors).predict([(A, B)])
    assert model.time_s is not None
    assert model.time_s.high / model.time_s.value == pytest.approx(np.exp(reach))
    assert (model.power_w is None) == ("power" not in errors)
    json.dumps(model.to_dict(), allow_nan=False)


def test_a_published_model_of_triples_alone_forecasts_no_pairs(tmp_path: Path) -> None:
    runs = made_co_runs(NAMES[:4], mixes=(3,))
    trained = kept(tmp_path / "co", Published("decision-tree").fit(runs, 0), {"slowdown": 0.1}, runs)
    with pytest.raises(InputError, match=r"^mix: expected as many applications .* \(3\), found 2$"):
        trained.predict([(A, B)])


@pytest.mark.parametrize(
    ("mix", "level", "message"),
    [
        ((A,), 0.9, r"^mix: expected at least 2 applications, found 1$"),
        ((A, replace(B, device="gpu")), 0.9, r"^cfd small: device: expected the profile to be of cpu, .*"),
        ((A, replace(B, time_s=1e200)), 0.9, r"^cfd small: time_s: expected a number of seconds that a job"),
        ((A, B), 0.0, r"^level: expected a probability between 0 and 1, found 0$"),
    ],
)
def test_wrong_mixes_are_refused(
    model: TrainedCoRunModel, mix: tuple[IsolatedRun, ...], level: float, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        model.predict([mix], level=level)


def test_mixes_may_be_named_by_isolated_runs_of_the_training(predictor: CoRunPredictor) -> None:
    card = CoRunCard("process", 0, "cpu", "{}", (2,), ("bfs", "cfd"), None, {}, {}, None, (A, B))
    model = TrainedCoRunModel(card, FittedCoRun(predictor, {NEW: {"slowdown": left_out(0.1)}}))
    named = model.predict([["bfs/small", "cfd/small"], ["cfd/small", X]])
    assert named.mixes == model.predict([(A, B), (B, X)]).mixes
    with pytest.raises(InputError, match=r"^mix: expected .*\(bfs/small, cfd/small\), found 'bfs/huge'$"):
        model.predict([["bfs/huge", "cfd/small"]])


SLOWDOWNS = st.floats(0.5, 20)


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    errors = {"known": {"slowdown": left_out(0.5), "time": left_out(0.4)}}
    errors["new"] = errors["known"]
    folder: Path = tmp_path_factory.mktemp("kept") / "co"
    return corun_models.kept(Process(trees=False).fit(BOTH, 0), errors, folder, (2, 3))


@given(SLOWDOWNS, SLOWDOWNS)
@examples(10)
def test_a_measured_mix_is_what_was_measured_in_any_order(
    probed: TrainedCoRunModel, first: float, second: float
) -> None:
    told = probed.with_probes([((B, A), (second, first))])
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
    probed: TrainedCoRunModel, slowdown: float
) -> None:
    # Mixes that are faster than their slowdowns, as those of short jobs.
    source = FittedCoRun(replace(probed.predictor, time_factor=0.9), probed.errors)  # type: ignore[type-var]
    told = replace(probed, source=source).with_probes([((A, B), (slowdown, slowdown))])
    time_s = told.predict([(A, B)])[0].time_s
    assert A.time_s is not None and time_s is not None
    assert time_s.low == pytest.approx(time_s.value) == pytest.approx(A.time_s * slowdown)


def test_intervals_are_the_noise_and_narrower_with_repeats(probed: TrainedCoRunModel) -> None:
    once, often = ([((A, B), (1.5, 1.5))] * count for count in (1, 4))
    widths = []
    for probes in (once, often):
        (forecast,) = probed.with_probes(probes).predict([(A, B)])
        first = forecast.slowdown[0]
        assert first is not None and first.value == pytest.approx(1.5)
        widths.append(math.log(first.high / first.value))
    assert probed.with_probes([]) is probed
    process = probed.predictor.process
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


TIMES = st.lists(st.floats(1e-4, 1e3), min_size=3, max_size=20, unique=True).map(np.array)


@given(TIMES, st.floats(0.1, 10), st.floats(0.3, 2))
def test_a_power_law_is_found_by_the_logarithmic_form(times, factor, exponent):  # type: ignore[no-untyped-def]
    line = TimeLine.fit(LOGARITHMIC, times, factor * times**exponent)
    np.testing.assert_allclose(line(2 * times), factor * (2 * times) ** exponent, rtol=1e-6)
    # A slowdown there is that here, to the power.
    np.testing.assert_allclose(line.slowdown(times, np.full(len(times), 1.7)), 1.7**exponent, rtol=1e-6)


@given(TIMES)
def test_plain_lines_are_those_of_numpy(times):  # type: ignore[no-untyped-def]
    wanted = np.random.default_rng(0).uniform(1, 2, len(times)) * times
    line = TimeLine.fit(PLAIN, times, wanted)
    slope, intercept = np.polyfit(times, wanted, 1)
    expected = np.maximum(slope * times + intercept, wanted.min())
    np.testing.assert_allclose(line(times), expected, rtol=1e-5, atol=1e-7)


def test_no_time_is_below_the_least_that_was_seen_and_a_line_takes_two_different_times() -> None:
    line = TimeLine.fit(PLAIN, np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    assert line(np.array([0.1])).tolist() == [1.0]
    with pytest.raises(InputError, match="at least 2 different ones to draw a line, found 1"):
        TimeLine.fit(PLAIN, np.array([1.0, 1.0]), np.array([1.0, 2.0]))


def shared() -> SharedTimes:
    return shared_times(counted_co_runs(), "cpu", "other")


def trained(folder: Path, device: str) -> TrainedCoRunModel:
    (model,) = models_named(["published-linear"])
    train_corun(of_one_device(counted_co_runs((2,)), device), model).save(folder)
    result: TrainedCoRunModel = load_model(folder, "corun")
    return result


@pytest.fixture(scope="module")
def card() -> TranslationCard:
    """A card that is exact, but for errors that are given to it."""
    made = train_translation(shared())
    errors = {
        name: TranslationErrors([error + 0.1 for error in each.log_error], each.group, each.groups)
        for name, each in made.errors.items()
    }
    return structs.replace(made, errors=errors)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    return trained(tmp_path_factory.mktemp("models"), "cpu")


MIX = counted_co_runs((2,)).mixes[1].isolated_runs


def test_a_model_there_is_asked_with_translated_times(tmp_path: Path, card: TranslationCard) -> None:
    there = trained(tmp_path, "other")
    (translated,) = translated_forecasts(there, card, [MIX], level=0.5)
    inputs = tuple(
        replace(each, power_w=None) for each in mix_elsewhere(counted_co_runs((2,)).mixes[1]).isolated_runs
    )
    (untranslated,) = there.predict([inputs], level=0.5)
    assert untranslated.time_s and translated.time_s
    assert translated.time_s.value == pytest.approx(untranslated.time_s.value)
    of_card = card.errors["time"].residuals.half_width(0.5)
    reach = np.hypot(np.log(untranslated.time_s.high / untranslated.time_s.value), of_card)
    assert np.log(translated.time_s.high / translated.time_s.value) == pytest.approx(reach)
    assert any("is taken as it is on cpu" in warning for warning in translated.warnings)


def test_times_beyond_those_of_the_card_are_doubted(here: TrainedCoRunModel, card: TranslationCard) -> None:
    long = tuple(replace(each, time_s=1000.0) for each in MIX)
    (translated,) = translated_forecasts(here, card, [long])
    assert any("are translated, and the card was made of those" in warning for warning in translated.warnings)
    (known,) = translated_forecasts(here, card, [MIX])
    assert not known.warnings


def test_profiles_and_models_of_others_are_refused(here: TrainedCoRunModel, card: TranslationCard) -> None:
    elsewhere = tuple(replace(each, device="moon") for each in MIX)
    with pytest.raises(InputError, match="expected the profile to be of cpu, from which the card translates"):
        translated_forecasts(here, card, [elsewhere])
    far = structs.replace(card, source="moon", target="mars")
    assert "expected one of moon or mars" in refusal(translated_forecasts, here, far, [elsewhere])


@pytest.mark.parametrize("slope", [1e6, -1e6])
def test_a_line_to_nowhere_is_refused(here: TrainedCoRunModel, card: TranslationCard, slope: float) -> None:
    steep = structs.replace(card, line=structs.replace(card.line, form=LOGARITHMIC, slope=slope))
    with pytest.raises(InputError, match=r"^translation: line: expected one that takes .* to a time above 0"):
        translated_forecasts(here, steep, [MIX])


def made_card() -> TranslationCard:
    return train_translation(shared())


def test_a_card_is_read_as_it_was_written_and_the_same_has_the_same_bytes(tmp_path: Path) -> None:
    card = made_card()
    write_translation(card, tmp_path / "a.json")
    write_translation(made_card(), tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    loaded = read_translation(tmp_path / "a.json")
    assert loaded.to_dict() == card.to_dict()
    for quantity, errors in card.errors.items():
        assert loaded.errors[quantity].residuals.half_width(0.8) == errors.residuals.half_width(0.8)
    np.testing.assert_array_equal(loaded.line(np.array([0.3, 3.0])), card.line(np.array([0.3, 3.0])))


@refusals("field value message")
def test_a_damaged_card_is_refused_by_field(tmp_path: Path, field: str, value: Any, message: str) -> None:
    card = {**made_card().to_dict(), field: value}
    path = tmp_path / "card.json"
    path.write_text(json.dumps(card))
    with pytest.raises(InputError, match=r"card\.json") as error:
        read_translation(path)
    assert message in str(error.value)


def test_files_and_times_that_are_not_there_are_said(tmp_path: Path) -> None:
    assert "cannot read the card" in refusal(read_translation, tmp_path / "none.json")
    assert "cannot write the card" in refusal(write_translation, made_card(), tmp_path / "none" / "card.json")
    same = refusal(shared_times, counted_co_runs(), "cpu", "cpu")
    assert "expected two different ones, found cpu twice" in same
    assert "timed on cpu and on moon, found none" in refusal(shared_times, counted_co_runs(), "cpu", "moon")


def test_errors_are_those_of_lines_without_the_application() -> None:
    times = shared()
    # What one application does elsewhere does not lessen its own error.
    odd = times.having("bfs")
    bent = replace(times, target_s=np.where(odd, 3 * times.target_s, times.target_s))
    card = train_translation(bent)
    errors = card.errors["time"].residuals
    of_bfs = errors.log_error[errors.group == errors.groups.index("bfs")]
    line = TimeLine.fit(card.line.form, bent.source_s[~odd], bent.target_s[~odd])
    np.testing.assert_allclose(
        np.sort(of_bfs), np.sort(np.log(line(bent.source_s[odd]) / bent.target_s[odd]))
    )
    assert abs(of_bfs).max() > 1

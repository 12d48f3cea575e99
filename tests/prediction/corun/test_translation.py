"""Lines through times: least squares, in both forms, that never tell a time below what was seen."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from crosscast.errors import InputError
from crosscast.evaluation.corun.evaluation import of_one_device
from crosscast.evaluation.corun.question import train_corun
from crosscast.prediction.corun.artefact import TrainedCoRunModel
from crosscast.prediction.corun.models import models_named
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
    translation_scores,
    write_translation,
)
from crosscast.prediction.named_models import load_model
from support.mixes import (
    APPLICATIONS,
    EXPONENT,
    FACTOR,
    counted_co_runs,
    mix_elsewhere,
    other_time,
    studied,
)
from support.refusals import refusal, refusals

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


def test_no_time_is_below_the_least_that_was_seen() -> None:
    line = TimeLine.fit(PLAIN, np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    assert line(np.array([0.1])).tolist() == [1.0]


def test_a_line_takes_two_different_times() -> None:
    with pytest.raises(InputError, match="at least 2 different ones to draw a line, found 1"):
        TimeLine.fit(PLAIN, np.array([1.0, 1.0]), np.array([1.0, 2.0]))


def trained(folder: Path, device: str) -> TrainedCoRunModel:
    (model,) = models_named(["published-linear"])
    train_corun(of_one_device(counted_co_runs((2,)), device), model).save(folder)
    result: TrainedCoRunModel = load_model(folder, "corun")
    return result


@pytest.fixture(scope="module")
def card() -> TranslationCard:
    """A card that is exact, but for errors that are given to it."""
    made = train_translation(shared_times(counted_co_runs(), "cpu", "other"))
    errors = {
        name: TranslationErrors([error + 0.1 for error in each.log_error], each.group, each.groups)
        for name, each in made.errors.items()
    }
    return structs.replace(made, errors=errors)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    return trained(tmp_path_factory.mktemp("models"), "cpu")


MIX = counted_co_runs((2,)).mixes[1].isolated_runs


def test_times_and_slowdowns_here_are_translated(here: TrainedCoRunModel, card: TranslationCard) -> None:
    (untranslated,) = here.predict([MIX], level=0.5)
    (result,) = translated_forecasts(here, card, [MIX], level=0.5)
    assert [each.device for each in result.mix] == ["other", "other"]
    assert untranslated.time_s and result.time_s
    assert result.time_s.value == pytest.approx(other_time(untranslated.time_s.value))
    for one, translated in zip(untranslated.slowdown, result.slowdown, strict=True):
        assert one and translated
        assert translated.value == pytest.approx(one.value**EXPONENT)
    assert result.serial_s == pytest.approx(sum(other_time(each.time_s or 0) for each in MIX))
    assert untranslated.power_w is not None
    assert result.power_w is None


def test_intervals_reach_as_far_as_both_errors(here: TrainedCoRunModel, card: TranslationCard) -> None:
    (untranslated,) = here.predict([MIX], level=0.5)
    (translated,) = translated_forecasts(here, card, [MIX], level=0.5)
    assert untranslated.time_s and translated.time_s
    model, both = (math.log(each.high / each.value) for each in (untranslated.time_s, translated.time_s))
    assert both == pytest.approx(math.hypot(model, card.errors["time"].residuals.half_width(0.5)))
    assert both > max(model, 0.09)
    assert translated.time_s.low * translated.time_s.high == pytest.approx(translated.time_s.value**2)


def test_a_model_there_is_asked_with_translated_times(tmp_path: Path, card: TranslationCard) -> None:
    there = trained(tmp_path, "other")
    (translated,) = translated_forecasts(there, card, [MIX], level=0.5)
    inputs = tuple(
        replace(each, power_w=None) for each in mix_elsewhere(counted_co_runs((2,)).mixes[1]).isolated_runs
    )
    (untranslated,) = there.predict([inputs], level=0.5)
    assert untranslated.time_s and translated.time_s
    assert translated.time_s.value == pytest.approx(untranslated.time_s.value)
    assert translated.time_s.high > untranslated.time_s.high
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
    return train_translation(shared_times(counted_co_runs(), "cpu", "other"))


def test_a_card_is_read_as_it_was_written_and_the_same_has_the_same_bytes(tmp_path: Path) -> None:
    card = made_card()
    write_translation(card, tmp_path / "a.json")
    write_translation(made_card(), tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    loaded = read_translation(tmp_path / "a.json")
    assert loaded.to_dict() == card.to_dict()
    for quantity in ("time", "slowdown"):
        assert loaded.errors[quantity].residuals.half_width(0.8) == card.errors[
            quantity
        ].residuals.half_width(0.8)
    np.testing.assert_array_equal(loaded.line(np.array([0.3, 3.0])), card.line(np.array([0.3, 3.0])))


@refusals("field value message")
def test_a_damaged_card_is_refused_by_field(tmp_path: Path, field: str, value: Any, message: str) -> None:
    card = {**made_card().to_dict(), field: value}
    path = tmp_path / "card.json"
    path.write_text(json.dumps(card))
    with pytest.raises(InputError, match=r"card\.json") as error:
        read_translation(path)
    assert message in str(error.value)


def test_files_that_are_not_there_or_cannot_be_written_are_said(tmp_path: Path) -> None:
    assert "cannot read the card" in refusal(read_translation, tmp_path / "none.json")
    assert "cannot write the card" in refusal(write_translation, made_card(), tmp_path / "none" / "card.json")


def shared() -> SharedTimes:
    return shared_times(counted_co_runs(), "cpu", "other")


def test_a_power_law_is_found_and_is_better_than_a_plain_line() -> None:
    card = train_translation(shared())
    assert card.line.form == LOGARITHMIC
    assert card.line.slope == pytest.approx(EXPONENT)
    assert card.line.intercept == pytest.approx(math.log(FACTOR))
    result = translation_scores(shared())
    scores = {(each.form, each.quantity, each.members): each for each in result}
    assert scores[LOGARITHMIC, "time", None].mape == pytest.approx(0, abs=1e-6)
    assert scores[LOGARITHMIC, "slowdown", 2].mape == pytest.approx(0, abs=1e-6)
    assert scores[PLAIN, "time", None].mape > 0.005
    assert scores[PLAIN, "time", 1].to_dict()["accuracy"] == 1 - scores[PLAIN, "time", 1].mape


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


def test_a_model_on_one_device_and_a_line_to_the_other_are_scored_together() -> None:
    studies = studied().studies
    assert studies is not None
    assert not isinstance(studies.translations, str)
    (study,) = studies.translations
    assert (study.source, study.target, study.applications) == ("cpu", "other", len(APPLICATIONS))
    by_form = {each.form: each for each in study.predicted}
    # A power law without an error of its own takes the model's times there as they are.
    assert by_form[LOGARITHMIC].time_mape == pytest.approx(by_form[LOGARITHMIC].own_mape * EXPONENT, rel=0.3)
    assert by_form[LOGARITHMIC].rows == by_form[PLAIN].rows > 0


def test_the_same_device_twice_and_too_little_in_common_are_refused() -> None:
    with pytest.raises(InputError, match="expected two different ones, found cpu twice"):
        shared_times(counted_co_runs(), "cpu", "cpu")
    assert "timed on cpu and on moon, found none" in refusal(shared_times, counted_co_runs(), "cpu", "moon")

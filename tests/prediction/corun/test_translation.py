"""Lines through times: least squares, in both forms, that never tell a time below what was seen."""

import json
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
    write_translation,
)
from crosscast.prediction.named_models import load_model
from support.mixes import (
    counted_co_runs,
    mix_elsewhere,
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

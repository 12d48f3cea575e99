"""Forecasts on another device: translated from those here, or asked of a model there."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from counted_co_runs import EXPONENT, bag_elsewhere, counted_co_runs, other_time

from crosscast.errors import InputError
from crosscast.evaluate.corun import of_one_device, train_corun
from crosscast.evaluate.translation import shared_times, train_translation
from crosscast.predict.corun.artefact import TrainedCoRunModel, load_corun_model, save_corun_model
from crosscast.predict.corun.models import models_named
from crosscast.predict.corun.translation import LOGARITHMIC, TranslationCard, translated_forecasts


def trained(folder: Path, device: str) -> TrainedCoRunModel:
    (model,) = models_named(["published-linear"])
    found = train_corun(of_one_device(counted_co_runs((2,)), device), model)
    save_corun_model(found.predictor, found.errors, folder, found.card)
    return load_corun_model(folder)


@pytest.fixture(scope="module")
def card() -> TranslationCard:
    """A card that is exact, but for errors that are given to it."""
    made = train_translation(shared_times(counted_co_runs(), "cpu", "other"))
    errors = {name: replace(each, log_error=each.log_error + 0.1) for name, each in made.errors.items()}
    return replace(made, errors=errors)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    return trained(tmp_path_factory.mktemp("models") / "cpu", "cpu")


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> TrainedCoRunModel:
    return trained(tmp_path_factory.mktemp("models") / "other", "other")


BAG = counted_co_runs((2,)).bags[1].solos


def test_times_and_slowdowns_of_a_model_here_are_translated(
    here: TrainedCoRunModel, card: TranslationCard
) -> None:
    (own,) = here.forecast([BAG], level=0.5)
    (found,) = translated_forecasts(here, card, [BAG], level=0.5)
    assert [solo.device for solo in found.bag] == ["other", "other"]
    assert found.time_s is not None
    assert own.time_s is not None
    assert found.time_s.value == pytest.approx(other_time(own.time_s.value))
    for one, translated in zip(own.slowdown, found.slowdown, strict=True):
        assert one is not None
        assert translated is not None
        assert translated.value == pytest.approx(one.value**EXPONENT)
    assert found.serial_s == pytest.approx(sum(other_time(solo.time_s or 0) for solo in BAG))
    assert own.power_w is not None
    assert found.power_w is None


def test_intervals_reach_as_far_as_both_errors_together(
    here: TrainedCoRunModel, card: TranslationCard
) -> None:
    (own,) = here.forecast([BAG], level=0.5)
    (found,) = translated_forecasts(here, card, [BAG], level=0.5)
    assert own.time_s is not None
    assert found.time_s is not None
    model, both = (math.log(each.high / each.value) for each in (own.time_s, found.time_s))
    assert both == pytest.approx(math.hypot(model, card.errors["time"].reach(0.5)))
    assert both > max(model, 0.09)
    assert found.time_s.low * found.time_s.high == pytest.approx(found.time_s.value**2)


def test_a_model_there_is_asked_with_translated_times(
    there: TrainedCoRunModel, card: TranslationCard
) -> None:
    (found,) = translated_forecasts(there, card, [BAG], level=0.5)
    asked = tuple(replace(solo, power_w=None) for solo in bag_elsewhere(counted_co_runs((2,)).bags[1]).solos)
    (own,) = there.forecast([asked], level=0.5)
    assert found.time_s is not None
    assert own.time_s is not None
    assert found.time_s.value == pytest.approx(own.time_s.value)
    assert found.time_s.high > own.time_s.high
    assert any("is taken as it is on cpu" in warning for warning in found.warnings)


def test_times_beyond_those_of_the_card_are_doubted(here: TrainedCoRunModel, card: TranslationCard) -> None:
    long = tuple(replace(solo, time_s=1000.0) for solo in BAG)
    (found,) = translated_forecasts(here, card, [long])
    assert any("are translated, and the card was made of those" in warning for warning in found.warnings)
    (known,) = translated_forecasts(here, card, [BAG])
    assert not known.warnings


def test_profiles_and_models_of_other_devices_are_refused(
    here: TrainedCoRunModel, card: TranslationCard
) -> None:
    elsewhere = tuple(replace(solo, device="moon") for solo in BAG)
    with pytest.raises(InputError, match="expected the profile to be of cpu, from which the card translates"):
        translated_forecasts(here, card, [elsewhere])
    far = replace(card, source="moon", target="mars")
    with pytest.raises(InputError, match="expected one of moon or mars"):
        translated_forecasts(here, far, [elsewhere])


def test_the_level_is_that_of_the_model(here: TrainedCoRunModel, card: TranslationCard) -> None:
    (own,), (found,) = here.forecast([BAG]), translated_forecasts(here, card, [BAG])
    for one, translated in ((own.time_s, found.time_s), *zip(own.slowdown, found.slowdown, strict=True)):
        assert one is not None
        assert translated is not None
        assert translated.reached == one.reached == 0.9


@pytest.mark.parametrize("slope", [1e6, -1e6])
def test_a_line_that_leads_nowhere_is_refused(
    here: TrainedCoRunModel, card: TranslationCard, slope: float
) -> None:
    steep = replace(card, line=replace(card.line, form=LOGARITHMIC, slope=slope))
    with pytest.raises(InputError, match=r"^translation: line: expected one that takes .* to a time above 0"):
        translated_forecasts(here, steep, [BAG])

"""A choice with all that belongs to it, and the sentence where there is none."""

import json

import numpy as np
import pytest
from made_surfaces import made_surfaces

from crosscast.decide.power_cap import choice_of, select
from crosscast.errors import InputError
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast
from kept_chooser import fitted_chooser

SURFACES = made_surfaces()
SPACE = SURFACES.space
ERRORS = np.linspace(-2, 2, 401)


def forecast(row: int = 1, *, sure: bool = True) -> SurfaceForecast:
    """The truth, which a model is a tenth unsure of except at two configurations."""
    measured = np.zeros(len(SPACE), np.bool_)
    measured[[0, -1]] = True
    spread = np.where(measured, 0.0, 0.1)
    errors = ERRORS if sure else np.empty(0)
    time, power = (Quantity(each[row], spread, errors) for each in (SURFACES.time_s, SURFACES.power_w))
    return SurfaceForecast(time, power, measured)


def test_the_chosen_one_is_what_is_selected_with_its_intervals() -> None:
    made = forecast()
    found = choice_of(made, SPACE, 210.0, level=0.5).chosen
    number = select(made, 210.0)
    assert found is not None
    assert number is not None
    assert found.configuration == SPACE.configurations[number]
    assert (found.time_s, found.power_w) == (SURFACES.time_s[1, number], SURFACES.power_w[1, number])
    # Half of the errors are within one.
    assert found.power_high_w == pytest.approx(found.power_w * np.exp(0.1))
    assert found.time_low_s == pytest.approx(found.time_s * np.exp(-0.1))


def test_what_was_predicted_keeps_to_the_cap_with_the_probability_of_its_errors() -> None:
    cap = float(np.median(SURFACES.power_w[1]))
    found = [each for each in choice_of(forecast(), SPACE, cap).frontier if not each.measured]
    expected = [np.clip((np.log(cap / each.power_w) / 0.1 + 2) / 4, 0, 1) for each in found]
    assert [each.probability_under for each in found] == pytest.approx(expected, abs=0.005)
    assert any(0 < each < 1 for each in expected)


def test_the_frontier_rises_in_power_and_performance_and_ends_at_the_fastest() -> None:
    found = choice_of(forecast(), SPACE, 170.0).frontier
    powers, performances = (
        [getattr(each, name) for each in found] for name in ("power_w", "relative_performance")
    )
    assert powers == sorted(powers)
    assert performances == sorted(performances)
    assert performances[-1] == 1
    assert len(set(performances)) == len(performances) > 2


def test_what_was_measured_is_certain() -> None:
    measured = [each for each in choice_of(forecast(), SPACE, 400.0).frontier if each.measured]
    assert measured
    for each in measured:
        assert each.power_low_w == each.power_w == each.power_high_w
        assert each.probability_under == 1


def test_a_model_that_does_not_know_how_sure_it_is_says_so() -> None:
    predictor, card = fitted_chooser()
    plain = predictor.forecast(SURFACES.observed(1, card.samples))
    found = choice_of(plain, SPACE, 400.0)
    unknown = [each for each in found.frontier if not each.measured]
    assert all(each.power_low_w is None and each.probability_under is None for each in unknown)
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(InputError, match="confidence: expected a model that knows how sure it is"):
        choice_of(plain, SPACE, 400.0, confidence=0.9)


def test_a_cap_below_everything_chooses_nothing_and_says_the_least() -> None:
    found = choice_of(forecast(), SPACE, 50.0)
    least = SURFACES.power_w[1].min()
    assert found.chosen is None
    assert found.least.power_w == least
    assert f"least predicted power, {least:.4g} W at node: " in found.reason
    assert "found 50 W, so nothing is chosen" in found.reason
    listed = found.to_dict()
    assert (listed["configuration"], listed["power_w"], listed["low"]) == (None, None, None)
    assert listed["minimum_power_w"] == least


def test_a_confidence_that_nothing_reaches_says_what_is_reached() -> None:
    made = forecast()
    made.measured[0] = False
    made.power.spread[0] = 0.1
    found = choice_of(made, SPACE, 155.0, confidence=0.99)
    assert found.chosen is None
    within = made.power.probability_within(155.0).max()
    assert f"confidence: expected at most {100 * within:.3g} %" in found.reason
    assert "found 99 %, so nothing is chosen" in found.reason
    assert choice_of(made, SPACE, 155.0, confidence=float(within)).chosen is not None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"power_cap": -1.0}, "power cap: expected watts above 0, found -1"),
        ({"power_cap": 100.0, "level": 1.0}, "level: expected a probability"),
        ({"power_cap": 100.0, "confidence": 90.0}, "confidence: expected a probability"),
        ({"power_cap": 100.0, "objective": "speed"}, "objective: expected one of performance, energy, edp"),
    ],
)
def test_wrong_wishes_are_refused(options: dict[str, float], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        choice_of(forecast(), SPACE, **options)  # type: ignore[arg-type]

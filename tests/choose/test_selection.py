"""The best configuration is taken that is likely enough to keep to the cap."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Flags
from crosscast.decide.power_cap import OBJECTIVES, Objective, merit, probability_under, select
from crosscast.errors import InputError
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast

ERRORS = np.linspace(-2, 2, 41)


@dataclass(frozen=True)
class Case:
    forecast: SurfaceForecast
    available: Flags


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Random forecasts: some measured, some unknown, some that may not be taken."""
    count = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    measured = rng.random(count) < 0.2
    unknown = (rng.random(count) < 0.1) & ~measured
    time, power = (np.where(unknown, np.nan, np.exp(rng.normal(mean, 0.5, count))) for mean in (0, 5))
    spread = np.where(measured, 0.0, rng.uniform(0.01, 0.2, count))
    forecast = SurfaceForecast(Quantity(time, spread, ERRORS), Quantity(power, spread, ERRORS), measured)
    return Case(forecast, rng.random(count) < 0.9)


CAPS = st.floats(20, 1000)
CONFIDENCES = st.floats(0.01, 0.99)


@given(cases(), CAPS, CONFIDENCES)
def test_it_is_the_best_of_those_that_are_likely_enough(case: Case, cap: float, confidence: float) -> None:
    found = select(case.forecast, cap, confidence=confidence, available=case.available)
    likely = probability_under(case.forecast, cap, case.available) >= confidence
    if found is None:
        assert not likely.any()
    else:
        assert case.available[found]
        assert likely[found]
        assert case.forecast.time.centre[found] == np.nanmin(case.forecast.time.centre[likely])


@given(cases(), st.tuples(CAPS, CAPS), CONFIDENCES)
def test_a_higher_cap_never_brings_less(case: Case, caps: tuple[float, float], confidence: float) -> None:
    low, high = (
        select(case.forecast, cap, confidence=confidence, available=case.available) for cap in sorted(caps)
    )
    if low is not None:
        assert high is not None
        assert case.forecast.time.centre[high] <= case.forecast.time.centre[low]


@given(cases(), CAPS, st.tuples(CONFIDENCES, CONFIDENCES))
def test_more_confidence_is_as_sure_or_surer(
    case: Case, cap: float, confidences: tuple[float, float]
) -> None:
    less, more = (
        select(case.forecast, cap, confidence=each, available=case.available) for each in sorted(confidences)
    )
    if more is not None:
        assert less is not None
        assert case.forecast.time.centre[less] <= case.forecast.time.centre[more]


@given(cases(), CAPS, st.sampled_from([0.0, 0.02]))
def test_without_a_confidence_it_is_best_on_average(case: Case, cap: float, tolerance: float) -> None:
    found = select(case.forecast, cap, available=case.available, tolerance=tolerance)
    within = probability_under(case.forecast, cap, case.available, tolerance=tolerance)
    if found is None:
        assert (within < 0.5).all()
    else:
        assert within[found] >= 0.5
        expected = within / case.forecast.time.centre
        assert expected[found] == np.nanmax(expected[within >= 0.5])


def test_what_was_measured_is_taken_at_its_word() -> None:
    time = Quantity(np.array([1.0, 2.0]), np.array([0.0, 0.1]), ERRORS)
    power = Quantity(np.array([101.0, 101.0]), np.array([0.0, 0.0]), ERRORS)
    forecast = SurfaceForecast(time, power, np.array([True, False]))
    # The tolerance is for predictions alone.
    assert probability_under(forecast, 100.0, np.ones(2, np.bool_), tolerance=0.02).tolist() == [0, 1]
    assert select(forecast, 100.0, tolerance=0.02) == 1
    assert select(forecast, 100.0) is None
    assert select(forecast, 100.0, tolerance=0.0) is None
    assert select(forecast, 101.0 / (1 + 5e-10)) == 0


def test_a_forecast_of_nothing_selects_nothing() -> None:
    nothing = Quantity(np.full(3, np.nan), np.full(3, 0.1), ERRORS)
    known = Quantity(np.full(3, 50.0), np.full(3, 0.1), ERRORS)
    none = np.zeros(3, np.bool_)
    for time, power in ((nothing, nothing), (known, nothing), (nothing, known)):
        assert select(SurfaceForecast(time, power, none), 100.0) is None
        assert select(SurfaceForecast(time, power, none), 100.0, confidence=0.1) is None
    assert select(SurfaceForecast(known, known, none), 100.0, available=none) is None


@pytest.mark.parametrize(("objective", "place"), [("performance", 0), ("energy", 2), ("edp", 1)])
def test_each_objective_has_its_best(objective: Objective, place: int) -> None:
    spread = np.zeros(3)
    # Energies of 100, 60 and 50 joules; 100, 90 and 125 joules times seconds.
    time = Quantity(np.array([1.0, 1.5, 2.5]), spread, ERRORS)
    power = Quantity(np.array([100.0, 40.0, 20.0]), spread, ERRORS)
    assert select(SurfaceForecast(time, power, spread < 0), 200.0, objective=objective) == place


def test_merits_are_one_over_costs() -> None:
    found = [float(merit(np.array([2.0]), np.array([5.0]), each)[0]) for each in OBJECTIVES]
    assert found == [1 / 2, 1 / 10, 1 / 20]
    with pytest.raises(
        InputError, match="objective: expected one of performance, energy, edp, found 'speed'"
    ):
        merit(np.ones(1), np.ones(1), "speed")  # type: ignore[arg-type]


@pytest.mark.parametrize("cap", [0.0, -5.0, np.nan, np.inf])
def test_a_cap_is_a_power(cap: float) -> None:
    one = Quantity(np.ones(1), np.ones(1), ERRORS)
    with pytest.raises(InputError, match="power cap: expected watts above 0, found"):
        select(SurfaceForecast(one, one, np.zeros(1, np.bool_)), cap)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 2.0, np.nan, "high"])
def test_a_confidence_is_a_probability(confidence: Any) -> None:
    one = Quantity(np.ones(1), np.ones(1), ERRORS)
    with pytest.raises(InputError, match="confidence: expected a probability between 0 and 1, found"):
        select(SurfaceForecast(one, one, np.zeros(1, np.bool_)), 100.0, confidence=confidence)

"""A model with limiting learns from its runs, and ends where it has seen that it may."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_surfaces import made_surfaces

from crosscast.arrays import Flags
from crosscast.decide.policies import SelectedModel, Steered, next_number
from crosscast.decide.power_cap import OBJECTIVES, Chooser, Method, Objective, Settled, settle
from crosscast.predict.configuration.data import Observed, Surfaces
from crosscast.predict.configuration.forecast import Quantity, SurfaceForecast
from crosscast.predict.configuration.process import ProcessModel, ProcessPredictor

SURFACES = made_surfaces(6, noise=0.01)
SAMPLES = (11, 0)
ROWS = (2, 3, 8)
ALL: Flags = np.ones(12, np.bool_)
ERRORS = np.linspace(-2, 2, 41)


@dataclass(frozen=True)
class Fitted:
    """A model that was fitted before."""

    predictor: ProcessPredictor
    name: str = "model"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> ProcessPredictor:
        return self.predictor


@pytest.fixture(scope="module")
def predictor() -> ProcessPredictor:
    """Of the programs whose kernels are not in `ROWS`."""
    return ProcessModel().fit(SURFACES.take(~SURFACES.rows_of(["app1", "app4"])), SAMPLES)


@pytest.fixture(scope="module")
def chooser(predictor: ProcessPredictor) -> Chooser:
    return chooser_of(Steered(Fitted(predictor)))  # type: ignore[arg-type]


def chooser_of(method: Method) -> Chooser:
    return method.fit(SURFACES, SAMPLES)


def walked(
    chooser: Chooser, row: int, cap: float, budget: int, available: Flags = ALL
) -> tuple[Settled, list[int]]:
    """Where it ends, and all that it took before."""
    taken: list[int] = []

    def run(number: int) -> Observed:
        taken.append(number)
        return SURFACES.observed(row, (number,))

    return settle(chooser.walk(SURFACES.observed(row, SAMPLES), cap, available, budget), run, budget), taken


BUDGETS = st.integers(0, 8)
CAPS = st.floats(130, 380)


@settings(max_examples=60)
@given(st.sampled_from(ROWS), CAPS, BUDGETS, st.sets(st.integers(1, 10), max_size=9))
def test_it_keeps_to_its_budget_and_to_what_may_be_taken(
    chooser: Chooser, row: int, cap: float, budget: int, without: set[int]
) -> None:
    available = ALL.copy()
    available[list(without)] = False
    settled, taken = walked(chooser, row, cap, budget, available)
    assert settled.changes <= budget
    assert available[[settled.number, *taken]].all()


@settings(max_examples=60)
@given(st.sampled_from(ROWS), CAPS, BUDGETS)
def test_it_ends_at_the_best_that_it_measured_within_the_cap(
    chooser: Chooser, row: int, cap: float, budget: int
) -> None:
    settled, taken = walked(chooser, row, cap, budget)
    if settled.changes == budget:
        return  # The last change may have been one into the unknown.
    seen = [*SAMPLES, *taken]
    within = [number for number in seen if SURFACES.power_w[row, number] <= cap * (1 + 1e-9)]
    if within:
        assert settled.number in within
        assert SURFACES.time_s[row, settled.number] == SURFACES.time_s[row, within].min()
    else:
        assert settled.number in seen


@pytest.mark.parametrize("row", ROWS)
def test_with_some_changes_it_keeps_to_all_caps_and_is_as_good_as_the_open_loop(
    chooser: Chooser, predictor: ProcessPredictor, row: int
) -> None:
    power, time = SURFACES.power_w[row], SURFACES.time_s[row]
    opened = chooser_of(SelectedModel(Fitted(predictor), "model"))
    scores: dict[str, list[float]] = {"open": [], "steered": []}
    for cap in np.sort(power)[1:].tolist():
        best = time[power <= cap].min()
        for name, each in (("open", opened), ("steered", chooser)):
            number = walked(each, row, cap, 6)[0].number
            scores[name].append(float(best / time[number] * (power[number] <= cap * (1 + 1e-9))))
    assert min(scores["steered"]) > 0.9
    assert np.mean(scores["steered"]) >= np.mean(scores["open"])


def test_without_changes_it_takes_what_is_best_on_average(
    chooser: Chooser, predictor: ProcessPredictor
) -> None:
    settled, taken = walked(chooser, 2, 250.0, 0)
    assert settled.changes == 0
    assert taken == []
    forecast = predictor.forecast(SURFACES.observed(2, SAMPLES))
    assert settled.number == next_number(forecast, 250.0, ALL, current=None, left=1)


def test_under_a_cap_below_all_powers_it_ends_where_the_power_is_least(chooser: Chooser) -> None:
    for row in ROWS:
        settled, _ = walked(chooser, row, 1.0, 8)
        # But for the noise of runs.
        assert SURFACES.power_w[row, settled.number] < 1.03 * SURFACES.power_w[row].min()


def test_with_a_cap_above_all_powers_it_ends_as_fast_as_any(chooser: Chooser) -> None:
    for row in ROWS:
        settled, _ = walked(chooser, row, 1e4, 8)
        assert SURFACES.time_s[row, settled.number] < 1.03 * SURFACES.time_s[row].min()


def forecast(
    time: Sequence[float], power: Sequence[float], measured: Sequence[bool] = (), spread: float = 0.0
) -> SurfaceForecast:
    flags = np.array(measured or [False] * len(time), np.bool_)
    spreads = np.where(flags, 0.0, spread)
    return SurfaceForecast(
        Quantity(np.array(time), spreads, ERRORS), Quantity(np.array(power), spreads, ERRORS), flags
    )


@given(
    st.lists(st.tuples(st.floats(0.1, 10), st.floats(50, 200)), min_size=1, max_size=8),
    st.integers(1, 4),
    st.floats(60, 210),
)
def test_of_what_is_certain_the_best_within_the_cap_is_taken_and_kept(
    points: list[tuple[float, float]], left: int, cap: float
) -> None:
    time, power = (list(each) for each in zip(*points, strict=True))
    known = forecast(time, power)
    number = next_number(known, cap, np.ones(len(time), np.bool_), current=None, left=left + 1)
    within = [each <= cap * (1 + 1e-9) for each in power]
    if any(within):
        assert within[number]
        assert time[number] == min(each for each, inside in zip(time, within, strict=True) if inside)
    else:
        assert power[number] == min(power)
    seen = forecast(time, power, [True] * len(time))
    assert next_number(seen, cap, np.ones(len(time), np.bool_), current=number, left=left) == number


def test_of_those_that_are_as_good_the_first_is_taken_and_none_is_tried() -> None:
    three = np.ones(3, np.bool_)
    assert next_number(forecast([1, 1, 1], [90, 90, 90]), 100.0, three, current=None, left=3) == 0
    seen = forecast([1, 1, 1], [90, 90, 90], [False, True, False])
    assert next_number(seen, 100.0, three, current=1, left=3) == 1


def test_a_gain_below_what_a_change_is_worth_is_left() -> None:
    two = np.ones(2, np.bool_)
    seen = forecast([1.0, 0.98], [90, 90], [True, False])
    assert next_number(seen, 100.0, two, current=0, left=3) == 0
    assert next_number(seen, 100.0, two, current=0, left=1) == 0
    assert next_number(seen, 100.0, two, current=0, left=3, worth=0.01) == 1
    assert next_number(seen, 100.0, two, current=0, left=1, worth=0.01) == 1


def test_from_over_the_cap_it_goes_back_to_what_was_within() -> None:
    three = np.ones(3, np.bool_)
    # The third, which is hardly faster than the first, may take too much.
    seen = forecast([1.0, 0.5, 0.99], [90.0, 110.0, 99.0], [True, True, False], spread=0.02)
    for left in (1, 2, 5):
        assert next_number(seen, 100.0, three, current=1, left=left) == 0


def test_what_is_not_known_is_neither_taken_nor_in_the_way() -> None:
    three = np.ones(3, np.bool_)
    seen = forecast([np.nan, 1.0, 2.0], [np.nan, 90.0, 80.0], spread=0.05)
    assert next_number(seen, 100.0, three, current=None, left=3) == 1
    over = forecast([np.nan, 1.0, 2.0], [np.nan, 190.0, 180.0])
    assert next_number(over, 100.0, three, current=None, left=3) == 2


@pytest.mark.parametrize(("objective", "place"), list(zip(OBJECTIVES, (0, 2, 1), strict=True)))
def test_each_objective_is_steered_for(objective: Objective, place: int) -> None:
    known = forecast([1.0, 1.5, 2.5], [100.0, 40.0, 20.0])
    three = np.ones(3, np.bool_)
    assert next_number(known, 200.0, three, current=None, left=2, objective=objective) == place

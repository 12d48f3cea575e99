"""A power keeps to a cap that it equals, whatever arithmetic rounded."""

import json
from dataclasses import replace
from statistics import NormalDist
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from crosscast.arrays import Flags
from crosscast.data.configuration import Configuration, Objective
from crosscast.decide import highest, lowest, step
from crosscast.errors import InputError
from crosscast.prediction.configuration import ConfigurationSpace, Quantity, SurfaceForecast
from crosscast.prediction.configuration.choice import choice_of, merit, probability_under, select, within_cap
from support.models import fitted_chooser
from support.refusals import refusals
from support.surfaces import made_space, made_surfaces


def test_a_cap_that_was_scaled_and_back_is_kept_and_none_by_what_is_not_known() -> None:
    power = 93.69114981347391
    assert within_cap(power, power / 3 * 3 * (1 - 1e-15))
    assert not within_cap(power * 1.000001, power)
    assert within_cap(power * 1.0099, power, 0.01)
    assert not within_cap(power * 1.0101, power, 0.01)
    assert within_cap(np.array([1.0, np.nan, 3.0]), 2.0).tolist() == [True, False, False]


SPACE = made_space()
ALL = np.ones(len(SPACE), np.bool_)
KNOBS = ("cpu_cap_w", "gpu_cap_w")


def at(cpu: float, gpu: float) -> int:
    return SPACE.number_of(Configuration("node", {"cpu_cap_w": cpu, "gpu_cap_w": gpu}))


def test_the_first_knob_goes_to_its_minimum_before_the_second_moves() -> None:
    number: int | None = highest(SPACE, ALL)
    path = []
    while number is not None:
        path.append(number)
        number = step(SPACE, number, ALL, KNOBS, -1)
    assert path == [at(100, 250), at(80, 250), at(60, 250), at(60, 200), at(60, 150), at(60, 100)]
    assert path[-1] == lowest(SPACE, ALL)
    # The order of the knobs is the caller's.
    assert step(SPACE, at(80, 200), ALL, KNOBS[::-1], -1) == at(80, 150)
    assert step(SPACE, at(80, 200), ALL, KNOBS[::-1], 1) == at(80, 250)
    assert step(SPACE, at(80, 250), ALL, ("gpu_cap_w", "no_knob_w"), 1) is None


@given(number=st.integers(0, len(SPACE) - 1), missing=st.sets(st.integers(0, len(SPACE) - 1)))
def test_a_step_up_undoes_a_step_down_of_the_same_knob(number: int, missing: set[int]) -> None:
    available = ALL.copy()
    available[list(missing - {number})] = False
    for knob in KNOBS:
        down = step(SPACE, number, available, (knob,), -1)
        if down is not None:
            assert available[down]
            assert step(SPACE, down, available, (knob,), 1) == number


def several() -> ConfigurationSpace:
    """A CPU with cores and a governor, and a GPU with a clock."""
    cpu = [
        Configuration("cpu", {"cores": cores, "governor": word})
        for cores in (1, 2)
        for word in ("low", "swift")
    ]
    return ConfigurationSpace((*cpu, *(Configuration("gpu", {"clock_hz": clock}) for clock in (1e9, 2e9))))


def test_no_step_leaves_the_device_or_changes_a_word() -> None:
    space, everything = several(), np.ones(6, np.bool_)
    cpu = space.number_of(Configuration("cpu", {"cores": 2, "governor": "swift"}))
    down = step(space, cpu, everything, space.knobs, -1)
    assert down == space.number_of(Configuration("cpu", {"cores": 1, "governor": "swift"}))
    assert step(space, down, everything, space.knobs, -1) is None
    gpu = highest(space, everything, "gpu")
    assert str(space.configurations[gpu]) == "gpu: clock 2000 MHz"
    assert step(space, gpu, everything, space.knobs, 1) is None
    # Nor where another device has the same knobs.
    alike = ConfigurationSpace(
        tuple(Configuration(each, {"cores": cores}) for each in "ab" for cores in (1, 2))
    )
    assert [step(alike, number, everything[:4], ("cores",), -1) for number in range(4)] == [None, 0, None, 2]


def test_the_highest_and_a_device_may_not_be_there() -> None:
    available = ALL.copy()
    available[at(100, 250)] = False
    assert highest(SPACE, available) == at(100, 200)
    available[at(60, 100)] = False
    assert lowest(SPACE, available) == at(60, 150)
    # Of several as high the last is the highest, of several as low the first the lowest.
    available = np.zeros(len(SPACE), np.bool_)
    available[[at(60, 250), at(100, 100)]] = True
    assert (lowest(SPACE, available), highest(SPACE, available)) == (at(60, 250), at(100, 100))
    space = several()
    available = space.device_numbers == 1
    assert space.configurations[highest(space, available, "cpu")].device == "gpu"
    with pytest.raises(InputError, match="configurations: expected one that may be taken, found none"):
        highest(space, np.zeros(6, np.bool_))


ERRORS = np.linspace(-2, 2, 41)


class Case(NamedTuple):
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


@given(cases(), CAPS, st.none() | st.floats(0.01, 0.99), st.sampled_from([0.0, 0.02]))
def test_it_is_the_best_of_those_that_are_likely_enough_and_without_a_confidence_on_average(
    case: Case, cap: float, confidence: float | None, tolerance: float
) -> None:
    options: dict[str, Any] = {"available": case.available, "tolerance": tolerance}
    found = select(case.forecast, cap, confidence=confidence, **options)
    within = probability_under(case.forecast, cap, **options | ({"tolerance": 0.0} if confidence else {}))
    likely = within >= (confidence or 0.5)
    if found is None:
        assert not likely.any()
    else:
        assert case.available[found] and likely[found]
        worth = (1.0 if confidence else within) / case.forecast.time.centre
        assert worth[found] == np.nanmax(worth[likely])


def test_what_was_measured_is_taken_at_its_word() -> None:
    time = Quantity(np.array([1.0, 2.0]), np.array([0.0, 0.1]), ERRORS)
    power = Quantity(np.array([101.0, 101.0]), np.array([0.0, 0.0]), ERRORS)
    forecast = SurfaceForecast(time, power, np.array([True, False]))
    # The tolerance is for predictions alone, and for choices without a confidence.
    assert probability_under(forecast, 100.0, np.ones(2, np.bool_), tolerance=0.02).tolist() == [0, 1]
    assert select(forecast, 100.0, tolerance=0.02) == 1
    assert select(forecast, 100.0) is None
    assert select(forecast, 100.0, tolerance=0.02, confidence=0.6) is None
    assert select(forecast, 100.0, tolerance=0.0) is None
    assert select(forecast, 101.0 / (1 + 5e-10)) == 0


@given(st.floats(0.001, 0.1), st.floats(-3, 3))
def test_a_measured_run_keeps_to_a_cap_with_the_noise_of_a_further_one(noise: float, distance: float) -> None:
    power = Quantity(np.array([100.0]), np.zeros(1), ERRORS, noise=np.array([noise]))
    forecast = SurfaceForecast(power, power, np.ones(1, np.bool_))
    choice = choice_of(forecast, line_space(1), 100.0 * np.exp(noise * distance))
    assert choice.least.probability_under == pytest.approx(NormalDist().cdf(distance), abs=1e-6)


def surer() -> Case:
    """What 113 W admit is measured, and slower than what is likely to keep to 110 W."""
    sure = np.array([False, True])
    time, power = np.array([1.0, 1.03]), np.array([100.0, 112.0])
    spread = np.where(sure, 0.0, 0.1)
    forecast = SurfaceForecast(Quantity(time, spread, ERRORS), Quantity(power, spread, ERRORS), sure)
    return Case(forecast, np.ones(2, np.bool_))


STEPS = st.lists(st.integers(600, 1380), min_size=2, max_size=5)


@example(surer(), [940, 946], "performance")
@given(cases(), STEPS, st.sampled_from(get_args(Objective)))
def test_a_higher_cap_gives_no_worse_choice(case: Case, steps: list[int], objective: Objective) -> None:
    assume(np.isfinite(case.forecast.time.centre).any())
    space = line_space(len(case.forecast.measured))
    caps = np.exp(0.005 * np.sort(steps)).tolist()
    found = [choice_of(case.forecast, space, cap, objective=objective).recommended for cap in caps]
    chosen = [each for each in found if each is not None]
    values = [float(merit(np.array(each.time_s), np.array(each.power_w), objective)) for each in chosen]
    assert values == sorted(values)


def line_space(count: int) -> ConfigurationSpace:
    return ConfigurationSpace(tuple(Configuration("node", {"cores": cores}) for cores in range(count)))


SURFACES = made_surfaces()
FINE_ERRORS = np.linspace(-2, 2, 401)


def forecast(row: int = 1, *, sure: bool = True) -> SurfaceForecast:
    """The truth, which a model is a tenth unsure of except at two configurations."""
    measured = np.zeros(len(SPACE), np.bool_)
    measured[[0, -1]] = True
    spread = np.where(measured, 0.0, 0.1)
    errors = FINE_ERRORS if sure else np.empty(0)
    time, power = (Quantity(each[row], spread, errors) for each in (SURFACES.time_s, SURFACES.power_w))
    return SurfaceForecast(time, power, measured)


def test_the_chosen_one_is_what_is_selected_with_its_intervals() -> None:
    made = forecast()
    found = choice_of(made, SPACE, 210.0, level=0.5).recommended
    number = select(made, 210.0)
    assert found is not None
    assert number is not None
    assert found.configuration == SPACE.configurations[number]
    assert (found.time_s, found.power_w) == (SURFACES.time_s[1, number], SURFACES.power_w[1, number])
    # Half of the errors are within one.
    assert found.power_high_w == pytest.approx(found.power_w * np.exp(0.1))
    assert found.time_low_s == pytest.approx(found.time_s * np.exp(-0.1))

    cap = float(np.median(SURFACES.power_w[1]))
    told = [each for each in choice_of(made, SPACE, cap).frontier if not each.measured]
    expected = [np.clip((np.log(cap / each.power_w) / 0.1 + 2) / 4, 0, 1) for each in told]
    assert [each.probability_under for each in told] == pytest.approx(expected, abs=0.005)
    assert any(0 < each < 1 for each in expected)

    time, power = (replace(each, of_programs=FINE_ERRORS, programs=4) for each in (made.time, made.power))
    of_four = replace(made, time=time, power=power)
    assert [choice_of(of_four, SPACE, 210.0, level=level).level for level in (0.5, 0.9)] == [0.5, 0.8]


def test_a_model_that_does_not_know_how_sure_it_is_says_so() -> None:
    predictor, card = fitted_chooser()
    plain = predictor.forecast(SURFACES.observed(1, card.numbers))
    found = choice_of(plain, SPACE, 400.0)
    unknown = [each for each in found.frontier if not each.measured]
    assert all(each.power_low_w is None and each.probability_under is None for each in unknown)
    json.dumps(found.to_dict(), allow_nan=False)
    with pytest.raises(InputError, match="confidence: expected a model that knows how sure it is"):
        choice_of(plain, SPACE, 400.0, confidence=0.9)


def test_where_nothing_is_chosen_the_reason_says_what_would_be() -> None:
    found, least = choice_of(forecast(), SPACE, 50.0), SURFACES.power_w[1].min()
    assert (found.recommended, found.least.power_w) == (None, least)
    assert f"least measured power, {least:.4g} W at node: " in found.reason
    assert "found 50 W, so nothing is chosen" in found.reason
    listed = found.to_dict()
    assert (listed["configuration"], listed["power_w"], listed["minimum_power_w"]) == (None, None, least)
    # A confidence that nothing reaches.
    made = forecast()
    made.measured[0] = False
    made.power.spread[0] = 0.1
    found, within = choice_of(made, SPACE, 155.0, confidence=0.99), made.power.probability_within(155.0).max()
    assert found.recommended is None
    assert f"confidence: expected at most {np.floor(1000 * within) / 10:g} %" in found.reason
    assert "found 99 %, so nothing is chosen" in found.reason
    assert choice_of(made, SPACE, 155.0, confidence=float(within)).recommended is not None
    # A slowdown that rules out all under the cap.
    slowest, fastest = int(np.argmax(made.time.centre)), int(np.argmin(made.time.centre))
    cap = float(made.power.centre[slowest]) + 1
    assert made.power.centre[fastest] > cap
    found = choice_of(made, SPACE, cap, max_slowdown=0.0, baseline=fastest)
    assert found.recommended is None
    assert found.reason.startswith(f"max slowdown: expected a share that a configuration under {cap:g} W")
    assert choice_of(made, SPACE, cap, baseline=fastest).recommended is not None


@refusals("options reason")
def test_wrong_wishes_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        choice_of(forecast(), SPACE, **options)

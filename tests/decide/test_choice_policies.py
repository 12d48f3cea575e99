"""Methods choose as they say, whatever they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Flags
from crosscast.data.configuration import Configuration, Objective
from crosscast.decide import FittedMethod, Method, cases_of, rollout
from crosscast.decide.policies import (
    MAIN,
    ClosedLoopSearch,
    FeedbackCapping,
    Fixed,
    Oracle,
    SelectedModel,
    WithFeedback,
    check_method_names,
    knob_methods,
    method_names,
    methods_of,
    next_number,
)
from crosscast.errors import InputError
from crosscast.evaluation.configuration.scores import ChoiceMetrics, program_sums
from crosscast.prediction import configuration as data
from crosscast.prediction.configuration.choice import OBJECTIVES, probability_under, select, within_cap
from crosscast.prediction.configuration.process import ProcessModel, ProcessPredictor
from support.choices import Wanderer, limited, random_surfaces
from support.examples import examples
from support.refusals import refusal
from support.surfaces import made_space, made_surfaces

SURFACES = made_surfaces(noise=0.01)


def path(
    chooser: Method | FittedMethod,
    surfaces: data.Surfaces,
    cap: float,
    row: int = 0,
    budget: int = 99,
    samples: tuple[int, ...] = (0,),
    available: Flags | None = None,
) -> list[int]:
    """All configurations that a method takes with a budget; it is fitted to all kernels if it is not yet."""
    policy = chooser.fit(surfaces, samples) if isinstance(chooser, Method) else chooser
    taken = surfaces.known[row] if available is None else available
    decisions = policy.decide(surfaces.observed(row, samples), cap, taken, budget)
    return rollout(decisions, lambda number: surfaces.observed(row, (number,)), budget)


def settled(
    method: Method, cap: float, row: int = 0, budget: int = 99, surfaces: data.Surfaces = SURFACES
) -> tuple[str, int]:
    numbers = path(method, surfaces, cap, row, budget, (len(surfaces.space) - 1, 0))
    return str(surfaces.space.configurations[numbers[-1]]), len(numbers) - 1


def test_the_limiter_takes_the_first_on_its_way_that_keeps_to_the_cap() -> None:
    way = [11, 7, 3, 2, 1, 0]
    for row in range(len(SURFACES.kernels)):
        for cap in SURFACES.power_w[row]:
            name, changes = settled(FeedbackCapping(), cap, row)
            expected = next(
                place for place, number in enumerate(way) if within_cap(SURFACES.power_w[row, number], cap)
            )
            assert (name, changes) == (str(SURFACES.space.configurations[way[expected]]), expected)


def test_the_limiter_ends_at_the_lowest_and_one_of_a_knob_leaves_the_others() -> None:
    assert settled(FeedbackCapping(), 1.0) == ("node: cpu cap 60 W, gpu cap 100 W", 5)
    assert settled(FeedbackCapping(), 1.0, budget=2) == ("node: cpu cap 60 W, gpu cap 250 W", 2)
    cpu, gpu = knob_methods(SURFACES.space)
    assert (cpu.name, gpu.name) == ("cpu+fl", "gpu+fl")
    assert settled(cpu, 1.0) == ("node: cpu cap 60 W, gpu cap 250 W", 2)
    assert settled(gpu, 1.0) == ("node: cpu cap 100 W, gpu cap 100 W", 3)


def test_names_are_without_units() -> None:
    names = {"cpu_cap_w": "cpu", "power_limit_w": "power_limit", "cores": "cores", "_w": "_w"}
    for knob, name in names.items():
        space = data.ConfigurationSpace(tuple(Configuration("node", {knob: value}) for value in (1, 2)))
        assert [method.name for method in knob_methods(space)] == [f"{name}+fl"]


def test_with_several_devices_each_has_a_limiter_of_all_its_knobs() -> None:
    space = data.ConfigurationSpace(
        tuple(
            Configuration(device, {"cores": cores, "clock_hz": clock})
            for device in ("big", "little")
            for cores in (1, 2)
            for clock in (1, 2)
        )
    )
    one = random_surfaces(0, knobs=(4, 2), missing=0)
    surfaces = data.Surfaces("two", one.kernels, space, one.time_s, one.power_w)
    big, little = knob_methods(space)
    assert (big.name, little.name) == ("big+fl", "little+fl")
    assert settled(big, 0.0, surfaces=surfaces) == ("big: clock 1e-06 MHz, cores 1", 2)
    assert settled(little, 0.0, surfaces=surfaces) == ("little: clock 1e-06 MHz, cores 1", 2)
    # Without a device it is that of the first sample configuration, here the last of the second.
    assert settled(FeedbackCapping(), 0.0, surfaces=surfaces) == ("little: clock 1e-06 MHz, cores 1", 2)


def test_the_oracle_takes_the_fastest_of_what_it_is_told_or_the_least_power() -> None:
    policy = Oracle().fit(SURFACES, (0,))
    observed = SURFACES.observed(0, range(12))
    for cap in SURFACES.power_w[0]:
        number = next(policy.decide(observed, cap, SURFACES.known[0], 0))
        within = [place for place in range(12) if SURFACES.power_w[0, place] <= cap]
        assert number == min(within, key=SURFACES.time_s[0].__getitem__)
    assert next(policy.decide(observed, 1.0, SURFACES.known[0], 0)) == int(SURFACES.power_w[0].argmin())


def machine(time_s: list[float], power_w: list[float]) -> data.Surfaces:
    """One kernel on a 2 by 3 machine: a_w 0 and then 1, b_hz 0 to 2 each."""
    one = random_surfaces(0, programs=1, knobs=(2, 3), missing=0)
    return replace(one, kernels=one.kernels[:1], time_s=np.array([time_s]), power_w=np.array([power_w]))


EVEN = machine([9, 7, 5, 8, 4, 2], [10, 20, 30, 15, 40, 50])


# Raising the first knob is of no use: the second is raised from where it started.
USELESS = machine([9, 7, 5, 9, 7, 5], [10, 20, 30, 11, 21, 31])
# The second knob changes nothing at the first one's minimum.
NOISY = machine([5.0, 5.1, 4.9, 3, 3, 3], [10.05, 10.06, 9.98, 20, 20, 20])
HIGH, LOW = limited(Wanderer(5)), limited(Wanderer(0))
STEPS, RETURNS = limited(Wanderer(0), ups=True), WithFeedback(Wanderer(5), "returns", returns=True)


@pytest.mark.parametrize(
    ("method", "surfaces", "cap", "budget", "expected"),
    [
        (HIGH, EVEN, 50, 99, [5]),
        (HIGH, EVEN, 45, 99, [5, 2]),
        (HIGH, EVEN, 25, 99, [5, 2, 1]),
        (HIGH, EVEN, 5, 99, [5, 2, 1, 0]),
        (HIGH, EVEN, 15, 1, [5, 2]),
        (LOW, EVEN, 100, 99, [0]),
        (LOW, NOISY, 10, 99, [0]),
        # With one change left it returns to what it knows.
        (RETURNS, EVEN, 15, 0, [5]),
        (RETURNS, EVEN, 15, 1, [5, 0]),
        (RETURNS, EVEN, 45, 99, [5, 2]),
        # It climbs while that helps; 4 is over the cap, so that it goes back to 3.
        (STEPS, EVEN, 100, 99, [0, 3, 4, 5]),
        (STEPS, EVEN, 35, 99, [0, 3, 4, 3]),
        (STEPS, USELESS, 100, 99, [0, 3, 1, 2]),
        # No step up is taken that cannot be taken back.
        (STEPS, EVEN, 35, 0, [0]),
        (STEPS, EVEN, 35, 1, [0]),
        (STEPS, EVEN, 35, 2, [0, 3]),
        (STEPS, EVEN, 35, 3, [0, 3, 4, 3]),
        # At the bottom noise may take less power; where power rises, one step of each knob shows that.
        (STEPS, NOISY, 10, 99, [0, 1, 2]),
        (STEPS, EVEN, 9, 99, [0, 1, 3]),
    ],
)
def test_a_choice_is_corrected_step_by_step(
    method: Method, surfaces: data.Surfaces, cap: float, budget: int, expected: list[int]
) -> None:
    assert path(method, surfaces, cap, budget=budget) == expected


def test_a_sample_that_is_faster_than_where_the_steps_end_is_returned_to() -> None:
    assert path(HIGH, EVEN, 45, samples=(4, 0)) == [5, 2, 4]


@given(seed=st.integers(0, 10_000), ups=st.booleans(), budget=st.integers(0, 12), start=st.integers(0, 8))
@examples(80)
def test_with_changes_left_it_ends_at_the_fastest_that_it_measured_within_the_cap(
    seed: int, ups: bool, budget: int, start: int
) -> None:
    surfaces = random_surfaces(seed)
    row = seed % len(surfaces.kernels)
    cap = float(np.nanquantile(surfaces.power_w[row], 0.5))
    numbers = path(limited(Wanderer(start), ups), surfaces, cap, row, budget, (8, 0))
    assert len(numbers) <= budget + 1
    assert surfaces.known[row, numbers].all()
    assert all(one != other for one, other in pairwise(numbers))
    seen = [n for n in {*numbers, 0, 8} if within_cap(float(surfaces.power_w[row, n]), cap)]
    over = not within_cap(float(surfaces.power_w[row, numbers[0]]), cap)
    if seen and (len(numbers) <= budget or (ups and not over and budget > 1)):
        assert surfaces.time_s[row, numbers[-1]] == min(surfaces.time_s[row, n] for n in seen)


SAMPLES = (11, 0)
ALL: Flags = np.ones(12, np.bool_)


SIX = made_surfaces(6, noise=0.01)
ROWS = (2, 3, 8)
ERRORS = np.linspace(-2, 2, 41)


@pytest.fixture(scope="module")
def predictor() -> ProcessPredictor:
    """Of the programs whose kernels are not in `ROWS`."""
    return ProcessModel().fit(SIX.take(~SIX.rows_of(["app1", "app4"])), SAMPLES)


@pytest.fixture(scope="module")
def policy(predictor: ProcessPredictor) -> FittedMethod:
    return ClosedLoopSearch().fit(SIX, SAMPLES, 0, predictor)


@pytest.mark.parametrize("words", [{}, {"tolerance": 0.02}, {"confidence": 0.95}])
def test_the_open_loop_takes_what_is_selected_by_the_forecast_or_the_least_bad(
    predictor: ProcessPredictor, words: dict[str, float]
) -> None:
    method = SelectedModel(ProcessModel(), "model", **words)  # type: ignore[arg-type]
    opened = method.fit(SIX, SAMPLES, 0, predictor)
    observed = SIX.observed(2, SAMPLES)
    forecast = predictor.forecast(observed)
    for cap in np.linspace(130, 380, 40).tolist():
        likely = probability_under(forecast, cap, ALL)
        number = next(opened.decide(observed, cap, ALL, 5))
        if (chosen := select(forecast, cap, available=ALL, **words)) is None:  # type: ignore[arg-type]
            assert likely[number] == likely.max()
        else:
            assert number == chosen
    number = next(opened.decide(observed, 1.0, ALL, 5))
    assert forecast.power.centre[number] == forecast.power.centre.min()


BUDGETS = st.integers(0, 8)
CAPS = st.floats(130, 380)


@examples(60)
@given(st.sampled_from(ROWS), CAPS, BUDGETS, st.just(set()) | st.sets(st.integers(1, 10), max_size=9))
def test_it_keeps_to_its_budget_and_ends_at_the_best_that_it_measured_of_what_may_be_taken(
    policy: FittedMethod, row: int, cap: float, budget: int, without: set[int]
) -> None:
    available = ALL.copy()
    available[list(without)] = False
    numbers = path(policy, SIX, cap, row, budget, SAMPLES, available)
    assert len(numbers) - 1 <= budget
    assert available[numbers].all()
    if len(numbers) - 1 == budget:
        return  # The last change may have been one into the unknown.
    within = [each for each in (*SAMPLES, *numbers) if SIX.power_w[row, each] <= cap * (1 + 1e-9)]
    if within:
        assert numbers[-1] in within
        assert SIX.time_s[row, numbers[-1]] == SIX.time_s[row, within].min()


def forecast(
    time: Sequence[float], power: Sequence[float], measured: Sequence[bool] = (), spread: float = 0.0
) -> data.SurfaceForecast:
    flags = np.array(measured or [False] * len(time), np.bool_)
    spreads = np.where(flags, 0.0, spread)
    return data.SurfaceForecast(
        data.Quantity(np.array(time), spreads, ERRORS), data.Quantity(np.array(power), spreads, ERRORS), flags
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
    number = next_number(known, cap, np.ones(len(time), np.bool_), current=None, runs_left=left + 1)
    within = [each <= cap * (1 + 1e-9) for each in power]
    if any(within):
        assert within[number]
        assert time[number] == min(each for each, inside in zip(time, within, strict=True) if inside)
    else:
        assert power[number] == min(power)
    seen = forecast(time, power, [True] * len(time))
    assert next_number(seen, cap, np.ones(len(time), np.bool_), current=number, runs_left=left) == number


@pytest.mark.parametrize(("objective", "place"), list(zip(OBJECTIVES, (0, 2, 1, 2), strict=True)))
def test_each_objective_is_searched_for(objective: Objective, place: int) -> None:
    # Energies of 100, 60 and 50 joules; 100, 90 and 125 joules times seconds.
    known = forecast([1.0, 1.5, 2.5], [100.0, 40.0, 20.0])
    three = np.ones(3, np.bool_)
    assert next_number(known, 200.0, three, current=None, runs_left=2, objective=objective) == place
    assert select(known, 200.0, objective=objective) == place


def test_a_risk_is_taken_only_with_a_change_left_to_leave_it() -> None:
    # One is known to keep to 100 W; the other is faster, and likelier than not to keep to it.
    two = forecast([1.0, 0.7], [90.0, 98.0], [True, False], 0.05)
    both = np.ones(2, np.bool_)
    assert [next_number(two, 100.0, both, current=None, runs_left=left) for left in (1, 2)] == [0, 1]


@given(seed=st.integers(0, 10_000))
@examples(30)
def test_no_other_configuration_scores_better_on_the_training_kernels(seed: int) -> None:
    surfaces = random_surfaces(seed, missing=0)
    samples = (8, 0)
    cases = cases_of(surfaces, samples)
    scores = []
    for number in range(9):
        time_s, power_w = surfaces.time_s[cases.kernel, number], surfaces.power_w[cases.kernel, number]
        score = ChoiceMetrics.of(program_sums(cases, time_s, power_w, np.zeros(len(cases)))).score
        assert score is not None
        scores.append(score)
    policy = Fixed().fit(surfaces, samples)
    everything = np.ones(9, np.bool_)
    observed = surfaces.observed(0, samples)
    number = next(policy.decide(observed, 1.0, everything, 0))
    assert scores[number] == pytest.approx(max(scores))
    # The cap does not matter; where the best cannot be taken, the next best is.
    assert next(policy.decide(observed, 1e9, everything, 0)) == number
    everything[number] = False
    other = next(policy.decide(observed, 1.0, everything, 0))
    assert scores[other] == pytest.approx(sorted(scores)[-2])


def test_without_a_training_kernel_under_caps_there_is_none() -> None:
    surfaces = made_surfaces(1)
    power_w = surfaces.power_w * 0 + 100.0
    flat = type(surfaces)("flat", surfaces.kernels, surfaces.space, surfaces.time_s, power_w)
    assert "flat: expected training kernels under caps, found none" in refusal(Fixed().fit, flat, (11, 0))


SPACE = made_space()
OTHER = data.ConfigurationSpace(tuple(Configuration("gpu", {"clock_hz": 1e9 * clock}) for clock in (1, 2)))


def test_a_machine_has_the_limiters_of_its_knobs_in_the_order_of_tables() -> None:
    assert [each.name for each in methods_of(SPACE)] == ["fixed", "cpu+fl", "gpu+fl", *MAIN[1:]]
    assert [each.name for each in methods_of(OTHER)] == ["fixed", "clock+fl", *MAIN[1:]]
    chosen = methods_of(OTHER, ["oracle", "cpu+fl", "clock+fl"])
    assert [each.name for each in chosen] == ["clock+fl", "oracle"]
    assert [each.name for each in methods_of(SPACE, method_names(SPACE))] == list(method_names(SPACE))


@pytest.mark.parametrize("name", ["published+fl", "limiter-returns", "nearest+steps"])
def test_the_model_of_a_correction_is_that_of_what_it_corrects(name: str) -> None:
    (method,) = methods_of(SPACE, [name])
    inner = {"published+fl": "published", "nearest+steps": "nearest"}.get(name)
    assert method.learner == (methods_of(SPACE, [inner])[0].learner if inner else None)
    assert method.baseline
    assert limited(Wanderer(confidence=0.9)).confidence == 0.9


def test_unknown_methods_and_confidences_are_refused() -> None:
    check_method_names(["cpu+fl", "clock+fl"], [SPACE, OTHER])
    with pytest.raises(InputError, match=r"methods: expected all or some of fixed, .*, found 'clock\+fl'"):
        check_method_names(["clock+fl"], [SPACE])
    with pytest.raises(InputError, match="methods: expected each once, found fixed twice"):
        check_method_names(["fixed", "fixed"], [SPACE])
    with pytest.raises(InputError, match="confidence: expected a probability between 0 and 1, found 90"):
        methods_of(SPACE, confidence=90)

"""Methods choose as they say, whatever they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Flags, Reals
from crosscast.data.configuration import Configuration, Objective
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
from crosscast.decide.power_cap import FittedMethod, Method, Outcome, cases_of, rollout
from crosscast.errors import InputError
from crosscast.evaluation.configuration.scores import ChoiceMetrics, program_sums
from crosscast.prediction.configuration.choice import OBJECTIVES, within_cap
from crosscast.prediction.configuration.data import (
    ConfigurationSpace,
    Observed,
    Quantity,
    SurfaceForecast,
    Surfaces,
    plain_forecast,
)
from crosscast.prediction.configuration.process import ProcessModel, ProcessPredictor
from support.choices import Wanderer, limited, outcome, random_surfaces
from support.examples import examples
from support.refusals import refusal
from support.surfaces import made_space, made_surfaces

SURFACES = made_surfaces(noise=0.01)


def settled(
    method: Method, cap: float, row: int = 0, budget: int = 99, surfaces: Surfaces = SURFACES
) -> tuple[str, int]:
    samples = (len(surfaces.space) - 1, 0)
    known = surfaces.known[row]
    decisions = method.fit(surfaces, samples).decide(surfaces.observed(row, samples), cap, known, budget)
    end = outcome(decisions, lambda number: surfaces.observed(row, (number,)), budget)
    return str(surfaces.space.configurations[end.number]), end.changes


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
    names = (
        "cpu_cap_w cpu, power_cap_w power, power_limit_w power_limit, core_clock_hz core_clock, cores cores"
    )
    for knob, name in map(str.split, f"{names}, cap_w cap, _w _w".split(", ")):
        space = ConfigurationSpace(tuple(Configuration("node", {knob: value}) for value in (1, 2)))
        assert [method.name for method in knob_methods(space)] == [f"{name}+fl"]


def test_with_several_devices_each_has_a_limiter_of_all_its_knobs() -> None:
    space = ConfigurationSpace(
        tuple(
            Configuration(device, {"cores": cores, "clock_hz": clock})
            for device in ("big", "little")
            for cores in (1, 2)
            for clock in (1, 2)
        )
    )
    one = random_surfaces(0, knobs=(4, 2), missing=0)
    surfaces = Surfaces("two", one.kernels, space, one.time_s, one.power_w)
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


def path(
    method: Method,
    surfaces: Surfaces,
    cap: float,
    row: int = 0,
    budget: int = 99,
    samples: tuple[int, ...] = (0,),
) -> list[int]:
    """All configurations that a policy takes with a budget."""
    decisions = method.fit(surfaces, samples).decide(
        surfaces.observed(row, samples), cap, surfaces.known[row], budget
    )
    return rollout(decisions, lambda number: surfaces.observed(row, (number,)), budget)


def machine(time_s: list[float], power_w: list[float]) -> Surfaces:
    """One kernel on a 2 by 3 machine: a_w 0 and then 1, b_hz 0 to 2 each."""
    one = random_surfaces(0, programs=1, knobs=(2, 3), missing=0)
    return replace(one, kernels=one.kernels[:1], time_s=np.array([time_s]), power_w=np.array([power_w]))


EVEN = machine([9, 7, 5, 8, 4, 2], [10, 20, 30, 15, 40, 50])


def test_with_one_change_left_it_returns_to_what_it_knows_where_that_is_wanted() -> None:
    returns = WithFeedback(Wanderer(5), "returns", returns=True)
    assert path(returns, EVEN, 15, budget=0) == [5]
    assert path(returns, EVEN, 15, budget=1) == [5, 0]
    assert path(returns, EVEN, 15, budget=2)[-1] == 0
    assert path(limited(Wanderer(5)), EVEN, 15, budget=1) == [5, 2]
    # With changes enough it is the same.
    assert path(returns, EVEN, 45) == path(limited(Wanderer(5)), EVEN, 45)


def test_it_returns_to_the_best_measured_under_the_cap_and_stays_there() -> None:
    fl = limited(Wanderer(5))
    assert path(fl, EVEN, 50) == [5]
    assert path(fl, EVEN, 45) == [5, 2]
    assert path(fl, EVEN, 25) == [5, 2, 1]
    assert path(fl, EVEN, 5) == [5, 2, 1, 0]
    # The sample at 4 keeps to the cap too and is faster than 2, where the steps end.
    assert path(fl, EVEN, 45, samples=(4, 0)) == [5, 2, 4]
    assert path(limited(Wanderer(0)), EVEN, 100) == [0]


def test_with_ups_it_climbs_while_that_helps_and_goes_back() -> None:
    steps = limited(Wanderer(0), ups=True)
    assert path(steps, EVEN, 100) == [0, 3, 4, 5]
    # 3 is in reach, 4 is over the cap: back to 3.
    assert path(steps, EVEN, 35) == [0, 3, 4, 3]
    # Raising the first knob is of no use: the second is raised from where it started.
    useless = machine([9, 7, 5, 9, 7, 5], [10, 20, 30, 11, 21, 31])
    assert path(steps, useless, 100) == [0, 3, 1, 2]


def test_no_step_up_is_taken_that_cannot_be_taken_back() -> None:
    steps = limited(Wanderer(0), ups=True)
    assert path(steps, EVEN, 35, budget=0) == [0]
    assert path(steps, EVEN, 35, budget=1) == [0]
    assert path(steps, EVEN, 35, budget=2) == [0, 3]
    assert path(steps, EVEN, 35, budget=3) == [0, 3, 4, 3]


def test_at_the_bottom_it_looks_for_less_power_where_that_is_noise() -> None:
    # The second knob changes nothing at the first one's minimum.
    noisy = machine([5.0, 5.1, 4.9, 3, 3, 3], [10.05, 10.06, 9.98, 20, 20, 20])
    steps = limited(Wanderer(0), ups=True)
    assert path(steps, noisy, 10.0) == [0, 1, 2]
    assert path(limited(Wanderer(0)), noisy, 10.0) == [0]
    # Where it costs power, one step shows that; then the other knob, which costs power too.
    assert path(steps, EVEN, 9.0) == [0, 1, 3]


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


TWO = made_surfaces(2)
SAMPLES = (11, 0)
ROW = 2
ALL: Flags = np.ones(12, np.bool_)


@dataclass
class Knowing:
    """Knows the surface of one kernel; its powers are `above` too high, within `spread`."""

    above: float = 1.0
    spread: float = 0.0
    name: str = "knowing"
    asked: list[Observed] = field(default_factory=list)
    space: ConfigurationSpace = TWO.space
    samples: tuple[int, ...] = SAMPLES
    kind: ClassVar[str] = ""
    fitted: ClassVar[None] = None

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> Knowing:
        assert tuple(samples) == self.samples
        return self

    def forecast(self, observed: Observed) -> SurfaceForecast:
        self.asked.append(observed)
        plain = plain_forecast(TWO.time_s[ROW], self.above * TWO.power_w[ROW], observed)
        if not self.spread:
            return plain
        spread = np.where(plain.measured, 0.0, self.spread)
        errors = np.linspace(-1, 1, 101)
        return SurfaceForecast(plain.time, Quantity(plain.power.centre, spread, errors), plain.measured)


def first(method: SelectedModel, power_cap: float, available: Flags = ALL) -> int:
    observed = TWO.observed(ROW, SAMPLES)
    return next(method.fit(TWO, SAMPLES).decide(observed, power_cap, available, 5))


@given(power_cap=st.floats(float(TWO.power_w[ROW].min()), 500))
def test_with_a_true_forecast_it_takes_the_fastest_within_the_cap(power_cap: float) -> None:
    chosen = first(SelectedModel(Knowing(), "m"), power_cap)
    assert TWO.power_w[ROW, chosen] <= power_cap * (1 + 1e-9)
    assert TWO.time_s[ROW, chosen] == TWO.time_s[ROW, TWO.power_w[ROW] <= power_cap].min()


def test_a_predicted_power_may_be_above_the_cap_only_by_the_tolerance() -> None:
    power = 1.01 * TWO.power_w[ROW]
    power[list(SAMPLES)] /= 1.01
    cap = float(np.sort(TWO.power_w[ROW])[6])
    assert power[first(SelectedModel(Knowing(1.01), "m"), cap)] <= cap
    tolerant = first(SelectedModel(Knowing(1.01), "m", tolerance=0.02), cap)
    assert cap < power[tolerant] <= 1.02 * cap


def test_a_confidence_keeps_away_from_the_cap() -> None:
    model = Knowing(spread=0.1)
    caps = np.unique(TWO.power_w[ROW]) * 1.01
    sure = [first(SelectedModel(model, "m", confidence=0.95), cap) for cap in caps.tolist()]
    likely = [first(SelectedModel(model, "m", confidence=0.5), cap) for cap in caps.tolist()]
    power = TWO.power_w[ROW]
    assert (power[sure] <= power[likely]).all()
    assert (power[sure] < power[likely]).any()
    unmeasured = ~np.isin(sure, SAMPLES)
    assert (power[sure] * np.exp(0.09) < caps)[unmeasured].all()
    assert unmeasured.any()


SIX = made_surfaces(6, noise=0.01)
ROWS = (2, 3, 8)
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
    return ProcessModel().fit(SIX.take(~SIX.rows_of(["app1", "app4"])), SAMPLES)


@pytest.fixture(scope="module")
def policy(predictor: ProcessPredictor) -> FittedMethod:
    return policy_of(ClosedLoopSearch(Fitted(predictor)))  # type: ignore[arg-type]


def policy_of(method: Method) -> FittedMethod:
    return method.fit(SIX, SAMPLES)


def followed(
    policy: FittedMethod, row: int, cap: float, budget: int, available: Flags = ALL
) -> tuple[Outcome, list[int]]:
    """Where it ends, and all that it took before."""
    taken: list[int] = []

    def run(number: int) -> Observed:
        taken.append(number)
        return SIX.observed(row, (number,))

    return outcome(policy.decide(SIX.observed(row, SAMPLES), cap, available, budget), run, budget), taken


BUDGETS = st.integers(0, 8)
CAPS = st.floats(130, 380)


@examples(60)
@given(st.sampled_from(ROWS), CAPS, BUDGETS, st.just(set()) | st.sets(st.integers(1, 10), max_size=9))
def test_it_keeps_to_its_budget_and_ends_at_the_best_that_it_measured_of_what_may_be_taken(
    policy: FittedMethod, row: int, cap: float, budget: int, without: set[int]
) -> None:
    available = ALL.copy()
    available[list(without)] = False
    settled, taken = followed(policy, row, cap, budget, available)
    assert settled.changes <= budget
    assert available[[settled.number, *taken]].all()
    if settled.changes == budget:
        return  # The last change may have been one into the unknown.
    seen = [*SAMPLES, *taken]
    within = [number for number in seen if SIX.power_w[row, number] <= cap * (1 + 1e-9)]
    if within:
        assert settled.number in within
        assert SIX.time_s[row, settled.number] == SIX.time_s[row, within].min()
    else:
        assert settled.number in seen


@pytest.mark.parametrize("row", ROWS)
def test_with_some_changes_it_keeps_to_all_caps_and_is_as_good_as_the_open_loop(
    policy: FittedMethod, predictor: ProcessPredictor, row: int
) -> None:
    power, time = SIX.power_w[row], SIX.time_s[row]
    opened = policy_of(SelectedModel(Fitted(predictor), "model"))
    scores: dict[str, list[float]] = {"open": [], "closed": []}
    for cap in np.sort(power)[1:].tolist():
        best = time[power <= cap].min()
        for name, each in (("open", opened), ("closed", policy)):
            number = followed(each, row, cap, 6)[0].number
            scores[name].append(float(best / time[number] * (power[number] <= cap * (1 + 1e-9))))
    assert min(scores["closed"]) > 0.9
    assert np.mean(scores["closed"]) >= np.mean(scores["open"])


@pytest.mark.parametrize(("cap", "surface"), [(1.0, SIX.power_w), (1e4, SIX.time_s)])
def test_beyond_all_powers_it_ends_where_the_power_is_least_or_as_fast_as_any(
    policy: FittedMethod, cap: float, surface: Reals
) -> None:
    for row in ROWS:
        settled, _ = followed(policy, row, cap, 8)
        # But for the noise of runs.
        assert surface[row, settled.number] < 1.03 * surface[row].min()


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
    known = forecast([1.0, 1.5, 2.5], [100.0, 40.0, 20.0])
    three = np.ones(3, np.bool_)
    assert next_number(known, 200.0, three, current=None, runs_left=2, objective=objective) == place


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
OTHER = ConfigurationSpace(tuple(Configuration("gpu", {"clock_hz": 1e9 * clock}) for clock in (1, 2)))


def test_each_method_has_the_name_by_which_it_is_known() -> None:
    names = method_names(SPACE)
    assert [each.name for each in methods_of(SPACE, names)] == list(names)
    assert len(set(names)) == len(names)


def test_a_machine_has_the_limiters_of_its_knobs_in_the_order_of_tables() -> None:
    assert [each.name for each in methods_of(SPACE)] == ["fixed", "cpu+fl", "gpu+fl", *MAIN[1:]]
    assert [each.name for each in methods_of(OTHER)] == ["fixed", "clock+fl", *MAIN[1:]]
    assert [each.name for each in methods_of(OTHER, ["oracle", "cpu+fl", "clock+fl"])] == [
        "clock+fl",
        "oracle",
    ]


def test_what_a_model_predicts_may_be_fitted_before(predictor: ProcessPredictor) -> None:
    for method in methods_of(SPACE, ["model", "model+fl"]):
        assert isinstance(method, SelectedModel | ClosedLoopSearch)
        fitted = method.fit(SIX.take(np.arange(1)), SAMPLES, 0, predictor)
        assert next(fitted.decide(SIX.observed(2, SAMPLES), 250.0, ALL, 0)) in range(12)


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

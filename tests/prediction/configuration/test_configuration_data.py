"""A space puts configurations in order, and tells their knobs, words and devices.

Powers and times become logarithms, events shares of the instructions, and what is not known NaN.

A limit of the slowdown is over a baseline, and kept with a probability; least power is an objective.
"""

import dataclasses
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.data.configuration import Configuration
from crosscast.data.table import Table, table_of
from crosscast.data.views import CONFIGURED
from crosscast.errors import InputError
from crosscast.prediction.configuration.choice import NO_CAP, choice_of, within_slowdown
from crosscast.prediction.configuration.data import (
    ConfigurationSpace,
    KernelAt,
    Observed,
    Quantity,
    SurfaceForecast,
    Surfaces,
    Values,
    machines_of,
    pareto_frontier,
    power_totals,
    reference_samples,
    sample_indices,
    total_power,
)
from crosscast.prediction.configuration.features import SampleColumns, SampleFeatures, counts_in
from crosscast.prediction.configuration.process import _of_programs
from crosscast.prediction.intervals import most_level
from support.grids import linear_space
from support.refusals import refusal
from support.surfaces import made_surfaces

MIXED = (
    Configuration("cpu", {"cores": 1, "governor": "low"}),
    Configuration("cpu", {"cores": 1, "governor": "swift"}),
    Configuration("cpu", {"cores": 12, "governor": "low"}),
    Configuration("gpu", {"clock_hz": 5e8}),
    Configuration("gpu", {"clock_hz": 1e9}),
    Configuration("gpu", {"clock_hz": 2e9}),
)


@given(st.permutations(MIXED))
def test_the_order_does_not_depend_on_that_of_the_input(found: list[Configuration]) -> None:
    # Thus clocks that do not rise in the data do so here; and 12 comes after 1 as a number, not as a text.
    space = ConfigurationSpace(tuple(found))
    assert space.configurations == MIXED
    assert [space.number_of(each) for each in MIXED] == list(range(6))


def test_a_knob_that_a_device_lacks_is_not_a_number() -> None:
    space = ConfigurationSpace(MIXED)
    assert space.devices == ("cpu", "gpu")
    assert space.device_numbers.tolist() == [0, 0, 0, 1, 1, 1]
    assert space.knobs == ("clock_hz", "cores")
    assert space.words == ("governor",)
    none = np.nan
    np.testing.assert_array_equal(
        space.matrix, [[none, 1], [none, 1], [none, 12], [5e8, none], [1e9, none], [2e9, none]]
    )


@pytest.mark.parametrize(
    ("configurations", "sentence"),
    [
        ((), "expected at least one, found none"),
        ((*MIXED, Configuration("gpu", {"clock_hz": 1000000000})), "found gpu: clock 1000 MHz twice"),
        ((Configuration("a", {"mode": "x"}), Configuration("b", {"mode": 2})), "mode: expected numbers or"),
    ],
)
def test_what_is_no_space_is_refused(configurations: tuple[Configuration, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        ConfigurationSpace(configurations)


def row(device: str, application: str, clock: float = 1.0, **changed: Any) -> dict[str, Any]:
    """A run of 2 s at 50 W."""
    cell = {"application": application, "kernel": application, "size": "big", "device": device}
    numbers = {"runs": 3, "time_s": 2.0, "power_w": 50.0, "powers": None, "counters": None}
    return {**cell, "configuration": json.dumps({"clock": clock}), **numbers, **changed}


def table(*rows: dict[str, Any]) -> Table:
    # In the order that other tables might have: views are not checked.
    return table_of(CONFIGURED, [{**each, "powers": None, "counters": None} for each in rows])


def test_devices_that_share_a_kernel_at_a_size_are_one_machine() -> None:
    runs = table(row("a", "x"), row("b", "x"), row("b", "y"), row("c", "y"), row("d", "z"))
    machines = machines_of(runs, "made up")
    # a and c share none, but each shares one with b.
    assert [machine.space.devices for machine in machines] == [("a", "b", "c"), ("d",)]
    assert machines[0].kernels == (KernelAt("x", "x", "big"), KernelAt("y", "y", "big"))
    assert machines[0].known.tolist() == [[True, True, False], [False, True, True]]
    assert machines[0].applications == ("x", "y")
    assert machines[0].rows_of(["y", "q"]).tolist() == [False, True]
    runs = table(row("a", "x"), row("b", "y"), row("c", "x"), row("c", "y"))
    assert [machine.space.devices for machine in machines_of(runs, "made up")] == [("a", "b", "c")]
    runs = table(row("a", "x"), row("b", "x", size="small"))
    assert len(machines_of(runs, "made up")) == 2


@pytest.mark.parametrize("lacking", [{"power_w": None}, {"power_w": 0.0}, {"time_s": 0.0}])
def test_rows_without_time_or_power_are_left_out(lacking: dict[str, Any]) -> None:
    (machine,) = machines_of(
        table(row("a", "x"), row("a", "x", 2.0, **lacking), row("a", "y", 3.0)), "made up"
    )
    assert machine.space.matrix.tolist() == [[1], [3]]
    np.testing.assert_array_equal(machine.power_w, [[50, np.nan], [np.nan, 50]])
    with pytest.raises(InputError, match="made up: expected runs with time and power, found none"):
        machines_of(table(row("a", "x", **lacking)), "made up")


def test_a_configuration_that_is_written_in_two_ways_is_refused() -> None:
    rows = [row("a", "x"), row("a", "x", configuration='{"clock": 1}')]
    with pytest.raises(InputError, match="expected each kernel once at a: clock 1, found x big again"):
        machines_of(table(*rows), "made up")


def test_devices_are_chosen_by_name() -> None:
    runs = table(row("a", "x"), row("b", "x"), row("c", "x", power_w=None))
    (machine,) = machines_of(runs, "made up", ["b"])
    assert machine.space.devices == ("b",)
    with pytest.raises(InputError, match="made up: device: expected one of a, b, found 'c'"):
        machines_of(runs, "made up", ["a", "c"])


def test_domains_and_counters_are_where_they_are_known() -> None:
    rows = [
        row("a", "x", 1.0, powers='{"cpu": 20.0, "gpu": 30.0}', counters='{"loads": 7.0}'),
        row("a", "x", 2.0, powers='{"cpu": 25.0}'),
    ]
    (machine,) = machines_of(table_of(CONFIGURED, [_parsed(each) for each in rows]), "made up")
    np.testing.assert_array_equal(machine.domains["cpu"], [[20, 25]])
    np.testing.assert_array_equal(machine.domains["gpu"], [[30, np.nan]])
    np.testing.assert_array_equal(machine.counters["loads"], [[7, np.nan]])
    observed = machine.observed(0, (1,))
    assert np.isnan(observed.domains["gpu"]).tolist() == [True]


def _parsed(text: dict[str, Any]) -> dict[str, Any]:
    return {
        name: json.loads(value) if name in ("powers", "counters") and value else value
        for name, value in text.items()
    }


def runs(numbers: list[int], power_w: float, **domains: float) -> Observed:
    count = len(numbers)
    return Observed(
        np.array(numbers, np.int64),
        np.arange(1.0, count + 1),
        np.full(count, power_w),
        {name: np.full(count, value) for name, value in domains.items()},
    )


def test_a_run_replaces_that_at_its_configuration_and_lacks_domains_of_its_own() -> None:
    result = runs([7, 3, 5], 100.0).with_runs(runs([3], 90.0))
    assert result.numbers.tolist() == [7, 5, 3]
    assert result.time_s.tolist() == [1, 3, 1]
    assert result.power_w.tolist() == [100, 100, 90]
    none = np.nan
    result = runs([7, 3], 100.0, cpu=60.0).with_runs(runs([3, 4], 90.0, gpu=40.0))
    assert sorted(result.domains) == ["cpu", "gpu"]
    np.testing.assert_array_equal(result.domains["cpu"], [60, none, none])
    np.testing.assert_array_equal(result.domains["gpu"], [none, 40, 40])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_after_any_runs_each_configuration_is_there_once_as_it_was_last(numbers: list[int]) -> None:
    observed = runs([0], 1000.0)
    for turn, number in enumerate(numbers):
        observed = observed.with_runs(runs([number], float(turn)))
    last = {0: 1000.0} | {number: float(turn) for turn, number in enumerate(numbers)}
    assert dict(zip(observed.numbers.tolist(), observed.power_w.tolist(), strict=True)) == last
    assert len(observed) == len(last)


NONE = np.empty(0)
ERRORS = st.lists(st.integers(-400, 400).map(lambda each: each / 100), min_size=2, max_size=30).map(
    lambda found: np.sort(np.array(found))
)


def quantity(errors: Reals, centre: float = 100.0, spread: float = 0.1) -> Quantity:
    return Quantity(np.array([centre]), np.array([spread]), errors)


@given(ERRORS, st.floats(0.001, 0.999))
def test_a_quantile_has_its_probability_or_more_where_errors_agree(errors: Reals, probability: float) -> None:
    forecast = quantity(errors)
    limit = float(forecast.quantile(probability)[0])
    if (np.diff(errors) > 0).all():
        assert forecast.probability_within(limit)[0] == pytest.approx(probability, abs=1e-6)
    assert forecast.probability_within(limit * (1 + 1e-9))[0] >= probability - 1e-6


@given(ERRORS, st.lists(st.floats(1.0, 1e4), min_size=2, max_size=20))
def test_a_higher_limit_is_as_likely_or_likelier_kept(errors: Reals, limits: list[float]) -> None:
    result = [float(quantity(errors).probability_within(limit)[0]) for limit in sorted(limits)]
    assert (np.diff(result) >= 0).all()
    assert min(result) >= 0
    assert max(result) <= 1


def of_programs(errors: Reals, programs: int) -> Quantity:
    return Quantity(np.array([100.0]), np.array([0.1]), errors, errors, programs)


@given(ERRORS, st.integers(1, 40), st.floats(0.05, 0.99))
def test_intervals_are_wider_with_fewer_programs_and_reach_their_largest_errors(
    errors: Reals, programs: int, level: float
) -> None:
    (low,), (high,) = of_programs(errors, programs).limits(level)
    (lower,), (higher,) = of_programs(errors, programs - 1 or 1).limits(level)
    assert lower <= low <= high <= higher
    if level >= most_level(programs):
        assert (low, high) == pytest.approx((100 * np.exp(0.1 * errors[0]), 100 * np.exp(0.1 * errors[-1])))


@given(ERRORS, st.integers(1, 40), st.floats(1, 1e4))
def test_no_probability_is_above_what_the_programs_support(
    errors: Reals, programs: int, limit: float
) -> None:
    forecast = of_programs(errors, programs)
    (supported,), (told,) = forecast.supported_probability(limit), forecast.probability_within(limit)
    assert supported == min(told, programs / (programs + 1))
    assert forecast.supported_probability(np.inf).tolist() == [1]


def test_intervals_of_programs_like_others_hold_as_often_as_they_say() -> None:
    """Errors of a program are alike, so that a program counts as much as one error, or few."""
    rng = np.random.default_rng(0)
    held = []
    for _ in range(600):
        by_program = [rng.normal(rng.normal(), 0.5, 8) for _ in range(11)]
        quantiles = _of_programs(by_program[1:])
        (low,), (high,) = of_programs(quantiles, 10).limits(0.9)
        held.append(np.mean((low <= (true := 100 * np.exp(0.1 * by_program[0]))) & (true <= high)))
    assert 0.88 <= np.mean(held) <= 0.97


def test_limits_are_physical_too() -> None:
    errors = np.array([-2.0, 2.0])
    limited = replace(of_programs(errors, 9), least=np.array([95.0]), most=np.array([110.0]))
    assert [each.tolist() for each in limited.limits(0.9)] == [[95.0], [110.0]]


def test_what_was_measured_is_certain_and_one_error_is_a_step() -> None:
    forecast = quantity(np.array([-1.0, 0.0, 1.0]), spread=0.0)
    assert forecast.quantile(0.9)[0] == forecast.quantile(0.1)[0] == 100
    assert forecast.probability_within(100.0)[0] == 1
    assert forecast.probability_within(99.999)[0] == 0
    forecast = quantity(np.array([0.5]))
    edge = 100 * np.exp(0.05)
    assert forecast.probability_within(edge * 0.999)[0] == 0
    assert forecast.probability_within(edge * 1.001)[0] == 1
    forecast = Quantity(np.array([100.0, 200.0]), np.array([np.nan, 0.0]), NONE)
    assert forecast.quantile(0.9).tolist() == [100, 200]
    assert forecast.probability_within(150.0).tolist() == [1, 0]


def surfaces(power_w: list[float], devices: str = "aab", **domains: list[float]) -> Surfaces:
    """One kernel at a configuration of each of some devices."""
    space = ConfigurationSpace(tuple(Configuration(key, {"x": index}) for index, key in enumerate(devices)))
    return Surfaces(
        "made up",
        (KernelAt("a", "a", "s"),),
        space,
        np.ones((1, len(devices))),
        np.array([power_w]),
        {name: np.array([values]) for name, values in domains.items()},
    )


@pytest.mark.parametrize(
    ("domains", "expected"),
    [
        # A domain that is the whole comes before sums of others.
        (
            {"node": [3.0, 5.0, 7.0], "cpu": [1.0, 2.0, 3.0], "gpu": [2.0, 3.0, 4.0]},
            {"a": (("node",), ("cpu", "gpu")), "b": (("node",), ("cpu", "gpu"))},
        ),
        # Each device has sets of its own.
        ({"board": [3.0, 5.0, np.nan], "chip": [1.0, 2.0, 7.0]}, {"a": (("board",),), "b": (("chip",),)}),
        ({"chip": [1.0, 2.0, 3.0]}, {"a": (), "b": ()}),
    ],
)
def test_domains_whose_sum_is_the_power_are_found(domains: Any, expected: Any) -> None:
    assert power_totals(surfaces([3.0, 5.0, 7.0], **domains)) == expected
    assert power_totals(made_surfaces()) == {"node": (("cpu", "gpu"),)}


def test_the_first_set_that_is_known_is_the_power() -> None:
    sets = (("node",), ("cpu", "gpu"))
    assert total_power(sets, {"node": 5.0, "cpu": 1.0, "gpu": 2.0}) == 5.0
    assert total_power(sets, {"cpu": 1.0, "gpu": 2.0}) == 3.0
    assert total_power(sets, {"cpu": 1.0}) is None
    assert total_power((), {"cpu": 1.0}) is None


@pytest.mark.parametrize("what", ["time", "power"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_sample_of_no_positive_value_is_refused(what: str, value: float) -> None:
    wrong, right = np.array([value]), np.array([1.0])
    time, power = (wrong, right) if what == "time" else (right, wrong)
    with pytest.raises(InputError, match=f"expected a {what} above 0 at node"):
        sample_indices(made_surfaces(2).space, (3,), Observed(np.array([3]), time, power))


def test_a_device_is_scaled_from_the_first_sample_on_it_or_the_first_of_all() -> None:
    space = linear_space()
    references = reference_samples(space, (10, 3, 4))
    assert set(references[space.device_numbers == 0]) == {1}
    assert set(references[space.device_numbers == 1]) == {0}
    space = linear_space()
    assert set(reference_samples(space, (4, 3))) == {0}


# Few values, so that many agree.
POINT = st.tuples(
    st.sampled_from([1.0, 2.0, 3.0, np.nan, np.inf]), st.sampled_from([5.0, 6.0, 7.0, np.nan, np.inf])
)


def is_beaten(point: tuple[float, float], index: int, points: list[tuple[float, float]]) -> bool:
    """Whether another is as good in both, and better in one or earlier."""
    return any(
        np.isfinite(other).all()
        and other[0] <= point[0]
        and other[1] <= point[1]
        and (other != point or number < index)
        for number, other in enumerate(points)
        if number != index
    )


@given(st.lists(POINT, max_size=12))
def test_it_is_that_found_by_comparing_all_with_all(points: list[tuple[float, float]]) -> None:
    time, power = (np.array([each[axis] for each in points], np.float64) for axis in (0, 1))
    expected = [
        index
        for index, point in enumerate(points)
        if np.isfinite(point).all() and not is_beaten(point, index, points)
    ]
    frontier = pareto_frontier(time, power)
    assert sorted(frontier.tolist()) == expected
    assert (np.diff(power[frontier]) > 0).all()
    assert (np.diff(time[frontier]) < 0).all()


def test_of_powers_that_rounding_alone_tells_apart_the_fastest_is_on_it() -> None:
    power = np.array([60.0, 60.0 + 1e-14, 60.0 * (1 + 1e-8)])
    assert pareto_frontier(np.array([3.0, 2.0, 1.0]), power).tolist() == [1, 2]


ONE = np.array([1.0])


def test_events_are_divided_and_rates_and_the_total_are_logarithms() -> None:
    sources = ("time", *(f"counter:{name}" for name in ("busy", "instructions", "misses", "read_throughput")))
    columns = SampleColumns(sources, frozenset({"instructions", "misses", "read_throughput"}), "instructions")
    counters = {
        "busy": np.array([0.5]),
        "instructions": np.array([1e6]),
        "misses": np.array([2e3]),
        "read_throughput": np.array([300.0]),
    }
    matrix = columns.matrix(Values(ONE, ONE, {}, counters))
    np.testing.assert_allclose(matrix[1:, 0], [0.5, np.log1p(1e6), 2e-3, np.log1p(300)])
    assert tuple(columns.kinds) == ("plain", "ratio", "count", "share", "count")


def test_counters_above_those_of_a_percentage_are_counts() -> None:
    counters = {"misses": [0, 101], "percentage": [0, 100], "change": [-1, 500], "unknown": [np.nan, np.nan]}
    assert counts_in({name: np.array(values) for name, values in counters.items()}) == {"misses"}


def test_without_instructions_in_a_run_its_events_are_not_known() -> None:
    columns = SampleColumns(
        ("time", "counter:misses", "counter:instructions"), frozenset({"misses"}), "instructions"
    )
    counters = {"misses": np.array([5e3])}
    matrix = columns.matrix(Values(ONE, ONE, {}, counters))
    assert np.isnan(matrix[1, 0])
    counters["instructions"] = np.array([0.0])
    assert np.isnan(columns.matrix(Values(ONE, ONE, {}, counters))[1, 0])


SAMPLES = (11, 0)


def with_counters(**counters: Reals) -> Surfaces:
    surfaces = made_surfaces(2)
    spread = {
        name: np.repeat(values[:, None], len(surfaces.space), axis=1) for name, values in counters.items()
    }
    return dataclasses.replace(surfaces, counters=spread)


def test_readable_features_are_in_watts_ratios_and_counts() -> None:
    instructions, misses = np.array([1e6, 2e6, 4e6, 8e6]), np.array([1e3, 5e3, 1e4, 2e3])
    surfaces = with_counters(instructions=instructions, misses=misses, busy=misses / 1e5)
    features, values = SampleFeatures.of(surfaces, SAMPLES)
    result = dict(zip(features.readable_names, features.readable(values).T, strict=True))
    np.testing.assert_allclose(result["gpu_power_w at sample 1"], surfaces.domains["gpu"][:, 11])
    np.testing.assert_allclose(result["power_w at sample 2"], surfaces.power_w[:, 0])
    np.testing.assert_allclose(
        result["time_ratio at sample 2"], surfaces.time_s[:, 0] / surfaces.time_s[:, 11]
    )
    np.testing.assert_allclose(result["instructions at sample 1"], instructions)
    np.testing.assert_allclose(result["misses / instructions at sample 1"], misses / instructions)
    np.testing.assert_allclose(result["busy at sample 2"], misses / 1e5)


def test_what_is_missing_becomes_the_mean_of_the_training_kernels() -> None:
    surfaces = made_surfaces(4)
    features, values = SampleFeatures.of(surfaces, SAMPLES)
    bare = dataclasses.replace(surfaces.observed(0, SAMPLES), domains={}, counters={})
    result = features.values(bare, [0, 1])
    for index, name in enumerate(features.names):
        known = name.startswith(("time", "power"))
        assert result[index] == pytest.approx(values[0, index] if known else features.centre[index])


SPACE = ConfigurationSpace(
    tuple(Configuration("gpu", {"core_clock_hz": 1e9 * (4 - place)}) for place in range(4))
)
EVEN_ERRORS = np.linspace(-1.0, 1.0, 201)


def forecast(spread: float = 0.0, measured: tuple[int, ...] = (0,)) -> SurfaceForecast:
    known = np.isin(np.arange(4), measured)
    apart = np.where(known, 0.0, spread)
    time = Quantity(np.array([1.0, 1.03, 1.1, 2.0]), apart, EVEN_ERRORS)
    return SurfaceForecast(time, Quantity(np.array([100.0, 80.0, 60.0, 50.0]), apart, EVEN_ERRORS), known)


@pytest.mark.parametrize(
    ("most", "allowed"),
    [
        (None, [1, 1, 1, 1]),
        (0.0, [1, 0, 0, 0]),
        (0.05, [1, 1, 0, 0]),
        (0.1, [1, 1, 1, 0]),
        (2.0, [1, 1, 1, 1]),
    ],
)
def test_only_what_is_slower_by_at_most_a_share_is_allowed(most: float | None, allowed: list[int]) -> None:
    assert within_slowdown(forecast(), most, 0).tolist() == [bool(each) for each in allowed]


def test_what_may_be_too_slow_is_not_allowed_but_the_baseline_always_is() -> None:
    unsure = forecast(spread=0.1)
    assert within_slowdown(unsure, 0.05, 0).tolist() == [True, False, False, False]
    assert within_slowdown(unsure, 0.2, 0).tolist() == [True, True, False, False]
    assert within_slowdown(forecast(spread=0.1, measured=()), 0.0, 2)[2]


@pytest.mark.parametrize(
    ("objective", "most", "place"),
    [
        ("power", None, 3),
        ("power", 0.1, 2),
        ("energy", None, 2),
        ("energy", 0.05, 1),
        ("performance", 0.1, 0),
    ],
)
def test_the_best_within_the_limit_is_chosen(objective: str, most: float | None, place: int) -> None:
    choice = choice_of(forecast(), SPACE, NO_CAP, objective=objective, max_slowdown=most)  # type: ignore[arg-type]
    assert choice.recommended is not None
    assert choice.recommended.configuration == SPACE.configurations[place]
    document = choice.to_dict()
    assert document["power_cap_w"] is None
    assert document["max_slowdown"] == most
    assert (document["baseline"] is None) == (most is None)


def test_a_cap_and_a_limit_are_both_kept() -> None:
    choice = choice_of(forecast(), SPACE, 90.0, objective="performance", max_slowdown=0.05)
    assert choice.recommended is not None
    assert choice.recommended.configuration == SPACE.configurations[1]
    assert choice_of(forecast(), SPACE, 70.0, max_slowdown=0.05).recommended is None


@pytest.mark.parametrize("most", [-0.1, float("inf"), float("nan")])
def test_a_limit_that_is_none_is_refused(most: float) -> None:
    assert "max slowdown: expected a share such as" in refusal(within_slowdown, forecast(), most, 0)

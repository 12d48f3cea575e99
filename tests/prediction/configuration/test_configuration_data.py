"""Machines with configurations, kernels, powers and counters; forecasts, and limits of slowdowns."""

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
from crosscast.prediction import configuration as data
from crosscast.prediction.configuration.choice import NO_CAP, choice_of, select, within_slowdown
from crosscast.prediction.configuration.features import SampleColumns, SampleFeatures, counts_in
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
    space = data.ConfigurationSpace(tuple(found))
    assert space.configurations == MIXED
    assert [space.number_of(each) for each in MIXED] == list(range(6))


def test_a_knob_that_a_device_lacks_is_not_a_number() -> None:
    space, none = data.ConfigurationSpace(MIXED), np.nan
    assert (space.devices, space.knobs, space.words) == (("cpu", "gpu"), ("clock_hz", "cores"), ("governor",))
    assert space.device_numbers.tolist() == [0, 0, 0, 1, 1, 1]
    cpu, gpu = [[none, 1], [none, 1], [none, 12]], [[5e8, none], [1e9, none], [2e9, none]]
    np.testing.assert_array_equal(space.matrix, [*cpu, *gpu])


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
        data.ConfigurationSpace(configurations)


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
    machines = data.machines_of(runs, "made up")
    # a and c share none, but each shares one with b.
    assert [machine.space.devices for machine in machines] == [("a", "b", "c"), ("d",)]
    assert machines[0].kernels == (data.KernelAt("x", "x", "big"), data.KernelAt("y", "y", "big"))
    assert machines[0].known.tolist() == [[True, True, False], [False, True, True]]
    assert machines[0].applications == ("x", "y")
    assert machines[0].rows_of(["y", "q"]).tolist() == [False, True]
    runs = table(row("a", "x"), row("b", "y"), row("c", "x"), row("c", "y"))
    assert [machine.space.devices for machine in data.machines_of(runs, "made up")] == [("a", "b", "c")]
    runs = table(row("a", "x"), row("b", "x", size="small"))
    assert len(data.machines_of(runs, "made up")) == 2


@pytest.mark.parametrize("lacking", [{"power_w": None}, {"power_w": 0.0}, {"time_s": 0.0}])
def test_rows_without_time_or_power_are_left_out(lacking: dict[str, Any]) -> None:
    (machine,) = data.machines_of(
        table(row("a", "x"), row("a", "x", 2.0, **lacking), row("a", "y", 3.0)), "made up"
    )
    assert machine.space.matrix.tolist() == [[1], [3]]
    np.testing.assert_array_equal(machine.power_w, [[50, np.nan], [np.nan, 50]])
    with pytest.raises(InputError, match="made up: expected runs with time and power, found none"):
        data.machines_of(table(row("a", "x", **lacking)), "made up")


def test_devices_are_chosen_by_name_and_kernels_are_there_once_at_a_configuration() -> None:
    runs = table(row("a", "x"), row("b", "x"), row("c", "x", power_w=None))
    (machine,) = data.machines_of(runs, "made up", ["b"])
    assert machine.space.devices == ("b",)
    with pytest.raises(InputError, match="made up: device: expected one of a, b, found 'c'"):
        data.machines_of(runs, "made up", ["a", "c"])
    twice = [row("a", "x"), row("a", "x", configuration='{"clock": 1}')]
    with pytest.raises(InputError, match="expected each kernel once at a: clock 1, found x big again"):
        data.machines_of(table(*twice), "made up")


def test_domains_and_counters_are_where_they_are_known() -> None:
    known = {"powers": {"cpu": 20.0, "gpu": 30.0}, "counters": {"loads": 7.0}}
    rows = [row("a", "x", 1.0, **known), row("a", "x", 2.0, powers={"cpu": 25.0})]
    (machine,) = data.machines_of(table_of(CONFIGURED, rows), "made up")
    np.testing.assert_array_equal(machine.domains["cpu"], [[20, 25]])
    np.testing.assert_array_equal(machine.domains["gpu"], [[30, np.nan]])
    np.testing.assert_array_equal(machine.counters["loads"], [[7, np.nan]])
    assert np.isnan(machine.observed(0, (1,)).domains["gpu"]).tolist() == [True]


def runs(numbers: list[int], power_w: float, **domains: float) -> data.Observed:
    count = len(numbers)
    return data.Observed(
        np.array(numbers, np.int64),
        np.arange(1.0, count + 1),
        np.full(count, power_w),
        {name: np.full(count, value) for name, value in domains.items()},
    )


def test_a_run_lacks_domains_of_its_own() -> None:
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


def quantity(errors: Reals, centre: float = 100.0, spread: float = 0.1) -> data.Quantity:
    return data.Quantity(np.array([centre]), np.array([spread]), errors)


@given(ERRORS, st.floats(0.001, 0.999))
def test_a_quantile_has_its_probability_or_more_where_errors_agree(errors: Reals, probability: float) -> None:
    forecast = quantity(errors)
    limit = float(forecast.quantile(probability)[0])
    if (np.diff(errors) > 0).all():
        assert forecast.probability_within(limit)[0] == pytest.approx(probability, abs=1e-6)
    assert forecast.probability_within(limit * (1 + 1e-9))[0] >= probability - 1e-6


def of_programs(errors: Reals, programs: int) -> data.Quantity:
    return data.Quantity(np.array([100.0]), np.array([0.1]), errors, errors, programs)


@given(ERRORS, st.integers(1, 40), st.floats(0.05, 0.99))
def test_intervals_are_wider_with_fewer_programs_and_reach_their_largest_errors(
    errors: Reals, programs: int, level: float
) -> None:
    (low,), (high,) = of_programs(errors, programs).limits(level)
    (lower,), (higher,) = of_programs(errors, programs - 1 or 1).limits(level)
    assert lower <= low <= high <= higher
    if level >= most_level(programs):
        assert (low, high) == pytest.approx((100 * np.exp(0.1 * errors[0]), 100 * np.exp(0.1 * errors[-1])))


def test_limits_are_physical_too_and_what_was_measured_is_certain() -> None:
    limited = replace(of_programs(np.array([-2.0, 2.0]), 9), least=np.array([95.0]), most=np.array([110.0]))
    assert [each.tolist() for each in limited.limits(0.9)] == [[95.0], [110.0]]
    forecast = quantity(np.array([-1.0, 0.0, 1.0]), spread=0.0)
    assert forecast.quantile(0.9)[0] == forecast.quantile(0.1)[0] == 100
    assert [forecast.probability_within(limit)[0] for limit in (100.0, 99.999)] == [1, 0]
    # One error is a step.
    edge = 100 * np.exp(0.05)
    within = quantity(np.array([0.5])).probability_within
    assert (within(edge * 0.999)[0], within(edge * 1.001)[0]) == (0, 1)
    forecast = data.Quantity(np.array([100.0, 200.0]), np.array([np.nan, 0.0]), NONE)
    assert forecast.quantile(0.9).tolist() == [100, 200]
    assert forecast.probability_within(150.0).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("domains", "of_a", "of_b"),
    [
        # A domain that is the whole comes before sums of others.
        (
            {"node": [3, 5, 7], "cpu": [1, 2, 3], "gpu": [2, 3, 4]},
            (("node",), ("cpu", "gpu")),
            (("node",), ("cpu", "gpu")),
        ),
        # Each device has sets of its own.
        ({"board": [3, 5, np.nan], "chip": [1, 2, 7]}, (("board",),), (("chip",),)),
        ({"chip": [1, 2, 3]}, (), ()),
    ],
)
def test_domains_whose_sum_is_the_power_are_found(
    domains: dict[str, list[float]], of_a: Any, of_b: Any
) -> None:
    space = data.ConfigurationSpace(
        tuple(Configuration(key, {"x": index}) for index, key in enumerate("aab"))
    )
    powers = {name: np.array([values], np.float64) for name, values in domains.items()}
    kernels, power_w = (data.KernelAt("a", "a", "s"),), np.array([[3.0, 5.0, 7.0]])
    surfaces = data.Surfaces("made up", kernels, space, np.ones((1, 3)), power_w, powers)
    assert data.power_totals(surfaces) == {"a": of_a, "b": of_b}


def test_the_first_set_that_is_known_is_the_power() -> None:
    sets = (("node",), ("cpu", "gpu"))
    assert data.total_power(sets, {"node": 5.0, "cpu": 1.0, "gpu": 2.0}) == 5.0
    assert data.total_power(sets, {"cpu": 1.0, "gpu": 2.0}) == 3.0
    assert data.total_power(sets, {"cpu": 1.0}) is data.total_power((), {"cpu": 1.0}) is None


@pytest.mark.parametrize("what", ["time", "power"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_a_sample_of_no_positive_value_is_refused(what: str, value: float) -> None:
    wrong, right = np.array([value]), np.array([1.0])
    time, power = (wrong, right) if what == "time" else (right, wrong)
    with pytest.raises(InputError, match=f"expected a {what} above 0 at node"):
        data.sample_indices(made_surfaces(2).space, (3,), data.Observed(np.array([3]), time, power))


def test_a_device_is_scaled_from_the_first_sample_on_it_or_the_first_of_all() -> None:
    on_cpu = linear_space().device_numbers == 0
    assert data.reference_samples(linear_space(), (10, 3, 4)).tolist() == np.where(on_cpu, 1, 0).tolist()
    assert set(data.reference_samples(linear_space(), (4, 3))) == {0}


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
    frontier = data.pareto_frontier(time, power)
    assert sorted(frontier.tolist()) == expected
    assert (np.diff(power[frontier]) > 0).all()
    assert (np.diff(time[frontier]) < 0).all()


def test_of_powers_that_rounding_alone_tells_apart_the_fastest_is_on_it() -> None:
    power = np.array([60.0, 60.0 + 1e-14, 60.0 * (1 + 1e-8)])
    assert data.pareto_frontier(np.array([3.0, 2.0, 1.0]), power).tolist() == [1, 2]


ONE = np.array([1.0])


def test_events_are_divided_and_rates_and_the_total_are_logarithms() -> None:
    names = ("busy", "instructions", "misses", "read_throughput")
    columns = SampleColumns(
        ("time", *(f"counter:{name}" for name in names)), frozenset(names[1:]), "instructions"
    )
    counters = {name: np.array([value]) for name, value in zip(names, (0.5, 1e6, 2e3, 300.0), strict=True)}
    matrix = columns.matrix(data.Values(ONE, ONE, {}, counters))
    np.testing.assert_allclose(matrix[1:, 0], [0.5, np.log1p(1e6), 2e-3, np.log1p(300)])
    assert tuple(columns.kinds) == ("plain", "ratio", "count", "share", "count")
    # Without instructions in a run its events are not known.
    for lacking in ({"misses": ONE}, {"misses": ONE, "instructions": 0 * ONE}):
        columns = SampleColumns(
            ("time", "counter:misses", "counter:instructions"), frozenset({"misses"}), names[1]
        )
        assert np.isnan(columns.matrix(data.Values(ONE, ONE, {}, lacking))[1, 0])


def test_counters_above_those_of_a_percentage_are_counts() -> None:
    counters = {"misses": [0, 101], "percentage": [0, 100], "change": [-1, 500], "unknown": [np.nan, np.nan]}
    assert counts_in({name: np.array(values) for name, values in counters.items()}) == {"misses"}


def test_what_is_missing_becomes_the_mean_of_the_training_kernels() -> None:
    surfaces, samples = made_surfaces(4), (11, 0)
    features, values = SampleFeatures.of(surfaces, samples)
    result = features.values(replace(surfaces.observed(0, samples), domains={}, counters={}), [0, 1])
    known = [name.startswith(("time", "power")) for name in features.names]
    assert result == pytest.approx(np.where(known, values[0], features.centre))


SPACE = data.ConfigurationSpace(
    tuple(Configuration("gpu", {"core_clock_hz": 1e9 * (4 - place)}) for place in range(4))
)
EVEN_ERRORS = np.linspace(-1.0, 1.0, 201)


def forecast(spread: float = 0.0, measured: tuple[int, ...] = (0,)) -> data.SurfaceForecast:
    known = np.isin(np.arange(4), measured)
    apart = np.where(known, 0.0, spread)
    time = data.Quantity(np.array([1.0, 1.03, 1.1, 2.0]), apart, EVEN_ERRORS)
    return data.SurfaceForecast(
        time, data.Quantity(np.array([100.0, 80.0, 60.0, 50.0]), apart, EVEN_ERRORS), known
    )


def test_only_what_is_slower_by_at_most_a_share_is_allowed_and_the_baseline_always() -> None:
    for most, count in ((None, 4), (0.0, 1), (0.05, 2), (0.1, 3), (2.0, 4)):
        assert within_slowdown(forecast(), most, 0).tolist() == [place < count for place in range(4)]
    # What may be too slow is not allowed.
    unsure = forecast(spread=0.1)
    assert within_slowdown(unsure, 0.05, 0).tolist() == [True, False, False, False]
    assert within_slowdown(unsure, 0.2, 0).tolist() == [True, True, False, False]
    assert within_slowdown(forecast(spread=0.1, measured=()), 0.0, 2)[2]
    for none in (-0.1, float("inf"), float("nan")):
        assert "max slowdown: expected a share such as" in refusal(within_slowdown, forecast(), none, 0)


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


def test_without_a_confidence_what_surely_keeps_to_the_cap_counts_more_than_what_hardly_does() -> None:
    unsure = forecast(spread=0.1, measured=())
    # The fastest keeps to 101 W with 55 %, the next is 3 % slower and does for sure.
    assert select(unsure, 101.0) == 1
    assert select(unsure, 101.0, confidence=0.5) == 0
    assert select(unsure, 101.0, confidence=0.6) == 1
    assert select(unsure, 10.0) is None

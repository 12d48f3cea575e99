"""Surfaces are made of a table of configured runs, and runs are taken from them and put together."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_surfaces import made_surfaces

from crosscast.errors import InputError
from crosscast.predict.configuration.data import KernelAt, Observed, machines_of
from crosscast.tables.arrow import Table, table_of
from crosscast.tables.configured import CONFIGURED


def row(device: str, application: str, clock: float = 1.0, **changed: Any) -> dict[str, Any]:
    """A run of 2 s at 50 W."""
    cell = {"application": application, "kernel": application, "size": "big", "device": device}
    numbers = {"runs": 3, "time_s": 2.0, "power_w": 50.0, "powers": None, "counters": None}
    return {**cell, "configuration": json.dumps({"clock": clock}), **numbers, **changed}


def table(*rows: dict[str, Any]) -> Table:
    # In the order that other tables might have: views are not checked.
    return table_of(CONFIGURED, [{**each, "powers": None, "counters": None} for each in rows])


def test_devices_that_share_a_kernel_are_one_machine() -> None:
    runs = table(row("a", "x"), row("b", "x"), row("b", "y"), row("c", "y"), row("d", "z"))
    machines = machines_of(runs, "made up")
    # a and c share none, but each shares one with b.
    assert [machine.space.devices for machine in machines] == [("a", "b", "c"), ("d",)]
    assert machines[0].kernels == (KernelAt("x", "x", "big"), KernelAt("y", "y", "big"))
    assert machines[0].known.tolist() == [[True, True, False], [False, True, True]]
    assert machines[0].applications == ("x", "y")
    assert machines[0].rows_of(["y", "q"]).tolist() == [False, True]


def test_two_groups_that_a_later_device_joins_are_one_machine() -> None:
    runs = table(row("a", "x"), row("b", "y"), row("c", "x"), row("c", "y"))
    assert [machine.space.devices for machine in machines_of(runs, "made up")] == [("a", "b", "c")]


def test_a_kernel_at_another_size_is_another_one() -> None:
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


def test_clocks_are_put_in_order() -> None:
    runs = table(*(row("a", "x", clock, time_s=1 / clock) for clock in (2.0, 0.5, 16.0, 4.0)))
    (machine,) = machines_of(runs, "made up")
    assert machine.space.matrix.tolist() == [[0.5], [2], [4], [16]]
    assert machine.time_s.tolist() == [[2, 0.5, 0.25, 0.0625]]


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


def _parsed(found: dict[str, Any]) -> dict[str, Any]:
    return {
        name: json.loads(value) if name in ("powers", "counters") and value else value
        for name, value in found.items()
    }


def test_some_kernels_alone_keep_all_configurations() -> None:
    surfaces = made_surfaces(3)
    numbers, flags = np.array([4, 1]), np.isin(np.arange(6), [1, 4])
    for taken, rows in ((surfaces.take(numbers), [4, 1]), (surfaces.take(flags), [1, 4])):
        assert taken.kernels == tuple(surfaces.kernels[each] for each in rows)
        assert taken.space is surfaces.space
        np.testing.assert_array_equal(taken.time_s, surfaces.time_s[rows])
        np.testing.assert_array_equal(taken.domains["gpu"], surfaces.domains["gpu"][rows])
        np.testing.assert_array_equal(taken.counters["stalls"], surfaces.counters["stalls"][rows])


def test_only_what_ran_is_observed() -> None:
    surfaces = made_surfaces(1)
    surfaces.time_s[0, 3] = surfaces.power_w[0, 3] = np.nan
    observed = surfaces.observed(0, (5, 3, 0))
    assert observed.numbers.tolist() == [5, 0]
    assert observed.time_s.tolist() == surfaces.time_s[0, [5, 0]].tolist()
    assert observed.place(0) == 1
    assert observed.place(3) is None


def test_kernels_are_named_by_what_tells_them_apart() -> None:
    assert str(KernelAt("cfd", "cfd", "big")) == "cfd big"
    assert str(KernelAt("lud", "diagonal", "big")) == "lud/diagonal big"


def runs(numbers: list[int], power_w: float, **domains: float) -> Observed:
    count = len(numbers)
    return Observed(
        np.array(numbers, np.int64),
        np.arange(1.0, count + 1),
        np.full(count, power_w),
        {name: np.full(count, value) for name, value in domains.items()},
    )


def test_a_run_replaces_that_at_its_configuration() -> None:
    found = runs([7, 3, 5], 100.0).and_run(runs([3], 90.0))
    assert found.numbers.tolist() == [7, 5, 3]
    assert found.time_s.tolist() == [1, 3, 1]
    assert found.power_w.tolist() == [100, 100, 90]


def test_a_domain_that_one_side_lacks_is_not_a_number_there() -> None:
    none = np.nan
    found = runs([7, 3], 100.0, cpu=60.0).and_run(runs([3, 4], 90.0, gpu=40.0))
    assert sorted(found.domains) == ["cpu", "gpu"]
    np.testing.assert_array_equal(found.domains["cpu"], [60, none, none])
    np.testing.assert_array_equal(found.domains["gpu"], [none, 40, 40])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_after_any_runs_each_configuration_is_there_once_as_it_was_last(numbers: list[int]) -> None:
    observed = runs([0], 1000.0)
    for turn, number in enumerate(numbers):
        observed = observed.and_run(runs([number], float(turn)))
    last = {0: 1000.0} | {number: float(turn) for turn, number in enumerate(numbers)}
    assert dict(zip(observed.numbers.tolist(), observed.power_w.tolist(), strict=True)) == last
    assert len(observed) == len(last)

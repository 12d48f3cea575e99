"""Shares from counters: what was not counted, or counted as nothing, gives nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosscast.measure.cpu_counters import EVENTS, counter_shares

COUNTED = {
    "cycles": 200.0,
    "instructions": 500.0,
    "llc_loads": 50.0,
    "llc_load_misses": 5.0,
    "cache_references": 10.0,
    "cache_misses": 8.0,
    "l1d_loads": 100.0,
    "l1d_load_misses": 25.0,
    "branches": 40.0,
    "branch_misses": 1.0,
    "dtlb_loads": 100.0,
    "dtlb_load_misses": 2.0,
}


def test_shares_are_misses_over_all() -> None:
    assert counter_shares(COUNTED) == {
        "ipc": 2.5,
        "llc_miss": 0.1,
        "l1_miss": 0.25,
        "branch_miss": 0.025,
        "dtlb_miss": 0.02,
    }


def test_references_stand_for_loads_where_only_those_are_counted() -> None:
    counted = {name: value for name, value in COUNTED.items() if not name.startswith("llc")}
    assert counter_shares(counted)["llc_miss"] == 0.8
    assert counter_shares({**counted, "llc_loads": 0.0, "llc_load_misses": 0.0})["llc_miss"] == 0.8


@pytest.mark.parametrize("name", ["cycles", "instructions", "branches", "branch_misses"])
def test_a_counter_that_is_0_or_missing_leaves_its_feature_out(name: str) -> None:
    without = {other: value for other, value in COUNTED.items() if other != name}
    left = counter_shares(without)
    assert left == counter_shares({**without, name: 0.0})
    assert len(left) == 4


@given(st.dictionaries(st.sampled_from(sorted(EVENTS)), st.floats(0, 1e15)))
def test_features_are_never_0_and_shares_at_most_1(counters: dict[str, float]) -> None:
    found = counter_shares(counters)
    assert all(value >= 0 for value in found.values())
    assert all(value <= 1 for name, value in found.items() if name != "ipc")

"""Intensities: which counters are totals, what they are divided by, and what leaves them as they are."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_counters import runs_with
from made_work import NAMES, changed, made_work, reordered

from crosscast.arrays import Reals
from crosscast.predict.relative.data import Observations
from crosscast.predict.relative.sums import (
    BASES,
    INSTRUCTIONS,
    ITEMS,
    base_of,
    intensities_of,
    is_total,
    unknown_counters,
)

WORK = made_work(kernels=4, sizes=2).observations


def columns(observations: Observations, base: str) -> dict[str, Reals]:
    found = intensities_of(observations, base)
    return dict(zip(found.names, found.counters.T, strict=True))


@pytest.mark.parametrize(
    "name",
    [
        "Iterations/Rep",
        "Bytes/Rep",
        "ProblemSize",
        "floating_point_operations.single_precision.",
        "inst_executed",
        "integer_instructions",
        "PAPI_TOT_INS",
        "branch-misses",
        "dram__bytes.sum",
        "smsp__inst_executed.sum",
        "warps_launched",
        "global_load_transactions",
        "l2_write_transactions",
        "generated_primitives",
    ],
)
def test_a_name_is_that_of_a_total(name: str) -> None:
    assert is_total(name)


@pytest.mark.parametrize(
    "name",
    [
        "achieved_occupancy",
        "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "l1tex__hit_rate",
        "local_hit_rate",
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        "gld_efficiency",
        "global_load_transactions_per_request",
        "dram__bytes.sum.per_second",
        "issued_ipc",
        "IPC",
        "eligible_warps_per_active_cycle",
        "registers.per.thread",
        "grid.x",
        "block.y",
        "static.smem",
        "launch__registers_per_thread",
        "topdown.retiring",
        "stall_memory_dependency",
        "inst_replay_overhead",
        "VALUUtilization",
        "MemUnitBusy",
        "L2CacheHit",
    ],
)
def test_a_name_is_that_of_no_total(name: str) -> None:
    assert not is_total(name)


def test_the_columns_of_a_run_are_those_by_hand() -> None:
    seen = runs_with({"inst_executed": 100.0, "loads": 20.0, "ipc": 3.0, "Bytes/Rep": 49.0, "Flops/Rep": 9.0})
    found = columns(replace(seen, time_s=np.array([2.0])), INSTRUCTIONS)
    expected = {
        "inst_executed a unit": 1,
        "loads a unit": 0.2,
        "ipc": 3,
        "Bytes/Rep a unit": 0.49,
        "Flops/Rep a unit": 0.09,
        "log instructions": np.log(101),
        "log bytes": np.log(50),
        "log operations": np.log(10),
        "log time": np.log(2),
        "log time over instructions": np.log(2 / 101),
        "log time over bytes": np.log(2 / 50),
        "log time over operations": np.log(2 / 10),
        "log operations over bytes": np.log(10 / 50),
    }
    assert {name: values[0] for name, values in found.items()} == pytest.approx(expected)


def test_totals_are_divided_by_what_most_runs_tell() -> None:
    instructions, items = {"inst_executed": 10.0}, {"launch__thread_count": 5.0}
    assert base_of(runs_with(instructions, instructions | items)) == INSTRUCTIONS
    assert base_of(runs_with(items, items, instructions)) == ITEMS
    assert base_of(runs_with({"loads": 3.0})) == BASES[-1]


def test_a_run_without_the_base_has_no_shares_whatever_else_it_tells() -> None:
    found = columns(
        runs_with({"inst_executed": 10.0, "loads": 5.0}, {"Iterations/Rep": 5.0, "loads": 5.0}), INSTRUCTIONS
    )
    np.testing.assert_array_equal(found["loads a unit"], [0.5, np.nan])


def test_where_nothing_tells_how_much_was_done_totals_stay() -> None:
    seen = runs_with({"loads": 20.0, "ipc": 3.0})
    found = columns(seen, base_of(seen))
    assert {name: values.tolist() for name, values in found.items() if "time" not in name} == {
        "ipc": [3],
        "loads": [20],
    }


def test_runs_that_tell_nothing_have_no_intensities() -> None:
    seen = replace(
        runs_with({"loads": np.nan}), names=(), counters=np.empty((1, 0)), time_s=np.array([np.nan])
    )
    assert intensities_of(seen, ITEMS).counters.shape == (1, 0)


def test_an_amount_of_nothing_divides_nothing() -> None:
    found = columns(runs_with({"inst_executed": 0.0, "loads": 5.0}), INSTRUCTIONS)
    assert np.isnan(found["loads a unit"]).all()
    assert found["log instructions"].tolist() == [0]


@given(factor=st.floats(0.5, 1e6))
def test_longer_runs_of_the_same_have_the_same_shares_and_rates(factor: float) -> None:
    """All totals and the time grow alike; amounts are large, so that the one that is added does not count."""
    large = changed(WORK, **{name: 1e9 * WORK.counters[:, place] for place, name in enumerate(LOWER)})
    longer = changed(large, **{name: factor * large.counters[:, place] for place, name in enumerate(LOWER)})
    before, after = columns(large, ITEMS), columns(replace(longer, time_s=factor * large.time_s), ITEMS)
    assert before.keys() == after.keys()
    for name in before:
        grows = name.startswith("log ") and " over " not in name
        expected = before[name] + np.log(factor) * grows
        np.testing.assert_allclose(after[name], expected, rtol=1e-9, atol=1e-8, err_msg=name)


LOWER = ("bytes", "flops", "iterations", "kernels")


@given(st.permutations(range(len(NAMES))))
def test_the_order_of_counters_does_not_matter(order: list[int]) -> None:
    one, other = intensities_of(WORK, ITEMS), intensities_of(reordered(WORK, order), ITEMS)
    assert one.names == other.names
    np.testing.assert_array_equal(one.counters, other.counters)


@given(st.data())
def test_a_run_has_the_same_intensities_alone_as_among_others(data: st.DataObject) -> None:
    gaps = data.draw(st.lists(st.booleans(), min_size=WORK.counters.size, max_size=WORK.counters.size))
    holes = np.where(np.reshape(gaps, WORK.counters.shape), np.nan, WORK.counters)
    seen = replace(WORK, counters=holes)
    whole = columns(seen, ITEMS)
    for row in range(0, len(seen), 3):
        alone = columns(seen.rows(np.array([row])), ITEMS)
        for name, values in whole.items():
            np.testing.assert_array_equal(alone.get(name, np.array([np.nan])), values[[row]])


def test_a_counter_is_known_by_itself_or_by_what_it_means() -> None:
    known = intensities_of(runs_with({"PAPI_TOT_INS": 10.0, "ipc": 1.0, "loads": 2.0}), INSTRUCTIONS).names
    seen = runs_with({"instructions": 7.0, "ipc": 2.0, "loads": 1.0, "dram__bytes.sum": 4.0, "odd": 1.0})
    assert set(unknown_counters(seen, INSTRUCTIONS, known)) == {"dram__bytes.sum", "odd"}

"""Amounts of work, told alike by the counters of several tools."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosscast.arrays import Reals
from crosscast.prediction.relative.counters import (
    BYTES,
    INSTRUCTIONS,
    ITEMS,
    LAUNCHES,
    OPERATIONS,
    Base,
    amounts_of,
    base_of,
    intensities_of,
    is_total,
    unknown_counters,
)
from crosscast.prediction.relative.data import NO_SOURCE, Observations, centred
from crosscast.prediction.relative.models import WorkPrices, fit_prices, terms_of
from support.vectors import runs_with
from support.work import DEVICES, PRICES, changed, made_work

SASS = "smsp__sass_thread_inst_executed_op_"


@pytest.mark.parametrize(
    ("counters", "amount", "expected"),
    [
        ({"Kernels/Rep": 3.0}, LAUNCHES, 3),
        ({"grid.x": 2.0, "grid.y": 3.0, "block.x": 4.0, "block.y": 5.0}, ITEMS, 120),
        ({"launch__thread_count": 256.0}, ITEMS, 256),
        ({"papi.PAPI_TOT_INS": 9.0}, INSTRUCTIONS, 9),
        ({"instructions:u": 8.0}, INSTRUCTIONS, 8),
        ({"device_memory_read_transactions": 2.0, "l2_write_transactions": 1.0}, BYTES, 96),
        ({"dram_read_transactions": 2.0, "dram_write_transactions": 2.0}, BYTES, 128),
        ({"dram__bytes.sum": 77.0}, BYTES, 77),
        ({"flop_count_sp": 2.0, "flop_count_dp": 3.0}, OPERATIONS, 5),
        ({"flop_count_sp": 2.0, "flop_count_dp": 3.0, "inst_integer": 10.0}, OPERATIONS, 15),
        ({f"{SASS}fadd_pred_on.sum": 1.0, f"{SASS}ffma_pred_on.sum": 2.0}, OPERATIONS, 3),
        ({"PAPI_SP_OPS": 4.0, "PAPI_DP_OPS": 5.0}, OPERATIONS, 9),
        ({"cpu_core/instructions/": 100.0, "cpu_atom/instructions/": 7.0}, INSTRUCTIONS, 107),
    ],
)
def test_an_amount_is_that_of_the_tool(counters: dict[str, float], amount: str, expected: float) -> None:
    amounts = amounts_of(runs_with(counters))
    assert amounts[amount].tolist() == [expected]
    assert all(np.isnan(values).all() for name, values in amounts.items() if name != amount)


def test_each_run_takes_the_first_way_that_it_has_the_counters_for() -> None:
    first, later = {"Bytes/Rep": 5.0}, {"dram__bytes.sum": 7.0}
    amounts = amounts_of(runs_with(first, later, first | later, {"dram_read_transactions": 1.0}))
    np.testing.assert_array_equal(amounts[BYTES], [5, 7, 5, np.nan])


WORK = made_work(kernels=4, sizes=2).observations


def columns(observations: Observations, base: Base) -> dict[str, Reals]:
    intensities = intensities_of(observations, base)
    return dict(zip(intensities.names, intensities.counters.T, strict=True))


TOTALS = """
    Iterations/Rep Bytes/Rep ProblemSize floating_point_operations.single_precision. inst_executed
    integer_instructions PAPI_TOT_INS branch-misses dram__bytes.sum smsp__inst_executed.sum warps_launched
    global_load_transactions l2_write_transactions generated_primitives
"""
OTHERS = """
    achieved_occupancy sm__throughput.avg.pct_of_peak_sustained_elapsed l1tex__hit_rate local_hit_rate
    smsp__thread_inst_executed_per_inst_executed.ratio gld_efficiency global_load_transactions_per_request
    dram__bytes.sum.per_second issued_ipc IPC eligible_warps_per_active_cycle registers.per.thread grid.x
    block.y static.smem launch__registers_per_thread topdown.retiring stall_memory_dependency
    inst_replay_overhead VALUUtilization MemUnitBusy L2CacheHit
"""


def test_names_tell_totals_from_others() -> None:
    assert [name for name in TOTALS.split() if not is_total(name)] == []
    assert [name for name in OTHERS.split() if is_total(name)] == []


def test_the_columns_of_a_run_are_those_by_hand() -> None:
    seen = runs_with({"inst_executed": 100.0, "loads": 20.0, "ipc": 3.0, "Bytes/Rep": 49.0, "Flops/Rep": 9.0})
    result = columns(replace(seen, time_s=np.array([2.0])), INSTRUCTIONS)
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
    assert {name: values[0] for name, values in result.items()} == pytest.approx(expected)


def test_totals_are_divided_by_what_most_runs_tell() -> None:
    instructions, items = {"inst_executed": 10.0}, {"launch__thread_count": 5.0}
    assert base_of(runs_with(instructions, instructions | items)) == INSTRUCTIONS
    assert base_of(runs_with(items, items, instructions)) == ITEMS
    assert base_of(runs_with({"loads": 3.0})) == ""


def test_without_a_base_there_are_no_shares_or_totals_stay() -> None:
    result = columns(
        runs_with({"inst_executed": 10.0, "loads": 5.0}, {"Iterations/Rep": 5.0, "loads": 5.0}), INSTRUCTIONS
    )
    np.testing.assert_array_equal(result["loads a unit"], [0.5, np.nan])
    seen = runs_with({"loads": 20.0, "ipc": 3.0})
    result = columns(seen, base_of(seen))
    assert {name: values.tolist() for name, values in result.items() if "time" not in name} == {
        "ipc": [3],
        "loads": [20],
    }
    seen = replace(
        runs_with({"loads": np.nan}), names=(), counters=np.empty((1, 0)), time_s=np.array([np.nan])
    )
    assert intensities_of(seen, ITEMS).counters.shape == (1, 0)
    result = columns(runs_with({"inst_executed": 0.0, "loads": 5.0}), INSTRUCTIONS)
    assert np.isnan(result["loads a unit"]).all()
    assert result["log instructions"].tolist() == [0]


@given(factor=st.floats(0.5, 1e6))
def test_longer_runs_of_the_same_have_the_same_shares_and_rates(factor: float) -> None:
    """All totals and the time grow alike; amounts are large, so that the one that is added does not count."""
    large = changed(WORK, **{name: 1e9 * WORK.counters[:, index] for index, name in enumerate(LOWER)})
    longer = changed(large, **{name: factor * large.counters[:, index] for index, name in enumerate(LOWER)})
    before, after = columns(large, ITEMS), columns(replace(longer, time_s=factor * large.time_s), ITEMS)
    assert before.keys() == after.keys()
    for name in before:
        grows = name.startswith("log ") and " over " not in name
        expected = before[name] + np.log(factor) * grows
        np.testing.assert_allclose(after[name], expected, rtol=1e-9, atol=1e-8, err_msg=name)


LOWER = ("bytes", "flops", "iterations", "kernels")


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


MANY = made_work(kernels=24, sizes=6)
SEEN = MANY.observations


def fitted(observations: Observations = SEEN, times_s: Reals = MANY.times_s) -> WorkPrices:
    prices = fit_prices(observations, DEVICES, np.log(times_s), np.ones(len(observations)))
    assert prices is not None
    return prices


FITTED = fitted()


def test_terms_are_launches_bytes_operations_and_bytes_of_an_item_in_each_launch() -> None:
    whole = {"Kernels/Rep": 3.0, "Bytes/Rep": 80.0, "Flops/Rep": 5.0, "Iterations/Rep": 10.0}
    unsaid = {name: value for name, value in whole.items() if name != "Kernels/Rep"}
    no_items = whole | {"Iterations/Rep": 0.0}
    np.testing.assert_array_equal(
        terms_of(runs_with(whole, unsaid, no_items, {"odd": 1.0})),
        [[3, 80, 5, 24], [1, 80, 5, 8], [3, 80, 5, np.nan], [1, np.nan, np.nan, np.nan]],
    )


def test_known_prices_are_found() -> None:
    np.testing.assert_allclose(FITTED.prices, PRICES, rtol=0.1)
    np.testing.assert_allclose(
        FITTED.log_relative(SEEN, anchored=False), centred(np.log(MANY.times_s)), atol=0.05
    )


def test_a_kernel_that_no_sum_tells_moves_prices_little() -> None:
    times_s = MANY.times_s.copy()
    times_s[:6, 1] *= 1000
    result = fitted(times_s=times_s).prices
    np.testing.assert_allclose(np.log(result / PRICES), 0, atol=0.4)
    assert (np.abs(np.log(result / PRICES)) < 0.1).sum() >= 7


def test_prices_that_nothing_tells_apart_make_the_same_share_of_the_time() -> None:
    """Bytes, operations and bytes of one item in fixed proportions: any split of the price would fit."""
    moved = SEEN.counters[:, 0]
    seen = changed(SEEN, flops=2 * moved, iterations=1e12, kernels=1.0)
    times_s = np.column_stack([1e-9 * moved, 1e-11 * moved])
    prices = fitted(seen, times_s).prices[1:] * np.array([[1], [2], [1e-12]])
    np.testing.assert_allclose(prices, np.tile([1e-9 / 3, 1e-11 / 3], (3, 1)), rtol=0.03)


@settings(max_examples=10, deadline=None)
@given(st.floats(-12, 12))
def test_times_in_another_unit_are_prices_in_that_unit(power: float) -> None:
    factor = 10.0**power
    np.testing.assert_allclose(
        fitted(times_s=factor * MANY.times_s).prices, factor * FITTED.prices, rtol=1e-3
    )


def test_the_order_of_rows_does_not_matter_to_sums() -> None:
    order = np.random.default_rng(0).permutation(len(SEEN))
    result = fitted(SEEN.rows(order), MANY.times_s[order])
    np.testing.assert_allclose(result.prices, FITTED.prices, rtol=1e-3)


def test_devices_in_another_order_have_the_same_prices() -> None:
    turned = fit_prices(SEEN, DEVICES[::-1], np.log(MANY.times_s[:, ::-1]), np.ones(len(SEEN)))
    assert turned is not None
    np.testing.assert_array_equal(turned.prices, FITTED.prices[:, ::-1])
    for anchored in (False, True):
        np.testing.assert_array_equal(
            turned.log_relative(SEEN, anchored=anchored),
            FITTED.log_relative(SEEN, anchored=anchored)[:, ::-1],
        )


def test_weights_matter_by_their_ratios_and_none_is_as_if_the_run_was_not_there() -> None:
    rng = np.random.default_rng(4)
    times_s = MANY.times_s * np.exp(rng.normal(0, 0.5, MANY.times_s.shape))
    halves: Reals = np.arange(len(SEEN), dtype=np.float64) % 2
    one = fit_prices(SEEN, DEVICES, np.log(times_s), halves)
    other = fit_prices(SEEN, DEVICES, np.log(times_s), 7 * halves)
    even = fit_prices(SEEN, DEVICES, np.log(times_s), np.ones(len(SEEN)))
    assert one is not None and other is not None and even is not None
    np.testing.assert_allclose(one.prices, other.prices, rtol=1e-6)
    assert (np.abs(np.log(one.prices / even.prices)) > 1e-3).any()


def test_anchored_takes_the_time_of_the_run_on_its_source_alone() -> None:
    seen = replace(SEEN.rows(np.arange(4)), source=("cpu", "gpu", NO_SOURCE, "cpu"))
    seen = replace(seen, time_s=np.array([3.0, 5.0, 7.0, np.nan]))
    sums = terms_of(seen) @ FITTED.prices
    expected = sums.copy()
    expected[0, 0], expected[1, 1] = 3, 5
    np.testing.assert_allclose(
        FITTED.log_relative(seen, anchored=True), centred(np.log(expected)), rtol=1e-12
    )
    np.testing.assert_allclose(FITTED.log_relative(seen, anchored=False), centred(np.log(sums)), rtol=1e-12)


def test_a_run_without_an_amount_is_not_a_number_and_others_are() -> None:
    moved = SEEN.counters[:, 0].copy()
    moved[2] = np.nan
    predicted = FITTED.log_relative(changed(SEEN, bytes=moved), anchored=True)
    assert np.flatnonzero(np.isnan(predicted).any(axis=1)).tolist() == [2]


def test_an_amount_that_a_training_run_lacks_has_no_price_and_is_not_asked_for() -> None:
    done = SEEN.counters[:, 1].copy()
    done[2] = np.nan
    result = fitted(changed(SEEN, flops=done))
    assert result.prices[2].tolist() == [0, 0]
    assert (result.prices[[0, 1, 3]] > 0).all()
    assert np.isfinite(result.log_relative(changed(SEEN, flops=np.nan), anchored=False)).all()


@pytest.mark.parametrize("gone", [np.nan, 0.0])
def test_counters_of_launches_alone_make_no_sums(gone: float) -> None:
    assert (
        fit_prices(changed(SEEN, bytes=gone, flops=gone), DEVICES, np.log(MANY.times_s), np.ones(len(SEEN)))
        is None
    )

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


WORK = made_work(kernels=4, sizes=2).observations


def columns(observations: Observations, base: Base) -> dict[str, Reals]:
    intensities = intensities_of(observations, base)
    return dict(zip(intensities.names, intensities.counters.T, strict=True))


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


@settings(max_examples=10, deadline=None)
@given(st.floats(-12, 12))
def test_times_in_another_unit_are_prices_in_that_unit(power: float) -> None:
    factor = 10.0**power
    np.testing.assert_allclose(
        fitted(times_s=factor * MANY.times_s).prices, factor * FITTED.prices, rtol=1e-3
    )


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

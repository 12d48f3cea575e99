"""Amounts of work, told alike by the counters of several tools."""

import numpy as np
import pytest
from made_counters import runs_with
from made_work import made_work

from crosscast.predict.relative.sums import (
    BYTES,
    INSTRUCTIONS,
    ITEMS,
    LAUNCHES,
    OPERATIONS,
    amounts_of,
)

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


def test_amounts_of_made_up_work_are_those_that_it_was_made_of() -> None:
    seen = made_work().observations
    amounts = amounts_of(seen)
    for name, place in ((BYTES, 0), (OPERATIONS, 1), (ITEMS, 2), (LAUNCHES, 3)):
        np.testing.assert_array_equal(amounts[name], seen.counters[:, place])
    assert np.isnan(amounts[INSTRUCTIONS]).all()


def test_instructions_of_two_kinds_of_cores_are_added_up() -> None:
    seen = runs_with({"cpu_core/instructions/": 100.0, "cpu_atom/instructions/": 7.0})
    assert amounts_of(seen)[INSTRUCTIONS].tolist() == [107.0]

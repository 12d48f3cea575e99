"""Amounts of work that counters tell, by the names of several tools: how much is done, not how fast."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.relative.counter_amounts import Amount, of, total
from crosscast.predict.relative.observations import Observations
from crosscast.predict.relative.table3 import by_plain_name

__all__ = ["AMOUNTS", "BYTES", "INSTRUCTIONS", "ITEMS", "LAUNCHES", "OPERATIONS", "amounts_of"]

LAUNCHES, ITEMS, INSTRUCTIONS, BYTES, OPERATIONS = "launches", "items", "instructions", "bytes", "operations"

_SECTOR = 32.0
"""Bytes of a memory transaction of nvprof, and of a sector of Nsight Compute."""


def _product(text: str, *names: str) -> Amount:
    def multiplied(*counts: Reals) -> Reals:
        whole: Reals = np.prod(counts, axis=0)
        return whole

    return Amount(text, tuple(name.lower() for name in names), multiplied)


_SASS = "smsp__sass_thread_inst_executed_op_"
AMOUNTS: Mapping[str, tuple[Amount, ...]] = {
    LAUNCHES: (total("Kernels/Rep"), total("launches")),
    ITEMS: (
        total("Iterations/Rep"),
        _product("threads of all blocks", "grid.x", "grid.y", "block.x", "block.y"),
        total("launch__thread_count"),
    ),
    INSTRUCTIONS: (
        total("inst_executed"),
        total("smsp__inst_executed.sum"),
        total("PAPI_TOT_INS"),
        total("instructions"),
    ),
    BYTES: (
        total("Bytes/Rep"),
        of((_SECTOR, "device_memory_read_transactions"), (_SECTOR, "l2_write_transactions")),
        of((_SECTOR, "dram_read_transactions"), (_SECTOR, "dram_write_transactions")),
        total("dram__bytes.sum"),
    ),
    OPERATIONS: (
        total("Flops/Rep"),
        total("fp_instructions.single.", "fp_instructions.double.", "integer_instructions"),
        total("flop_count_sp", "flop_count_dp", also=("inst_integer",)),
        total(f"{_SASS}fadd_pred_on.sum", f"{_SASS}ffma_pred_on.sum", also=(f"{_SASS}integer_pred_on.sum",)),
        total("PAPI_SP_OPS", "PAPI_DP_OPS"),
    ),
}
"""For each amount the ways to it; a run takes the first that it has the counters for."""


def amounts_of(observations: Observations) -> dict[str, Reals]:
    """Amounts by name, each of shape ``(r,)``; not a number where the counters do not tell."""
    (counters, _), rows = by_plain_name(observations), len(observations)
    found: dict[str, Reals] = {}
    for name, ways in AMOUNTS.items():
        amount = np.full(rows, np.nan)
        for way in ways:
            amount = np.where(np.isnan(amount), way.values(counters, rows), amount)
        found[name] = amount
    return found

"""The files of the published data, as they are: names of columns, units and keys of their own."""

from __future__ import annotations

from crosscast.tables.schema import Column, Schema

__all__ = ["ENERGY_FILE", "FEATURES_FILE", "RUNTIMES_FILE", "SAME_METRICS", "UNLIKE_METRICS"]

_SAME_NAMES = (
    "opcode",
    "total_instruction_count",
    "total_barriers_hit",
    "max_simd_width",
    "mean_simd_width",
    "instructions_per_operand",
    "total_memory_footprint",
    "global_memory_address_entropy",
    *(f"local_memory_address_entropy_{n}" for n in range(1, 11)),
)

SAME_METRICS: dict[str, str] = {
    **{name: name for name in _SAME_NAMES},
    "workitems": "work_items",
    "min_instructions_to_barrier": "min_itb",
    "max_instructions_to_barrier": "max_itb",
    "median_instructions_to_barrier": "median_itb",
    "stddev_simd_width": "sd_simd_width",
    "ninety_percent_memory_footprint": "footprint_90",
    "total_unique_branch_instructions": "unique_branches",
    "ninety_percent_branch_instructions": "branches_90",
}
"""Our metric of each feature that says the same."""

UNLIKE_METRICS = (
    "granularity",
    "barriers_per_instruction",
    "operand_sum",
    "branch_entropy_yokota",
    "branch_entropy_average_linear",
)
"""Features that are defined in another way than our metrics of like names, or that we do not have."""


def _text(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "text", required=True) for name in names)


FEATURES_FILE = Schema(
    "features",
    1,
    (
        *_text("application", "kernel", "size"),
        Column("invocation", "integer", required=True, least=0),
        *(Column(name, "real", required=True, least=0) for name in (*SAME_METRICS, *UNLIKE_METRICS)),
    ),
    key=("application", "kernel", "size", "invocation"),
)
"""``features_all_invocations.parquet``: a row an invocation."""

RUNTIMES_FILE = Schema(
    "runtimes",
    1,
    (
        *_text("application", "kernel", "size", "device"),
        Column("run", "integer", required=True, least=1),
        Column("kernel_time_us", "real", "µs", required=True, least=0),
    ),
    # A run may be there more than once, with other times: see the notes.
    key=("application", "kernel", "size", "device", "run", "kernel_time_us"),
)
"""``runtimes.parquet``: a row for each kernel and run."""

ENERGY_FILE = Schema(
    "energy",
    1,
    (
        *_text("application", "device", "size"),
        Column("energy", "real", "J", required=True, least=0),
        Column("run", "integer", required=True, least=1),
    ),
    key=("application", "device", "size", "run"),
)
"""``energy_joules.csv``: a row for each application and run."""

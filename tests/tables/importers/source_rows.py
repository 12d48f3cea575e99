"""A small folder in the form of the published data, with rows that a test may change."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rows = list[dict[str, Any]]


def features(application: str, kernel: str, size: str, invocation: int, **changed: Any) -> dict[str, Any]:
    """A row of the features: 4 work-items of 10 instructions each, 2 barriers in all."""
    entropies = {f"local_memory_address_entropy_{n}": 1.5 for n in range(1, 11)}
    return {
        "application": application,
        "kernel": kernel,
        "size": size,
        "invocation": invocation,
        "opcode": 3.0,
        "granularity": 1 / 40,
        "barriers_per_instruction": 3 / 40,
        "instructions_per_operand": 0.8,
        "total_instruction_count": 40.0,
        "workitems": 4.0,
        "operand_sum": 50.0,
        "total_barriers_hit": 2.0,
        "min_instructions_to_barrier": 5.0,
        "max_instructions_to_barrier": 10.0,
        "median_instructions_to_barrier": 7.5,
        "max_simd_width": 2.0,
        "mean_simd_width": 1.25,
        "stddev_simd_width": 0.4,
        "total_memory_footprint": 8.0,
        "ninety_percent_memory_footprint": 7.0,
        "global_memory_address_entropy": 2.5,
        **entropies,
        "total_unique_branch_instructions": 2.0,
        "ninety_percent_branch_instructions": 1.0,
        "branch_entropy_yokota": 31.5,
        "branch_entropy_average_linear": 0.25,
        **changed,
    }


def runtime(device: str, run: int, time_us: float, **changed: Any) -> dict[str, Any]:
    """A row of the runtimes."""
    place = {"application": "lud", "kernel": "lud_internal", "size": "tiny", "device": device, "run": run}
    return {**place, "kernel_time_us": time_us, "total_time_us": time_us, **changed}


def default_features() -> Rows:
    return [features("lud", "lud_internal", "tiny", n) for n in range(3)]


def default_runtimes() -> Rows:
    return [
        runtime("gtx1080", 1, 12.5),
        runtime("gtx1080", 3, 13.0),
        runtime("i5-3350", 1, 100.0),
        runtime("i5-3350", 1, 50.0),
        runtime("i5-3350", 2, 60.0, kernel="lud_diagonal"),
    ]


def write_source(
    folder: Path, features: Rows | None = None, runtimes: Rows | None = None, energy: str | None = None
) -> Path:
    """Write the folder with the given rows, and energy as the text of its file; return it."""
    folder.mkdir(exist_ok=True)
    for name, rows in (
        ("features_all_invocations", default_features() if features is None else features),
        ("runtimes", default_runtimes() if runtimes is None else runtimes),
    ):
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}.parquet")
    if energy is not None:
        (folder / "energy_joules.csv").write_text(energy, encoding="utf-8")
    return folder

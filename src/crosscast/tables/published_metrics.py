"""The published AIWC tool's metrics: its names, its order, and which of ours each one is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PUBLISHED_METRICS", "PublishedMetric"]


@dataclass(frozen=True)
class PublishedMetric:
    """A row of the published tool's file.

    Parameters
    ----------
    name
        Its name there.
    category
        Its category there.
    metric
        Our metric of the same meaning; ``None`` where there is none.
    """

    name: str
    category: str
    metric: str | None = None


PUBLISHED_METRICS: tuple[PublishedMetric, ...] = (
    PublishedMetric("Opcode", "Compute", "opcode"),
    PublishedMetric("Total Instruction Count", "Compute", "total_instruction_count"),
    PublishedMetric("Freedom to Reorder", "Compute"),
    PublishedMetric("Resource Pressure", "Compute"),
    PublishedMetric("Work-items", "Parallelism", "work_items"),
    PublishedMetric("Work-groups", "Parallelism", "work_groups"),
    PublishedMetric("Work-items per Work-group", "Parallelism"),
    PublishedMetric("SIMD Operand Sum", "Parallelism"),
    PublishedMetric("Total Barriers Hit", "Parallelism", "total_barriers_hit"),
    PublishedMetric("Min ITB", "Parallelism", "min_itb"),
    PublishedMetric("Max ITB", "Parallelism", "max_itb"),
    # Both medians of an even number of values are cut to whole numbers there.
    PublishedMetric("Median ITB", "Parallelism", "median_itb"),
    PublishedMetric("Min IPT", "Parallelism", "min_ipt"),
    PublishedMetric("Max IPT", "Parallelism", "max_ipt"),
    PublishedMetric("Median IPT", "Parallelism", "median_ipt"),
    PublishedMetric("Max SIMD Width", "Parallelism", "max_simd_width"),
    PublishedMetric("Mean SIMD Width", "Parallelism", "mean_simd_width"),
    PublishedMetric("SD SIMD Width", "Parallelism", "sd_simd_width"),
    PublishedMetric("Granularity", "Parallelism", "granularity"),
    PublishedMetric("Barriers Per Instruction", "Parallelism", "barriers_per_instruction"),
    PublishedMetric("Instructions Per Operand", "Parallelism", "instructions_per_operand"),
    PublishedMetric("Total Memory Footprint", "Memory", "total_memory_footprint"),
    PublishedMetric("Unique Memory Accesses", "Memory"),
    PublishedMetric("Unique Reads", "Memory", "unique_reads"),
    PublishedMetric("Unique Writes", "Memory", "unique_writes"),
    PublishedMetric("Unique Read/Write Ratio", "Memory", "unique_read_write_ratio"),
    PublishedMetric("Total Reads", "Memory", "total_reads"),
    PublishedMetric("Total Writes", "Memory", "total_writes"),
    # The inverse of our ratios.
    PublishedMetric("Rereads", "Memory"),
    PublishedMetric("Rewrites", "Memory"),
    PublishedMetric("90% Memory Footprint", "Memory", "footprint_90"),
    PublishedMetric("Global Memory Address Entropy", "Memory", "global_memory_address_entropy"),
    *(
        PublishedMetric(f"LMAE -- Skipped {n} LSBs", "Memory", f"local_memory_address_entropy_{n}")
        for n in range(1, 11)
    ),
    PublishedMetric("Total Global Memory Accessed", "Memory", "global_accesses"),
    PublishedMetric("Total Local Memory Accessed", "Memory", "local_accesses"),
    PublishedMetric("Total Constant Memory Accessed", "Memory", "constant_accesses"),
    PublishedMetric("Relative Local Memory Usage", "Memory"),
    PublishedMetric("Relative Constant Memory Usage", "Memory"),
    # Branches are told apart by their source line there.
    PublishedMetric("Total Unique Branch Instructions", "Control", "unique_branches"),
    PublishedMetric("90% Branch Instructions", "Control", "branches_90"),
    # Other formulas under like names; the tool files these two under Memory.
    PublishedMetric("Yokota Branch Entropy", "Memory"),
    PublishedMetric("Average Linear Branch Entropy", "Memory"),
)
"""All that the tool's file is written with, in its order."""

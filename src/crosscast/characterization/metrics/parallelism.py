"""Parallelism metrics: work-items, barriers, instructions between them, vector widths."""

from __future__ import annotations

import math
from collections.abc import Mapping

from crosscast.characterization.engine.counts import Counts
from crosscast.profile import MetricValue


def median(histogram: Mapping[int, int]) -> int | float:
    """Median of the values of a histogram; the mean of the middle two if their number is even."""
    total, seen, middle = sum(histogram.values()), 0, []
    wanted = [(total - 1) // 2, total // 2]
    for value in sorted(histogram):
        seen += histogram[value]
        while wanted and wanted[0] < seen:
            middle.append(value)
            wanted.pop(0)
    low, high = middle
    return low if low == high else (low + high) / 2


def _spread(name: str, histogram: Mapping[int, int]) -> dict[str, MetricValue]:
    return {
        f"min_{name}": min(histogram),
        f"max_{name}": max(histogram),
        f"median_{name}": median(histogram),
    }


def metrics(counts: Counts, work_groups: int) -> dict[str, MetricValue]:
    """Compute the metrics of this category."""
    items = sum(counts.totals.values())
    instructions = counts.instructions
    operands = sum(width * n for width, n in counts.widths.items())
    mean = operands / instructions
    variance = sum(n * (width - mean) ** 2 for width, n in counts.widths.items()) / instructions
    return {
        "work_items": items,
        "work_groups": work_groups,
        "total_barriers_hit": counts.barriers,
        **_spread("itb", counts.pieces),
        **_spread("ipt", counts.totals),
        "load_imbalance": max(counts.totals) - min(counts.totals),
        "max_simd_width": max(counts.widths),
        "mean_simd_width": mean,
        "sd_simd_width": math.sqrt(variance),
        "granularity": 1 / items,
        "barriers_per_instruction": (counts.barriers + items) / instructions,
        "instructions_per_operand": instructions / operands,
    }

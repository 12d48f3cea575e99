"""Compute metrics: how many instructions, and how various."""

from __future__ import annotations

from crosscast.characterization.engine.counts import Counts
from crosscast.characterization.metrics.coverage import covering
from crosscast.profile import MetricValue


def metrics(counts: Counts) -> dict[str, MetricValue]:
    """Compute the metrics of this category."""
    return {
        "opcode": covering(counts.opcodes.values()),
        "total_instruction_count": counts.instructions,
    }

"""Memory metrics: footprints, reuse, and how scattered the addresses are."""

from __future__ import annotations

import math
from collections.abc import Mapping

from crosscast.characterization.engine.counts import Counts
from crosscast.characterization.metrics.coverage import covering_histogram
from crosscast.profile import MetricValue


def entropy_bits(histogram: Mapping[int, int]) -> float:
    """Shannon entropy, in bits, of a distribution given as how many items have each count."""
    total = sum(count * n for count, n in histogram.items())
    terms = (n * count / total * math.log2(total / count) for count, n in sorted(histogram.items()))
    return math.fsum(terms) if total else 0.0


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def metrics(counts: Counts) -> dict[str, MetricValue]:
    """Compute the metrics of this category."""
    reads, writes = sum(counts.reads.values()), sum(counts.writes.values())
    exact, *skipped = counts.addresses
    return {
        "total_memory_footprint": sum(exact.values()),
        "footprint_90": covering_histogram(exact),
        "unique_reads": counts.unique_reads,
        "unique_writes": counts.unique_writes,
        "unique_read_write_ratio": _ratio(counts.unique_reads, counts.unique_writes),
        "total_reads": reads,
        "total_writes": writes,
        "reread_ratio": _ratio(counts.unique_reads, reads),
        "rewrite_ratio": _ratio(counts.unique_writes, writes),
        "global_memory_address_entropy": entropy_bits(exact),
        **{
            f"local_memory_address_entropy_{bits}": entropy_bits(histogram)
            for bits, histogram in enumerate(skipped, 1)
        },
        "global_accesses": counts.plain["global"],
        "local_accesses": counts.plain["local"],
        "constant_accesses": counts.plain["constant"],
    }

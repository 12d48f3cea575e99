"""The published AIWC tool's own numbers: its names, its order, its conventions.

Where its conventions differ from ours they are its own (METRICS, 'The published tool's own
numbers'); where they were defects they are not repeated.
"""

from __future__ import annotations

import math

from crosscast.characterization.engine.counts import Counts
from crosscast.characterization.instrumentation.instrumented import Instrumented
from crosscast.characterization.metrics import WINDOW, covering, windows
from crosscast.data.profiles import PUBLISHED_METRICS
from crosscast.profile import MetricValue

_LOW = (1 << WINDOW) - 1

Row = tuple[str, str, int | float]


def published_metrics(
    counts: Counts,
    metrics: dict[str, MetricValue],
    made: Instrumented,
    lines: list[int],
    group_items: int,
) -> tuple[Row, ...]:
    """Compute the rows of the published tool's CSV file."""
    own = {name: 0 if value is None else value for name, value in metrics.items()}
    plain = sum(counts.plain.values())
    instructions = plain + counts.private
    reads, writes = own["total_reads"], own["total_writes"]
    executions: dict[int, int] = {}
    for branch, n in counts.branch_executions.items():
        executions[lines[branch]] = executions.get(lines[branch], 0) + n
    yokota, linear = _branch_entropies(counts, made, lines)
    other: dict[str, int | float] = {
        "Freedom to Reorder": counts.order / instructions if instructions else 0.0,
        "Resource Pressure": instructions / own["work_items"],
        "Work-items per Work-group": group_items,
        "SIMD Operand Sum": sum(width * n for width, n in counts.widths.items()),
        "Median ITB": int(own["median_itb"]),
        "Median IPT": int(own["median_ipt"]),
        "Unique Memory Accesses": own["total_memory_footprint"],
        "Rereads": reads / own["unique_reads"] if own["unique_reads"] else 0.0,
        "Rewrites": writes / own["unique_writes"] if own["unique_writes"] else 0.0,
        "Relative Local Memory Usage": 100 * own["local_accesses"] / plain if plain else 0.0,
        "Relative Constant Memory Usage": 100 * own["constant_accesses"] / plain if plain else 0.0,
        "Total Unique Branch Instructions": sum(n > 0 for n in executions.values()),
        "90% Branch Instructions": covering(executions.values()),
        "Yokota Branch Entropy": yokota,
        "Average Linear Branch Entropy": linear,
    }
    return tuple(
        (
            row.name,
            row.category,
            other[row.name] if row.metric is None or row.name in other else own[row.metric],
        )
        for row in PUBLISHED_METRICS
    )


def _branch_entropies(counts: Counts, made: Instrumented, lines: list[int]) -> tuple[float, float]:
    """Both entropies over source lines, with the share of 1 bits inside each pattern as probability."""
    patterns: dict[int, dict[int, int]] = {}
    for branch in counts.branch_executions:
        line = lines[branch]
        if line in made.line_branches:
            patterns[line] = windows(counts.histories.get(made.line_branches[line], {}))
        else:
            # The tool's bit is 1 when the branch goes to its false successor.
            own = windows(counts.histories.get(branch, {}))
            patterns[line] = {pattern ^ _LOW: n for pattern, n in own.items()}
    yokota, linear, occurrences = [], [], 0
    for _, found in sorted(patterns.items()):
        for pattern, n in sorted(found.items()):
            p = pattern.bit_count() / WINDOW
            if p:
                yokota.append(-p * math.log2(p))
            linear.append(n * 2 * min(p, 1 - p))
            occurrences += n
    return math.fsum(yokota), math.fsum(linear) / occurrences if occurrences else 0.0

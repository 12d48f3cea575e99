"""The published AIWC tool's own numbers: its names, its order, its conventions.

Where its conventions differ from ours they are its own (METRICS, 'The published tool's own
numbers'); where they were defects they are not repeated.
"""

from __future__ import annotations

import math

from crosscast.characterization.engine.counts import Counts
from crosscast.characterization.instrumentation.instrumented import Instrumented
from crosscast.characterization.metrics import control
from crosscast.characterization.metrics.coverage import covering
from crosscast.profile import MetricValue

__all__ = ["Row", "published_metrics"]

_LOW = (1 << control.WINDOW) - 1

Row = tuple[str, str, int | float]


def published_metrics(
    counts: Counts,
    metrics: dict[str, MetricValue],
    made: Instrumented,
    lines: list[int],
    group_items: int,
) -> tuple[Row, ...]:
    """Compute the rows of the published tool's CSV file.

    Parameters
    ----------
    counts
        What the run counted, with histories of shared lines.
    metrics
        Our own metrics of the same launch.
    made
        The instrumented kernel.
    lines
        Source line of each static branch.
    group_items
        Work-items of a work-group.
    """
    own = {name: 0 if value is None else value for name, value in metrics.items()}
    plain = sum(counts.plain.values())
    instructions = plain + counts.private
    reads, writes = own["total_reads"], own["total_writes"]
    executions: dict[int, int] = {}
    for branch, n in counts.branch_executions.items():
        executions[lines[branch]] = executions.get(lines[branch], 0) + n
    yokota, linear = _branch_entropies(counts, made, lines)
    entropy = "local_memory_address_entropy_{}"
    compute: list[Row] = [
        ("Opcode", "Compute", own["opcode"]),
        ("Total Instruction Count", "Compute", own["total_instruction_count"]),
        ("Freedom to Reorder", "Compute", counts.order / instructions if instructions else 0.0),
        ("Resource Pressure", "Compute", instructions / own["work_items"]),
    ]
    parallelism: list[Row] = [
        (name, "Parallelism", value)
        for name, value in (
            ("Work-items", own["work_items"]),
            ("Work-groups", own["work_groups"]),
            ("Work-items per Work-group", group_items),
            ("SIMD Operand Sum", sum(width * n for width, n in counts.widths.items())),
            ("Total Barriers Hit", own["total_barriers_hit"]),
            ("Min ITB", own["min_itb"]),
            ("Max ITB", own["max_itb"]),
            ("Median ITB", int(own["median_itb"])),
            ("Min IPT", own["min_ipt"]),
            ("Max IPT", own["max_ipt"]),
            ("Median IPT", int(own["median_ipt"])),
            ("Max SIMD Width", own["max_simd_width"]),
            ("Mean SIMD Width", own["mean_simd_width"]),
            ("SD SIMD Width", own["sd_simd_width"]),
            ("Granularity", own["granularity"]),
            ("Barriers Per Instruction", own["barriers_per_instruction"]),
            ("Instructions Per Operand", own["instructions_per_operand"]),
        )
    ]
    memory: list[Row] = [
        (name, "Memory", value)
        for name, value in (
            ("Total Memory Footprint", own["total_memory_footprint"]),
            ("Unique Memory Accesses", own["total_memory_footprint"]),
            ("Unique Reads", own["unique_reads"]),
            ("Unique Writes", own["unique_writes"]),
            ("Unique Read/Write Ratio", own["unique_read_write_ratio"]),
            ("Total Reads", reads),
            ("Total Writes", writes),
            ("Rereads", reads / own["unique_reads"] if own["unique_reads"] else 0.0),
            ("Rewrites", writes / own["unique_writes"] if own["unique_writes"] else 0.0),
            ("90% Memory Footprint", own["footprint_90"]),
            ("Global Memory Address Entropy", own["global_memory_address_entropy"]),
            *((f"LMAE -- Skipped {n} LSBs", own[entropy.format(n)]) for n in range(1, 11)),
            ("Total Global Memory Accessed", own["global_accesses"]),
            ("Total Local Memory Accessed", own["local_accesses"]),
            ("Total Constant Memory Accessed", own["constant_accesses"]),
            ("Relative Local Memory Usage", 100 * own["local_accesses"] / plain if plain else 0.0),
            ("Relative Constant Memory Usage", 100 * own["constant_accesses"] / plain if plain else 0.0),
        )
    ]
    control_rows: list[Row] = [
        ("Total Unique Branch Instructions", "Control", sum(n > 0 for n in executions.values())),
        ("90% Branch Instructions", "Control", covering(executions.values())),
        # The tool files these two under Memory.
        ("Yokota Branch Entropy", "Memory", yokota),
        ("Average Linear Branch Entropy", "Memory", linear),
    ]
    return (*compute, *parallelism, *memory, *control_rows)


def _branch_entropies(counts: Counts, made: Instrumented, lines: list[int]) -> tuple[float, float]:
    """Both entropies over source lines, with the share of 1 bits inside each pattern as probability."""
    patterns: dict[int, dict[int, int]] = {}
    for branch in counts.branch_executions:
        line = lines[branch]
        if line in made.line_branches:
            patterns[line] = control.windows(counts.histories.get(made.line_branches[line], {}))
        else:
            # The tool's bit is 1 when the branch goes to its false successor.
            own = control.windows(counts.histories.get(branch, {}))
            patterns[line] = {pattern ^ _LOW: n for pattern, n in own.items()}
    yokota, linear, occurrences = [], [], 0
    for _, found in sorted(patterns.items()):
        for pattern, n in sorted(found.items()):
            p = pattern.bit_count() / control.WINDOW
            if p:
                yokota.append(-p * math.log2(p))
            linear.append(n * 2 * min(p, 1 - p))
            occurrences += n
    return math.fsum(yokota), math.fsum(linear) / occurrences if occurrences else 0.0

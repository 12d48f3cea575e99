"""Formulas of metrics from counts, as `docs/metrics.md` defines them; also of the published AIWC tool."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from crosscast.characterization.engine.counts import Counts, Outcomes
from crosscast.characterization.engine.layout import CLASSES, WINDOW
from crosscast.data.profiles import PUBLISHED_METRICS
from crosscast.profile import METRICS, MetricValue, Profile


def compute_metrics(counts: Counts, work_groups: int) -> dict[str, MetricValue]:
    """Compute the metrics of a launch with `work_groups` work-groups, in the order of `METRICS`."""
    values: dict[str, MetricValue] = {
        "opcode": covering(counts.opcodes.values()),
        "total_instruction_count": counts.instructions,
        **parallelism_metrics(counts, work_groups),
        **memory_metrics(counts),
        **control_metrics(counts),
    }
    return {metric.name: values[metric.name] for metric in METRICS}


def covering(counts: Iterable[int]) -> int:
    """Return the least number of `counts` that reach 90 % of their sum."""
    return covering_histogram(Counter(counts))


def covering_histogram(histogram: Mapping[int, int]) -> int:
    """Return `covering` of a histogram: the number of items with each count."""
    goal, reached, number = -(-9 * _weighted(histogram) // 10), 0, 0
    for count in sorted(histogram, reverse=True):
        if reached >= goal:
            break
        needed = min(histogram[count], -(-(goal - reached) // count))
        number += needed
        reached += needed * count
    return number


def median(histogram: Mapping[int, int]) -> int | float:
    """Return the median of the values of a histogram; the mean of the middle two if their number is even."""
    values = sorted(histogram)
    ends = list(itertools.accumulate(histogram[value] for value in values))
    low, high = (values[bisect.bisect(ends, rank)] for rank in ((ends[-1] - 1) // 2, ends[-1] // 2))
    return low if low == high else (low + high) / 2


def _spread(name: str, histogram: Mapping[int, int]) -> dict[str, MetricValue]:
    return {
        f"min_{name}": min(histogram),
        f"max_{name}": max(histogram),
        f"median_{name}": median(histogram),
    }


def parallelism_metrics(counts: Counts, work_groups: int) -> dict[str, MetricValue]:
    """Compute metrics of work-items, barriers, instructions between them, and vector widths."""
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


def entropy_bits(histogram: Mapping[int, int]) -> float:
    """Return the Shannon entropy, in bits, of a distribution given by the number of items with each count."""
    total = _weighted(histogram)
    terms = [n * count / total * math.log2(total / count) for count, n in histogram.items()] if total else []
    return math.fsum(terms)


def _entropies(histograms: Sequence[Mapping[int, int]]) -> list[float]:
    """Return the entropy of each; those of bytes of the same granule are alike."""
    entropies = [entropy_bits(histograms[0])]
    for before, histogram in itertools.pairwise(histograms):
        alike = histogram.items() == before.items()
        entropies.append(entropies[-1] if alike else entropy_bits(histogram))
    return entropies


def _weighted(histogram: Mapping[int, int]) -> int:
    return sum(map(operator.mul, histogram.keys(), histogram.values()))


def _ratio(numerator: int, denominator: int) -> float | None:
    return numerator / denominator if denominator else None


def memory_metrics(counts: Counts) -> dict[str, MetricValue]:
    """Compute footprints, reuse, and entropies of addresses."""
    reads, writes = sum(counts.reads.values()), sum(counts.writes.values())
    exact = counts.addresses[0]
    entropy, *skipped = _entropies(counts.addresses)
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
        "global_memory_address_entropy": entropy,
        **{f"local_memory_address_entropy_{bits}": of_level for bits, of_level in enumerate(skipped, 1)},
        "global_accesses": counts.plain["global"],
        "local_accesses": counts.plain["local"],
        "constant_accesses": counts.plain["constant"],
    }


def yokota_entropy(branches: Iterable[Outcomes]) -> float:
    """Return the entropy of 16-outcome patterns, in bits divided by 16, averaged by windows.

    In [0, 1]. Source: Yokota 2007; Shao & Brooks 2013.
    """
    weights, terms = 0, []
    for branch in branches:
        total = _weighted(branch.patterns)
        terms.append(total * _pattern_bits(branch.patterns, total) / WINDOW)
        weights += total
    return math.fsum(terms) / weights if weights else 0.0


_SPLIT = (1 << 17) + 1


def _pattern_bits(patterns: Mapping[int, int], total: int) -> float:
    """Return the entropy of patterns, rounded once: parts of terms times up to 2^17 are exact (Dekker)."""
    terms = [k / total * math.log2(total / k) for k in patterns]
    high = [term * _SPLIT - (term * _SPLIT - term) for term in terms]
    low, numbers = map(operator.sub, terms, high), patterns.values()
    return math.fsum(itertools.chain(map(operator.mul, numbers, high), map(operator.mul, numbers, low)))


def linear_entropy(branches: Sequence[Outcomes]) -> float:
    """Return the mean of 2 min(p, 1 - p), with p the share taken after the same 16 outcomes.

    In [0, 1]. Source: De Pestel, Eyerman & Eeckhout 2017.
    """
    followed = sum(branch.followed for branch in branches)
    return 2 * sum(branch.rarer for branch in branches) / followed if followed else 0.0


def control_metrics(counts: Counts) -> dict[str, MetricValue]:
    """Compute the number and predictability of branches."""
    executed = {branch: n for branch, n in counts.branch_executions.items() if n}
    outcomes = [counts.outcomes[branch] for branch in sorted(executed) if branch in counts.outcomes]
    return {
        "unique_branches": len(executed),
        "branches_90": covering(executed.values()),
        "yokota_branch_entropy": yokota_entropy(outcomes),
        "average_linear_branch_entropy": linear_entropy(outcomes),
    }


_LOW = (1 << WINDOW) - 1

Row = tuple[str, str, int | float]


def published_metrics(
    counts: Counts,
    metrics: dict[str, MetricValue],
    line_branches: Mapping[int, int],
    lines: list[int],
    group_items: int,
) -> tuple[Row, ...]:
    """Compute the rows of the published tool's CSV file."""
    values = {name: 0 if value is None else value for name, value in metrics.items()}
    plain = sum(counts.plain.values())
    instructions = plain + counts.private
    reads, writes = values["total_reads"], values["total_writes"]
    executions: Counter[int] = Counter()
    for branch, n in counts.branch_executions.items():
        executions[lines[branch]] += n
    yokota, linear = _branch_entropies(counts, line_branches, lines)
    computed: dict[str, int | float] = {
        "Freedom to Reorder": counts.order / instructions if instructions else 0.0,
        "Resource Pressure": instructions / values["work_items"],
        "Work-items per Work-group": group_items,
        "SIMD Operand Sum": sum(width * n for width, n in counts.widths.items()),
        "Median ITB": int(values["median_itb"]),
        "Median IPT": int(values["median_ipt"]),
        "Unique Memory Accesses": values["total_memory_footprint"],
        "Rereads": reads / values["unique_reads"] if values["unique_reads"] else 0.0,
        "Rewrites": writes / values["unique_writes"] if values["unique_writes"] else 0.0,
        "Relative Local Memory Usage": 100 * values["local_accesses"] / plain if plain else 0.0,
        "Relative Constant Memory Usage": 100 * values["constant_accesses"] / plain if plain else 0.0,
        "Total Unique Branch Instructions": sum(n > 0 for n in executions.values()),
        "90% Branch Instructions": covering(executions.values()),
        "Yokota Branch Entropy": yokota,
        "Average Linear Branch Entropy": linear,
    }
    return tuple(
        (row.name, row.category, computed[row.name] if row.name in computed else values[str(row.metric)])
        for row in PUBLISHED_METRICS
    )


def windows(history: Mapping[int, int]) -> dict[int, int]:
    """Count each pattern of 16 successive outcomes, the latest in the lowest bit."""
    patterns: Counter[int] = Counter()
    for sequence, n in history.items():
        if sequence > _LOW:
            patterns[sequence & _LOW] += n
    return patterns


def _branch_entropies(
    counts: Counts, line_branches: Mapping[int, int], lines: list[int]
) -> tuple[float, float]:
    """Return both entropies over source lines, with the share of 1 bits in each pattern as probability."""
    patterns: dict[int, dict[int, int]] = {}
    for branch in counts.branch_executions:
        line = lines[branch]
        if line in line_branches:
            patterns[line] = windows(counts.histories.get(line_branches[line], {}))
        else:
            # The tool's bit is 1 when the branch goes to its false successor.
            branch_patterns = windows(counts.histories.get(branch, {}))
            patterns[line] = {pattern ^ _LOW: n for pattern, n in branch_patterns.items()}
    yokota, linear, occurrences = [], [], 0
    for _, line_patterns in sorted(patterns.items()):
        for pattern, n in sorted(line_patterns.items()):
            p = pattern.bit_count() / WINDOW
            if p:
                yokota.append(-p * math.log2(p))
            linear.append(n * 2 * min(p, 1 - p))
            occurrences += n
    return math.fsum(yokota), math.fsum(linear) / occurrences if occurrences else 0.0


def instruction_mix(profiles: Iterable[Profile]) -> dict[str, float]:
    """Return the share of each class in all executed instructions of some launches, 0 to 1.

    ``sse``: instructions whose result is a vector; ``alu``: integers, comparisons, addresses and choices;
    ``mem``: loads, stores and atomics; ``fp``: real numbers; ``stack``: memory of a function taken from the
    stack; ``string``: copies and fills of memory; ``shift``: shifts and multiplications of integers;
    ``control``: branches, calls and barriers. They add up to one with what is none of them.

    Source: Moolchandani et al. 2022, Table 4, which counts instructions of a CPU; these are of LLVM's IR, as
    all counts of a profile.
    """
    total: Counter[str] = Counter()
    for profile in profiles:
        total.update(profile.instructions)
    instructions = total.total()
    return {name: total[name] / instructions for name in CLASSES} if instructions else {}

"""Metrics computed the slow way, from a written-down trace, straight from their definitions."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Address = tuple[Hashable, int]
"""A memory (a buffer, a variable, local memory) and a byte offset in it, which is aligned there."""

_WINDOW = 16


@dataclass
class Trace:
    """What a launch did, event by event."""

    reads: list[Address] = field(default_factory=list)
    writes: list[Address] = field(default_factory=list)
    outcomes: dict[Hashable, dict[Any, list[bool]]] = field(default_factory=dict)
    """Outcomes in order, by branch and work-group."""
    together: dict[Any, list[bool]] = field(default_factory=dict)
    """Outcomes of all branches in order, by work-group."""

    def branch(self, branch: Hashable, group: Hashable, outcome: object) -> bool:
        """Note an outcome of a branch, and return it."""
        self.outcomes.setdefault(branch, {}).setdefault(group, []).append(bool(outcome))
        self.together.setdefault(group, []).append(bool(outcome))
        return bool(outcome)


def entropy(counts: Iterable[int]) -> float:
    """Shannon entropy in bits of a distribution given by counts."""
    known = list(counts)
    total = sum(known)
    return -sum(n / total * math.log2(n / total) for n in known)


def least_covering(counts: Iterable[int]) -> int:
    """Least number of counts that reach 90 %, rounded up, of their sum."""
    known = sorted(counts, reverse=True)
    goal = -(-9 * sum(known) // 10)
    return next(n for n in range(len(known) + 1) if sum(known[:n]) >= goal)


def memory_metrics(reads: Sequence[Address], writes: Sequence[Address]) -> dict[str, float | None]:
    """Memory metrics of all accesses of a launch, without those by kind of memory."""
    accesses = Counter([*reads, *writes])
    unique_reads, unique_writes = len(set(reads)), len(set(writes))
    expected: dict[str, float | None] = {
        "total_memory_footprint": len(accesses),
        "footprint_90": least_covering(accesses.values()),
        "unique_reads": unique_reads,
        "unique_writes": unique_writes,
        "total_reads": len(reads),
        "total_writes": len(writes),
        "unique_read_write_ratio": unique_reads / unique_writes if unique_writes else None,
        "reread_ratio": unique_reads / len(reads) if reads else None,
        "rewrite_ratio": unique_writes / len(writes) if writes else None,
        "global_memory_address_entropy": entropy(accesses.values()),
    }
    for skipped in range(1, 11):
        lines: Counter[Address] = Counter()
        for (memory, offset), n in accesses.items():
            lines[memory, offset >> skipped] += n
        expected[f"local_memory_address_entropy_{skipped}"] = entropy(lines.values())
    return expected


def branch_metrics(outcomes: Mapping[Any, Mapping[Any, Sequence[bool]]]) -> dict[str, float]:
    """Control metrics, from the outcomes of each branch in each work-group."""
    weighted, weights, missed, known = 0.0, 0, 0, 0
    executions = [sum(map(len, groups.values())) for groups in outcomes.values()]
    for groups in outcomes.values():
        patterns: Counter[tuple[bool, ...]] = Counter()
        following: dict[tuple[bool, ...], Counter[bool]] = {}
        for history in groups.values():
            for end in range(_WINDOW, len(history) + 1):
                patterns[tuple(history[end - _WINDOW : end])] += 1
            for at in range(_WINDOW, len(history)):
                before = tuple(history[at - _WINDOW : at])
                following.setdefault(before, Counter())[history[at]] += 1
        windows = sum(patterns.values())
        weighted += windows * entropy(patterns.values()) / _WINDOW if windows else 0.0
        weights += windows
        for nexts in following.values():
            missed += 2 * min(nexts[True], nexts[False])
            known += sum(nexts.values())
    return {
        "unique_branches": len(executions),
        "branches_90": least_covering(executions),
        "yokota_branch_entropy": weighted / weights if weights else 0.0,
        "average_linear_branch_entropy": missed / known if known else 0.0,
    }


def published_entropies(lines: Iterable[Iterable[Sequence[bool]]]) -> tuple[float, float]:
    """Yokota and linear entropy by the published tool's conventions.

    Parameters
    ----------
    lines
        For each source line with branches, the outcomes in each work-group.
    """
    yokota, linear, occurrences = 0.0, 0.0, 0
    for groups in lines:
        patterns: Counter[tuple[bool, ...]] = Counter()
        for history in groups:
            bits = [not outcome for outcome in history]  # 1 where the branch goes to its false successor
            for end in range(_WINDOW, len(bits) + 1):
                patterns[tuple(bits[end - _WINDOW : end])] += 1
        for pattern, n in patterns.items():
            p = sum(pattern) / _WINDOW
            yokota -= p * math.log2(p) if p else 0
            linear += n * 2 * min(p, 1 - p)
            occurrences += n
    return yokota, linear / occurrences if occurrences else 0.0


def same_metrics(found: Mapping[str, float | None], expected: Mapping[str, float | None]) -> dict[str, Any]:
    """Metrics that differ, as (found, expected); reals may differ in the last digits."""
    different = {}
    for name, value in expected.items():
        other = found[name]
        if value is None or other is None or isinstance(value, int):
            equal = value == other
        else:
            equal = math.isclose(value, other, rel_tol=1e-11, abs_tol=1e-12)
        if not equal:
            different[name] = (other, value)
    return different

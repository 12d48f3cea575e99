"""Control metrics: how many branches, and how predictable.

A history is a table of outcome sequences behind a leading 1: 17 outcomes where 16 preceded the last
one, exactly 16 for the first full window of a work-group, fewer before that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from crosscast.characterization.counts import Counts
from crosscast.characterization.metrics.coverage import covering
from crosscast.profile import MetricValue

__all__ = ["WINDOW", "linear_entropy", "metrics", "windows", "yokota_entropy"]

WINDOW = 16
"""Outcomes of one history pattern."""

_FULL = 1 << WINDOW


def windows(history: Mapping[int, int]) -> dict[int, int]:
    """How often each pattern of 16 successive outcomes occurred, the latest in the lowest bit."""
    found: dict[int, int] = {}
    for sequence, count in history.items():
        if sequence >= _FULL:
            pattern = sequence & (_FULL - 1)
            found[pattern] = found.get(pattern, 0) + count
    return found


def yokota_entropy(histories: Mapping[int, Mapping[int, int]]) -> float:
    """Entropy of the 16-outcome patterns, in bits divided by 16, averaged by windows.

    In [0, 1]. Source: Yokota 2007; Shao & Brooks 2013.
    """
    weights, terms = 0, []
    for _, history in sorted(histories.items()):
        patterns = windows(history)
        total = sum(patterns.values())
        bits = math.fsum(n / total * math.log2(total / n) for _, n in sorted(patterns.items()))
        terms.append(total * bits / WINDOW)
        weights += total
    return math.fsum(terms) / weights if weights else 0.0


def linear_entropy(histories: Mapping[int, Mapping[int, int]]) -> float:
    """Mean of 2 min(p, 1 - p), with p the share taken after the same 16 outcomes.

    In [0, 1]. Source: De Pestel, Eyerman & Eeckhout 2017.
    """
    missed = occurrences = 0
    for history in histories.values():
        follows: dict[int, list[int]] = {}
        for sequence, count in history.items():
            if sequence >= 2 * _FULL:
                follows.setdefault(sequence >> 1, [0, 0])[sequence & 1] += count
        missed += sum(min(pair) for pair in follows.values())
        occurrences += sum(sum(pair) for pair in follows.values())
    return 2 * missed / occurrences if occurrences else 0.0


def metrics(counts: Counts) -> dict[str, MetricValue]:
    """Compute the metrics of this category."""
    executed = {branch: n for branch, n in counts.branch_executions.items() if n}
    own = {branch: counts.histories.get(branch, {}) for branch in executed}
    return {
        "unique_branches": len(executed),
        "branches_90": covering(executed.values()),
        "yokota_branch_entropy": yokota_entropy(own),
        "average_linear_branch_entropy": linear_entropy(own),
    }

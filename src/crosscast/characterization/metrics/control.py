"""Control metrics: how many branches, and how predictable.

A history is a table of outcome sequences behind a leading 1: 17 outcomes where 16 preceded the last
one, exactly 16 for the first full window of a work-group, fewer before that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from crosscast.characterization.engine.counts import Counts
from crosscast.characterization.metrics.coverage import covering
from crosscast.profile import MetricValue

WINDOW = 16
"""Outcomes of one history pattern."""

_FULL = 1 << WINDOW


def windows(history: Mapping[int, int]) -> dict[int, int]:
    """How often each pattern of 16 successive outcomes occurred, the latest in the lowest bit."""
    sequences, counts = _arrays(history)
    full = sequences >= _FULL
    patterns, position = np.unique(sequences[full] & (_FULL - 1), return_inverse=True)
    totals = np.zeros(len(patterns), np.int64)
    np.add.at(totals, position, counts[full])
    return dict(zip(patterns.tolist(), totals.tolist(), strict=True))


def _arrays(history: Mapping[int, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    sequences = np.fromiter(history.keys(), np.int64, len(history))
    return sequences, np.fromiter(history.values(), np.int64, len(history))


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
        sequences, counts = _arrays(history)
        full = sequences >= 2 * _FULL
        past, position = np.unique(sequences[full] >> 1, return_inverse=True)
        outcomes = np.zeros((len(past), 2), np.int64)
        np.add.at(outcomes, (position, sequences[full] & 1), counts[full])
        missed += int(outcomes.min(axis=1).sum())
        occurrences += int(outcomes.sum())
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

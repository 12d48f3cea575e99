"""How few of many suffice to cover 90 %."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def _share(total: int) -> int:
    """Return ceil(0.9 * total), exactly."""
    return -(-9 * total // 10)


def covering(counts: Iterable[int]) -> int:
    """Least number of `counts` that together reach 90 % of their sum."""
    ordered = sorted(counts, reverse=True)
    goal, reached = _share(sum(ordered)), 0
    for number, count in enumerate(ordered):
        if reached >= goal:
            return number
        reached += count
    return len(ordered)


def covering_histogram(histogram: Mapping[int, int]) -> int:
    """Like `covering`, for a histogram: how many items have each count."""
    goal, reached, number = _share(sum(c * n for c, n in histogram.items())), 0, 0
    for count in sorted(histogram, reverse=True):
        if reached >= goal:
            break
        needed = min(histogram[count], -(-(goal - reached) // count))
        number += needed
        reached += needed * count
    return number

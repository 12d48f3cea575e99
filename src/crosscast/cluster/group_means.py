"""Means by group."""

from __future__ import annotations

import numpy as np

from crosscast.cluster.jobs import Integers, Reals

__all__ = ["group_means"]


def group_means(group: Integers, values: Reals, groups: int) -> tuple[list[int], list[float | None]]:
    """Number and mean of the values of each group.

    Parameters
    ----------
    group
        Group of each value, from 0, of shape ``(n,)``.
    values
        The values, of shape ``(n,)``.
    groups
        How many groups there are.

    Returns
    -------
    tuple
        How many values each group has, and their mean; ``None`` where there is none.

    Examples
    --------
    >>> group_means(np.array([0, 2, 0]), np.array([1.0, 5.0, 2.0]), 3)
    ([2, 0, 1], [1.5, None, 5.0])
    """
    counts = np.bincount(group, minlength=groups).tolist()
    sums = np.bincount(group, weights=values, minlength=groups).tolist()
    return counts, [each / count if count else None for each, count in zip(sums, counts, strict=True)]

"""How alike the orders of configurations along two frontiers are (Bailey et al. 2014, section III-B)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosscast.arrays import Integers, Reals

__all__ = ["dissimilarities", "rank_correlation", "rank_correlations"]


def rank_correlation(first: Integers, second: Integers) -> float:
    """Kendall's tau between the orders of the configurations that two frontiers share.

    Parameters
    ----------
    first, second
        Numbers of the configurations on each frontier, in its order; each at most once.

    Returns
    -------
    float
        1 where the orders agree, -1 where one is the other backwards; NaN for fewer than two shared
        configurations, which have no order.

    Examples
    --------
    >>> rank_correlation(np.array([7, 1, 2, 3]), np.array([1, 3, 2, 9]))  # doctest: +ELLIPSIS
    0.333...
    """
    # Imported here: predicting needs it not.
    from scipy.stats import kendalltau

    _, there, here = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    if len(there) < 2:
        return float("nan")
    if (np.argsort(there) == np.argsort(here)).all():
        return 1.0
    return float(kendalltau(there, here).statistic)


def rank_correlations(frontiers: Sequence[Integers]) -> Reals:
    """`rank_correlation` of each two of ``n`` frontiers, of shape ``(n, n)``; 1 of each with itself."""
    found = np.eye(len(frontiers))
    for row, first in enumerate(frontiers):
        for column in range(row):
            found[row, column] = found[column, row] = rank_correlation(first, frontiers[column])
    return found


def dissimilarities(correlations: Reals) -> Reals:
    """``(1 - tau) / 2``: 0 for the same order, 1 for the opposite one, of the same shape.

    Two frontiers that share fewer than two configurations are 1/2 apart, as orders that have nothing to do
    with each other.
    """
    apart: Reals = (1 - np.where(np.isnan(correlations), 0.0, correlations)) / 2
    return apart

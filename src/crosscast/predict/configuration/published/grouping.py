"""Groups of kernels whose frontiers are alike."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Integers, Reals

__all__ = ["groupings", "nothing_to_group"]

_SAME = 1e-9


def nothing_to_group(apart: Reals) -> bool:
    """Whether all kernels are the same to a dissimilarity, of shape ``(n, n)``."""
    return bool((apart <= _SAME).all())


def groupings(apart: Reals, most: int) -> tuple[Integers, ...]:
    """Groups of ``n`` kernels, for each number of groups from 1 on.

    By average linkage: the paper takes relational clustering from R's fossil, which works on dissimilarities
    alone too, but starts at random and may end elsewhere each time. The groups of one number are parts of
    those of a smaller one.

    Parameters
    ----------
    apart
        Dissimilarities, of shape ``(n, n)``; symmetric, 0 on the diagonal.
    most
        Largest number of groups; fewer if there are fewer kernels, one if all kernels are the same.

    Returns
    -------
    tuple
        For each number of groups the group of each kernel, of shape ``(n,)``; numbered in the order in which
        they appear.
    """
    # Imported here: predicting needs it not.
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    n = len(apart)
    if n == 1 or nothing_to_group(apart):
        return (np.zeros(n, np.int64),)
    joined = linkage(squareform(apart, checks=False), "average")
    # The whole tree is cut: where numbers of groups are asked for, SciPy 1.17 mistakes the last one.
    cut = cut_tree(joined)[:, ::-1].astype(np.int64)
    return tuple(_in_order(cut[:, column]) for column in range(min(most, n)))


def _in_order(labels: Integers) -> Integers:
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)

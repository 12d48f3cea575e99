"""The pairs that are worth most together: a matching of maximum weight in a graph."""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError, MissingExtraError

__all__ = ["best_matching"]

_STEPS = float(1 << 40)
"""Weights are whole numbers of so many steps to the largest, as the matching needs exact sums."""


def best_matching(weights: Reals) -> list[tuple[int, int]]:
    """Pairs of different nodes, none in two of them, whose weights add up to the most.

    It is exact (Edmonds' blossoms), but for weights that are rounded to a share of 1e-12 of the largest.

    Parameters
    ----------
    weights
        Weight of each pair, of shape ``(n, n)``; the upper triangle counts. What is not above 0, or is not a
        number, is never a pair.

    Returns
    -------
    list of tuple
        Pairs, the lower place first, sorted.

    Raises
    ------
    InputError
        If the weights are not square, or one is infinite.
    MissingExtraError
        If rustworkx is not installed.
    """
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise InputError(f"weights: expected shape (n, n), found {weights.shape}")
    if np.isinf(weights).any():
        raise InputError("weights: expected finite numbers, found infinity")
    try:
        from rustworkx import PyGraph, max_weight_matching
    except ImportError as error:
        raise MissingExtraError("corun", "pairing jobs") from error
    upper = np.triu(np.nan_to_num(weights), 1)
    first, second = np.nonzero(upper > 0)
    if not len(first):
        return []
    steps = np.maximum(np.round(upper[first, second] / upper.max() * _STEPS), 1.0).astype(np.int64)
    graph = PyGraph(multigraph=False)
    graph.add_nodes_from(range(len(weights)))
    graph.add_edges_from(list(zip(first.tolist(), second.tolist(), steps.tolist(), strict=True)))
    found = max_weight_matching(graph, max_cardinality=False, weight_fn=int)
    return sorted((min(pair), max(pair)) for pair in found)

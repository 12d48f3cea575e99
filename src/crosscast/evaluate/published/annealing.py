"""Tuning by simulated annealing (paper 000, section III-B): the least error out of the bag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import MissingExtraError
from crosscast.evaluate.published.surface import Surface

__all__ = ["MOST_TREES", "Search", "anneal", "tree_counts"]

MOST_TREES = 10_000
_TREE_STEP = 500
_FEWEST_TREES = 10


@dataclass(frozen=True)
class Search:
    """A search, step by step.

    Parameters
    ----------
    trees, tried, node_size
        Parameters of each step, of equal length.
    error
        Mean square error out of the bag at each step.
    """

    trees: list[int]
    tried: list[int]
    node_size: list[int]
    error: list[float]

    @property
    def best(self) -> int:
        """Number of the step with the least error, the first of equals."""
        return int(np.argmin(self.error))


def tree_counts() -> list[int]:
    """Numbers of trees that are searched: from 10 to 10,000 by 500."""
    return list(range(_FEWEST_TREES, MOST_TREES, _TREE_STEP))


def anneal(surface: Surface, start: tuple[int, int, int], steps: int, seed: int) -> Search:
    """Search the surface from a start.

    The published optimiser is that of R's package ``optimization``; here it is the generalised annealing of
    ``scipy.optimize.dual_annealing`` without its local search, which needs a surface without steps.

    Parameters
    ----------
    surface
        Error over the parameters.
    start
        Trees, tried features and node size to start with.
    steps
        How many errors are asked for, at most.
    seed
        Start of all random numbers.

    Raises
    ------
    MissingExtraError
        If scipy is not installed.
    """
    dual_annealing = _dual_annealing()
    counts, sizes = tree_counts(), sorted(surface.node_sizes)
    search = Search([], [], [], [])

    def cost(point: Reals) -> float:
        trees = counts[min(int(point[0]), len(counts) - 1)]
        tried = min(1 + int(point[1]), surface.features)
        node_size = sizes[min(int(point[2]), len(sizes) - 1)]
        error = surface.error(trees, tried, node_size)
        search.trees.append(trees)
        search.tried.append(tried)
        search.node_size.append(node_size)
        search.error.append(error)
        return error

    # A unit cell for each value, so that all are equally likely.
    widths = (len(counts), surface.features, len(sizes))
    first = np.array(
        [
            float(np.argmin(np.abs(np.array(counts) - start[0]))),
            float(min(start[1], surface.features) - 1),
            float(np.argmin(np.abs(np.array(sizes) - start[2]))),
        ]
    )
    dual_annealing(
        cost,
        bounds=[(0.0, float(width)) for width in widths],
        x0=first + 0.5,
        maxfun=steps,
        no_local_search=True,
        seed=np.random.default_rng(seed),
    )
    return search


def _dual_annealing() -> Callable[..., object]:
    try:
        from scipy.optimize import dual_annealing
    except ImportError as error:
        raise MissingExtraError("train", "tuning by annealing") from error
    found: Callable[..., object] = dual_annealing
    return found

"""Figures 1 and 2: error out of the bag over the forest's parameters, and the search for its least."""

from __future__ import annotations

from dataclasses import dataclass

from crosscast.evaluate.published.annealing import MOST_TREES, Search, anneal
from crosscast.evaluate.published.headline import NODE_SIZE, TRIED
from crosscast.evaluate.published.runs import Runs
from crosscast.evaluate.published.surface import Surface

__all__ = ["NODE_SIZES", "START", "Tuning", "tune"]

NODE_SIZES = tuple(range(1, 51))
START = (500, 32, 9)
"""Where the paper starts (section III-C), and its fixed node size."""

_RUNS_PER_CELL = 10
_FIGURE_1_TREES = 300
_FIGURE_2_TREES = (10, 30, 100, 300, 500, 1000, 3000, MOST_TREES)


@dataclass(frozen=True)
class Tuning:
    """Errors are mean squares of the logarithm, out of the bag.

    Parameters
    ----------
    rows
        Runs that were fitted to: ten a cell, as in the published scripts of these two figures.
    grown
        Trees that were grown for each number of tried features; what lies beyond goes on along 1 / trees.
    node_size_errors
        Figure 1: error for each node size from 1 on, with 300 trees and 30 features tried.
    tried, trees
        Figure 2: its axes.
    heat
        Figure 2: error for each number of trees (row) and tried features (column), with node size 9.
    search
        Steps of the search over all three parameters.
    """

    rows: int
    grown: int
    node_size_errors: list[float]
    tried: list[int]
    trees: list[int]
    heat: list[list[float]]
    search: Search


def tune(runs: Runs, grown: int, steps: int, seed: int) -> Tuning:
    """Take the errors, and search for the least.

    Parameters
    ----------
    runs
        The runs.
    grown
        Trees that are grown for each number of tried features.
    steps
        Steps of the search.
    seed
        Start of all random numbers.
    """
    sample = runs.sample(_RUNS_PER_CELL, seed)
    surface = Surface(sample.rows(), grown, NODE_SIZES, seed)
    tried = list(range(1, surface.features + 1))
    return Tuning(
        rows=len(sample),
        grown=grown,
        node_size_errors=[surface.error(_FIGURE_1_TREES, TRIED, size) for size in NODE_SIZES],
        tried=tried,
        trees=list(_FIGURE_2_TREES),
        heat=[[surface.error(trees, each, NODE_SIZE) for each in tried] for trees in _FIGURE_2_TREES],
        search=anneal(surface, START, steps, seed),
    )

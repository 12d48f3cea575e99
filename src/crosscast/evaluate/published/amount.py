"""How much work the study does: quick enough to be asked for, or as much as the paper did."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PAPER", "QUICK", "USUAL", "Amount"]


@dataclass(frozen=True)
class Amount:
    """Numbers of trees, samples and steps.

    Parameters
    ----------
    forest_trees
        Trees of the final forest, and of the one for energy.
    honest_trees
        Trees of each forest that leaves an application out.
    surface_trees
        Trees grown for each number of tried features, in the search over all three parameters.
    steps
        Steps of that search.
    omitted_trees
        Trees grown for each number of tried features, with one kernel left out.
    omitted_steps
        Steps of the search with one kernel left out.
    samples
        Samples for each number of kernels in Algorithm 2.
    sample_trees
        Trees of each of its forests.
    sample_counts
        How many numbers of kernels it takes, of all.
    """

    forest_trees: int
    honest_trees: int
    surface_trees: int
    steps: int
    omitted_trees: int
    omitted_steps: int
    samples: int
    sample_trees: int
    sample_counts: int


QUICK = Amount(50, 10, 10, 20, 5, 5, 2, 5, 6)
"""To see that all of it works: some ten seconds on the published data."""

USUAL = Amount(505, 60, 60, 100, 16, 30, 12, 12, 13)
"""About two minutes on the published data."""

PAPER = Amount(505, 505, 505, 500, 200, 100, 500, 505, 10_000)
"""As many trees and samples as the paper's; hours."""

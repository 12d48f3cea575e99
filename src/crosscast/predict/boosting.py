"""Gradient boosting of trees on histograms, as scikit-learn has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.grid import Grid
from crosscast.predict.grown import trees_of_boosting
from crosscast.predict.trees import Trees, constant, joined
from crosscast.predict.two_parts import FittedTrees, TwoParts, two_parts

__all__ = ["Boosting"]

_GROWING = frozenset(
    (
        "instructions",
        "steps_on_16",
        "steps_on_256",
        "steps_on_4096",
        "steps_on_65536",
        "instructions_per_item",
        "footprint",
        "accesses",
    )
)
"""Features with which the level may grow but not fall: more work or more data never takes less time."""


@dataclass(frozen=True)
class Boosting:
    """Boosted trees for the level, and for each main direction in which preferences of devices vary.

    The directions are the first principal components of the preferences of the training kernels.

    Parameters
    ----------
    rounds
        Trees for each of these.
    rate
        How much of what is left each tree takes away.
    leaves
        Leaves of a tree, at most.
    least
        Kernels in a leaf, at least.
    directions
        How many directions, at most.
    """

    rounds: int = 100
    rate: float = 0.05
    leaves: int = 4
    least: int = 5
    directions: int = 3

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "boosting"

    def fit(self, grid: Grid, seed: int) -> FittedTrees:
        """Fit it to a grid that may have cells without a time.

        Raises
        ------
        InputError
            If the grid has no time, or none on a device, or its profiles share no metric.
        MissingExtraError
            If scikit-learn is not installed.
        """
        parts = two_parts(grid)
        d = len(grid.devices)
        growing = [int(parts.features.names[place] in _GROWING) for place in parts.level_places]
        level = self._boosted(parts, parts.level_places, parts.level, seed, growing)
        mean = np.average(parts.preference, axis=0, weights=parts.weights)
        scores, axes = _principal(parts.preference - mean, min(self.directions, d - 1))
        preferences = [
            self._boosted(parts, parts.preference_places, score, seed).onto(axis[None, :])
            for score, axis in zip(scores.T, axes, strict=True)
        ]
        everywhere = level.onto(np.ones((1, d)))
        return FittedTrees(parts.features, joined([everywhere, constant(mean), *preferences]))

    def _boosted(
        self,
        parts: TwoParts,
        places: list[int],
        wanted: Reals,
        seed: int,
        growing: list[int] | None = None,
    ) -> Trees:
        from crosscast.predict.scikit import HistGradientBoostingRegressor, threadpool_limits

        model = HistGradientBoostingRegressor(
            max_iter=self.rounds,
            learning_rate=self.rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.least,
            l2_regularization=1.0,
            monotonic_cst=growing,
            early_stopping=False,
            random_state=seed,
        )
        # A grid has some hundred rows: threads would wait for each other longer than they work.
        with threadpool_limits(1):
            model.fit(parts.rows[:, places], wanted, sample_weight=parts.weights)
        return trees_of_boosting(model).reading(places)


def _principal(rows: Reals, count: int) -> tuple[Reals, Reals]:
    """First principal directions ``(count, d)`` of rows, behind the rows' scores on them, ``(n, count)``."""
    _, _, axes = np.linalg.svd(rows, full_matrices=False)
    first: Reals = axes[:count]
    return rows @ first.T, first

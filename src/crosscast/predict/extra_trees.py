"""Extremely randomized trees (Geurts, Ernst and Wehenkel 2006, doi:10.1007/s10994-006-6226-1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.predict.grid import Grid
from crosscast.predict.grown import trees_of_forest
from crosscast.predict.trees import Trees, joined
from crosscast.predict.two_parts import FittedTrees, TwoParts, two_parts

__all__ = ["ExtraTrees"]


@dataclass(frozen=True)
class ExtraTrees:
    """Two forests of extremely randomized trees: one for the level, one for the preference of devices.

    How they are grown is not tuned to a grid: half or twice each number changes the error on held-out
    applications by a few per cent, and less than the choice among so few applications would cost.

    Parameters
    ----------
    trees
        Trees of each forest.
    level_leaf, preference_leaf
        Kernels in a leaf, at least.
    """

    trees: int = 150
    level_leaf: int = 2
    preference_leaf: int = 4

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "extra-trees"

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
        seeds = np.random.default_rng(seed).integers(2**31, size=2).tolist()
        level = self._level(parts, seeds[0]).onto(np.ones((1, len(grid.devices))))
        return FittedTrees(parts.features, joined([level, self._preference(parts, seeds[1])]))

    def _level(self, parts: TwoParts, seed: int) -> Trees:
        from crosscast.predict.scikit import ExtraTreesRegressor

        places = parts.level_places
        forest = ExtraTreesRegressor(
            self.trees, min_samples_leaf=self.level_leaf, max_features=0.5, random_state=seed
        )
        forest.fit(parts.rows[:, places], parts.level, sample_weight=parts.weights)
        return trees_of_forest(forest).reading(places)

    def _preference(self, parts: TwoParts, seed: int) -> Trees:
        from crosscast.predict.scikit import ExtraTreesRegressor

        places = parts.preference_places
        forest = ExtraTreesRegressor(self.trees, min_samples_leaf=self.preference_leaf, random_state=seed)
        wanted = parts.preference if parts.preference.shape[1] > 1 else parts.preference[:, 0]
        forest.fit(parts.rows[:, places], wanted, sample_weight=parts.weights)
        return trees_of_forest(forest).reading(places)

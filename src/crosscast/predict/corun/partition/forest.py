"""A random forest on a member's own times and the mean of the others', as papers of co-running have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.predict.corun.partition.features import own_and_mean
from crosscast.predict.corun.partition.learner import Amount, Rows, some_rows
from crosscast.predict.grown import trees_of_forest
from crosscast.predict.stored import State
from crosscast.predict.trees import Trees

__all__ = ["Forest", "LearnedForest"]


@dataclass(frozen=True)
class Forest:
    """The mean over the trees, with scikit-learn's defaults.

    Paper 004 has no parts of GPUs; this is its kind of model, on what is known of the member itself and of
    the others together.
    """

    name: ClassVar[str] = "published-forest"
    choices: ClassVar[int] = 1

    def fit(self, rows: Rows, amount: Amount, seed: int, choice: int = 0) -> LearnedForest:
        """Grow it.

        Raises
        ------
        MissingExtraError
            If scikit-learn is not installed.
        """
        from crosscast.predict.scikit import RandomForestRegressor

        some = some_rows(rows, amount.tree_rows, seed)
        forest = RandomForestRegressor(amount.trees, random_state=seed)
        forest.fit(some.features[:, own_and_mean(rows.levels)], some.alone)
        return LearnedForest(rows.levels, trees_of_forest(forest))

    def tried(self, rows: Rows, features: Reals, amount: Amount, seed: int) -> Reals:
        """What it predicts, of shape ``(1, r, s)``."""
        return self.fit(rows, amount, seed).predict(features)[None]


@dataclass(frozen=True, eq=False)
class LearnedForest:
    """Trees on those features of so many levels that the forest looks at."""

    levels: int
    trees: Trees
    form: ClassVar[str] = "forest"

    def predict(self, features: Reals) -> Reals:
        """Mean over the trees."""
        return self.trees.sum(features[:, own_and_mean(self.levels)])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return self.trees.state()

    @classmethod
    def from_state(cls, state: State, levels: int) -> LearnedForest:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        return cls(levels, Trees.from_state(state, own_and_mean(levels).stop))

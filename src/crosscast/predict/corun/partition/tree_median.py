"""Extra trees whose prediction is the median over the trees, as targets are of a few jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.predict.corun.partition.features import feature_count
from crosscast.predict.corun.partition.learner import Amount, Rows, some_rows
from crosscast.predict.grown import trees_of_tree
from crosscast.predict.stored import State
from crosscast.predict.trees import Trees, joined

__all__ = ["TreeMedian", "grown_median"]


def grown_median(rows: Rows, amount: Amount, seed: int) -> TreeMedian:
    """Grow trees whose leaves are single members.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    from crosscast.predict.scikit import ExtraTreesRegressor

    some = some_rows(rows, amount.tree_rows, seed)
    forest = ExtraTreesRegressor(amount.trees, random_state=seed).fit(some.features, some.alone)
    return TreeMedian(joined([trees_of_tree(each) for each in forest.estimators_]))


@dataclass(frozen=True, eq=False)
class TreeMedian:
    """Trees, each of which proposes what a member that it has seen does.

    A mean over the proposals lies between jobs, where no job is; the median is of one of them, and the least
    wrong in absolute error.
    """

    trees: Trees

    def predict(self, features: Reals) -> Reals:
        """Median over the trees, of shape ``(r, s)``."""
        median: Reals = np.median(self.trees.each(features), axis=0)
        return median

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return self.trees.state()

    @classmethod
    def from_state(cls, state: State, levels: int) -> TreeMedian:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        return cls(Trees.from_state(state, feature_count(levels)))

"""Which features decide: the paths of bags through a decision tree (paper 004, section 6.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.predict.corun.published.kept import Grown
from crosscast.predict.corun.published.size_predictor import SizePredictor
from crosscast.predict.trees import Trees
from crosscast.tables.corun.solo import Solo

__all__ = ["DecisionPaths", "decision_paths", "splits_passed"]


@dataclass(frozen=True, eq=False)
class DecisionPaths:
    """How often the features of a tree decide on the way of ``b`` bags.

    Parameters
    ----------
    features
        Names of the ``k`` features, whichever member they are of.
    times
        Splits at each feature on the path of each bag, of shape ``(b, k)``: figure 10.
    """

    features: tuple[str, ...]
    times: Integers

    @property
    def share(self) -> Reals:
        """Share of the bags on whose path each feature is, of shape ``(k,)``: figure 9."""
        share: Reals = (self.times > 0).mean(axis=0)
        return share


def decision_paths(
    predictor: SizePredictor, bags: Sequence[tuple[Solo, ...]], target: str = "time_s"
) -> DecisionPaths:
    """Follow bags through the decision tree of a target.

    Parameters
    ----------
    predictor
        Predictor of bags of their size.
    bags
        ``b`` bags, at least one.
    target
        ``time_s``, ``power_w`` or ``slowdown``; of the last, the path of the member that takes longest alone.

    Raises
    ------
    InputError
        If it does not predict the target by one tree.
    """
    fitted = predictor.targets.get(target)
    if fitted is None or not isinstance(fitted.regressor, Grown):
        raise InputError(f"{target}: expected a target that a decision tree predicts, found none")
    trees = fitted.regressor.trees
    if (trees.root >= 0).sum() > 1:
        raise InputError(f"{target}: expected one decision tree, found {int((trees.root >= 0).sum())}")
    rows, _ = predictor.rows(bags)
    titles = predictor.columns.titles
    seen = rows[:, 0, fitted.places(len(titles), predictor.members)]
    passed = splits_passed(trees, seen).reshape(len(bags), predictor.members, -1).sum(axis=1)
    return DecisionPaths(tuple(titles[column] for column in fitted.columns), passed)


def splits_passed(trees: Trees, rows: Reals) -> Integers:
    """How many splits at each feature each row passes, of all trees together.

    Parameters
    ----------
    trees
        The trees.
    rows
        Features, of shape ``(n, f)``.

    Returns
    -------
    array
        Of shape ``(n, f)``.
    """
    singles = rows.astype(np.float32)
    passed = np.zeros(rows.shape, dtype=np.int64)
    row = np.tile(np.arange(len(rows)), len(trees.root))
    at = np.repeat(trees.root, len(rows))
    while True:
        row, at = row[at >= 0], at[at >= 0]
        if not len(at):
            return passed
        feature = trees.feature[at]
        np.add.at(passed, (row, feature), 1)
        left = singles[row, feature] <= trees.threshold[at]
        at = np.where(left, trees.left[at], trees.right[at])

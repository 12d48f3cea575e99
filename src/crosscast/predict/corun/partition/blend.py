"""Crosscast's own way: between the median of trees, which know jobs, and a ridge, which reaches new ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.corun.partition.learner import Amount, Rows
from crosscast.predict.corun.partition.ridge import Ridge, fitted_ridge
from crosscast.predict.corun.partition.tree_median import TreeMedian, grown_median
from crosscast.predict.state import kept_reals
from crosscast.predict.stored import State, arrays_of

__all__ = ["Blend", "LearnedBlend"]

_GAMMAS = (0.01, 0.03, 0.1)
_WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
_WAYS = tuple(product(_GAMMAS, _WEIGHTS))


@dataclass(frozen=True)
class Blend:
    """A mean of both, with a weight and a width of Gaussians that do best on what is left out in training."""

    name: ClassVar[str] = "partition"
    choices: ClassVar[int] = len(_WAYS)

    def fit(self, rows: Rows, amount: Amount, seed: int, choice: int) -> LearnedBlend:
        """Fit both.

        Raises
        ------
        MissingExtraError
            If scikit-learn is not installed.
        """
        gamma, weight = _WAYS[choice]
        return LearnedBlend(grown_median(rows, amount, seed), fitted_ridge(rows, amount, seed, gamma), weight)

    def tried(self, rows: Rows, features: Reals, amount: Amount, seed: int) -> Reals:
        """What it predicts with each weight and width, of shape ``(choices, r, s)``."""
        median = grown_median(rows, amount, seed).predict(features)
        smooth = {gamma: fitted_ridge(rows, amount, seed, gamma).predict(features) for gamma in _GAMMAS}
        return np.stack([_between(median, smooth[gamma], weight) for gamma, weight in _WAYS])


def _between(median: Reals, smooth: Reals, weight: float) -> Reals:
    return (1.0 - weight) * median + weight * smooth


@dataclass(frozen=True, eq=False)
class LearnedBlend:
    """Both, and the weight of the ridge, from 0 to 1."""

    median: TreeMedian
    ridge: Ridge
    weight: float
    form: ClassVar[str] = "blend"

    def predict(self, features: Reals) -> Reals:
        """The mean of both, of shape ``(r, s)``."""
        return _between(self.median.predict(features), self.ridge.predict(features), self.weight)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        parts = {"median": self.median.state(), "ridge": self.ridge.state()}
        arrays = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.items()}
        return {**arrays, "weight": np.array([self.weight])}

    @classmethod
    def from_state(cls, state: State, levels: int) -> LearnedBlend:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or they do not fit each other.
        """
        weight = kept_reals(state, "weight", 1)
        if weight.shape != (1,) or not 0 <= weight[0] <= 1:
            raise InputError("model: weight: expected one number of 0 to 1, found others")
        median = TreeMedian.from_state(arrays_of(state, "median"), levels)
        ridge = Ridge.from_state(arrays_of(state, "ridge"), levels)
        if median.trees.value.shape[1] != len(ridge.level):
            raise InputError(
                f"model: leaf_value: expected {len(ridge.level)} outputs, found {median.trees.value.shape[1]}"
            )
        return cls(median, ridge, float(weight[0]))

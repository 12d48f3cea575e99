"""Kernel ridge regression with Gaussians of the distance: smooth, so that it reaches new jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.corun.partition.features import feature_count
from crosscast.predict.corun.partition.learner import Amount, Rows, some_rows
from crosscast.predict.state import kept_reals
from crosscast.predict.stored import State

__all__ = ["Ridge", "fitted_ridge"]

_PENALTY = 0.3
_TINY = 1e-9


def fitted_ridge(rows: Rows, amount: Amount, seed: int, gamma: float) -> Ridge:
    """Fit it to some of the members.

    Parameters
    ----------
    rows, amount
        Members, and how many of them are taken.
    seed
        Start of all random numbers.
    gamma
        How fast the likeness of two members falls with the squared distance of their standard scores.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    from crosscast.predict.scikit import KernelRidge

    centre, spread = rows.features.mean(axis=0), rows.features.std(axis=0) + _TINY
    some = some_rows(rows, amount.ridge_rows, seed)
    vectors = (some.features - centre) / spread
    level = rows.alone.mean(axis=0)
    fitted = KernelRidge(alpha=_PENALTY, kernel="rbf", gamma=gamma).fit(vectors, some.alone - level)
    return Ridge(centre, spread, vectors, fitted.dual_coef_, level, gamma)


@dataclass(frozen=True, eq=False)
class Ridge:
    """A sum of Gaussians.

    Parameters
    ----------
    centre, spread
        Mean and standard deviation of each feature, of shape ``(f,)``.
    vectors
        Standard scores of the ``m`` members that it learned from, of shape ``(m, f)``.
    slopes
        What likeness to each adds, of shape ``(m, s)``.
    level
        What is predicted far from all, of shape ``(s,)``.
    gamma
        How fast likeness falls with the squared distance.
    """

    centre: Reals
    spread: Reals
    vectors: Reals
    slopes: Reals
    level: Reals
    gamma: float

    def predict(self, features: Reals) -> Reals:
        """Relative times, held to 0 to 1, of shape ``(r, s)``."""
        scores = (features - self.centre) / self.spread
        sums = (scores**2).sum(axis=1)[:, None] + (self.vectors**2).sum(axis=1)
        squares = np.maximum(sums - 2.0 * (scores @ self.vectors.T), 0.0)
        values: Reals = np.exp(-self.gamma * squares) @ self.slopes + self.level
        return values.clip(0.0, 1.0)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {**vars(self), "gamma": np.array([self.gamma])}

    @classmethod
    def from_state(cls, state: State, levels: int) -> Ridge:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or they do not fit each other.
        """
        axes = {"centre": 1, "spread": 1, "vectors": 2, "slopes": 2, "level": 1, "gamma": 1}
        kept = {name: kept_reals(state, name, count) for name, count in axes.items()}
        gamma = kept.pop("gamma")
        found = cls(**kept, gamma=float(gamma[0]) if gamma.shape == (1,) else 0.0)
        features = feature_count(levels)
        fit = (
            found.centre.shape == found.spread.shape == (features,)
            and found.vectors.shape == (len(found.slopes), features)
            and found.level.shape == found.slopes.shape[1:]
        )
        if not fit or not (found.spread > 0).all() or not found.gamma > 0:
            raise InputError(
                f"model: vectors: expected arrays of a ridge on {features} features that fit each other, "
                f"found {found.vectors.shape} and others"
            )
        return found

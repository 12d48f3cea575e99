"""Linear regression (paper 003, section VI-A): vectors from features, by least squares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError, MissingExtraError
from crosscast.predict.relative.features import FeatureScale, FittedFeatures
from crosscast.predict.relative.observations import Observations, Vectors, check_runs
from crosscast.predict.relative.published.positive import kept_least, least_entry, positive
from crosscast.predict.state import kept_reals

__all__ = ["LinearPredictor", "PublishedLinear"]


@dataclass(frozen=True)
class PublishedLinear:
    """scikit-learn's ``LinearRegression`` with its defaults, of all entries of the vector.

    Features that are missing are filled as `FeatureScale` fills them, as least squares can do nothing with
    them. Where features hang together, the solution is the one of least norm.

    Parameters
    ----------
    features
        What it learns from; filled.
    """

    features: FeatureScale = field(default_factory=lambda: FeatureScale(fill=True))

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "published-linear"

    def fit(self, vectors: Vectors, seed: int = 0) -> LinearPredictor:
        """Fit it. Nothing is random, so the seed is not used.

        Raises
        ------
        InputError
            If there is no row.
        MissingExtraError
            If scikit-learn is not installed.
        """
        try:
            from sklearn.linear_model import LinearRegression
            from threadpoolctl import threadpool_limits
        except ImportError as error:
            raise MissingExtraError("train", "fitting a model") from error
        check_runs(self.name, vectors)
        features = self.features.fit(vectors.observations)
        vector = vectors.vector
        model = LinearRegression()
        # Sums in another order would have other last digits.
        with threadpool_limits(1):
            model.fit(features.transform(vectors.observations), vector)
        # In the order in which it is read again: sums in another would have other last digits.
        slopes = np.ascontiguousarray(np.asarray(model.coef_, dtype=np.float64).T)
        return LinearPredictor(
            features, slopes, np.asarray(model.intercept_, np.float64), least_entry(vector)
        )


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """A fitted regression of ``d`` entries on ``k`` features.

    Parameters
    ----------
    features
        What makes features of counters.
    slopes
        What each feature adds, of shape ``(k, d)``.
    level
        What is added to, of shape ``(d,)``.
    least
        The least that is predicted.
    """

    features: FittedFeatures
    slopes: Reals
    level: Reals
    least: float

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors of ``r`` runs, of shape ``(r, d)``."""
        # Not a product of matrices, whose sums depend on how many rows there are.
        rows = self.features.transform(observations)
        return positive(np.einsum("rk,kd->rd", rows, self.slopes) + self.level, self.least)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        own = {"slopes": self.slopes, "level": self.level, "least": np.array([self.least])}
        return {**self.features.state(), **own}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> LinearPredictor:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        features = FittedFeatures.from_state(state)
        slopes, level = kept_reals(state, "slopes", 2), kept_reals(state, "level", 1)
        if slopes.shape != (len(features.names), len(level)):
            raise InputError(
                f"model: slopes: expected shape {(len(features.names), len(level))}, found {slopes.shape}"
            )
        return cls(features, slopes, level, kept_least(state))

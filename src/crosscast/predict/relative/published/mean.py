"""The same vector for all runs: what any model must beat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.relative.observations import Observations, Vectors, check_runs, relative_to_slowest
from crosscast.predict.state import kept_reals

__all__ = ["FittedVector", "LogMean", "PublishedMean"]


@dataclass(frozen=True)
class PublishedMean:
    """The mean of the training vectors (paper 003, section VI-A)."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "published-mean"

    def fit(self, vectors: Vectors, seed: int = 0) -> FittedVector:
        """Fit it. Nothing is random, so the seed is not used.

        Raises
        ------
        InputError
            If there is no row.
        """
        return FittedVector(_known(vectors, self.name).mean(axis=0))


@dataclass(frozen=True)
class LogMean:
    """The mean of the logarithms of the training vectors, over its largest entry.

    Ratios of times have no natural direction: this one is the same whichever device is divided by.
    """

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "log-mean"

    def fit(self, vectors: Vectors, seed: int = 0) -> FittedVector:
        """Fit it. Nothing is random, so the seed is not used.

        Raises
        ------
        InputError
            If there is no row.
        """
        return FittedVector(
            relative_to_slowest(np.exp(np.log(_known(vectors, self.name)).mean(axis=0))[None])[0]
        )


def _known(vectors: Vectors, name: str) -> Reals:
    check_runs(name, vectors)
    return vectors.vector


@dataclass(frozen=True, eq=False)
class FittedVector:
    """A vector of shape ``(d,)`` that is predicted for all runs."""

    vector: Reals

    def predict(self, observations: Observations) -> Reals:
        """The vector for each of ``r`` runs, of shape ``(r, d)``."""
        return np.tile(self.vector, (len(observations), 1))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {"vector": self.vector}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedVector:
        """Make it from its array.

        Raises
        ------
        InputError
            If it is missing or damaged.
        """
        vector = kept_reals(state, "vector", 1)
        if len(vector) < 2 or (vector <= 0).any():
            raise InputError("model: vector: expected two or more numbers above 0, found others")
        return cls(vector)

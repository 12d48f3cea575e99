"""What a model of relative performance is: it is fitted to vectors, and predicts vectors of other runs."""

from __future__ import annotations

from typing import Protocol

from crosscast.arrays import Reals
from crosscast.predict.relative.observations import Observations, Vectors
from crosscast.predict.stored import Part

__all__ = ["RelativeModel", "RelativePredictor"]


class RelativePredictor(Part, Protocol):
    """A fitted model."""

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors.

        Parameters
        ----------
        observations
            Runs, ``r`` of them, with any of the counters that the model was fitted to, in any order; what
            they lack is taken as missing.

        Returns
        -------
        Reals
            Of shape ``(r, d)``, all greater than 0. As a model predicts them: the largest entry of a row may
            be other than 1.
        """
        ...


class RelativeModel(Protocol):
    """A kind of model, with its settings."""

    @property
    def name(self) -> str:
        """Name on the command line, and in tables."""
        ...

    def fit(self, vectors: Vectors, seed: int) -> RelativePredictor:
        """Fit it: scales, tunes and selects with these rows alone.

        Parameters
        ----------
        vectors
            Rows to learn from; models may weigh them.
        seed
            Start of all random numbers.
        """
        ...

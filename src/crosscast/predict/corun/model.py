"""What a model of co-running is: it is fitted to solo runs and bags, and predicts other bags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from crosscast.predict.corun.prediction import CoRunPrediction
from crosscast.predict.stored import Part
from crosscast.tables.corun.solo import Solo
from crosscast.tables.corun.view import CoRuns

__all__ = ["CoRunModel", "CoRunPredictor"]


class CoRunPredictor(Part, Protocol):
    """A fitted model."""

    def predict(self, bags: Sequence[tuple[Solo, ...]]) -> CoRunPrediction:
        """Predict bags of any sizes.

        Parameters
        ----------
        bags
            Applications alone, ``b`` times two or more; features that the model was fitted to may be missing.
        """
        ...


class CoRunModel(Protocol):
    """A kind of model, with its settings."""

    @property
    def name(self) -> str:
        """Name on the command line, and in tables."""
        ...

    def fit(self, co_runs: CoRuns, seed: int) -> CoRunPredictor:
        """Fit it: scales, thresholds, tunes and selects with these bags alone.

        Parameters
        ----------
        co_runs
            Bags to learn from. Among the solo runs are those of applications that no bag has.
        seed
            Start of all random numbers.
        """
        ...

"""Trees on features, with what makes features of counters: how fitted forests and boosted trees are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.relative.features import FittedFeatures
from crosscast.predict.relative.observations import Observations
from crosscast.predict.relative.published.positive import kept_least, positive
from crosscast.predict.state import kept_reals
from crosscast.predict.trees import Trees

__all__ = ["TreesPredictor", "low_and_high", "within_singles"]

_BEYOND = float(np.finfo(np.float32).max)


def within_singles(rows: Reals) -> Reals:
    """Features without gaps, of shape ``(r, k)``, within single precision, which trees split in."""
    return np.clip(rows, -_BEYOND, _BEYOND)


def low_and_high(rows: Reals) -> Reals:
    """Features twice, once with what is missing below everything, and once above everything.

    Trees that know on which side of each split to leave a row without the feature then need no more than
    the right one of the two: a split that such rows pass on the left looks at the first.

    Parameters
    ----------
    rows
        Features, of shape ``(r, k)``; not a number where missing.

    Returns
    -------
    array
        Of shape ``(r, 2 k)``, finite, within single precision.
    """
    missing = np.isnan(rows)
    known = within_singles(rows)
    return np.concatenate([np.where(missing, -_BEYOND, known), np.where(missing, _BEYOND, known)], axis=1)


@dataclass(frozen=True, eq=False)
class TreesPredictor:
    """Fitted trees of ``d`` outputs.

    Parameters
    ----------
    features
        What makes ``k`` features of counters.
    trees
        Trees on the ``2 k`` columns of `low_and_high`.
    least
        The least that is predicted.
    gain
        How much the splits at each feature improved the fit, on average over these; 0 for one without a
        split. Of shape ``(k,)``.
    """

    features: FittedFeatures
    trees: Trees
    least: float
    gain: Reals

    def predict(self, observations: Observations) -> Reals:
        """Predicted relative vectors of ``r`` runs, of shape ``(r, d)``."""
        return self.predict_features(self.features.transform(observations))

    def predict_features(self, rows: Reals) -> Reals:
        """The same from features, of shape ``(r, k)``."""
        return positive(self.trees.sum(low_and_high(rows)), self.least)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        own = {"least": np.array([self.least]), "gain": self.gain}
        return {**self.features.state(), **self.trees.state(), **own}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> TreesPredictor:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or nodes do not make up trees.
        """
        features = FittedFeatures.from_state(state)
        trees = Trees.from_state(state, 2 * len(features.names))
        gain = kept_reals(state, "gain", 1)
        if len(gain) != len(features.names) or (gain < 0).any():
            raise InputError(f"model: gain: expected {len(features.names)} numbers from 0 on, found others")
        return cls(features, trees, kept_least(state), gain)

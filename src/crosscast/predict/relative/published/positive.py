"""Predicted relative vectors that are vectors: above 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.state import kept_reals

__all__ = ["kept_least", "least_entry", "positive"]


def least_entry(vector: Reals) -> float:
    """The least entry of the vectors that a model learns from, of shape ``(r, d)``."""
    return float(vector.min())


def positive(predicted: Reals, least: float) -> Reals:
    """Predictions that are nowhere below the least entry that was learned from.

    A sum of trees or of linear terms may be 0 or less, which no ratio of times is; the paper says nothing of
    it. What is above 1 stays.

    Parameters
    ----------
    predicted
        As predicted, of shape ``(r, d)``.
    least
        The least entry.
    """
    return np.maximum(predicted, least)


def kept_least(state: Mapping[str, npt.NDArray[Any]]) -> float:
    """Read the least that is predicted.

    Raises
    ------
    InputError
        If it is not there, or not one number above 0.
    """
    least = kept_reals(state, "least", 1)
    if len(least) != 1 or not least[0] > 0:
        raise InputError(f"model: least: expected one number above 0, found {least.tolist()}")
    return float(least[0])

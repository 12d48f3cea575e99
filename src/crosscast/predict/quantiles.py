"""How far intervals reach: counted quantiles of absolute errors over their standard deviations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.state import kept_reals

__all__ = ["LEVELS", "kept_quantiles", "reach"]

LEVELS = np.linspace(0, 1, 201)
"""Probabilities at which quantiles are kept; between them they are interpolated."""


def reach(quantiles: Reals, level: float) -> float:
    """By how many standard deviations an interval reaches that holds an error with a probability of `level`.

    Parameters
    ----------
    quantiles
        Quantiles for probabilities from 0 to 1 in equal steps, of shape ``(q,)``.
    level
        The probability.
    """
    return float(np.interp(level, np.linspace(0, 1, len(quantiles)), quantiles))


def kept_quantiles(state: Mapping[str, npt.NDArray[Any]], name: str, axes: int) -> Reals:
    """Read quantiles that a predictor was kept with; they lie along the last axis.

    Raises
    ------
    InputError
        If they are not there, or are no quantiles of absolute values.
    """
    quantiles = kept_reals(state, name, axes)
    if quantiles.size == 0 or (quantiles < 0).any() or (np.diff(quantiles, axis=-1) < 0).any():
        raise InputError(f"model: {name}: expected numbers that begin at 0 or above and rise, found others")
    return quantiles

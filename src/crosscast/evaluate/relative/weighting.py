"""What a row counts: as much as any other, or so that all kernels or all applications count the same."""

from __future__ import annotations

from collections import Counter
from typing import Literal, get_args

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.relative.observations import Observations

__all__ = ["WEIGHTINGS", "Weighting", "row_weights"]

Weighting = Literal["rows", "kernels", "applications"]

WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)


def row_weights(observations: Observations, weighting: Weighting) -> Reals:
    """Weights of rows, of shape ``(r,)``; their sum is 1.

    Parameters
    ----------
    observations
        The rows, at least one.
    weighting
        ``rows``: all the same. ``kernels``: kernels of an application have the same sum of weights, and
        rows of a kernel the same weight. ``applications``: the same for applications.

    Raises
    ------
    InputError
        If there is no such weighting.
    """
    if weighting not in WEIGHTINGS:
        raise InputError(f"weights: expected one of {', '.join(WEIGHTINGS)}, found {weighting!r}")
    if weighting == "rows":
        return np.full(len(observations), 1.0 / len(observations))
    kernels = observations.kernel if weighting == "kernels" else [""] * len(observations)
    groups = list(zip(observations.application, kernels, strict=True))
    count = Counter(groups)
    return np.array([1.0 / (count[group] * len(count)) for group in groups])

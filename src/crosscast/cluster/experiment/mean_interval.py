"""Means over seeds, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.errors import MissingExtraError

__all__ = ["SHARE", "Mean", "mean_of"]

SHARE = 0.95
"""Probability with which an interval holds the mean, were there more seeds."""


@dataclass(frozen=True)
class Mean:
    """A mean over seeds.

    Parameters
    ----------
    value
        The mean.
    low, high
        Ends of Student's interval around it; ``None`` with a single seed, which says nothing of others.
    """

    value: float
    low: float | None
    high: float | None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def mean_of(values: Sequence[float]) -> Mean:
    """Mean of a value for each seed, with Student's interval, which is for normal values.

    Parameters
    ----------
    values
        At least one.

    Raises
    ------
    MissingExtraError
        If there are several, and SciPy is not installed.

    Examples
    --------
    >>> mean_of([3.0]), mean_of([2.0, 4.0]).value
    (Mean(value=3.0, low=None, high=None), 3.0)
    """
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return Mean(mean, None, None)
    try:
        from scipy.special import stdtrit
    except ImportError as error:
        raise MissingExtraError("cluster", "an interval over seeds") from error
    half = float(stdtrit(count - 1, (1 + SHARE) / 2)) * float(np.std(values, ddof=1)) / count**0.5
    return Mean(mean, mean - half, mean + half)

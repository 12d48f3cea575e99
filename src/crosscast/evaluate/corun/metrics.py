"""Scores of predictions of one quantity, over all that was held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.errors import InputError

__all__ = ["Scored", "area_under_curve", "mean_error", "worst_coverage"]


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows of a quantity that were predicted and measured.

    Parameters
    ----------
    true, centre, low, high
        What was measured, what was predicted and the limits of its interval, of shape ``(n,)``; limits are
        not a number where there are none.
    group
        Number of the fold of each, of shape ``(n,)``.
    bag_size
        Members of the bag of each, of shape ``(n,)``.
    """

    true: Reals
    centre: Reals
    low: Reals
    high: Reals
    group: Integers
    bag_size: Integers

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.true)

    def where(self, chosen: Flags) -> Scored:
        """Some of the rows."""
        return Scored(*(each[chosen] for each in vars(self).values()))

    @property
    def relative_error(self) -> Reals:
        """Absolute error over the true value, of shape ``(n,)`` (Equation 1 of paper 004)."""
        errors: Reals = np.abs(self.centre - self.true) / self.true
        return errors

    @property
    def held(self) -> Reals:
        """Whether each interval holds the true value, as 1 and 0; not a number without an interval."""
        inside = (self.low <= self.true) & (self.true <= self.high)
        return np.where(np.isfinite(self.low), inside, np.nan)


def mean_error(scored: Scored) -> tuple[float, float]:
    """Mean absolute percentage error, and mean absolute error in the quantity's own unit.

    Examples
    --------
    >>> ones = np.ones(2)
    >>> places = np.zeros(2, np.int64)
    >>> mean_error(Scored(np.array([1.0, 2.0]), np.array([1.5, 2.0]), ones, ones, places, places))
    (25.0, 0.25)
    """
    return 100 * float(scored.relative_error.mean()), float(np.abs(scored.centre - scored.true).mean())


def worst_coverage(scored: Scored) -> tuple[int, float]:
    """The group whose intervals hold least often, and how often they do; one has intervals at least."""
    groups = np.unique(scored.group)
    shares = [float(scored.held[scored.group == group].mean()) for group in groups]
    place = int(np.nanargmin(shares))
    return int(groups[place]), shares[place]


def area_under_curve(true: Reals, probability: Reals) -> float | None:
    """Area under the receiver's operating curve: how often a 1 has a higher probability than a 0.

    Ties count half. ``None`` if all are the same.

    Raises
    ------
    InputError
        If a true value is neither 0 nor 1.

    Examples
    --------
    >>> area_under_curve(np.array([0.0, 1.0, 1.0]), np.array([0.2, 0.2, 0.9]))
    0.75
    """
    if not np.isin(true, (0.0, 1.0)).all():
        raise InputError("true: expected 0 and 1, found others")
    ones, zeros = probability[true == 1], np.sort(probability[true == 0])
    if not len(ones) or not len(zeros):
        return None
    below = np.searchsorted(zeros, ones, "left")
    upto = np.searchsorted(zeros, ones, "right")
    return float((below + upto).mean() / 2 / len(zeros))

"""How alike a quantity is at two points: a kernel and a configuration each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals

__all__ = ["Covariance", "matern", "matern_slope", "squares"]


@dataclass(frozen=True, eq=False)
class Covariance:
    """A covariance of two parts, both Matérn with smoothness 5/2.

    One part is shared by kernels that resemble each other. The other is of each kernel alone, over the
    settings: what its runs at some configurations say of the rest.

    Parameters
    ----------
    lengths
        ``(f + s,)`` Over which distance in each feature and each setting the shared part changes.
    variance
        Variance of the shared part.
    own_lengths
        ``(s,)`` The same of the part that is a kernel's own.
    own_variance
        Its variance.
    noise
        Variance of a single value about it.
    """

    lengths: Reals
    variance: float
    own_lengths: Reals
    own_variance: float
    noise: float

    def shared(self, ones: Reals, others: Reals) -> Reals:
        """``(p, q)`` Shared part between points of shapes ``(p, f + s)`` and ``(q, f + s)``."""
        return self.variance * matern(squares(ones / self.lengths, others / self.lengths))

    def own(self, ones: Reals, others: Reals) -> Reals:
        """``(p, q)`` A kernel's own part between configurations with settings ``(p, s)`` and ``(q, s)``."""
        return self.own_variance * matern(squares(ones / self.own_lengths, others / self.own_lengths))


def squares(ones: Reals, others: Reals) -> Reals:
    """``(p, q)`` Squared distances between points of shapes ``(p, d)`` and ``(q, d)``."""
    found: Reals = ones @ (-2 * others.T)
    found += (ones**2).sum(axis=1)[:, None]
    found += (others**2).sum(axis=1)
    return np.maximum(found, 0.0, out=found)


def matern(squared: Reals) -> Reals:
    """Matérn correlation of smoothness 5/2 by squared distances in lengths."""
    distance = np.sqrt(5 * squared)
    correlation: Reals = np.exp(-distance)
    # In place: this is what most of the time of a forecast goes to.
    polynomial = distance / 3
    polynomial += 1
    polynomial *= distance
    polynomial += 1
    correlation *= polynomial
    return correlation


def matern_slope(squared: Reals) -> Reals:
    """Derivative of `matern` by the squared distance."""
    distance = np.sqrt(5 * squared)
    slope: Reals = -5 / 6 * (1 + distance) * np.exp(-distance)
    return slope

"""What a model says of a kernel at every configuration, with how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.predict.grid import Flags, Reals

__all__ = ["Quantity", "SurfaceForecast"]


@dataclass(frozen=True)
class Quantity:
    """Time or power at every configuration.

    The logarithm of the true value, less that of the centre, over `spread`, is distributed as `errors`.

    Parameters
    ----------
    centre
        ``(c,)`` Median.
    spread
        ``(c,)`` How far the logarithm may be off; 0 where it was measured.
    errors
        ``(m,)`` Standardised errors that the model made on kernels that it had not seen, rising; none for
        a model that does not know how sure it is.
    """

    centre: Reals
    spread: Reals
    errors: Reals

    def quantile(self, probability: float) -> Reals:
        """``(c,)`` What the true value is below with this probability; the centre if nothing is known."""
        if not self.errors.size:
            return self.centre
        values: Reals = self.centre * np.exp(self.spread * np.quantile(self.errors, probability))
        return values

    def probability_within(self, limit: float) -> Reals:
        """``(c,)`` Probability that the true value is at most `limit`; 0 or 1 if nothing is known."""
        distance: Reals = np.log(limit) - np.log(self.centre)
        certain: Reals = (distance >= 0).astype(np.float64)
        if not self.errors.size:
            return certain
        sure = self.spread <= 0
        scaled = distance / np.where(sure, 1, self.spread)
        shares = np.searchsorted(self.errors, scaled, side="right") / self.errors.size
        probabilities: Reals = np.where(sure, certain, shares)
        return probabilities


@dataclass(frozen=True)
class SurfaceForecast:
    """Time and power of one kernel at every configuration.

    Parameters
    ----------
    time, power
        Time in seconds and power in watts.
    measured
        ``(c,)`` Which configurations the kernel was run at.
    """

    time: Quantity
    power: Quantity
    measured: Flags

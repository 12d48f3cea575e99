"""Statistics of many samples at once, such as the times of each cell's runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosscast.tables.keys import Numbers

__all__ = ["Reals", "Samples", "samples_of"]

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Samples:
    """Values of samples, of which none is empty.

    Parameters
    ----------
    values
        All values: those of sample 0 from the least to the greatest, then those of sample 1, and so on.
    counts
        How many values each of the ``n`` samples has, of shape ``(n,)`` as all its statistics.
    """

    values: Reals
    counts: Numbers

    def mean(self) -> Reals:
        """Mean of each sample."""
        mean: Reals = self._sum(self.values) / self.counts
        return mean

    def sd(self) -> Reals:
        """Standard deviation of each sample (divisor: its size less 1); not a number for one value."""
        squares = self._sum((self.values - np.repeat(self.mean(), self.counts)) ** 2)
        variance = np.full(len(self.counts), np.nan)
        np.divide(squares, self.counts - 1, out=variance, where=self.counts > 1)
        sd: Reals = np.sqrt(variance)
        return sd

    def least(self) -> Reals:
        """Least value of each sample."""
        return self.values[self._starts()]

    def most(self) -> Reals:
        """Greatest value of each sample."""
        most: Reals = self.values[self._starts() + self.counts - 1]
        return most

    def quantile(self, share: float) -> Reals:
        """Value below which a share of each sample lies, between two values on a straight line."""
        place = (self.counts - 1) * share
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, self.counts - 1)
        weight = place - below
        starts = self._starts()
        value: Reals = self.values[starts + below] * (1 - weight) + self.values[starts + above] * weight
        return value

    def _starts(self) -> Numbers:
        return np.cumsum(self.counts) - self.counts

    def _sum(self, values: Reals) -> Reals:
        number = np.repeat(np.arange(len(self.counts)), self.counts)
        # Without any value, the result would be of whole numbers.
        return np.bincount(number, weights=values, minlength=len(self.counts)).astype(np.float64)


def samples_of(numbers: Numbers, values: Reals) -> Samples:
    """Put values into samples by the number of each value's sample, from 0 without a gap."""
    return Samples(values[np.lexsort((values, numbers))], np.bincount(numbers))

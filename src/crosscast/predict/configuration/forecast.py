"""What a model says of a kernel at every configuration, with how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.predict.configuration.data import Observed, Space, Surfaces


@dataclass(frozen=True)
class Quantity:
    """Time or power at every configuration.

    The logarithm of the true value, less that of the centre, over `spread`, is distributed as `errors`.
    """

    centre: Reals  # `(c,)` Median
    spread: Reals  # `(c,)` How far the logarithm may be off; 0 where it was measured
    # `(m,)` Standardised errors that the model made on kernels that it had not seen, rising; none for a model
    # that does not know how sure it is
    errors: Reals

    def quantile(self, probability: float) -> Reals:
        """``(c,)`` What the true value is below with this probability; the centre if nothing is known."""
        if not self.errors.size:
            return self.centre
        values: Reals = self.centre * np.exp(self.spread * np.quantile(self.errors, probability))
        return values

    def probability_within(self, limit: float) -> Reals:
        """``(c,)`` Probability that the true value is at most `limit`; 0 or 1 if nothing is known.

        It is 0 where there is no forecast.
        """
        distance: Reals = np.log(limit) - np.log(self.centre)
        certain: Reals = (distance >= 0).astype(np.float64)
        if not self.errors.size:
            return certain
        sure = ~(self.spread > 0)
        scaled = distance / np.where(sure, 1, self.spread)
        probabilities: Reals = np.where(sure | np.isnan(distance), certain, self._share_up_to(scaled))
        return probabilities

    def _share_up_to(self, scaled: Reals) -> Reals:
        """Share of the errors up to some, straight between two errors: so that `quantile` is its inverse."""
        last = self.errors.size - 1
        below = np.searchsorted(self.errors, scaled, side="right") - 1
        inside = np.clip(below, 0, max(last - 1, 0))
        gap = self.errors[np.minimum(inside + 1, last)] - self.errors[inside]
        part = (scaled - self.errors[inside]) / np.where(gap > 0, gap, 1)
        shares: Reals = np.where(below < last, (below + part) / max(last, 1), 1.0)
        return np.where(below < 0, 0.0, shares)


@dataclass(frozen=True)
class SurfaceForecast:
    """Time and power of one kernel at every configuration."""

    time: Quantity  # Time in seconds and power in watts
    power: Quantity
    measured: Flags  # `(c,)` Which configurations the kernel was run at


_NONE = np.empty(0)


def plain_forecast(time_s: Reals, power_w: Reals, observed: Observed) -> SurfaceForecast:
    """What was predicted, and what was measured where it was."""
    measured = np.zeros(len(time_s), np.bool_)
    measured[observed.numbers] = True
    spread = np.where(measured, 0.0, np.nan)
    time, power = time_s.copy(), power_w.copy()
    time[observed.numbers] = observed.time_s
    power[observed.numbers] = observed.power_w
    return SurfaceForecast(Quantity(time, spread, _NONE), Quantity(power, spread, _NONE), measured)


class ConfigurationPredictor(Protocol):
    """A fitted model."""

    @property
    def space(self) -> Space:
        """The configurations that it predicts."""
        ...

    @property
    def samples(self) -> tuple[int, ...]:
        """The configurations at which it wants a new kernel to be run first, by their places."""
        ...

    def forecast(self, observed: Observed) -> SurfaceForecast:
        """Predict time and power of one kernel at every configuration."""
        ...


class ConfigurationModel(Protocol):
    """A way to learn a `ConfigurationPredictor`."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> ConfigurationPredictor:
        """Learn from kernels."""
        ...

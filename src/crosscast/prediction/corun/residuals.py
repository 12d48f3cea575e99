"""Residuals of mixes, whose spread may grow with the predicted value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from crosscast.arrays import Integers, Reals
from crosscast.prediction.intervals import CAUTIOUS, Residuals
from crosscast.prediction.serialization import Array

_LEAST_SHARE = 0.02
"""Least spread over the mean error."""

_FARTHEST = 100.0
"""Largest log half-width of an interval, so that damaged errors give finite limits."""


@dataclass(frozen=True, eq=False)
class CoRunResiduals(Residuals):
    """Out-of-fold residuals of one quantity of mixes, and half-widths of intervals around predictions.

    The spread of residuals may grow with the predicted value, as that of slowdowns does.
    """

    method = CAUTIOUS

    # Number of the mix of each, as residuals of co-runners of one mix are correlated. `None` where not known.
    # A mix that several groups hold out has a number in each
    mix: Annotated[Integers, Array("n", low=0)] | None = None
    # Logarithm of each predicted value; `None` where the spread does not depend on it
    log_value: Annotated[Reals, Array("n")] | None = None

    def half_width(self, level: float, log_value: ArrayLike = 0.0) -> Reals:
        """Half-width of an interval around predictions, in logarithms.

        A quantile of the residuals relative to their spread.
        """
        if level not in self._half_widths:
            known = np.zeros_like(self.log_error) if self.log_value is None else self.log_value
            relative = np.abs(self.log_error) / self.spread(known)
            self._half_widths[level] = float(self.quantile(relative, level))
        return np.asarray(
            np.minimum(self._half_widths[level] * self.spread(np.asarray(log_value)), _FARTHEST)
        )

    def limits(self, level: float, value: Reals) -> tuple[Reals, Reals]:
        """Lower and upper limits of intervals around predicted values.

        Where the spread depends on the value, lower limits are not below the least measured value.
        """
        factor = np.exp(self.half_width(level, np.log(value)))
        return np.maximum(value / factor, np.minimum(value, self.least)), value * factor

    @cached_property
    def least(self) -> float:
        """Least measured value; 0 where the spread does not depend on the value."""
        return 0.0 if self.log_value is None else float(np.exp((self.log_value - self.log_error).min()))

    @cached_property
    def _half_widths(self) -> dict[float, float]:
        """Half-width relative to the spread by level, cached over forecasts."""
        return {}

    def spread(self, log_value: Reals) -> Reals:
        """Spread of residuals by the predicted value, up to a common factor.

        A line over the logarithm of the value, constant below 0; 1 where it does not depend on the value.
        """
        start, slope = self._line
        spread: Reals = start + slope * np.maximum(log_value, 0.0)
        return spread

    @cached_property
    def _line(self) -> tuple[float, float]:
        if self.log_value is None or not self.log_error.any():
            return 1.0, 0.0
        weights, errors = self.weights, np.abs(self.log_error)
        above = np.maximum(self.log_value, 0.0)
        root = np.sqrt(weights)
        design = np.column_stack([root, above * root])
        start, slope = (float(each) for each in np.linalg.lstsq(design, errors * root, rcond=None)[0])
        mean = float(weights @ errors)
        if slope < 0:
            return mean, 0.0
        if start < _LEAST_SHARE * mean:
            # Through the least allowed spread.
            start = _LEAST_SHARE * mean
            squares = float((weights * above) @ above)
            slope = float((weights * above) @ (errors - start)) / squares if squares > 0 else 0.0
        return start, max(slope, 0.0)

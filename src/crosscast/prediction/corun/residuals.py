"""Residuals of mixes, which may spread the more the larger the predicted value is."""

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
"""An interval that reaches so far says nothing; by damaged errors its limits would be no numbers."""


@dataclass(frozen=True, eq=False)
class CoRunResiduals(Residuals):
    """Out-of-fold residuals of one quantity of mixes, with how far an interval around a prediction reaches.

    Residuals may spread the more the larger the predicted value is: the more an application is slowed down,
    the less sure it is by how much.
    """

    method = CAUTIOUS

    # Number of the mix of each: residuals of co-runners of one mix belong together. `None` where they do not
    # tell. A mix that several groups leave out has a number in each
    mix: Annotated[Integers, Array("n", low=0)] | None = None
    # Logarithm of each predicted value; `None` where it says nothing of residuals
    log_value: Annotated[Reals, Array("n")] | None = None

    def reach(self, level: float, log_value: ArrayLike = 0.0) -> Reals:
        """How far an interval reaches to both sides of predictions, in logarithms.

        By quantiles of the residuals relative to their spread.
        """
        if level not in self._reaches:
            known = np.zeros_like(self.log_error) if self.log_value is None else self.log_value
            relative = np.abs(self.log_error) / self.spread(known)
            self._reaches[level] = float(self.quantile(relative, level))
        return np.asarray(np.minimum(self._reaches[level] * self.spread(np.asarray(log_value)), _FARTHEST))

    def limits(self, level: float, value: Reals) -> tuple[Reals, Reals]:
        """Lower and upper limits of intervals around predicted values.

        Where values tell of residuals, no lower limit is below the least value that was measured.
        """
        far = np.exp(self.reach(level, np.log(value)))
        return np.maximum(value / far, np.minimum(value, self.least)), value * far

    @cached_property
    def least(self) -> float:
        """Least value that was measured; 0 where values do not tell of residuals."""
        return 0.0 if self.log_value is None else float(np.exp((self.log_value - self.log_error).min()))

    @cached_property
    def _reaches(self) -> dict[float, float]:
        """Reach relative to the spread by level, for one forecast after the other."""
        return {}

    def spread(self, log_value: Reals) -> Reals:
        """How large residuals are where a value is predicted, up to a factor that is common to all.

        A straight line over the logarithm of the value, level below 0. Level at 1 where values do not tell.
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
            # Through the least that is allowed: nothing is sure to the last digit.
            start = _LEAST_SHARE * mean
            squares = float((weights * above) @ above)
            slope = float((weights * above) @ (errors - start)) / squares if squares > 0 else 0.0
        return start, max(slope, 0.0)

"""The line that takes times on one device to times on another (paper 004, section 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError

__all__ = ["LOGARITHMIC", "PLAIN", "TimeLine"]

PLAIN, LOGARITHMIC = "plain", "logarithmic"
"""A line through times, as published, and one through their logarithms."""


@dataclass(frozen=True)
class TimeLine:
    """A linear regression of times on times.

    Parameters
    ----------
    form
        `PLAIN`: ``slope * t + intercept``; `LOGARITHMIC`: ``exp(intercept) * t ** slope``.
    slope, intercept
        Its coefficients; the intercept of a plain line is in seconds.
    least_s
        The shortest time that it was fitted to reach: nothing below is predicted, where a plain line may
        fall below 0.
    """

    form: str
    slope: float
    intercept: float
    least_s: float

    @classmethod
    def fit(cls, form: str, times: Reals, wanted: Reals) -> TimeLine:
        """Fit it by ordinary least squares.

        Parameters
        ----------
        form
            `PLAIN` or `LOGARITHMIC`.
        times, wanted
            Times of the same work on both devices, in seconds, of shape ``(n,)``, with ``n`` at least 2.

        Raises
        ------
        InputError
            If there are fewer than two different times.

        Examples
        --------
        >>> line = TimeLine.fit(PLAIN, np.array([1.0, 2.0]), np.array([0.75, 1.25]))
        >>> round(float(line(np.array([3.0]))[0]), 6)
        1.75
        """
        if len(np.unique(times)) < 2:
            raise InputError(
                f"times: expected at least 2 different ones to draw a line, found {len(np.unique(times))}"
            )
        x, y = (np.log(times), np.log(wanted)) if form == LOGARITHMIC else (times, wanted)
        middle = x.mean()
        slope = float(((x - middle) * (y - y.mean())).sum() / ((x - middle) ** 2).sum())
        return cls(form, slope, float(y.mean() - slope * middle), float(wanted.min()))

    def __call__(self, times: Reals) -> Reals:
        """Times on the other device, in seconds, of the shape of ``times``."""
        if self.form == LOGARITHMIC:
            result: Reals = np.exp(self.intercept + self.slope * np.log(times))
            return result
        straight: Reals = np.maximum(self.slope * times + self.intercept, self.least_s)
        return straight

    def slowdown(self, alone: Reals, slowdown: Reals) -> Reals:
        """Slowdown on the other device of work that takes so long alone, and so much longer in a bag."""
        result: Reals = self(alone * slowdown) / self(alone)
        return result

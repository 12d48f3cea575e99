"""What a bootstrap says of scores: intervals, and differences from the best baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crosscast.arrays import Reals

__all__ = ["DRAWS", "SHARE", "Confidence", "Difference", "Interval", "difference_of", "interval_of"]

DRAWS = 1000
"""Draws of a bootstrap."""

SHARE = 0.95
"""Share of the draws that an interval holds."""


@dataclass(frozen=True)
class Interval:
    """An interval that holds `SHARE` of what a bootstrap draws."""

    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """A model's score less that of the best baseline.

    Parameters
    ----------
    baseline
        Name of the baseline that is best in this score.
    value
        The difference.
    interval
        What the bootstrap says of it.
    better
        Whether the model is better and the interval does not hold 0.
    """

    baseline: str
    value: float
    interval: Interval
    better: bool


@dataclass(frozen=True)
class Confidence:
    """What a bootstrap says of one result.

    Parameters
    ----------
    intervals
        An interval for each score that has one, by name.
    differences
        For each score in which one side is better, the difference from the best baseline; empty for the
        baselines themselves.
    """

    intervals: Mapping[str, Interval]
    differences: Mapping[str, Difference] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Both, as members of an object of JSON."""
        return {
            "intervals": {name: [each.low, each.high] for name, each in self.intervals.items()},
            "against_baseline": {
                name: {
                    "baseline": each.baseline,
                    "difference": each.value,
                    "low": each.interval.low,
                    "high": each.interval.high,
                    "better": each.better,
                }
                for name, each in self.differences.items()
            },
        }


def interval_of(drawn: Reals) -> Interval | None:
    """The middle `SHARE` of the finite values that were drawn; ``None`` if there are none.

    Examples
    --------
    >>> interval_of(np.array([2.0, 2.0, np.nan])), interval_of(np.array([np.nan]))
    (Interval(low=2.0, high=2.0), None)
    """
    known = drawn[np.isfinite(drawn)]
    if not known.size:
        return None
    low, high = np.quantile(known, ((1 - SHARE) / 2, (1 + SHARE) / 2)).tolist()
    return Interval(low, high)


def difference_of(baseline: str, value: float, drawn: Reals, sign: int) -> Difference | None:
    """A difference from a baseline, with what is sure of it.

    Parameters
    ----------
    baseline
        Name of the baseline.
    value
        The difference in what was observed.
    drawn
        The same in each draw.
    sign
        Whether more (1) or less (-1) is better.

    Returns
    -------
    Difference or None
        ``None`` if it is not finite, or is so in no draw.
    """
    interval = interval_of(drawn)
    if interval is None or not np.isfinite(value):
        return None
    return Difference(baseline, value, interval, interval.low > 0 if sign > 0 else interval.high < 0)

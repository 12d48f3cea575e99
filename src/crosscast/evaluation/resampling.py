"""How far scores would move with other groups of data: one bootstrap for all questions.

Whole groups (applications, programs) are drawn with replacement: what is in one resembles each other, and
intervals that took it for independent would be too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError

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
class ScoreDifference:
    """A model's score less that of the best baseline."""

    baseline: str  # Name of the baseline that is best in this score
    value: float  # The difference
    interval: Interval  # What the bootstrap says of it
    better: bool  # Whether the model is better and the interval does not hold 0


@dataclass(frozen=True)
class Confidence:
    """What a bootstrap says of one result."""

    intervals: Mapping[str, Interval]  # An interval for each score that has one, by name
    # For each score in which one side is better, the difference from the best baseline; empty for the
    # baselines themselves
    differences: Mapping[str, ScoreDifference] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
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


@dataclass(frozen=True, eq=False)
class Scored:
    """A result whose scores are drawn."""

    name: str  # Name of the model
    baseline: bool  # Whether others are compared with it
    # Scores in the data as they are, by name; `None` or not finite where nothing defines one
    observed: Mapping[str, float | None]
    # Scores of shape `(b,)` by name, of weights of shape `(b, g)` that say how often each of the `g` groups
    # is there; NaN where undefined
    drawn: Callable[[Reals], Mapping[str, Reals]]
    compared: object = None  # What results that are compared have in common, such as the number of probes


def confidences(
    results: Sequence[Scored],
    groups: int,
    better: Mapping[str, int],
    seed: int,
    draws: int = DRAWS,
    *,
    fewest: int = 1,
) -> tuple[Confidence, ...]:
    """Draw the groups again and again, with replacement, and score each draw.

    All results see the same draws, so differences between them are of pairs. Draws in which nothing defines a
    score do not count for it.
    """
    if draws < 1:
        raise InputError.of(where="draws", expected="at least 1", found=draws)
    if groups < fewest:
        return tuple(Confidence({}) for _ in results)
    # How often each group is there in each draw.
    even = np.full(groups, 1 / groups)
    weights = np.random.default_rng(seed).multinomial(groups, even, size=draws).astype(np.float64)
    drawn = [result.drawn(weights) for result in results]
    answers = []
    for result, values in zip(results, drawn, strict=True):
        rivals = [
            (other, of_other)
            for other, of_other in zip(results, drawn, strict=True)
            if other.baseline and other.compared == result.compared and not result.baseline
        ]
        intervals = {name: each for name, column in values.items() if (each := interval_of(column))}
        differences = {
            name: difference
            for name, sign in better.items()
            if (difference := _difference(name, sign, result, values, rivals))
        }
        answers.append(Confidence(intervals, differences))
    return tuple(answers)


def _difference(
    name: str,
    sign: int,
    result: Scored,
    drawn: Mapping[str, Reals],
    rivals: Sequence[tuple[Scored, Mapping[str, Reals]]],
) -> ScoreDifference | None:
    """Difference from the baseline that is best in a score; ``None`` where there is none."""
    own = result.observed.get(name)
    there = [
        (score, baseline.name, values[name])
        for baseline, values in rivals
        if (score := baseline.observed.get(name)) is not None and np.isfinite(score)
    ]
    if own is None or not there:
        return None
    score, baseline, of_baseline = max(there, key=lambda each: sign * each[0])
    both = np.isfinite(drawn[name]) & np.isfinite(of_baseline)
    return difference_of(baseline, float(own - score), drawn[name][both] - of_baseline[both], sign)


def interval_of(drawn: Reals) -> Interval | None:
    """The middle `SHARE` of the finite values that were drawn; ``None`` if there are none.

    >>> interval_of(np.array([2.0, 2.0, np.nan])), interval_of(np.array([np.nan]))
    (Interval(low=2.0, high=2.0), None)
    """
    known = drawn[np.isfinite(drawn)]
    if not known.size:
        return None
    return middle(known)


def middle(values: Reals) -> Interval:
    """The middle `SHARE` of values, of which there is one or more."""
    low, high = np.quantile(values, ((1 - SHARE) / 2, (1 + SHARE) / 2)).tolist()
    return Interval(low, high)


def difference_of(baseline: str, value: float, drawn: Reals, sign: int) -> ScoreDifference | None:
    """A difference from a baseline, with what is sure of it."""
    interval = interval_of(drawn)
    if interval is None or not np.isfinite(value):
        return None
    return ScoreDifference(baseline, value, interval, interval.low > 0 if sign > 0 else interval.high < 0)


@dataclass(frozen=True)
class Grouped:
    """Values of which each belongs to one of ``g`` groups.

    A weighting says how often each group is there: all ones for the data as they are, zeros but for a one
    for a group alone, counts of a draw with replacement for a bootstrap. Many weightings are an array of
    shape ``(b, g)`` and give ``(b,)`` results; what is of no value is NaN.
    """

    values: Reals  # The values, of shape `(m,)`
    groups: Integers  # The number of each one's group, of shape `(m,)`
    count: int  # `g`

    def map(self, function: Callable[[Reals], Reals]) -> Grouped:
        """The same groups with a function of each value."""
        return replace(self, values=function(self.values))

    def mean(self, weights: Reals) -> Reals:
        """Mean over the values of all groups, each as often as its group is there."""
        sums = np.bincount(self.groups, weights=self.values, minlength=self.count)
        sizes = np.bincount(self.groups, minlength=self.count).astype(np.float64)
        return _quotient(_product(weights, sums.astype(np.float64)), weights @ sizes)

    def median(self, weights: Reals) -> Reals:
        """Median over the values of all groups, each as often as its group is there (a whole number)."""
        medians = np.full(len(weights), np.nan)
        if self.values.size == 0:
            return medians
        order = np.argsort(self.values, kind="stable")
        ordered = self.values[order]
        until = np.cumsum(weights[:, self.groups[order]], axis=1)
        total = until[:, -1]
        lower = (until <= (total[:, None] - 1) // 2).sum(axis=1)
        upper = (until <= total[:, None] // 2).sum(axis=1)
        there = total > 0
        medians[there] = (ordered[lower[there]] + ordered[upper[there]]) / 2
        return medians

    def means(self) -> Reals:
        """Mean of each group, of shape ``(g,)``."""
        return self.mean(np.eye(self.count))

    def medians(self) -> Reals:
        """Median of each group, of shape ``(g,)``."""
        return self.median(np.eye(self.count))


def average(of_groups: Reals, weights: Reals) -> Reals:
    """Mean of one value a group, each as often as its group is there.

    Groups without a value (NaN) do not count.
    """
    there = ~np.isnan(of_groups)
    return _quotient(_product(weights[:, there], of_groups[there]), weights[:, there].sum(axis=1))


def least(of_groups: Reals, weights: Reals) -> Reals:
    """The least value of the groups that are there; groups without a value do not count."""
    there = (weights > 0) & ~np.isnan(of_groups)
    found = np.where(there, of_groups, np.inf).min(axis=1, initial=np.inf)
    return np.where(there.any(axis=1), found, np.nan)


def _product(weights: Reals, of_groups: Reals) -> Reals:
    """Weighted sums in which a group that is not there adds nothing, even if its own value is infinite."""
    if np.isfinite(of_groups).all():
        plain: Reals = weights @ of_groups
        return plain
    terms = np.where(weights > 0, weights * np.where(weights > 0, of_groups, 0.0), 0.0)
    return np.asarray(terms.sum(axis=1), dtype=np.float64)


def _quotient(above: Reals, below: Reals) -> Reals:
    quotient = np.full(len(above), np.nan)
    np.divide(above, below, out=quotient, where=below > 0)
    return quotient

"""Bootstrap intervals of scores over groups of data, for all questions.

Whole groups (applications, programs) are drawn with replacement: values within a group are correlated, and
intervals that treat them as independent would be too narrow.
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
"""Share of the draws within an interval."""


@dataclass(frozen=True)
class Interval:
    """An interval with the share `SHARE` of a bootstrap's draws."""

    low: float
    high: float


@dataclass(frozen=True)
class ScoreDifference:
    """A model's score less that of the best baseline."""

    baseline: str  # Name of the baseline that is best in this score
    value: float  # The difference
    interval: Interval  # Of the bootstrap
    better: bool  # Whether the model is better and the interval excludes 0


@dataclass(frozen=True)
class Confidence:
    """Bootstrap intervals and differences of one result."""

    intervals: Mapping[str, Interval]  # An interval for each score that has one, by name
    # For each score in which one side is better, the difference from the best baseline; empty for the
    # baselines themselves
    differences: Mapping[str, ScoreDifference] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Intervals and differences, as members of an object of JSON."""
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
    """A result to bootstrap."""

    name: str  # Name of the model
    baseline: bool  # Whether others are compared with it
    # Scores of the data, by name; `None` or not finite where undefined
    observed: Mapping[str, float | None]
    # Scores of shape `(b,)` by name, from weights of shape `(b, g)`, the multiplicities of the `g` groups;
    # NaN where undefined
    drawn: Callable[[Reals], Mapping[str, Reals]]
    compared: object = (
        None  # Equal for results that are compared with each other, such as the number of probes
    )


def confidences(
    results: Sequence[Scored],
    groups: int,
    better: Mapping[str, int],
    seed: int,
    draws: int = DRAWS,
    *,
    fewest: int = 1,
) -> tuple[Confidence, ...]:
    """Draw the groups with replacement, many times, and score each draw.

    All results have the same draws, so differences between them are paired. Draws in which a score is
    undefined do not count for it.
    """
    if draws < 1:
        raise InputError.of(where="draws", expected="at least 1", found=draws)
    if groups < fewest:
        return tuple(Confidence({}) for _ in results)
    # Multiplicity of each group in each draw.
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
    """Difference from the baseline with the best score; ``None`` without a baseline."""
    score = result.observed.get(name)
    candidates = [
        (other, baseline.name, values[name])
        for baseline, values in rivals
        if (other := baseline.observed.get(name)) is not None and np.isfinite(other)
    ]
    if score is None or not candidates:
        return None
    best, baseline, of_baseline = max(candidates, key=lambda each: sign * each[0])
    both = np.isfinite(drawn[name]) & np.isfinite(of_baseline)
    return difference_of(baseline, float(score - best), drawn[name][both] - of_baseline[both], sign)


def interval_of(drawn: Reals) -> Interval | None:
    """The middle `SHARE` of the finite draws; ``None`` if there are none.

    >>> interval_of(np.array([2.0, 2.0, np.nan])), interval_of(np.array([np.nan]))
    (Interval(low=2.0, high=2.0), None)
    """
    known = drawn[np.isfinite(drawn)]
    if not known.size:
        return None
    return middle(known)


def middle(values: Reals) -> Interval:
    """The middle `SHARE` of one or more values."""
    low, high = np.quantile(values, ((1 - SHARE) / 2, (1 + SHARE) / 2)).tolist()
    return Interval(low, high)


def difference_of(baseline: str, value: float, drawn: Reals, sign: int) -> ScoreDifference | None:
    """A difference from a baseline, with its interval."""
    interval = interval_of(drawn)
    if interval is None or not np.isfinite(value):
        return None
    return ScoreDifference(baseline, value, interval, interval.low > 0 if sign > 0 else interval.high < 0)


@dataclass(frozen=True)
class Grouped:
    """Values in ``g`` groups.

    A weighting has the multiplicity of each group: ones for the data, a single one for a group alone, counts
    of draws with replacement for a bootstrap. Many weightings are an array of shape ``(b, g)`` and have
    results ``(b,)``; a result of no value is NaN.
    """

    values: Reals  # `(m,)`
    groups: Integers  # `(m,)` Index of each value's group
    count: int  # `g`

    def map(self, function: Callable[[Reals], Reals]) -> Grouped:
        """Apply a function to the values."""
        return replace(self, values=function(self.values))

    def mean(self, weights: Reals) -> Reals:
        """Mean over the values of all groups, weighted by multiplicity."""
        sums = np.bincount(self.groups, weights=self.values, minlength=self.count)
        sizes = np.bincount(self.groups, minlength=self.count).astype(np.float64)
        return _quotient(_product(weights, sums.astype(np.float64)), weights @ sizes)

    def median(self, weights: Reals) -> Reals:
        """Median over the values of all groups, weighted by multiplicity (a whole number)."""
        medians = np.full(len(weights), np.nan)
        if self.values.size == 0:
            return medians
        order = np.argsort(self.values, kind="stable")
        ordered = self.values[order]
        until = np.cumsum(weights[:, self.groups[order]], axis=1)
        total = until[:, -1]
        lower = (until <= (total[:, None] - 1) // 2).sum(axis=1)
        upper = (until <= total[:, None] // 2).sum(axis=1)
        defined = total > 0
        medians[defined] = (ordered[lower[defined]] + ordered[upper[defined]]) / 2
        return medians

    def means(self) -> Reals:
        """Mean of each group, of shape ``(g,)``."""
        return self.mean(np.eye(self.count))

    def medians(self) -> Reals:
        """Median of each group, of shape ``(g,)``."""
        return self.median(np.eye(self.count))


def average(of_groups: Reals, weights: Reals) -> Reals:
    """Mean of one value per group, weighted by multiplicity.

    Groups without a value (NaN) do not count.
    """
    defined = ~np.isnan(of_groups)
    return _quotient(_product(weights[:, defined], of_groups[defined]), weights[:, defined].sum(axis=1))


def least(of_groups: Reals, weights: Reals) -> Reals:
    """The least value of the groups with a positive weight; groups without a value do not count."""
    present = (weights > 0) & ~np.isnan(of_groups)
    minima = np.where(present, of_groups, np.inf).min(axis=1, initial=np.inf)
    return np.where(present.any(axis=1), minima, np.nan)


def _product(weights: Reals, of_groups: Reals) -> Reals:
    """Weighted sums in which a group of weight 0 adds nothing, even if its value is infinite."""
    if np.isfinite(of_groups).all():
        product: Reals = weights @ of_groups
        return product
    terms = np.where(weights > 0, weights * np.where(weights > 0, of_groups, 0.0), 0.0)
    return np.asarray(terms.sum(axis=1), dtype=np.float64)


def _quotient(above: Reals, below: Reals) -> Reals:
    quotient = np.full(len(above), np.nan)
    np.divide(above, below, out=quotient, where=below > 0)
    return quotient

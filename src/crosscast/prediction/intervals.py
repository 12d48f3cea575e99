"""Intervals from errors on held-out groups.

The groups, mostly applications, are assumed to be exchangeable: a new application differs from these as they
differ from each other. Errors within a group are correlated, so that groups have equal weights, whatever
their numbers of errors. Each question has one `IntervalMethod`, which determines widths of intervals from
errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.serialization import Array, Stored

_TINY = 1e-9


def check_level(level: float, name: str = "level") -> None:
    """Raise an `InputError` unless the level, or what else has the name, is a probability between 0 and 1."""
    if not isinstance(level, Real) or not 0 < level < 1:
        found = f"{level:g}" if isinstance(level, Real) else repr(level)
        raise InputError.of(where=name, expected="a probability between 0 and 1", found=found)


def most_level(groups: int) -> float:
    """The highest level of a conformal interval: ``g / (g + 1)`` with ``g`` groups."""
    return groups / (groups + 1)


def group_weights(group: Integers) -> Reals:
    """Weights of errors, with sum 1 and equal sums for all groups."""
    sizes = np.bincount(group)
    return 1.0 / (len(sizes) * sizes[group])


def conformal_quantiles(errors: Reals, group: Integers, levels: Reals) -> Reals:
    """Conformal quantiles of errors ``(n,)`` or ``(n, d)``, of shape ``(q,)`` or ``(q, d)``.

    An error of a new group, if exchangeable with these, is at most the quantile with a probability of at
    least the level. Each group has a mass of ``1 / (g + 1)``, spread over its errors, and the new group the
    rest, beyond all others (Lee, Barber, Willett 2023, "Distribution-free inference with hierarchical data").
    """
    order = np.argsort(errors, axis=0, kind="stable")
    mass = group_weights(group) * most_level(int(group.max()) + 1)
    until = np.cumsum(mass[order], axis=0)
    ranked = np.take_along_axis(errors, order, axis=0)
    index = [np.minimum((until < level - _TINY).sum(axis=0), len(errors) - 1) for level in levels.tolist()]
    return np.take_along_axis(ranked, np.stack(index), axis=0)


# One-sided 95 % of a normal distribution.
_CAUTION = 1.645


def cautious_quantiles(errors: Reals, group: Integers, levels: Reals) -> Reals:
    """Errors ``(q,)`` that cover shares ``(q,)`` of a group's errors in the mean, with 95 % confidence.

    The mean is over groups, less 1.645 standard errors, as they are few. Unlike `conformal_quantiles`, this
    has no mass for a group beyond all others, which with nine groups would be the largest error at 0.9.
    """
    values = np.unique(errors)
    by_group = [np.sort(errors[group == number]) for number in np.unique(group)]
    shares = np.stack([np.searchsorted(each, values, side="right") / len(each) for each in by_group])
    standard_error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    lower_bound = np.maximum.accumulate(shares.mean(axis=0) - _CAUTION * standard_error)
    return values[np.minimum(np.searchsorted(lower_bound, levels), len(values) - 1)]


_WITHIN, _SURE = 0.8, 0.9
_LEAST_ERROR = 0.05


def cautious_quantiles_of_most_groups(errors: Reals, group: Integers, levels: Reals) -> Reals:
    """`cautious_quantiles` that cover most errors of nearly every group from a level of 90 % on.

    80 % of the errors of a new group are covered with a probability of 90 %, if the logarithms of the groups'
    80 % quantiles are normally distributed (a prediction limit).
    """
    # Imported here: predicting needs no SciPy.
    from scipy.stats import t

    quantiles = cautious_quantiles(errors, group, levels)
    within = [np.quantile(errors[group == number], _WITHIN) for number in np.unique(group)]
    count, logs = len(within), np.log(np.maximum(within, _LEAST_ERROR))
    margin = float(t.ppf(_SURE, count - 1)) * float(logs.std(ddof=1)) * np.sqrt(1 + 1 / count)
    limit = float(np.exp(logs.mean() + margin))
    return np.where(levels >= _SURE - _TINY, np.maximum(quantiles, limit), quantiles)


def pooled_quantiles(errors: Reals, group: Integers, levels: Reals) -> Reals:
    """Quantiles of all errors, regardless of groups."""
    return np.quantile(errors, levels)


@dataclass(frozen=True)
class IntervalMethod:
    """How widths of intervals follow from errors on held-out groups."""

    name: str
    promise: str  # Coverage of an interval of a level, for people
    # Quantiles `(q,)` of absolute errors `(n,)` in groups `(n,)` at levels `(q,)`
    quantiles: Callable[[Reals, Integers, Reals], Reals]


CONFORMAL = IntervalMethod(
    "conformal", "the value of a new group with at least the level's probability", conformal_quantiles
)
CAUTIOUS = IntervalMethod(
    "cautious", "the level's share of a group's values, in the mean over groups", cautious_quantiles
)
CAUTIOUS_OF_MOST_GROUPS = IntervalMethod(
    "cautious-most-groups",
    "the level's share of a group's values, in the mean over groups, and from 90 % on most of nearly each",
    cautious_quantiles_of_most_groups,
)
POOLED = IntervalMethod("pooled", "the level's share of all values", pooled_quantiles)

LEVELS = np.linspace(0, 1, 201)
"""Levels of stored quantiles."""


def factor_at(level: float, quantiles: Reals, levels: Reals | None = None) -> float:
    """Half the width of an interval, in standard deviations, interpolated between quantiles ``(q,)``.

    Their levels are from 0 to 1 in equal steps unless given.
    """
    return float(np.interp(level, np.linspace(0, 1, len(quantiles)) if levels is None else levels, quantiles))


def summed(
    weights: Reals, centre: Reals, low: Reals, high: Reals, correlation: ArrayLike
) -> tuple[Reals, Reals, Reals]:
    """Sum quantities that are predicted as logarithms ``(n, d)``, and their limits, with `weights` ``(n,)``.

    Errors are propagated to first order, weighted by shares of the sum, with a correlation from 0 to 1 of any
    two of a column, one for all or ``(d,)`` (Joint Committee for Guides in Metrology 2008, "Guide to the
    expression of uncertainty in measurement", equation 16, for errors of logarithms). Returns logarithms
    ``(d,)``.
    """
    parts = np.log(weights)[:, None] + centre
    most = parts.max(axis=0)
    # An infinite sum has no shares.
    with np.errstate(invalid="ignore"):
        total = most + np.log(np.exp(parts - most).sum(axis=0))
        shares = np.exp(parts - total)
        half_widths = []
        for half_width in (centre - low, high - centre):
            squares = correlation * (shares * half_width).sum(axis=0) ** 2
            squares += (1 - np.asarray(correlation)) * ((shares * half_width) ** 2).sum(axis=0)
            half_widths.append(np.sqrt(squares))
        return total, total - half_widths[0], total + half_widths[1]


def correlation_within(errors: Reals, groups: Integers) -> float:
    """Correlation of the errors within a group: mean product of pairs over the mean square, from 0 to 1.

    The intraclass correlation (Fisher 1925, "Statistical Methods for Research Workers", section 38) about
    zero; all groups with several errors have equal weights. `groups` are numbers ``(n,)``. Pairs are of one
    column of the errors ``(n, d)``, which are NaN where not known. 1, the most cautious, without any pair.
    """
    products, squares = [], []
    for number in np.unique(groups):
        of_group = errors[groups == number]
        known = np.isfinite(of_group)
        counts, of_group = known.sum(axis=0), np.where(known, of_group, 0.0)
        several = counts > 1
        if several.any():
            square = (of_group**2).sum(axis=0)[several]
            pairs = (counts * (counts - 1))[several]
            products.append(float(np.mean((of_group.sum(axis=0)[several] ** 2 - square) / pairs)))
            squares.append(float(np.mean(square / counts[several])))
    total = sum(squares)
    return float(np.clip(sum(products) / total, 0.0, 1.0)) if total > 0 else 1.0


@dataclass(frozen=True, eq=False)
class Residuals(Stored):
    """Out-of-fold residuals, each of a held-out group."""

    method: ClassVar[IntervalMethod]
    """How intervals are made from the residuals."""

    log_error: Annotated[Reals, Array("n", least=1)]  # Logarithm of the predicted over the true value
    group: Annotated[Integers, Array("n", low=0)]  # Index of the held-out group
    groups: Annotated[
        tuple[str, ...], Array("g", least=1)
    ]  # Names of the groups, each of one residual or more

    def check(self) -> None:
        """Raise InputError for groups without a residual."""
        check_numbers("group", self.group, self.groups)

    @property
    def weights(self) -> Reals:
        """Weights of residuals, with sum 1 and equal sums for all groups."""
        return group_weights(self.group)

    def quantile(self, errors: Reals, level: float) -> Reals:
        """Half-width of intervals of a level, from the residuals' absolute errors ``(n,)`` or ``(n, d)``."""
        half_width: Reals = self.method.quantiles(errors, self.group, np.array([level]))[0]
        return half_width


def check_numbers(field: str, numbers: Integers, names: tuple[str, ...]) -> None:
    """Raise InputError unless residuals are of all named groups or sources, and of no others."""
    present = np.unique(numbers)
    if len(present) != len(names) or present[-1] >= len(names):
        expected = f"residuals of each of {len(names)} {field}s"
        raise InputError.of(field=field, expected=expected, found=f"those of {present.tolist()}")

"""How far intervals reach, by errors on groups that were left out.

The groups, applications as a rule, are what is taken as exchangeable: a new application is to these as they
are to each other. Within a group the errors are correlated, so that each group weighs the same, however many
errors it has. Each question has one `IntervalMethod`, which says how far an interval reaches by such errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.serialization import Array, Stored

_TINY = 1e-9


def check_level(level: float) -> None:
    """Raise an `InputError` unless the level is a probability between 0 and 1."""
    if not 0 < level < 1:
        raise InputError.of(where="level", expected="a probability between 0 and 1", found=f"{level:g}")


def most_level(groups: int) -> float:
    """The highest probability that an interval can be given: ``g / (g + 1)`` with ``g`` groups."""
    return groups / (groups + 1)


def group_weights(group: Integers) -> Reals:
    """Weight of each error: together 1, and the same for each group."""
    sizes = np.bincount(group)
    weights: Reals = 1.0 / (len(sizes) * sizes[group])
    return weights


def conformal_quantiles(errors: Reals, group: Integers, levels: Reals) -> Reals:
    """Conformal quantiles of errors ``(n,)`` or ``(n, d)``, of shape ``(q,)`` or ``(q, d)``.

    An error of another group is at most so large with a probability of at least the level, if that group is
    exchangeable with these, and the model with those that were fitted without a group. Each group has a mass
    of ``1 / (g + 1)``, spread over its errors, and the group that is new has the rest, at an error beyond
    all others (Lee, Barber and Willett 2023, "Distribution-free inference with hierarchical data").
    """
    order = np.argsort(errors, axis=0, kind="stable")
    mass = group_weights(group) * most_level(int(group.max()) + 1)
    until = np.cumsum(mass[order], axis=0)
    ranked = np.take_along_axis(errors, order, axis=0)
    index = [np.minimum((until < level - _TINY).sum(axis=0), len(errors) - 1) for level in levels.tolist()]
    quantiles: Reals = np.take_along_axis(ranked, np.stack(index), axis=0)
    return quantiles


# One-sided 95 % of a normal distribution.
_CAUTION = 1.645


def cautious_quantiles(errors: Reals, group: Integers, levels: Reals) -> Reals:
    """The errors up to which a mean share of a group's errors lies, with 95 % confidence in the mean.

    One for each level, a share. The mean is over groups, and one standard error of it is asked for 1.645
    times more: the mean over few groups would be taken for that over all. Unlike `conformal_quantiles`, this
    leaves nothing to a group that is unlike all others: with nine groups or fewer that would take the largest
    error of all for a level of 0.9.
    """
    values = np.unique(errors)
    by_group = [np.sort(errors[group == number]) for number in np.unique(group)]
    shares = np.stack([np.searchsorted(each, values, side="right") / len(each) for each in by_group])
    doubt = shares.std(axis=0, ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    sure = np.maximum.accumulate(shares.mean(axis=0) - _CAUTION * doubt)
    quantiles: Reals = values[np.minimum(np.searchsorted(sure, levels), len(values) - 1)]
    return quantiles


_WITHIN, _SURE = 0.8, 0.9
_LEAST_ERROR = 0.05


def cautious_quantiles_of_most_groups(errors: Reals, group: Integers, levels: Reals) -> Reals:
    """`cautious_quantiles` that from the level of 90 % on reach most errors of nearly every group.

    80 % of the errors of a new group are reached with a probability of 90 %, if the logarithms of what that
    takes are of a normal distribution (its prediction limit).
    """
    # Imported here: predicting needs no SciPy.
    from scipy.stats import t

    quantiles = cautious_quantiles(errors, group, levels)
    within = [np.quantile(errors[group == number], _WITHIN) for number in np.unique(group)]
    count, logs = len(within), np.log(np.maximum(within, _LEAST_ERROR))
    far = float(t.ppf(_SURE, count - 1)) * float(logs.std(ddof=1)) * np.sqrt(1 + 1 / count)
    limit = float(np.exp(logs.mean() + far))
    return np.where(levels >= _SURE - _TINY, np.maximum(quantiles, limit), quantiles)


def pooled_quantiles(errors: Reals, group: Integers, levels: Reals) -> Reals:
    """Quantiles of all errors together, whatever group they are of."""
    quantiles: Reals = np.quantile(errors, levels)
    return quantiles


@dataclass(frozen=True)
class IntervalMethod:
    """How far intervals of a question reach, by the errors of groups that were left out."""

    name: str
    promise: str  # What an interval of a level holds, for people
    # By absolute errors `(n,)`, their groups `(n,)` and levels `(q,)`; of shape `(q,)`
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
"""Levels at which quantiles are kept."""


def factor_at(level: float, quantiles: Reals, levels: Reals | None = None) -> float:
    """How many standard deviations an interval of a level reaches, between quantiles ``(q,)`` that are kept.

    They are of probabilities from 0 to 1 in equal steps, if `levels` do not say which.
    """
    return float(np.interp(level, np.linspace(0, 1, len(quantiles)) if levels is None else levels, quantiles))


def summed(
    weights: Reals, centre: Reals, low: Reals, high: Reals, correlation: ArrayLike
) -> tuple[Reals, Reals, Reals]:
    """Add quantities that are predicted as logarithms, and their limits.

    Errors are propagated to first order: each counts by its share of the sum, and any two are correlated by a
    correlation (Joint Committee for Guides in Metrology 2008, "Guide to the expression of uncertainty in
    measurement", equation 16, for errors of logarithms).

    Parameters
    ----------
    weights
        How often each of ``n`` quantities is there, of shape ``(n,)``.
    centre, low, high
        Logarithms of the quantities and their limits, of shape ``(n, d)``.
    correlation
        Of any two errors of a column, of shape ``(d,)`` or one for all: 0 to 1.

    Returns
    -------
    tuple of arrays
        Logarithms ``(d,)`` of the sums and their limits.
    """
    parts = np.log(weights)[:, None] + centre
    most = parts.max(axis=0)
    # A sum beyond all numbers has no shares.
    with np.errstate(invalid="ignore"):
        total = most + np.log(np.exp(parts - most).sum(axis=0))
        shares = np.exp(parts - total)
        reaches = []
        for far in (centre - low, high - centre):
            squares = correlation * (shares * far).sum(axis=0) ** 2
            squares += (1 - np.asarray(correlation)) * ((shares * far) ** 2).sum(axis=0)
            reaches.append(np.sqrt(squares))
        return total, total - reaches[0], total + reaches[1]


def correlation_within(errors: Reals, groups: Integers) -> float:
    """Correlation of the errors within a group: mean product of two over the mean square, from 0 to 1.

    The intraclass correlation (Fisher 1925, "Statistical Methods for Research Workers", section 38) about
    zero; each group with several weighs the same, by its number of shape ``(n,)``. Errors ``(n, d)`` of a
    column belong together, and are NaN where not known. 1, the most cautious, if no group tells.
    """
    products, squares = [], []
    for number in np.unique(groups):
        own = errors[groups == number]
        known = np.isfinite(own)
        counts, own = known.sum(axis=0), np.where(known, own, 0.0)
        several = counts > 1
        if several.any():
            square = (own**2).sum(axis=0)[several]
            pairs = (counts * (counts - 1))[several]
            products.append(float(np.mean((own.sum(axis=0)[several] ** 2 - square) / pairs)))
            squares.append(float(np.mean(square / counts[several])))
    total = sum(squares)
    return float(np.clip(sum(products) / total, 0.0, 1.0)) if total > 0 else 1.0


@dataclass(frozen=True, eq=False)
class Residuals(Stored):
    """Out-of-fold residuals, each of a group that was left out."""

    method: ClassVar[IntervalMethod]
    """How intervals are made of them."""

    log_error: Annotated[Reals, Array("n", least=1)]  # Logarithm of the predicted over the true value
    group: Annotated[Integers, Array("n", low=0)]  # Number of the group that was left out
    groups: Annotated[tuple[str, ...], Array("g", least=1)]  # Names of the groups; each has a residual

    def check(self) -> None:
        """Refuse groups without a residual."""
        check_numbers("group", self.group, self.groups)

    @property
    def weights(self) -> Reals:
        """Weight of each residual: together 1, and the same for each group."""
        return group_weights(self.group)

    def quantile(self, errors: Reals, level: float) -> Reals:
        """How far intervals of a level reach, by absolute errors ``(n,)`` or ``(n, d)`` of the residuals."""
        reach: Reals = self.method.quantiles(errors, self.group, np.array([level]))[0]
        return reach


def check_numbers(field: str, numbers: Integers, names: tuple[str, ...]) -> None:
    """Refuse residuals of other groups or sources than those that have names."""
    there = np.unique(numbers)
    if len(there) != len(names) or there[-1] >= len(names):
        expected = f"residuals of each of {len(names)} {field}s"
        raise InputError.of(field=field, expected=expected, found=f"those of {there.tolist()}")

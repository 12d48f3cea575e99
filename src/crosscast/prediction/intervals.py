"""How far intervals reach, by errors on groups that were left out.

The groups, applications as a rule, are what is taken as exchangeable: a new application is to these as they
are to each other. Within a group the errors are correlated, so that each group weighs the same, however many
errors it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

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


def group_reach(errors: Reals, group: Integers, level: float) -> Reals:
    """Conformal quantiles of errors, of shape ``(d,)``.

    An error of another group is at most so large with a probability of at least ``level``, if that group is
    exchangeable with these, and the model with those that were fitted without a group. Each group has a mass
    of ``1 / (g + 1)``, spread over its errors, and the group that is new has the rest, at an error beyond
    all others (Lee, Barber and Willett 2023, "Distribution-free inference with hierarchical data").
    """
    order = np.argsort(errors, axis=0, kind="stable")
    mass = group_weights(group) * most_level(int(group.max()) + 1)
    until = np.cumsum(mass[order], axis=0)
    place = np.minimum((until < level - _TINY).sum(axis=0), len(errors) - 1)
    reach: Reals = np.take_along_axis(errors, np.take_along_axis(order, place[None], axis=0), axis=0)[0]
    return reach


# One-sided 95 % of a normal distribution.
_CAUTION = 1.645


def cautious_quantiles(by_group: Sequence[Reals], levels: Reals) -> Reals:
    """The errors up to which a mean share of a group's errors lies, with 95 % confidence in the mean.

    One for each level, a share. The mean is over groups, each of which has errors, and one standard error of
    it is asked for 1.645 times more: the mean over few groups would be taken for that over all. Unlike
    `group_reach`, this leaves nothing to a group that is unlike all others: with nine groups or fewer that
    would take the largest error of all for a level of 0.9.
    """
    errors = np.unique(np.concatenate(by_group))
    shares = np.stack([np.searchsorted(np.sort(own), errors, side="right") / len(own) for own in by_group])
    doubt = shares.std(axis=0, ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else 0.0
    sure = np.maximum.accumulate(shares.mean(axis=0) - _CAUTION * doubt)
    quantiles: Reals = errors[np.minimum(np.searchsorted(sure, levels), len(errors) - 1)]
    return quantiles


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
    column belong together, and are not a number where not known. 1, the most cautious, if no group tells.
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


LEVELS = np.linspace(0, 1, 201)
"""Probabilities at which quantiles are kept; between them they are interpolated."""

_LEAST_SHARE = 0.02
"""Least spread over the mean error."""

_FARTHEST = 100.0
"""An interval that reaches so far says nothing; by damaged errors its limits would be no numbers."""


@dataclass(frozen=True, eq=False)
class Residuals(Stored):
    """Out-of-fold residuals of one quantity, with how far an interval around a prediction reaches by them.

    Residuals may spread the more the larger the predicted value is: the more an application is slowed down,
    the less sure it is by how much.
    """

    log_error: Annotated[Reals, Array("n", least=1)]  # Logarithm of the predicted over the true value
    group: Annotated[Integers, Array("n", low=0)]  # Number of the group that was left out, in `groups`
    groups: Annotated[tuple[str, ...], Array("g", least=1)]  # Names of the groups; each has a residual
    # Number of the mix of each: residuals of co-runners of one mix belong together. `None` where they do not
    # tell. A mix that several groups leave out has a number in each
    mix: Annotated[Integers, Array("n", low=0)] | None = None
    # Logarithm of each predicted value; `None` where it says nothing of residuals
    log_value: Annotated[Reals, Array("n")] | None = None

    def check(self) -> None:
        """Refuse residuals of other groups than those that have names."""
        found = np.unique(self.group)
        if len(found) != len(self.groups) or found[-1] >= len(self.groups):
            expected = f"residuals of each of {len(self.groups)} groups"
            raise InputError.of(field="group", expected=expected, found=f"those of {found.tolist()}")

    def reach(self, level: float, log_value: ArrayLike = 0.0) -> Any:
        """How far an interval reaches to both sides of predictions, in logarithms.

        By `cautious_quantiles` of the residuals relative to their spread.
        """
        if level not in self._reaches:
            known = np.zeros_like(self.log_error) if self.log_value is None else self.log_value
            relative = np.abs(self.log_error) / self.spread(known)
            by_group = [relative[self.group == number] for number in range(len(self.groups))]
            self._reaches[level] = float(cautious_quantiles(by_group, np.array([level]))[0])
        return np.minimum(self._reaches[level] * self.spread(np.asarray(log_value)), _FARTHEST)

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
        weights, errors = group_weights(self.group), np.abs(self.log_error)
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

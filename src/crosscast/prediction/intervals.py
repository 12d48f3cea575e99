"""How far intervals reach, by errors on groups that were left out.

The groups, applications as a rule, are what is taken as exchangeable: a new application is to these as they
are to each other. Within a group the errors hang together, so that each group weighs the same, however many
errors it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError
from crosscast.prediction.serialization import Array, Stored

_TINY = 1e-9
_SHARES = 100


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


def group_quantile(errors: Reals, group: Integers, level: float) -> float:
    """The error that those of a group that is new should not exceed with a probability of ``level``.

    A quantile in which each group weighs the same. Of which share of the errors, each group in turn tells
    about those of the others: it is the least, not below ``level``, at which the others' quantile holds that
    share of a group's errors on average. Unlike `group_reach`, this leaves nothing to a group that is
    unlike all others: with nine groups or fewer that would take the largest error of all for a level of
    0.9. So it holds about as often as it says on average over new groups, and of one that is unlike the
    others less often.
    """
    shares = np.append(np.linspace(level, 1.0, _SHARES, endpoint=False), 1.0)
    held = np.zeros(len(shares))
    groups = int(group.max()) + 1
    for number in range(groups if groups > 1 else 0):
        own = group == number
        rest = group[~own] - (group[~own] > number)
        limits = _quantiles(errors[~own], rest, shares)
        held += np.searchsorted(np.sort(errors[own]), limits, "right") / own.sum() / groups
    enough = np.flatnonzero(held >= level - _TINY)
    share = shares[enough[0]] if len(enough) else shares[-1 if groups > 1 else 0]
    return float(_quantiles(errors, group, np.array([share]))[0])


def _quantiles(errors: Reals, group: Integers, shares: Reals) -> Reals:
    """Least errors that shares of all do not exceed; each group weighs the same."""
    order = np.argsort(errors, kind="stable")
    until = np.cumsum(group_weights(group)[order])
    places = np.minimum(np.searchsorted(until, shares - _TINY), len(errors) - 1)
    quantiles: Reals = errors[order][places]
    return quantiles


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

        By `group_quantile` of the residuals relative to their spread.
        """
        if level not in self._reaches:
            known = np.zeros_like(self.log_error) if self.log_value is None else self.log_value
            relative = np.abs(self.log_error) / self.spread(known)
            self._reaches[level] = group_quantile(relative, self.group, level)
        return np.minimum(self._reaches[level] * self.spread(np.asarray(log_value)), _FARTHEST)

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

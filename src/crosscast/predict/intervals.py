"""How far intervals reach, by errors on groups that were left out.

The groups, applications as a rule, are what is taken as exchangeable: a new application is to these as they
are to each other. Within a group the errors hang together, so that each group weighs the same, however many
errors it has.
"""

from __future__ import annotations

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.errors import InputError

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


def half_width(quantiles: Reals, level: float) -> float:
    """Half of an interval that holds an error with a probability of `level`, in standard deviations."""
    return float(np.interp(level, np.linspace(0, 1, len(quantiles)), quantiles))


def check_quantiles(name: str, quantiles: Reals) -> None:
    """Refuse what are no quantiles of absolute errors, along the last axis."""
    if quantiles.size == 0 or (quantiles < 0).any() or (np.diff(quantiles, axis=-1) < 0).any():
        raise InputError.of(
            field=name, expected="numbers that begin at 0 or above and rise", found=str(quantiles.ravel()[:4])
        )

"""Features of Table III of the paper (Nichols et al. 2024), from the counters of any tool that is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.relative.counter_names import RULES, plain_name
from crosscast.predict.relative.feature_rules import AMOUNTS, INTENSITIES, Rule
from crosscast.predict.relative.observations import Observations

__all__ = ["COUNTED", "SETTINGS", "Counted", "by_plain_name", "counted", "set_to"]

COUNTED = (*INTENSITIES, *AMOUNTS)
"""Features that are made of counters, in the order of the table."""

SETTINGS = ("nodes", "cores", "uses_gpu")
"""Features that a run was set to."""


@dataclass(frozen=True)
class Counted:
    """Features of ``r`` runs, and what they are made of.

    Parameters
    ----------
    values
        Of shape ``(r, len(COUNTED))``; not a number where a run lacks counters, or has no instructions.
    used
        For each of `COUNTED` the counters, by the names that the runs have for them, that gave it to a run.
    """

    values: Reals
    used: tuple[frozenset[str], ...]


def counted(observations: Observations) -> Counted:
    """Features of Table III that counters give.

    Intensities are ratios to the total number of instructions. Where one name has several counters, such as
    those of the two kinds of cores of a processor, they are added up.
    """
    rows = len(observations)
    lookup, names = by_plain_name(observations)
    values = np.full((rows, len(COUNTED)), np.nan)
    used: list[set[str]] = [set() for _ in COUNTED]
    for rule in RULES:
        column = COUNTED.index(rule.feature)
        found = _of_rule(rule, lookup, rows)
        new = np.isnan(values[:, column]) & ~np.isnan(found)
        if new.any():
            values[new, column] = found[new]
            used[column].update(
                name for each in (*rule.amount.needs, *rule.amount.may_use) for name in names.get(each, ())
            )
    return Counted(values, tuple(map(frozenset, used)))


def _of_rule(rule: Rule, lookup: dict[str, Reals], rows: int) -> Reals:
    amount = rule.amount.values(lookup, rows)
    if rule.whole is None:
        return amount
    whole = rule.whole.values(lookup, rows)
    ratio: Reals = np.divide(amount, whole, out=np.full(rows, np.nan), where=whole > 0)
    return ratio


def by_plain_name(observations: Observations) -> tuple[dict[str, Reals], dict[str, list[str]]]:
    """Values of counters, of shape ``(r,)`` each, and the names that runs have for them, by plain names.

    Counters with one plain name, such as those of two kinds of cores, are added up.
    """
    lookup: dict[str, Reals] = {}
    names: dict[str, list[str]] = {}
    for name, column in zip(observations.names, observations.counters.T, strict=True):
        plain = plain_name(name)
        names.setdefault(plain, []).append(name)
        before = lookup.get(plain)
        lookup[plain] = column if before is None else _added(before, column)
    return lookup, names


def _added(one: Reals, other: Reals) -> Reals:
    """Their sum; where one of them is missing, the other."""
    return np.where(np.isnan(one), other, np.where(np.isnan(other), one, one + other))


def set_to(observations: Observations) -> Reals:
    """Nodes, cores and whether a GPU was used, of shape ``(r, 3)``; not a number where a run does not say."""
    values = np.full((len(observations), len(SETTINGS)), np.nan)
    for column, name in enumerate(SETTINGS):
        if name in observations.configuration:
            values[:, column] = observations.settings[:, observations.configuration.index(name)]
    return values

"""Features of Table III of Nichols et al. 2024, made of counters of several tools: see docs/counters.md."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.relative.data import Observations

_PREFIX = re.compile(r"^(papi\.|papi::|perf::|perf\.)")
_UNIT = re.compile(r"^cpu(?:_core|_atom)?/([^/]+)/[a-z]*$")
_MODIFIER = re.compile(r"(?<=[^:]):[ukhgppsdwei]+$")


def plain_name(counter: str) -> str:
    """Name of a counter in small letters, without what tools put around it.

    >>> plain_name("papi.PAPI_BR_INS"), plain_name("instructions:u"), plain_name("cpu_core/branches/")
    ('papi_br_ins', 'instructions', 'branches')
    """
    name = _PREFIX.sub("", counter.strip().lower()).replace(": ", ":")
    unit = _UNIT.fullmatch(name)
    return unit[1] if unit else _MODIFIER.sub("", name)


def by_plain_name(observations: Observations) -> tuple[dict[str, Reals], dict[str, list[str]]]:
    """Values ``(r,)`` of counters by plain name, and the names that runs have for them.

    Counters of one plain name, such as those of the two kinds of cores of a processor, are added up.
    """
    values: dict[str, Reals] = {}
    names: dict[str, list[str]] = {}
    for name, column in zip(observations.names, observations.counters.T, strict=True):
        plain = plain_name(name)
        names.setdefault(plain, []).append(name)
        before = values.get(plain)
        if before is not None:
            column = np.where(np.isnan(before), column, np.where(np.isnan(column), before, before + column))
        values[plain] = column
    return values, names


_MISSED = re.compile(r"(.+) · \(1 − (.+) / 100\)")
_SHARE = re.compile(r"(.+) · (.+) / \((.+) \+ (.+)\)")


@dataclass(frozen=True)
class Formula:
    """An amount that counters give, as its text says.

    ``a + 2 · b + [c]`` is a sum, in which counters in brackets are added where a run has them;
    ``a · (1 − rate / 100)`` are requests that do not hit; ``a · b / (b + c)`` is the share of a that belongs
    to b. A run that lacks another counter lacks the amount.
    """

    text: str

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Plain names of the counters that a run must have."""
        special = _MISSED.fullmatch(self.text) or _SHARE.fullmatch(self.text)
        if special:
            return tuple(dict.fromkeys(name.lower() for name in special.groups()))
        return tuple(name for _, names in self._products for name in names)

    @cached_property
    def may_use(self) -> tuple[str, ...]:
        """Plain names of the counters in brackets."""
        return tuple(name.lower() for name in re.findall(r"(?:^| )\[([^]]+)\]", self.text))

    @cached_property
    def _products(self) -> list[tuple[float, list[str]]]:
        """Factor and plain names of each term that is not in brackets."""
        products = []
        for term in self.text.split(" + "):
            if not term.startswith("["):
                words = term.split(" · ")
                has_factor = words[0].isdecimal()
                factor = float(words[0]) if has_factor else 1.0
                products.append((factor, [name.lower() for name in words[has_factor:]]))
        return products

    def values(self, counters: Mapping[str, Reals], rows: int) -> Reals:
        """The amounts ``(r,)`` by values of counters by plain name; NaN where one is missing."""
        if any(name not in counters for name in self.needs):
            return np.full(rows, np.nan)
        needed = [counters[name] for name in self.needs]
        if _MISSED.fullmatch(self.text):
            requests, percent = needed
            amount = requests * np.maximum(1 - percent / 100, 0.0)
        elif _SHARE.fullmatch(self.text):
            whole, part, other = needed
            both = part + other
            amount = whole * np.divide(part, both, out=np.full(rows, np.nan), where=both > 0)
        else:
            terms = ((factor, [counters[name] for name in names]) for factor, names in self._products)
            amount = np.sum([factor * np.prod(values, axis=0) for factor, values in terms], axis=0)
        for name in self.may_use:
            if name in counters:
                amount = amount + np.nan_to_num(counters[name])
        return np.where(np.isfinite(amount), amount, np.nan)


INTENSITIES = (
    "branch intensity",
    "store intensity",
    "load intensity",
    "single fp intensity",
    "double fp intensity",
    "arithmetic intensity",
)
"""Features that are ratios to the total number of instructions."""

AMOUNTS = (
    "l1 load misses",
    "l1 store misses",
    "l2 load misses",
    "l2 store misses",
    "io bytes written",
    "io bytes read",
    "extended page table",
    "memory stalls",
)
TABLE_3 = (*INTENSITIES, *AMOUNTS)
"""Features that are made of counters, in the order of the table."""

SETTINGS = ("nodes", "cores", "uses_gpu")
"""Features that a run was set to."""


@dataclass(frozen=True)
class Rule:
    """A way to a feature with the counters of one tool."""

    tool: str
    feature: str
    amount: Formula
    whole: Formula | None  # all instructions, for an intensity


_TABLE = files(__package__).joinpath("table3.csv").read_text(encoding="utf-8")
RULES = tuple(
    Rule(row["tool"], row["feature"], Formula(row["counters"]), Formula(row["over"]) if row["over"] else None)
    for row in csv.DictReader(_TABLE.splitlines())
)
"""All ways to features; a run takes the first to a feature that it has the counters for."""


def table3_features(observations: Observations) -> tuple[Reals, tuple[frozenset[str], ...]]:
    """Values ``(r, len(TABLE_3))`` of the features, and the counters that gave each to a run.

    A value is NaN where a run lacks counters, or has no instructions. Counters are called as the runs do.
    """
    rows = len(observations)
    counters, names = by_plain_name(observations)
    values = np.full((rows, len(TABLE_3)), np.nan)
    used: list[set[str]] = [set() for _ in TABLE_3]
    for rule in RULES:
        column = TABLE_3.index(rule.feature)
        found = rule.amount.values(counters, rows)
        if rule.whole is not None:
            whole = rule.whole.values(counters, rows)
            found = np.divide(found, whole, out=np.full(rows, np.nan), where=whole > 0)
        new = np.isnan(values[:, column]) & ~np.isnan(found)
        if new.any():
            values[new, column] = found[new]
            plain = (*rule.amount.needs, *rule.amount.may_use)
            used[column].update(name for each in plain for name in names.get(each, ()))
    return values, tuple(map(frozenset, used))


def settings_of(observations: Observations) -> Reals:
    """Nodes, cores and whether a GPU was used, of shape ``(r, 3)``; NaN where a run does not say."""
    told = dict(zip(observations.configuration, observations.settings.T, strict=True))
    missing = np.full(len(observations), np.nan)
    return np.column_stack([told.get(name, missing) for name in SETTINGS])

"""Meaning of counters of several tools: features of Table III of Nichols et al. 2024, and amounts of work.

The counters of each are in ``table3.csv`` (see docs/counters.md) and ``work.csv``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from typing import Final, Literal

import numpy as np

from crosscast.arrays import Reals
from crosscast.prediction.relative import Observations

_PREFIX = re.compile(r"^(papi\.|papi::|perf::|perf\.)")
_UNIT = re.compile(r"^cpu(?:_core|_atom)?/([^/]+)/[a-z]*$")
_MODIFIER = re.compile(r"(?<=[^:]):[ukhgppsdwei]+$")


def plain_name(counter: str) -> str:
    """Name of a counter in lower case, without prefixes and modifiers of tools.

    >>> plain_name("papi.PAPI_BR_INS"), plain_name("instructions:u"), plain_name("cpu_core/branches/")
    ('papi_br_ins', 'instructions', 'branches')
    """
    name = _PREFIX.sub("", counter.strip().lower()).replace(": ", ":")
    unit = _UNIT.fullmatch(name)
    return unit[1] if unit else _MODIFIER.sub("", name)


def by_plain_name(observations: Observations) -> tuple[dict[str, Reals], dict[str, list[str]]]:
    """Values ``(r,)`` of counters by plain name, and their names in the runs.

    Those of one plain name, such as of two kinds of cores of a processor, are added up.
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
    """A formula of an amount in counters.

    ``a + 2 · b + [c]`` is a sum, in which counters in brackets are optional; ``a · (1 − rate / 100)`` are
    requests that miss; ``a · b / (b + c)`` is the share of a that belongs to b. A run that lacks a required
    counter lacks the amount.
    """

    text: str

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Plain names of the required counters."""
        special = _MISSED.fullmatch(self.text) or _SHARE.fullmatch(self.text)
        if special:
            return tuple(dict.fromkeys(name.lower() for name in special.groups()))
        return tuple(name for _, names in self._products for name in names)

    @cached_property
    def may_use(self) -> tuple[str, ...]:
        """Plain names of the optional counters."""
        return tuple(name.lower() for name in re.findall(r"(?:^| )\[([^]]+)\]", self.text))

    @cached_property
    def _products(self) -> list[tuple[float, list[str]]]:
        """Factor and plain names of each required term."""
        products = []
        for term in self.text.split(" + "):
            if not term.startswith("["):
                factors = term.lower().split(" · ")
                has_factor = factors[0].isdecimal()
                products.append((float(factors[0]) if has_factor else 1.0, factors[has_factor:]))
        return products

    def values(self, counters: Mapping[str, Reals], rows: int) -> Reals:
        """The amounts ``(r,)`` from counters by plain name; NaN where one is missing."""
        missing = np.full(rows, np.nan)
        if any(name not in counters for name in self.needs):
            return missing
        needed = [counters[name] for name in self.needs]
        if _MISSED.fullmatch(self.text):
            requests, percent = needed
            amount = requests * np.maximum(1 - percent / 100, 0.0)
        elif _SHARE.fullmatch(self.text):
            total, part, other = needed
            amount = total * np.divide(part, part + other, out=missing, where=part + other > 0)
        else:
            terms = ((factor, [counters[name] for name in names]) for factor, names in self._products)
            amount = np.sum([factor * np.prod(values, axis=0) for factor, values in terms], axis=0)
        for name in self.may_use:
            if name in counters:
                amount = amount + np.nan_to_num(counters[name])
        return np.where(np.isfinite(amount), amount, np.nan)


def _table(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


INTENSITIES = (
    *("branch intensity", "store intensity", "load intensity"),
    *("single fp intensity", "double fp intensity", "arithmetic intensity"),
)
"""Features that are ratios to the total number of instructions."""

TABLE_3 = (
    *INTENSITIES,
    *("l1 load misses", "l1 store misses", "l2 load misses", "l2 store misses"),
    *("io bytes written", "io bytes read", "extended page table", "memory stalls"),
)
"""Features of counters, in the order of the table."""

SETTINGS = ("nodes", "cores", "uses_gpu")  # Features that are settings of a run


@dataclass(frozen=True)
class Rule:
    """The formula of a feature in the counters of one tool."""

    tool: str
    feature: str
    amount: Formula
    whole: Formula | None  # all instructions, for an intensity


RULES = tuple(
    Rule(row["tool"], row["feature"], Formula(row["counters"]), Formula(row["over"]) if row["over"] else None)
    for row in _table("table3.csv")
)
"""All rules; for each feature a run uses the first one whose counters it has."""


def table3_features(observations: Observations) -> tuple[Reals, tuple[frozenset[str], ...]]:
    """Values ``(r, len(TABLE_3))`` of the features, and the names of the counters that were used for each.

    A value is NaN where a run lacks counters, or has no instructions.
    """
    rows = len(observations)
    counters, names = by_plain_name(observations)
    values = np.full((rows, len(TABLE_3)), np.nan)
    used: list[set[str]] = [set() for _ in TABLE_3]
    for rule in RULES:
        column = TABLE_3.index(rule.feature)
        amounts = rule.amount.values(counters, rows)
        if rule.whole is not None:
            instructions = rule.whole.values(counters, rows)
            amounts = np.divide(amounts, instructions, out=np.full(rows, np.nan), where=instructions > 0)
        new = np.isnan(values[:, column]) & ~np.isnan(amounts)
        if new.any():
            values[new, column] = amounts[new]
            plain = (*rule.amount.needs, *rule.amount.may_use)
            used[column].update(name for each in plain for name in names.get(each, ()))
    return values, tuple(map(frozenset, used))


LAUNCHES, BYTES, OPERATIONS = "launches", "bytes", "operations"
ITEMS: Final = "items"
INSTRUCTIONS: Final = "instructions"
AMOUNTS: Mapping[str, tuple[Formula, ...]] = {
    kind: tuple(Formula(row["counters"]) for row in _table("work.csv") if row["amount"] == kind)
    for kind in (LAUNCHES, ITEMS, INSTRUCTIONS, BYTES, OPERATIONS)
}
"""Formulas of each amount of work; a run uses the first one whose counters it has.

A memory transaction of nvprof, and a sector of Nsight Compute, has 32 bytes.
"""


def amounts_of(observations: Observations) -> dict[str, Reals]:
    """Amounts of work ``(r,)`` by kind; NaN without the counters."""
    (counters, _), rows = by_plain_name(observations), len(observations)
    amounts: dict[str, Reals] = {}
    for kind, formulas in AMOUNTS.items():
        amount = np.full(rows, np.nan)
        for formula in formulas:
            amount = np.where(np.isnan(amount), formula.values(counters, rows), amount)
        amounts[kind] = amount
    return amounts


Base = Literal["instructions", "items", ""]  # Divisor of totals, if any

_NOT_A_TOTAL = re.compile(
    r"""throughput|efficiency|utili[sz]ation|occupancy|(?<![a-z])(ratio|rate)|percent|pct|avg|ipc|topdown
    |_per_|\.per[._]|eligible|(^|[._])(grid|block|input|static|dynamic|registers|smem|launch_|stall_)
    |overhead|(busy|stalled|hitrate|cachehit|bankconflict)$""",
    re.IGNORECASE | re.VERBOSE,
)


def is_total(counter: str) -> bool:
    """Whether a counter is a total over a run, from its name.

    >>> is_total("Iterations/Rep"), is_total("l1tex__hit_rate"), is_total("achieved_occupancy")
    (True, False, False)
    """
    return _NOT_A_TOTAL.search(counter) is None


def base_of(observations: Observations) -> Base:
    """Divisor of totals: instructions or items, whichever more of the runs have.

    It is chosen by the training runs, so that a feature has one meaning in all others.
    """
    amounts = amounts_of(observations)
    instructions, items = (np.isfinite(amounts[kind]).sum() for kind in (INSTRUCTIONS, ITEMS))
    if not (instructions or items):
        return ""
    return INSTRUCTIONS if instructions >= items else ITEMS


def intensities_of(observations: Observations, base: Base) -> Observations:
    """Replace counters of runs by intensities, in an order that does not depend on theirs.

    Totals are divided by the base, if there is one; other counters stay. Added are logarithms of the amounts
    of work and of their ratios, also to the time of the run on its source, as achieved rates tell most. No
    run's values depend on the other runs.
    """
    amounts = amounts_of(observations)
    columns: dict[str, Reals] = {}
    for index in sorted(range(len(observations.names)), key=observations.names.__getitem__):
        name, values = observations.names[index], observations.counters[:, index]
        if base and is_total(name):
            divisor = amounts[base]
            values = np.divide(values, divisor, out=np.full_like(values, np.nan), where=divisor > 0)
        columns[_intensity(name, base)] = values
    logs = {kind: _log(amount + 1.0) for kind, amount in amounts.items() if np.isfinite(amount).any()}
    if np.isfinite(observations.time_s).any():
        logs["time"] = _log(observations.time_s)
    columns |= {f"log {name}": values for name, values in logs.items()}
    if "time" in logs:
        columns |= {f"log time over {name}": logs["time"] - logs[name] for name in logs if name != "time"}
    if BYTES in logs and OPERATIONS in logs:
        columns["log operations over bytes"] = logs[OPERATIONS] - logs[BYTES]
    counters = np.column_stack([*columns.values()]) if columns else np.empty((len(observations), 0))
    return replace(observations, names=tuple(columns), counters=counters.astype(np.float64))


def unknown_counters(observations: Observations, base: Base, known: Collection[str]) -> tuple[str, ...]:
    """Counters of runs that no known intensity uses."""
    formulas = [formula for kind in AMOUNTS if f"log {kind}" in known for formula in AMOUNTS[kind]]
    used = {counter for formula in formulas for counter in (*formula.needs, *formula.may_use)}
    return tuple(
        name
        for name in observations.names
        if _intensity(name, base) not in known and plain_name(name) not in used
    )


def _intensity(counter: str, base: Base) -> str:
    return f"{counter} a unit" if base and is_total(counter) else counter


def _log(values: Reals) -> Reals:
    return np.log(values, out=np.full_like(values, np.nan), where=values > 0)

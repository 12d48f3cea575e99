"""Rows of a profile of Caliper, and the counters of the whole program or of one of its regions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosscast.errors import InputError
from crosscast.tables.importers.counters.counted_run import CountedRun
from crosscast.tables.importers.counters.tool_units import factor_of

__all__ = ["MOST_LEVELS", "MOST_NAMES", "CaliperRow", "counted_in"]

MOST_LEVELS = 200
"""How deep regions may be nested."""

MOST_NAMES = 20_000_000
"""How many names all regions together may have, with those around them."""

_TIMES = ("time.duration", "time", "time.inclusive.duration", "time (inc)")
"""Best first; those without ``duration`` are what tables call the others."""

_INCLUSIVE = ("inclusive", "time.inclusive", "time (inc)")
_NO_AMOUNTS = ("min", "max", "percent", "ratio", "variance", "histogram", "first")
_FACT = "any"
_LOST = ("scale", "iscale")
_NANOSECONDS = ".ns"


@dataclass(frozen=True)
class CaliperRow:
    """What was measured in a region of a process.

    Parameters
    ----------
    region
        Names of the regions around it, outermost first, and its own; empty outside of all.
    rank
        Number of the process; ``None`` if the profile does not tell processes apart.
    values
        Values by the names of attributes, such as ``sum#time.duration``.
    """

    region: tuple[str, ...]
    rank: str | None
    values: Mapping[str, float]


def counted_in(
    path: Path, rows: Sequence[CaliperRow], units: Mapping[str, str], region: str | None
) -> CountedRun:
    """Counters of the whole program, or of a region and the regions within: means over the processes.

    The name of an attribute is that after its operators: ``sum#papi.PAPI_BR_INS`` is ``papi.PAPI_BR_INS``.
    Least and greatest values, shares and the like are left out, as they cannot be added; what a region says
    of itself (``any#…``) is that of the outermost. The time is that of the process that took longest.

    Parameters
    ----------
    path
        The profile, for messages.
    rows
        Its rows.
    units
        Units of attributes, where the profile says them.
    region
        Name of a region; ``None`` for the whole.

    Raises
    ------
    InputError
        If no row is of the region.
    """
    if region is not None:
        inside = [row for row in rows if region in row.region]
        if not inside:
            there = ", ".join(sorted({name for row in rows for name in row.region}))[:200]
            raise InputError(f"{path}: expected a region {region}, found {there or 'none'}")
        rows = inside
    processes = len({row.rank for row in rows if row.rank is not None}) or 1
    counters: dict[str, float] = {}
    times: dict[str, float] = {}
    for attribute in _attributes(rows):
        factor = _factor(attribute, units.get(attribute, ""))
        sums = _sums(rows, attribute)
        name = attribute.split("#")[-1].removesuffix(_NANOSECONDS)
        if name in _TIMES:
            times.setdefault(name, factor * max(sums.values()))
        elif name not in counters:
            counters[name] = factor * sum(sums.values()) / processes
    time_s = next((times[name] for name in _TIMES if name in times), None)
    return CountedRun(str(path), path.stem, counters, time_s, kernel=region)


def _attributes(rows: Sequence[CaliperRow]) -> list[str]:
    """Attributes of amounts; of the same quantity, those first that say it best."""
    names = {name for row in rows for name in row.values}
    return sorted((name for name in names if _is_amount(name)), key=_preference)


def _is_amount(attribute: str) -> bool:
    operators = attribute.split("#")[:-1]
    return _FACT in operators or not any(part.startswith(_NO_AMOUNTS) for part in operators)


def _preference(attribute: str) -> tuple[bool, bool, bool, str]:
    operators = attribute.split("#")[:-1]
    is_scaled = any(part in _LOST for part in operators)
    # Where processes are put together, the mean over them rather than their sum.
    return is_scaled, _is_inclusive(attribute), "avg" not in operators, attribute


def _is_inclusive(attribute: str) -> bool:
    return any(part.startswith(_INCLUSIVE) for part in attribute.split("#"))


def _factor(attribute: str, unit: str) -> float:
    if unit:
        return factor_of(unit)
    is_scaled = any(part in _LOST for part in attribute.split("#")[:-1])
    return 1e-9 if attribute.endswith(_NANOSECONDS) and not is_scaled else 1.0


def _sums(rows: Sequence[CaliperRow], attribute: str) -> dict[str | None, float]:
    """Sum of an attribute for each process; of an inclusive one, over the outermost regions that have it.

    What is outside of all regions is around none of them.
    """
    having = [row for row in rows if attribute in row.values]
    is_fact = _FACT in attribute.split("#")[:-1]
    if is_fact or _is_inclusive(attribute):
        regions = {(row.rank, row.region) for row in having}
        having = [
            row
            for row in having
            if not any((row.rank, row.region[:end]) in regions for end in range(1, len(row.region)))
        ]
    sums: defaultdict[str | None, float] = defaultdict(float)
    for row in having:
        value = row.values[attribute]
        sums[row.rank] = max(sums.get(row.rank, value), value) if is_fact else sums[row.rank] + value
    return sums

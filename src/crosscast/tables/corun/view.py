"""The view of a dataset's co-running: solo runs and bags as objects that name each other."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.arrow import Table
from crosscast.tables.bags import BAGS
from crosscast.tables.corun.bag import Bag, Member
from crosscast.tables.corun.solo import Solo
from crosscast.tables.dataset import Dataset
from crosscast.tables.solos import SOLOS

__all__ = ["CoRuns", "co_runs"]

_COLUMNS = tuple(column.name for column in BAGS.columns if column.name not in ("time_s", "jobs"))
_Key = tuple[str, str, str, str]
_Columns = Mapping[str, list[Any]]


@dataclass(frozen=True, eq=False)
class CoRuns:
    """Solo runs and bags.

    Parameters
    ----------
    label
        Where they are from, for messages.
    solos
        Applications alone, in the order of their keys; those that failed are left out.
    bags
        Bags, in the order of their keys, those with a member that failed too.
    """

    label: str
    solos: tuple[Solo, ...]
    bags: tuple[Bag, ...]

    @property
    def applications(self) -> tuple[str, ...]:
        """Names of the applications of the bags, sorted."""
        return tuple(sorted({name for bag in self.bags for name in bag.applications}))


def co_runs(dataset: Dataset) -> CoRuns:
    """The solo runs and bags of a dataset.

    A member's solo run is that of its configuration, or of the defaults where there is none, as a way of
    sharing a device is nothing that an application alone has. A member without one gets a solo run of which
    nothing is known.

    Raises
    ------
    InputError
        If the features of a solo run are not finite numbers by name.
    """
    solos: dict[_Key, Solo] = {}
    for number, row in enumerate(dataset.solos.to_pylist(), start=1):
        if row["failure"] is None:
            solo = _solo(row, f"{dataset.label}: solos: row {number}")
            solos[solo.key] = solo
    columns = {name: _cells(dataset.bags, name) for name in _COLUMNS}
    keys = list(zip(*(columns[name] for name in BAGS.key), strict=True))
    rows = sorted(range(len(keys)), key=keys.__getitem__)
    alone = _Members(columns, dict(solos))
    bags = tuple(
        _bag(columns, list(found), alone) for _, found in groupby(rows, key=lambda row: keys[row][:-1])
    )
    return CoRuns(dataset.label, tuple(solo for _, solo in sorted(solos.items())), bags)


def _cells(bags: Table, name: str) -> list[Any]:
    """Cells of a column; equal ones are one object, as there may be many rows."""
    cells = bags.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
    values = cells.dictionary.to_pylist()
    return [values[number] for number in cells.indices.to_pylist()]


def _solo(row: Mapping[str, Any], place: str) -> Solo:
    features = json.loads(row["features"])
    if not isinstance(features, dict) or not all(_is_finite(value) for value in features.values()):
        raise InputError(f"{place}: column 'features': expected finite numbers by name, found others")
    return Solo(
        row["application"],
        row["size"],
        row["device"],
        row["time_s"],
        row["configuration"],
        row["runs"] or 1,
        row["power_w"],
        row["memory_bytes"],
        {name: float(value) for name, value in sorted(features.items())},
    )


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _bag(columns: _Columns, rows: Sequence[int], members: _Members) -> Bag:
    first = {name: cells[rows[0]] for name, cells in columns.items()}
    return Bag(
        first["bag"],
        first["device"],
        tuple(members.of(row) for row in rows),
        first["configuration"],
        first["repeat"],
        None if first["fits"] is None else bool(first["fits"]),
        first["bag_time_s"],
        first["overlap"],
        first["power_w"],
    )


class _Members:
    """Members of bags by their rows, with one solo run for all that have the same."""

    def __init__(self, columns: _Columns, solos: dict[_Key, Solo]) -> None:
        self._columns = columns
        self._solos = solos

    def of(self, row: int) -> Member:
        return Member(self._solo(row), self._columns["slowdown"][row], self._columns["failure"][row])

    def _solo(self, row: int) -> Solo:
        application, size, device, configuration = (self._columns[name][row] for name in SOLOS.key)
        key = application, size, device, configuration
        if key not in self._solos:
            default = application, size, device, "{}"
            self._solos[key] = self._solos.setdefault(default, Solo(application, size, device, None))
        return self._solos[key]

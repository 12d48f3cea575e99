"""What solo runs and bags must be beside what their schemas say: the rows of a bag fit together."""

from __future__ import annotations

import numpy as np

from crosscast.errors import InputError
from crosscast.tables.arrow import Table
from crosscast.tables.bags import BAGS
from crosscast.tables.keys import Numbers, key_numbers
from crosscast.tables.library import pa, pc
from crosscast.tables.schema import Schema
from crosscast.tables.solos import SOLOS

__all__ = ["check_corun_rows"]

_ABOVE_0 = {SOLOS.table: ("time_s",), BAGS.table: ("time_s", "slowdown", "bag_time_s")}
_OF_THE_BAG = ("fits", "bag_time_s", "overlap", "power_w")


def check_corun_rows(solos: Table, bags: Table, label: str) -> None:
    """Check two tables that follow their schemas.

    Raises
    ------
    InputError
        If a time or slowdown is 0, a failure has no letter, or in bags ``fits`` is neither 0 nor 1, an
        overlap is above 1, positions are not 0, 1, ... or rows do not agree in what is of the whole bag. The
        message names the table, column and row.
    """
    for schema, table in ((SOLOS, solos), (BAGS, bags)):
        for name in _ABOVE_0[schema.table]:
            _refuse(label, schema, name, table, pc.equal(table.column(name), 0), "expected more than 0")
        reason = "expected why it failed, or an empty cell"
        _refuse(label, schema, "failure", table, pc.equal(table.column("failure"), ""), reason)
    for name in ("fits", "overlap"):
        reason = "expected 0 or 1" if name == "fits" else "expected at most 1"
        _refuse(label, BAGS, name, bags, pc.greater(bags.column(name), 1), reason)
    if bags.num_rows:
        (numbers,) = key_numbers([bags], BAGS.key[:-1])
        _check_positions(bags, numbers, label)
        _check_agreement(bags, numbers, label)


def _check_positions(bags: Table, numbers: Numbers, label: str) -> None:
    # No two rows of a bag have the same position, so that only the last can be wrong.
    sizes = np.bincount(numbers)[numbers]
    wrong = pa.array(bags.column("position").to_numpy() >= sizes)
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        reason = f"expected less than the {sizes[row]} rows of its bag"
        _refuse(label, BAGS, "position", bags, wrong, reason)


def _check_agreement(bags: Table, numbers: Numbers, label: str) -> None:
    first = np.unique(numbers, return_index=True)[1][numbers]
    for name in _OF_THE_BAG:
        cells = bags.column(name).cast(pa.float64()).to_numpy()
        wrong = pa.array((cells != cells[first]) & ~(np.isnan(cells) & np.isnan(cells[first])))
        row = pc.index(wrong, True).as_py()
        if row >= 0:
            there = first[row]
            told = _shown(bags.column(name)[there].as_py())
            _refuse(label, BAGS, name, bags, wrong, f"expected {told}, as in row {there + 1} of the same bag")


def _refuse(label: str, schema: Schema, name: str, table: Table, wrong: pa.Array, reason: str) -> None:
    row = pc.index(pc.fill_null(wrong, False), True).as_py()
    if row >= 0:
        found = _shown(table.column(name)[row].as_py())
        raise InputError(f"{label}: {schema.table}: column {name!r}, row {row + 1}: {reason}, found {found}")


def _shown(cell: object) -> str:
    if cell is None:
        return "nothing"
    return str(cell) or "a text without a letter"

"""Schemas: the columns of a table, with types, units and a version."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Column", "ColumnType", "Schema", "json_text"]

ColumnType = Literal["text", "json", "integer", "real", "reals"]
"""``json`` is text that holds a JSON value, ``reals`` a list of one or more real numbers."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name
        Its name.
    type
        What its cells hold.
    unit
        Unit of its numbers, SI; empty for texts.
    title
        What it says, in a few words, for people.
    required
        No cell may be empty.
    least
        Smallest number that a cell may hold.
    """

    name: str
    type: ColumnType
    unit: str = ""
    title: str = ""
    required: bool = False
    least: float | None = None


@dataclass(frozen=True)
class Schema:
    """What a table must look like.

    Parameters
    ----------
    table
        Name of the table.
    version
        Rises when a column changes its name, type or meaning.
    columns
        The columns, in order.
    key
        Columns that tell rows apart: no two rows agree in all of them. Without any, all rows may.
    """

    table: str
    version: int
    columns: tuple[Column, ...]
    key: tuple[str, ...]


def json_text(value: Any) -> str:
    """Write a JSON value as tables hold it: equal values give equal texts.

    Raises
    ------
    ValueError
        If a number in it is not finite.

    Examples
    --------
    >>> json_text({"cores": 2, "clock_hz": 1e9})
    '{"clock_hz": 1000000000.0, "cores": 2}'
    """
    return json.dumps(value, sort_keys=True, allow_nan=False)

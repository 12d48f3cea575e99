"""Schemas: the columns of a table, with types, units and a version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Column", "ColumnType", "Schema"]

ColumnType = Literal["text", "json", "integer", "real", "reals"]
"""``json`` is text that holds a JSON value, ``reals`` a list of real numbers."""


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
        Columns that tell rows apart: no two rows agree in all of them.
    """

    table: str
    version: int
    columns: tuple[Column, ...]
    key: tuple[str, ...]

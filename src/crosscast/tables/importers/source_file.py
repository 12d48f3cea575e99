"""Others' files: columns that are looked up by name, checked before anything is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.arrow import cast, check
from crosscast.tables.library import pa, pq
from crosscast.tables.schema import Schema

__all__ = ["read_source"]


def read_source(path: Path, schema: Schema) -> list[dict[str, Any]]:
    """Read the rows of a Parquet or CSV file.

    Parameters
    ----------
    path
        The file; its suffix says which form it has.
    schema
        Columns that it must have, in its own units; others are passed over.

    Returns
    -------
    list of dict
        Cells by column, row by row.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or holds what it must not. The message names the
        file, the column and the row (the first is row 1).
    """
    try:
        table = _read_csv(path) if path.suffix == ".csv" else pq.read_table(path, memory_map=False)
    except (OSError, pa.ArrowException) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
        raise InputError(f"{path}: cannot read the table of {schema.table} ({reason})") from error
    table = cast(schema, table, str(path))
    check(schema, table, str(path))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _read_csv(path: Path) -> pa.Table:
    # Not at the top of the module: `library` must have said first that pyarrow is missing.
    from pyarrow import csv

    # Empty cells are missing ones, in columns of text too.
    return csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=True))

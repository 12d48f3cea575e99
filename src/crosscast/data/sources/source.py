"""Others' files: columns that are looked up by name, checked before anything is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crosscast.data.dataset import TABLES, Dataset, is_cut_off, parts, read_dataset, write_dataset
from crosscast.data.files import locked
from crosscast.data.library import pa, pq
from crosscast.data.schema import Column, Schema
from crosscast.data.table import cast, check, in_order
from crosscast.errors import InputError

_CSV = (".csv", ".csv.gz")


def read_source(path: Path, schema: Schema) -> list[dict[str, Any]]:
    """Read the rows of a Parquet or CSV file; a CSV file may be packed with gzip."""
    try:
        table = _read_csv(path) if path.name.endswith(_CSV) else pq.read_table(path, memory_map=False)
        # Here, as names that are no text are found when they are asked for.
        names = table.column_names
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
        raise InputError(f"{path}: cannot read the table of {schema.table} ({reason})") from error
    for column in schema.columns:
        if column.type in ("integer", "real") and names.count(column.name) == 1:
            _expect_numbers(path, column, table.column(column.name))
    table = cast(schema, table, str(path))
    check(schema, table, str(path))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def _expect_numbers(path: Path, column: Column, cells: pa.ChunkedArray) -> None:
    """Refuse a text, with its row: in a CSV file, one of them makes a whole column one of texts."""
    if not pa.types.is_string(cells.type):
        return
    for row, text in enumerate(cells.to_pylist(), start=1):
        try:
            if text is not None:
                float(text)
        except ValueError:
            place = f"{path}: column {column.name!r}, row {row}"
            raise InputError(f"{place}: expected a number, found {text!r}") from None


def _read_csv(path: Path) -> pa.Table:
    # Not at the top of the module: `library` must have said first that pyarrow is missing.
    from pyarrow import csv

    # Empty cells are missing ones, in columns of text too.
    return csv.read_csv(path, convert_options=csv.ConvertOptions(strings_can_be_null=True))


def store(dataset: Dataset, folder: str | Path, *, replace: bool = False) -> None:
    """Write a dataset into a folder."""
    folder = Path(folder)
    with locked(folder):
        if not replace and _holds_another(folder, dataset):
            raise InputError(f"{folder}: expected no other dataset: choose another folder, or give --replace")
        write_dataset(dataset, folder)


def _holds_another(folder: Path, dataset: Dataset) -> bool:
    if parts(folder):
        return True
    if is_cut_off(folder) or not any((folder / f"{schema.table}.parquet").exists() for schema in TABLES):
        return False
    try:
        there = read_dataset(folder)
    except InputError:
        # Damaged or newer: somebody else's, whatever it is.
        return True
    return any(
        in_order(schema, there.table(schema)) != in_order(schema, dataset.table(schema)) for schema in TABLES
    )

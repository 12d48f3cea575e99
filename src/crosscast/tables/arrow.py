"""Tables in memory: Arrow tables that follow a schema, and the check that they do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr as shortened
from typing import Any, TypeAlias

from crosscast.errors import InputError
from crosscast.tables.library import pa, pc
from crosscast.tables.schema import Column, ColumnType, Schema, json_text

__all__ = [
    "Table",
    "arrow_schema",
    "cast",
    "check",
    "concatenated",
    "identity_of",
    "in_order",
    "notes_of",
    "table_of",
]

Table: TypeAlias = pa.Table

_TYPES: dict[ColumnType, pa.DataType] = {
    "text": pa.string(),
    "json": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "reals": pa.list_(pa.float64()),
}
_MEANINGS: dict[ColumnType, str] = {
    "text": "a text",
    "json": "a JSON value",
    "integer": "a whole number",
    "real": "a number",
    "reals": "a list of numbers",
}
_UNFIT = (TypeError, ValueError, OverflowError, RecursionError, pa.ArrowException)
_TABLE = b"crosscast.table"
_VERSION = b"crosscast.version"
_NOTE = b"crosscast.note."


def arrow_schema(schema: Schema, notes: Mapping[str, str] | None = None) -> pa.Schema:
    """Arrow's form of a schema; units, version and notes are in its metadata."""
    metadata = {_TABLE: schema.table.encode(), _VERSION: str(schema.version).encode()}
    for name, text in sorted((notes or {}).items()):
        metadata[_NOTE + name.encode()] = text.encode()
    fields = [
        pa.field(c.name, _TYPES[c.type], metadata={"unit": c.unit} if c.unit else None)
        for c in schema.columns
    ]
    return pa.schema(fields, metadata=metadata)


def table_of(
    schema: Schema, rows: Iterable[Mapping[str, Any]], notes: Mapping[str, str] | None = None
) -> Table:
    """Make a table of rows, which may leave columns out, and check it.

    Parameters
    ----------
    schema
        What the table must be.
    rows
        Cells by column; ``None`` or nothing where a cell is empty. In a JSON column, a text is taken
        as it is, and any other value is written as JSON.
    notes
        Texts that are kept with the table, by name.

    Raises
    ------
    InputError
        If a value does not fit its column, or there is no such column.
    """
    listed = list(rows)
    unknown = {name for row in listed for name in row} - {c.name for c in schema.columns}
    if unknown:
        raise InputError(f"{schema.table}: expected columns of the table, found {min(unknown)!r}")
    arrays = [_array(schema, column, [row.get(column.name) for row in listed]) for column in schema.columns]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(schema, notes))
    check(schema, table, schema.table)
    return table


def _array(schema: Schema, column: Column, cells: list[Any]) -> pa.Array:
    try:
        return _converted(column, cells)
    except _UNFIT:
        row, cell = next((i, cell) for i, cell in enumerate(cells, start=1) if not _fits(column, cell))
    place = f"{schema.table}: column {column.name!r}, row {row}"
    raise InputError(f"{place}: expected {_MEANINGS[column.type]}, found {shortened(cell)}")


def _converted(column: Column, cells: list[Any]) -> pa.Array:
    if column.type == "json":
        cells = [cell if cell is None or isinstance(cell, str) else json_text(cell) for cell in cells]
    elif column.type == "integer" and any(isinstance(c, float) and not c.is_integer() for c in cells):
        # Arrow would cut them off.
        raise ValueError
    return pa.array(cells, type=_TYPES[column.type])


def _fits(column: Column, cell: Any) -> bool:
    try:
        _converted(column, [cell])
    except _UNFIT:
        return False
    return True


def cast(schema: Schema, table: Table, label: str) -> Table:
    """Give a table the columns of a schema, in order; its notes stay.

    Raises
    ------
    InputError
        If a column is missing or has another type.
    """
    arrays = []
    for column in schema.columns:
        if table.column_names.count(column.name) != 1:
            found = "is missing" if column.name not in table.column_names else "is there more than once"
            raise InputError(f"{label}: column {column.name!r} of the table of {schema.table} {found}")
        cells = table.column(column.name)
        try:
            arrays.append(cells.cast(_TYPES[column.type]))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            reason = f"expected {_MEANINGS[column.type]} in each row, found {cells.type}"
            raise InputError(f"{label}: column {column.name!r}: {reason}") from error
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema, notes_of(table)))


def check(schema: Schema, table: Table, label: str) -> None:
    """Check the contents of a table that has the columns of a schema.

    Parameters
    ----------
    schema
        What the table must be.
    table
        The table.
    label
        File or name, for messages.

    Raises
    ------
    InputError
        If a required cell is empty, a number is not finite or too small, a text is not JSON where it
        must be, or two rows have the same key. The message names the column and the row (the first is
        row 1).
    """
    for column in schema.columns:
        cells = table.column(column.name)
        if column.required and cells.null_count:
            _refuse(label, column, pc.is_null(cells), "expected a value, found none")
        # Cell i of what is checked is in row rows[i].
        rows = None
        if column.type == "json":
            _check_json(label, column, cells, of_key=column.name in schema.key)
        if column.type == "reals":
            _refuse(label, column, pc.equal(pc.list_value_length(cells), 0), "expected numbers, found none")
            cells, rows = pc.list_flatten(cells), pc.list_parent_indices(cells)
            _refuse(label, column, pc.is_null(cells), "expected numbers, found an empty one", rows=rows)
        if column.type in ("real", "reals"):
            _refuse(label, column, pc.invert(pc.is_finite(cells)), "expected a finite number", cells, rows)
        if column.least is not None:
            reason = f"expected at least {column.least:g}"
            _refuse(label, column, pc.less(cells, column.least), reason, cells, rows)
    if schema.key:
        _check_key(schema, table, label)


def _refuse(
    label: str,
    column: Column,
    wrong: pa.ChunkedArray,
    reason: str,
    cells: pa.ChunkedArray | None = None,
    rows: pa.ChunkedArray | None = None,
) -> None:
    place = pc.index(pc.fill_null(wrong, False), True).as_py()
    if place >= 0:
        row = place if rows is None else rows[place].as_py()
        found = "" if cells is None else f", found {cells[place].as_py()}"
        raise InputError(f"{label}: column {column.name!r}, row {row + 1}: {reason}{found}")


def _check_json(label: str, column: Column, cells: pa.ChunkedArray, *, of_key: bool) -> None:
    for text in pc.unique(cells).drop_null().to_pylist():
        try:
            sorted_text = json_text(json.loads(text))
        except RecursionError:
            # The whole of it would fill the screen.
            _refuse(
                label, column, pc.equal(cells, text), f"expected a JSON value, found {text[:60]!r} and more"
            )
            raise  # pragma: no cover
        except ValueError:
            _refuse(label, column, pc.equal(cells, text), "expected a JSON value", cells)
            raise  # pragma: no cover
        if of_key and sorted_text != text:
            # Two texts of one value would be two keys.
            _refuse(label, column, pc.equal(cells, text), f"expected the form {sorted_text}", cells)


def _check_key(schema: Schema, table: Table, label: str) -> None:
    names = list(schema.key)
    keys = table.select(names)
    if keys.group_by(names).aggregate([]).num_rows == keys.num_rows:
        return
    seen: dict[tuple[Any, ...], int] = {}
    columns = [keys.column(name).to_pylist() for name in names]
    for number, key in enumerate(zip(*columns, strict=True), start=1):
        first = seen.setdefault(key, number)
        if first != number:
            what = ", ".join(f"{name} {value}" for name, value in zip(names, key, strict=True))
            raise InputError(f"{label}: rows {first} and {number} are both of {what}")


def identity_of(table: Table) -> tuple[str, int] | None:
    """Name and version of the schema that a table was written with; ``None`` if it has none."""
    metadata = table.schema.metadata or {}
    name, version = metadata.get(_TABLE), metadata.get(_VERSION, b"")
    if name is None or not version.isdigit():
        return None
    return name.decode(), int(version)


def notes_of(table: Table) -> dict[str, str]:
    """Texts that are kept with a table, by name."""
    metadata = table.schema.metadata or {}
    return {
        key[len(_NOTE) :].decode(): text.decode() for key, text in metadata.items() if key.startswith(_NOTE)
    }


def concatenated(schema: Schema, tables: Sequence[Table]) -> Table:
    """One table of several that follow a schema, with the notes of all."""
    notes = {name: text for table in tables for name, text in notes_of(table).items()}
    arrow = arrow_schema(schema, notes)
    parts = [table.replace_schema_metadata(arrow.metadata) for table in tables]
    return pa.concat_tables([arrow.empty_table(), *parts])


def in_order(schema: Schema, table: Table) -> Table:
    """Rows of a table in the order of its key, so that equal contents are equal tables."""
    keys = [(name, "ascending") for name in schema.key]
    return table.take(pc.sort_indices(table, sort_keys=keys))

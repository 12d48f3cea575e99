"""Rows of tables: their types name the columns of the schemas, and a cell is read as what it is."""

from types import UnionType
from typing import Any, get_args, get_type_hints

import pytest

from crosscast.data.fields import TableRow
from crosscast.data.schema import ENERGY, RECORDS, SESSIONS, ColumnType, Schema
from crosscast.errors import InputError
from crosscast.measure.processes import EnergyRow, RecordRow, SessionRow
from support.refusals import refusal

PYTHON_TYPES: dict[ColumnType, tuple[str, ...]] = {
    "text": ("str",),
    "json": ("str",),
    "integer": ("int",),
    "real": ("float",),
    "reals": ("Sequence",),
}


def type_name(hint: Any) -> str:
    """Name of a type, of an optional one without ``None``."""
    if isinstance(hint, UnionType):
        (hint,) = (each for each in get_args(hint) if each is not type(None))
    return str(hint.__name__)


@pytest.mark.parametrize(
    ("row", "schema"), [(SessionRow, SESSIONS), (RecordRow, RECORDS), (EnergyRow, ENERGY)]
)
def test_rows_name_columns_of_their_schema_with_their_types(row: type, schema: Schema) -> None:
    columns = {column.name: column for column in schema.columns}
    for name, hint in get_type_hints(row).items():
        assert type_name(hint) in PYTHON_TYPES[columns[name].type], name


CELLS: dict[str, object] = {
    "text": "a",
    "integer": 3,
    "number": 0.5,
    "texts": ["a", "b"],
    "entries": {"a": 1},
    "empty": None,
}
READERS = ("text", "integer", "number", "texts", "entries")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", [*CELLS, "absent"])
def test_a_cell_is_read_as_what_it_holds_or_refused(reader: str, name: str) -> None:
    row = TableRow(CELLS)
    read = getattr(row, reader)
    if name == reader or (reader, name) == ("number", "integer"):
        assert read(name) == CELLS[name]
    elif reader == "texts" and name in ("empty", "absent"):
        assert read(name) == []
    else:
        with pytest.raises(InputError, match=f"column '{name}': expected .*, found"):
            read(name)


def test_flags_are_no_numbers() -> None:
    row = TableRow({"flag": True})
    for read in (row.integer, row.number):
        assert "found True" in refusal(read, "flag")

"""Arrow tables that follow a schema: making, checking, reading and writing them."""

from __future__ import annotations

import errno
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortened
from typing import TypeAlias

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.data.files import atomic_file
from crosscast.data.library import pa, pc, pq
from crosscast.data.schema import Column, ColumnType, Schema, json_text
from crosscast.errors import EnvironmentFault, InputError

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
    """Convert a schema to Arrow's; units, version and notes are in its metadata."""
    metadata = {_TABLE: schema.table.encode(), _VERSION: str(schema.version).encode()}
    for name, text in sorted((notes or {}).items()):
        metadata[_NOTE + name.encode()] = text.encode()
    fields = [
        pa.field(c.name, _TYPES[c.type], metadata={"unit": c.unit} if c.unit else None)
        for c in schema.columns
    ]
    return pa.schema(fields, metadata=metadata)


def table_of(
    schema: Schema, rows: Iterable[Mapping[str, object]], notes: Mapping[str, str] | None = None
) -> Table:
    """Make a table from rows, which may lack columns, and check it."""
    listed = list(rows)
    unknown = {name for row in listed for name in row} - {c.name for c in schema.columns}
    if unknown:
        raise InputError.of(where=schema.table, expected="columns of the table", found=repr(min(unknown)))
    arrays = [_array(schema, column, [row.get(column.name) for row in listed]) for column in schema.columns]
    table = pa.Table.from_arrays(arrays, schema=arrow_schema(schema, notes))
    check(schema, table, schema.table)
    return table


def _array(schema: Schema, column: Column, cells: list[object]) -> pa.Array:
    try:
        return _converted(column, cells)
    except _UNFIT:
        row, cell = next((i, cell) for i, cell in enumerate(cells, start=1) if not _fits(column, cell))
    where = f"{schema.table}: column {column.name!r}, row {row}"
    raise InputError.of(where=where, expected=_MEANINGS[column.type], found=f"{shortened(cell)}")


def _converted(column: Column, cells: list[object]) -> pa.Array:
    if column.type == "json":
        cells = [cell if cell is None or isinstance(cell, str) else json_text(cell) for cell in cells]
    elif column.type == "integer" and any(isinstance(c, float) and not c.is_integer() for c in cells):
        # Arrow would truncate them.
        raise ValueError
    return pa.array(cells, type=_TYPES[column.type])


def _fits(column: Column, cell: object) -> bool:
    try:
        _converted(column, [cell])
    except _UNFIT:
        return False
    return True


def cast(schema: Schema, table: Table, label: str) -> Table:
    """Convert a table to the columns of a schema, in order; its notes stay."""
    arrays, counts = [], Counter(table.column_names)
    for column in schema.columns:
        if counts[column.name] != 1:
            problem = "is there more than once" if counts[column.name] else "is missing"
            raise InputError.of(
                where=label, problem=f"column {column.name!r} of the table of {schema.table} {problem}"
            )
        cells = table.column(column.name)
        type_ = _TYPES[column.type]
        try:
            arrays.append(cells if cells.type == type_ else cells.cast(type_))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            is_flag = column.type == "integer" and (column.ge, column.le) == (0, 1)
            expected = "true or false" if is_flag else _MEANINGS[column.type]
            reason = f"expected {expected} in each row, found {cells.type}"
            raise InputError.of(where=label, problem=f"column {column.name!r}: {reason}") from error
    return pa.Table.from_arrays(arrays, schema=arrow_schema(schema, notes_of(table)))


def checked(schema: Schema, table: Table, label: str) -> Table:
    """Convert a table to the columns of a schema, and check its contents."""
    table = cast(schema, table, label)
    check(schema, table, label)
    return table


def with_empty(table: Table, columns: Iterable[Column]) -> Table:
    """Add columns with empty cells to a table."""
    for column in columns:
        table = table.append_column(column.name, pa.nulls(table.num_rows, _TYPES[column.type]))
    return table


def check(schema: Schema, table: Table, label: str) -> None:
    """Check the contents of a table that has the columns of a schema."""
    if not table.num_rows:
        return
    for column in schema.columns:
        cells = table.column(column.name)
        if column.required and cells.null_count:
            _refuse(label, column, pc.is_null(cells), "expected a value, found none")
        if column.type in ("real", "integer") and _is_sound(column, cells):
            continue
        # Cell i of the flattened lists is in row rows[i].
        rows = None
        if column.type == "json":
            _check_json(label, column, cells, of_key=column.name in schema.key)
        if column.type == "reals":
            _refuse(label, column, pc.equal(pc.list_value_length(cells), 0), "expected numbers, found none")
            cells, rows = pc.list_flatten(cells), pc.list_parent_indices(cells)
            _refuse(label, column, pc.is_null(cells), "expected numbers, found an empty one", rows=rows)
        if column.type in ("real", "reals"):
            _refuse(label, column, pc.invert(pc.is_finite(cells)), "expected a finite number", cells, rows)
        for name, is_outside, words in _BOUNDS:
            if (bound := getattr(column, name)) is not None:
                _refuse(label, column, is_outside(cells, bound), f"expected {words} {bound:g}", cells, rows)
        if column.choices:
            known = pa.array([*column.choices, None], pa.string())
            reason = f"expected one of {', '.join(column.choices)}"
            _refuse(label, column, pc.invert(pc.is_in(cells, value_set=known)), reason, cells)
    if schema.key:
        _check_key(schema, table, label)


_BOUNDS = (
    ("gt", pc.less_equal, "more than"),
    ("ge", pc.less, "at least"),
    ("lt", pc.greater_equal, "less than"),
    ("le", pc.greater, "at most"),
)
"""Bounds of a column, what is outside of each, and words for what is inside."""


def _is_sound(column: Column, cells: pa.ChunkedArray) -> bool:
    """Whether numbers are finite and within bounds, in two passes; which one is not takes more of them."""
    if column.type == "real" and not math.isfinite(pc.sum(cells).as_py() or 0.0):
        return False
    bounds = [(outside, getattr(column, name)) for name, outside, _ in _BOUNDS]
    ends = pc.min_max(cells).values() if any(bound is not None for _, bound in bounds) else ()
    return not any(outside(end, bound).as_py() for outside, bound in bounds for end in ends)


def _refuse(
    label: str,
    column: Column,
    wrong: pa.ChunkedArray,
    reason: str,
    cells: pa.ChunkedArray | None = None,
    rows: pa.ChunkedArray | None = None,
) -> None:
    if pc.any(wrong).as_py():
        index = pc.index(wrong, True).as_py()
        row = index if rows is None else rows[index].as_py()
        cell = None if cells is None else cells[index].as_py()
        ending = "" if cells is None else f", found {cell!r}" if column.choices else f", found {cell}"
        raise InputError.of(where=label, problem=f"column {column.name!r}, row {row + 1}: {reason}{ending}")


def _check_json(label: str, column: Column, cells: pa.ChunkedArray, *, of_key: bool) -> None:
    for text in pc.unique(cells).drop_null().to_pylist():
        try:
            sorted_text = json_text(json.loads(text))
        except RecursionError:
            # The full text would fill the screen.
            _refuse(
                label, column, pc.equal(cells, text), f"expected a JSON value, found {text[:60]!r} and more"
            )
            raise  # pragma: no cover
        except ValueError:
            _refuse(label, column, pc.equal(cells, text), "expected a JSON value", cells)
            raise  # pragma: no cover
        if of_key and sorted_text != text:
            # Two texts of one value would count as two keys.
            _refuse(label, column, pc.equal(cells, text), f"expected the form {sorted_text}", cells)


def _check_key(schema: Schema, table: Table, label: str) -> None:
    names = list(schema.key)
    keys = table.select(names)
    if keys.group_by(names).aggregate([]).num_rows == keys.num_rows:
        return
    seen: dict[tuple[object, ...], int] = {}
    columns = [keys.column(name).to_pylist() for name in names]
    for number, key in enumerate(zip(*columns, strict=True), start=1):
        first = seen.setdefault(key, number)
        if first != number:
            description = ", ".join(f"{name} {value}" for name, value in zip(names, key, strict=True))
            raise InputError.of(where=label, problem=f"rows {first} and {number} are both of {description}")


def identity_of(table: Table) -> tuple[str, int] | None:
    """Name and version of the schema that a table was written with; ``None`` if it has none."""
    metadata = table.schema.metadata or {}
    name, version = metadata.get(_TABLE), metadata.get(_VERSION, b"")
    if name is None or not version.isdigit():
        return None
    return name.decode(), int(version)


def notes_of(table: Table) -> dict[str, str]:
    """Texts stored with a table, by name."""
    metadata = table.schema.metadata or {}
    return {
        key[len(_NOTE) :].decode(): text.decode() for key, text in metadata.items() if key.startswith(_NOTE)
    }


def concatenated(schema: Schema, tables: Sequence[Table]) -> Table:
    """Concatenate tables that follow a schema, with the notes of all."""
    notes = {name: text for table in tables for name, text in notes_of(table).items()}
    arrow = arrow_schema(schema, notes)
    parts = [table.replace_schema_metadata(arrow.metadata) for table in tables]
    return pa.concat_tables([arrow.empty_table(), *parts])


def in_order(schema: Schema, table: Table) -> Table:
    """Sort the rows of a table by its key, so that equal contents are equal tables."""
    keys = [(name, "ascending") for name in schema.key]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def key_numbers(tables: Sequence[Table], names: Sequence[str]) -> list[Integers]:
    """Number the keys of the rows of several tables: equal keys get equal numbers."""
    numbers = np.zeros(sum(table.num_rows for table in tables), dtype=np.int64)
    for name in names:
        chunks = [chunk for table in tables for chunk in table.column(name).chunks]
        cells = pa.chunked_array(chunks, type=tables[0].schema.field(name).type)
        encoded = cells.combine_chunks().dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        numbers = np.unique(numbers * len(encoded.dictionary) + codes, return_inverse=True)[1]
    return np.split(numbers, np.cumsum([table.num_rows for table in tables])[:-1])


def distinct(table: Table, names: Sequence[str]) -> tuple[Table, Integers]:
    """Distinct keys of a table, and for each row of the table the row of its key among them."""
    (numbers,) = key_numbers([table], names)
    first = np.unique(numbers, return_index=True)[1]
    return table.select(names).take(pa.array(first)), numbers


@dataclass(frozen=True)
class Samples:
    """Values of several samples, none of them empty."""

    # All values: those of sample 0 from the least to the greatest, then those of sample 1, and so on
    values: Reals
    counts: Integers  # How many values each of the `n` samples has, of shape `(n,)` as all its statistics

    def mean(self) -> Reals:
        """Mean of each sample."""
        return self._sum(self.values) / self.counts

    def sd(self) -> Reals:
        """Standard deviation of each sample (divisor: its size less 1); NaN for one value."""
        squares = self._sum((self.values - np.repeat(self.mean(), self.counts)) ** 2)
        variance = np.full(len(self.counts), np.nan)
        np.divide(squares, self.counts - 1, out=variance, where=self.counts > 1)
        sd: Reals = np.sqrt(variance)
        return sd

    def least(self) -> Reals:
        """Least value of each sample."""
        return self.values[self._starts()]

    def most(self) -> Reals:
        """Greatest value of each sample."""
        most: Reals = self.values[self._starts() + self.counts - 1]
        return most

    def quantile(self, share: float) -> Reals:
        """Quantile of each sample, interpolated linearly."""
        position = (self.counts - 1) * share
        below = np.floor(position).astype(np.int64)
        above = np.minimum(below + 1, self.counts - 1)
        weight = position - below
        starts = self._starts()
        value: Reals = self.values[starts + below] * (1 - weight) + self.values[starts + above] * weight
        return value

    def _starts(self) -> Integers:
        return np.cumsum(self.counts) - self.counts

    def _sum(self, values: Reals) -> Reals:
        number = np.repeat(np.arange(len(self.counts)), self.counts)
        # Without any value, bincount returns integers.
        return np.bincount(number, weights=values, minlength=len(self.counts)).astype(np.float64)


def samples_of(numbers: Integers, values: Reals) -> Samples:
    """Group values into samples by the number of each value's sample; numbers are 0 to n - 1."""
    return Samples(values[np.lexsort((values, numbers))], np.bincount(numbers))


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LEVEL = 12
"""Level of zstd; higher levels cost much time and hardly reduce the size."""

Upgrade = Callable[[Table], Table]
"""Converts a table of one version to the next."""


def write_table(table: Table, path: str | Path) -> None:
    """Write a table that has a schema's metadata; the same table gives the same bytes."""
    write_tables({Path(path): table})


def write_tables(tables: Mapping[Path, Table], marker: Path | None = None) -> None:
    """Write several tables to their paths; the first file is replaced when all are written."""
    with ExitStack() as stack:
        for path, table in tables.items():
            stack.enter_context(_named(path))
            save(table, stack.enter_context(atomic_file(path)))
        if marker is not None:
            with _named(marker):
                marker.touch()
    if marker is not None:
        with _named(marker):
            marker.unlink()


def save(table: Table, path: Path) -> None:
    """Write a table to a path, not atomically: callers pass a temporary path."""
    repeated = [field.name for field in table.schema if field.type not in (pa.int64(), pa.float64())]
    pq.write_table(
        # The pages of the file would depend on the chunks in memory.
        table.combine_chunks(),
        path,
        compression="zstd",
        compression_level=_LEVEL,
        # Times in a list repeat, as they are multiples of the timer's tick; other numbers hardly do.
        use_dictionary=[*repeated, *(f"{name}.list.element" for name in repeated)],
        column_encoding={
            field.name: "DELTA_BINARY_PACKED" for field in table.schema if field.type == pa.int64()
        },
        # Without checksums, a flipped bit goes unnoticed.
        write_page_checksum=True,
    )


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        fault = EnvironmentFault if error.errno in _FULL else InputError
        raise fault(f"{path}: cannot write the table ({error.strerror or error})") from error


def read_table(
    path: str | Path, schema: Schema, upgrades: Mapping[int, Upgrade] | None = None, *, plain: bool = False
) -> Table:
    """Read a table and check it; with `plain`, also Parquet or CSV that another program wrote."""
    path = Path(path)
    if plain and path.name.endswith(CSV):
        # A size such as 1.50 must stay a text.
        texts = {c.name: _TYPES[c.type] for c in schema.columns if c.type in ("text", "json")}
        with reading(path, schema.table):
            table = read_csv_table(path, column_types=texts, null_values=[""])
        return _completed(schema, table, path)
    # Unlike read_table of pyarrow, this takes no columns from names of folders.
    with reading(path, schema.table), pq.ParquetFile(path, page_checksum_verification=True) as file:
        table, rows = file.read(), file.metadata.num_rows
        table.validate(full=True)
        if table.num_rows != rows:
            raise pa.ArrowInvalid(f"expected {rows} rows, found {table.num_rows}")
        identity, _ = identity_of(table), notes_of(table)
    if identity is None and plain:
        return _completed(schema, table, path)
    if identity is None or identity[0] != schema.table:
        contents = "no Crosscast table" if identity is None else f"a table of {identity[0]}"
        raise InputError.of(where=path, expected=f"a table of {schema.table}", found=f"{contents}")
    version = identity[1]
    if version > schema.version:
        raise InputError.of(
            where=path,
            expected=f"a table of {schema.table} of version {schema.version} or older",
            found=f"version {version}: a newer Crosscast wrote it",
        )
    for past in range(version, schema.version):
        if past not in (upgrades or {}):
            raise InputError.of(
                where=path, problem=f"version {version} of the table of {schema.table} is not known"
            )
        table = (upgrades or {})[past](table)
    return checked(schema, table, str(path))


@contextmanager
def reading(path: Path, title: str) -> Iterator[None]:
    """Raise errors about a file of a table as those of Crosscast."""
    try:
        yield
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
        raise InputError.of(where=path, problem=f"cannot read the table of {title} ({reason})") from error


CSV = (".csv", ".csv.gz")
"""Suffixes of files that `read_csv_table` reads."""


def read_csv_table(path: Path, **options: object) -> Table:
    """Read a CSV file, in which a cell may have several lines; empty cells of text are missing ones, too."""
    # Not at the top of the module, as `library` must report first that pyarrow is missing.
    from pyarrow import csv

    convert = csv.ConvertOptions(strings_can_be_null=True, **options)
    quoted = csv.ParseOptions(newlines_in_values=True)
    return csv.read_csv(path, parse_options=quoted, convert_options=convert)


def _completed(schema: Schema, table: Table, path: Path) -> Table:
    """Add the optional columns that a table of another program lacks, and check it."""
    # Names are decoded when they are asked for.
    with reading(path, schema.table):
        known = table.column_names
    lacking = [c for c in schema.columns if not c.required and c.name not in known]
    return checked(schema, with_empty(table, lacking), str(path))

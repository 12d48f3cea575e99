"""Declared sources of published data: files with columns, and functions that make tables of the rows.

`import_past_version` reads tables of profiles, and datasets, that an older Crosscast wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from crosscast.data.dataset import TABLES, Dataset, is_cut_off, parts, read_dataset, write_dataset
from crosscast.data.fields import TableRow
from crosscast.data.files import locked
from crosscast.data.library import pa, pc, pq
from crosscast.data.profiles import LOOSE_PROFILES, PROFILES, UPGRADES, read_csv, to_row
from crosscast.data.schema import Column, ColumnType, Schema
from crosscast.data.table import CSV, check, checked, in_order, read_csv_table, read_table, reading, table_of
from crosscast.devices.catalogue import DeviceTables, rows_of
from crosscast.errors import InputError

_WORD = "([a-z0-9]+)"


class ColumnFacts(TypedDict, total=False):
    """Unit, choices and bounds that columns of a source's file share."""

    unit: str
    choices: tuple[str, ...]
    ge: float
    gt: float
    le: float


def required(kind: ColumnType, *names: str, **facts: Unpack[ColumnFacts]) -> tuple[Column, ...]:
    """Make columns of one type and one set of bounds, in which no cell is empty."""
    return tuple(Column(name, kind, required=True, **facts) for name in names)


@dataclass(frozen=True)
class File:
    """A file of a source: CSV, optionally compressed with gzip, or Parquet."""

    names: tuple[str, ...]  # Accepted names; a word in <> stands for small letters and digits
    columns: tuple[Column, ...]  # Columns that are read; if empty, `to_tables` reads the file itself
    key: tuple[str, ...] = ()  # Columns that identify a row
    is_required: bool = True  # Whether the file must exist
    ignored: tuple[str, ...] | None = None  # If given, all columns but these are read, as numbers

    def matches(self, paths: Sequence[Path]) -> list[tuple[Path, str]]:
        """Paths with a name of this file, with the word in <> of each."""
        matching: list[tuple[Path, str]] = []
        for name in self.names:
            pattern = re.compile(re.sub("<[a-z]+>", lambda _: _WORD, re.escape(name)))
            has_word = bool(pattern.groups)
            named = [(path, match) for path in paths if (match := pattern.fullmatch(path.name))]
            if has_word or not matching:
                matching += [(path, match[1] if has_word else "") for path, match in named]
        return sorted(matching)


@dataclass(frozen=True)
class SourceFile:
    """A file that was read."""

    path: Path
    word: str  # Word at the position of <...> in its name
    rows: list[TableRow]
    others: tuple[str, ...]  # Undeclared columns, where these are read

    def refused(self, row: int, expected: str, found: object, column: str | None = None) -> InputError:
        """Make the error about a row, or about a column's cell in it."""
        field = f"row {row}" if column is None else f"column {column!r}, row {row}"
        return InputError.of(where=self.path, field=field, expected=expected, found=found)


@dataclass(frozen=True)
class SourceContents:
    """Contents of a source's files, from which `Source.to_tables` makes tables."""

    label: str  # The path that was given, for messages
    files: Mapping[File, Sequence[SourceFile]]
    notes: Mapping[str, Mapping[str, str]]  # Texts stored with the tables, by table and name
    devices: Mapping[str, TableRow]  # Rows of the table of devices, by key

    def only(self) -> SourceFile:
        """The file of a source that has one."""
        ((file,),) = self.files.values()
        return file

    def devices_in(self, keys: Iterable[str]) -> list[TableRow]:
        """Rows of the devices whose keys are given, such as those of all runs."""
        wanted = set(keys)
        return [row for key, row in self.devices.items() if key in wanted]


@dataclass(frozen=True)
class Source:
    """A source; notes and devices are in the TOML file of its name."""

    name: str
    files: tuple[File, ...]
    to_tables: Callable[..., Dataset]  # Called with the contents of the files, and options of the source

    def __call__(self, path: str | Path, **options: object) -> Dataset:
        """Make a dataset of the source's file, or of a folder with its files."""
        path = Path(path)
        files = {
            file: [read_file(file, match, word) for match, word in matches]
            for file, matches in self._files(path).items()
        }
        notes, devices = facts_of(self.name)
        return self.to_tables(SourceContents(str(path), files, notes, devices), **options)

    def _files(self, path: Path) -> dict[File, list[tuple[Path, str]]]:
        is_folder = path.is_dir()
        if len(self.files) == 1 and "<" not in self.files[0].names[0] and not is_folder:
            return {self.files[0]: [(path, "")]}
        try:
            paths = sorted(path.iterdir()) if is_folder else [path]
        except OSError as error:
            raise InputError.of(where=path, problem=f"cannot list the folder ({error.strerror})") from error
        files = {file: file.matches(paths) for file in self.files}
        missing = [file for file in self.files if file.is_required and not files[file]]
        if missing or not any(files.values()):
            names = " or ".join(name for file in missing[:1] or self.files for name in file.names)
            problem = "none" if path.exists() else "no such file"
            raise InputError.of(where=path, expected=f"{names}, or a folder with it", found=problem)
        for matches in files.values():
            first: dict[str, Path] = {}
            for match, word in matches:
                if first.setdefault(word, match) != match:
                    both = f"{first[word].name} and {match.name}"
                    raise InputError.of(where=path, expected=f"one file of {word}", found=both)
        return files


def read_file(file: File, path: Path, word: str = "") -> SourceFile:
    """Read and check the columns of a file."""
    if not file.columns:
        return SourceFile(path, word, [], ())
    title = file.names[0].partition(".")[0]
    with reading(path, title):
        table = read_csv_table(path) if path.name.endswith(CSV) else pq.read_table(path, memory_map=False)
        # Names are decoded when they are asked for.
        names = table.column_names
    columns = file.columns
    others: tuple[str, ...] = ()
    if file.ignored is not None:
        # pandas stores its index as a column, which does not belong to the source.
        known = {*(column.name for column in columns), *file.ignored}
        others = tuple(name for name in dict.fromkeys(names) if name not in known and name[:2] != "__")
        columns = (*columns, *(Column(name, "real") for name in others))
    for column in columns:
        if names.count(column.name) == 1:
            _expect_readable(path, column, table.column(column.name))
    table = checked(Schema(title, 1, columns, file.key), table, str(path))
    if not table.num_rows:
        raise InputError.of(where=path, expected=f"rows of the table of {title}", found="none")
    return SourceFile(path, word, list(map(TableRow, table.to_pylist())), others)


class _SourceFacts(DeviceTables):
    origin: str = ""
    with_origin: tuple[str, ...] = ()
    notes: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    # Keys in the catalogue of devices by their names in the source
    keys: dict[str, str] = msgspec.field(default_factory=dict)


@cache
def _source_facts(name: str) -> _SourceFacts:
    text = resources.files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=_SourceFacts)


def keys_of(name: str) -> Mapping[str, str]:
    """Keys in the catalogue of devices by their names in a source."""
    return _source_facts(name).keys


def facts_of(name: str) -> tuple[dict[str, dict[str, str]], dict[str, TableRow]]:
    """Read the notes by table and name, and the devices by key, of a TOML file of this package."""
    content = _source_facts(name)
    notes = {table: {"origin": content.origin} for table in content.with_origin}
    for table, texts in content.notes.items():
        notes[table] = notes.get(table, {}) | texts
    return notes, rows_of(content, content.origin)


def _expect_readable(path: Path, column: Column, cells: pa.ChunkedArray) -> None:
    """Raise InputError about the first cell that makes a column one of texts, bytes or fractions."""
    where = f"column {column.name!r}"
    if column.type == "integer" and pa.types.is_floating(cells.type):
        row = pc.index(pc.fill_null(pc.not_equal(pc.floor(cells), cells), False), True).as_py()
        if row >= 0:
            field, value = f"{where}, row {row + 1}", cells[row].as_py()
            raise InputError.of(where=path, field=field, expected="a whole number", found=value)
    if not (pa.types.is_string(cells.type) or pa.types.is_binary(cells.type)):
        return
    is_number = column.type in ("integer", "real")
    for row, cell in enumerate(cells.to_pylist(), start=1):
        try:
            text = cell.decode() if isinstance(cell, bytes) else cell
            if is_number and text is not None:
                float(text)
        except ValueError as error:
            expected = "UTF-8" if isinstance(error, UnicodeDecodeError) else "a number"
            field = f"{where}, row {row}"
            raise InputError.of(where=path, field=field, expected=expected, found=repr(cell)) from None


def store(dataset: Dataset, folder: Path) -> None:
    """Write a dataset into a folder that holds none, or an equal one."""
    with locked(folder):
        if _holds_another(folder, dataset):
            raise InputError.of(
                where=folder, expected="no other dataset: choose another folder, or remove it"
            )
        write_dataset(dataset, folder)


def _holds_another(folder: Path, dataset: Dataset) -> bool:
    if parts(folder):
        return True
    if is_cut_off(folder) or not any((folder / f"{schema.table}.parquet").exists() for schema in TABLES):
        return False
    try:
        stored = read_dataset(folder)
    except InputError:
        # A damaged or newer dataset is another one in any case.
        return True
    return any(
        in_order(schema, stored.table(schema)) != in_order(schema, dataset.table(schema)) for schema in TABLES
    )


def import_past_version(path: str | Path, application: str | None = None, size: str | None = None) -> Dataset:
    """Convert a dataset, or a table of profiles, to a dataset of the current version."""
    path = Path(path)
    if path.is_dir():
        if application is not None or size is not None:
            raise InputError.of(
                where=path, problem="--application and --size are for a table of profiles, found a dataset"
            )
        return read_dataset(path)
    if path.suffix == ".parquet":
        table = read_table(path, LOOSE_PROFILES, UPGRADES)
    elif path.suffix == ".csv":
        table = table_of(LOOSE_PROFILES, map(to_row, read_csv(path)))
    else:
        raise InputError.of(
            where=path, expected="a folder with a dataset, or a table of profiles (.parquet or .csv)"
        )
    for name, text in (("application", application), ("size", size)):
        if text is not None:
            index = table.schema.get_field_index(name)
            table = table.set_column(index, table.field(index), pc.fill_null(table.column(index), text))
    check(PROFILES, table, str(path))
    return Dataset(str(path), profiles=table)

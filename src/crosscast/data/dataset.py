"""Datasets: consistent tables in a folder, written at once or in parts."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

import crosscast
from crosscast.arrays import Integers
from crosscast.data.files import make_folder
from crosscast.data.library import pa, pc
from crosscast.data.profiles import PROFILES, UPGRADES, with_empty_columns
from crosscast.data.schema import DEVICES, ENERGY, ISOLATED_RUNS, MIXES, RECORDS, SESSIONS, Schema
from crosscast.data.table import (
    Table,
    Upgrade,
    arrow_schema,
    cast,
    check,
    concatenated,
    in_order,
    key_numbers,
    read_table,
    write_table,
    write_tables,
)
from crosscast.errors import InputError, expect_known
from crosscast.results import html_table

TABLES: tuple[Schema, ...] = (DEVICES, PROFILES, RECORDS, ENERGY, SESSIONS, ISOLATED_RUNS, MIXES)
"""The tables, in the order in which a build should write their parts: sessions after their records."""

SPARE: tuple[Schema, ...] = (ISOLATED_RUNS, MIXES)
"""Tables that have no file where they have no rows."""

_NEW_IN_2 = ("peak_fp64_flop_per_s", "peak_fp16_flop_per_s")
_UPGRADES: Mapping[str, Mapping[int, Upgrade]] = {
    PROFILES.table: UPGRADES,
    DEVICES.table: {1: with_empty_columns([c for c in DEVICES.columns if c.name in _NEW_IN_2])},
}
_PIECES: tuple[tuple[tuple[Schema, ...], tuple[str, ...]], ...] = (
    ((DEVICES,), DEVICES.key),
    ((PROFILES,), ("application", "size")),
    # A session that failed replaces the records of an earlier one.
    ((RECORDS, ENERGY, SESSIONS), SESSIONS.key),
    ((ISOLATED_RUNS,), ISOLATED_RUNS.key),
    ((MIXES,), MIXES.key[:-1]),
)
_TELLING = (PROFILES, RECORDS, ISOLATED_RUNS, MIXES)  # A dataset has at least one of these tables
_PARTS = "parts"
_MERGED = ".merged-parts"
_UNFINISHED = ".unfinished"
_LONGEST = 180
"""Characters of a file's name that any file system allows, with prefix and suffix added."""


def _empty(schema: Schema) -> Table:
    return arrow_schema(schema).empty_table()


@dataclass(frozen=True)
class Dataset:
    """The tables of a dataset.

    Parameters
    ----------
    label
        Its source, such as its folder, for messages.
    devices, profiles, records, energy, sessions, isolated_runs, mixes
        The tables, which may be empty.
    """

    label: str
    devices: Table = field(default_factory=lambda: _empty(DEVICES))
    profiles: Table = field(default_factory=lambda: _empty(PROFILES))
    records: Table = field(default_factory=lambda: _empty(RECORDS))
    energy: Table = field(default_factory=lambda: _empty(ENERGY))
    sessions: Table = field(default_factory=lambda: _empty(SESSIONS))
    isolated_runs: Table = field(default_factory=lambda: _empty(ISOLATED_RUNS))
    mixes: Table = field(default_factory=lambda: _empty(MIXES))

    def __repr__(self) -> str:
        """Label and numbers of rows."""
        rows = ", ".join(f"{schema.table} {self.table(schema).num_rows}" for schema in TABLES)
        return f"<Dataset {self.label!r}: {rows}>"

    def _repr_html_(self) -> str:
        """Table for notebooks: the tables that have rows, and their numbers of applications and so on."""
        filled = [(schema.table, self.table(schema)) for schema in TABLES if self.table(schema).num_rows]
        counts = {
            name: [
                pc.count_distinct(table.column(name)).as_py() if name in table.column_names else None
                for _, table in filled
            ]
            for name in ("application", "kernel", "device")
        }
        columns = {
            "table": [name for name, _ in filled],
            "rows": [table.num_rows for _, table in filled],
            **{f"{name}s": column for name, column in counts.items()},
        }
        return html_table(columns, f"Dataset {self.label}")

    def table(self, schema: Schema) -> Table:
        """The table that a schema describes."""
        tables: dict[str, Table] = vars(self)
        return tables[schema.table]


@dataclass(frozen=True)
class Part:
    """A part of a table, in a file of its own."""

    schema: Schema  # Schema of the table
    name: str  # Name given by its writer; of a long name the start
    path: Path  # The file


def validate(dataset: Dataset) -> None:
    """Check each table against its schema, and the tables against each other."""
    for schema in TABLES:
        check(schema, dataset.table(schema), f"{dataset.label}: {schema.table}")
    known = dataset.devices.column("device").combine_chunks()
    for schema in (RECORDS, ENERGY, SESSIONS, ISOLATED_RUNS, MIXES):
        devices = dataset.table(schema).column("device")
        wrong = pc.invert(pc.is_in(devices, value_set=known))
        _refuse(dataset, schema, "device", wrong, lambda row: "a device of the table of devices")
    times, invocations = _lengths(dataset.records, "time_s"), dataset.records.column("invocations")
    _refuse(
        dataset,
        RECORDS,
        "time_s",
        pc.and_(pc.not_equal(times, 1), pc.not_equal(times, invocations)),
        lambda row: f"a time for each of {invocations[row].as_py()} invocations, or one",
        times,
    )
    times, energies = _lengths(dataset.energy, "times_s"), _lengths(dataset.energy, "energies_j")
    _refuse(
        dataset,
        ENERGY,
        "energies_j",
        pc.not_equal(times, energies),
        lambda row: f"an energy for each of {times[row].as_py()} times",
        energies,
    )
    kernels = dataset.sessions.column("kernels")
    wrong = pa.array([not _are_names(text) for text in kernels.to_pylist()], pa.bool_())
    _refuse(dataset, SESSIONS, "kernels", wrong, lambda row: "a list of names")
    for schema in (SESSIONS, ISOLATED_RUNS, MIXES):
        wrong = pc.equal(dataset.table(schema).column("failure"), "")
        _refuse(dataset, schema, "failure", wrong, lambda row: "why it failed, or an empty cell")
    if dataset.mixes.num_rows:
        _check_mixes(dataset)


_OF_THE_MIX = ("fits", "mix_time_s", "overlap", "power_w")


def _check_mixes(dataset: Dataset) -> None:
    mixes = dataset.mixes
    (numbers,) = key_numbers([mixes], MIXES.key[:-1])
    # Positions of a mix are distinct, so that they have a gap only if the last is too large.
    sizes = np.bincount(numbers)[numbers]
    wrong = pa.array(mixes.column("position").to_numpy() >= sizes)
    _refuse(dataset, MIXES, "position", wrong, lambda row: f"less than the {sizes[row]} rows of its mix")
    first = np.unique(numbers, return_index=True)[1][numbers]
    for name in _OF_THE_MIX:
        column = mixes.column(name)
        cells = column.cast(pa.float64()).to_numpy()
        wrong = pa.array((cells != cells[first]) & ~(np.isnan(cells) & np.isnan(cells[first])))
        _refuse(dataset, MIXES, name, wrong, partial(_as_first, column, first))


def _as_first(cells: pa.ChunkedArray, first: Integers, row: int) -> str:
    index = int(first[row])
    return f"{_shown(cells[index].as_py())}, as in row {index + 1} of the same mix"


def _lengths(table: Table, name: str) -> pa.ChunkedArray:
    return pc.fill_null(pc.list_value_length(table.column(name)), 0)


def _are_names(text: str) -> bool:
    names = json.loads(text)
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _refuse(
    dataset: Dataset,
    schema: Schema,
    name: str,
    wrong: pa.Array,
    expected: Callable[[int], str],
    values: pa.ChunkedArray | None = None,
) -> None:
    """Raise InputError about the first wrong row, with its cell or its entry of `values`."""
    row = pc.index(pc.fill_null(wrong, False), True).as_py()
    if row >= 0:
        cells = dataset.table(schema).column(name) if values is None else values
        raise InputError.of(
            where=dataset.label,
            problem=(
                f"{schema.table}: column {name!r}, row {row + 1}: expected {expected(row)}, "
                f"found {_shown(cells[row].as_py())}"
            ),
        )


def _shown(cell: object) -> str:
    if cell is None:
        return "nothing"
    return str(cell) or "a text without a letter"


def read_dataset(folder: str | Path) -> Dataset:
    """Read the tables of a folder, and the parts of an unfinished build.

    Where a part and a table hold rows of the same piece of work (a device; the profiles of an
    application at a size; the session, records and energy of a process that measured; an isolated run; a
    measurement of a mix), those of the table are left out.

    Parameters
    ----------
    folder
        Folder of the dataset.

    Returns
    -------
    Dataset
        Its tables, as Arrow tables; docs/tables.md has their columns and units.

    Raises
    ------
    InputError
        If the folder holds no dataset, a file is damaged or of a newer version, the tables do not fit
        together, or `write_dataset` was cut off while it replaced them.
    """
    folder = Path(folder)
    if not folder.is_dir():
        contents = "a file" if folder.exists() else "nothing"
        raise InputError.of(where=folder, expected="a folder with a dataset", found=f"{contents}")
    if is_cut_off(folder):
        raise InputError.of(
            where=folder,
            expected="tables that were written together",
            found="some of an import that was cut off or is under way: import again",
        )
    # Parts are read first, as a build may merge them into the tables meanwhile.
    unmerged = parts(folder)
    read = [(part.schema, _read(part.path, part.schema)) for part in unmerged]
    if not unmerged and not any(_path(folder, schema).exists() for schema in _TELLING):
        names = ", ".join(f"{schema.table}.parquet" for schema in _TELLING)
        raise InputError.of(where=folder, expected=f"one of {names} of a dataset", found="none")
    tables = {
        schema.table: _read(path, schema) if (path := _path(folder, schema)).exists() else _empty(schema)
        for schema in TABLES
    }
    if read:
        new = {
            schema.table: concatenated(schema, [table for of, table in read if of is schema])
            for schema in TABLES
        }
        for schemas, piece in _PIECES:
            tables |= _replaced(schemas, piece, tables, new)
    dataset = Dataset(str(folder), **tables)
    validate(dataset)
    return dataset


def is_cut_off(folder: Path) -> bool:
    """Whether some of a folder's tables were written by a `write_dataset` that did not finish."""
    return (folder / _UNFINISHED).exists() and any(_path(folder, schema).exists() for schema in TABLES)


def _path(folder: Path, schema: Schema) -> Path:
    return folder / f"{schema.table}.parquet"


def _read(path: Path, schema: Schema) -> Table:
    return read_table(path, schema, _UPGRADES.get(schema.table))


def _replaced(
    schemas: tuple[Schema, ...], piece: tuple[str, ...], old: Mapping[str, Table], new: Mapping[str, Table]
) -> dict[str, Table]:
    names = [schema.table for schema in schemas]
    numbers = key_numbers([old[name] for name in names] + [new[name] for name in names], piece)
    fresh = np.concatenate(numbers[len(names) :])
    masks = [pa.array(~np.isin(number, fresh)) for number in numbers[: len(names)]]
    return {
        schema.table: concatenated(schema, [old[schema.table].filter(mask), new[schema.table]])
        for schema, mask in zip(schemas, masks, strict=True)
    }


def write_dataset(dataset: Dataset, folder: str | Path) -> None:
    """Write the tables of a dataset into a folder, replacing those in it.

    Equal contents give equal bytes. Hold the folder's lock (`locked`) meanwhile. If it is killed
    while tables replace others, `read_dataset` refuses the folder until it is written again.
    """
    if unmerged := parts(folder):
        raise InputError.of(
            where=folder,
            expected="no unfinished build",
            found=f"{unmerged[0].path} (finish it, or take another)",
        )
    folder = make_folder(folder)
    with _removing(folder):
        _remove_temporary(folder)
    _write(dataset, folder, folder / _UNFINISHED)


def _write(dataset: Dataset, folder: Path, marker: Path | None = None) -> None:
    tables = {
        schema.table: cast(schema, dataset.table(schema), f"{dataset.label}: {schema.table}")
        for schema in TABLES
    }
    validate(Dataset(dataset.label, **tables))
    paths = {
        schema: _path(folder, schema)
        for schema in TABLES
        # An existing file may hold rows of the dataset that is replaced.
        if schema not in SPARE or tables[schema.table].num_rows or _path(folder, schema).exists()
    }
    write_tables({path: in_order(schema, tables[schema.table]) for schema, path in paths.items()}, marker)


def write_part(folder: str | Path, schema: Schema, name: str, table: Table) -> Path:
    """Write a part of a table, replacing the part of that name, and return its path.

    Write the parts of one piece of work in the order of `TABLES`, so that no session is written before its
    records.
    """
    folder = Path(folder)
    path = folder / _PARTS / schema.table / f"{_stem(name)}.parquet"
    if path.name.startswith("."):
        raise InputError.of(
            where=folder, expected="the name of a part not to start with a dot", found=repr(name)
        )
    table = cast(schema, table, str(path))
    check(schema, table, str(path))
    make_folder(path.parent)
    write_table(in_order(schema, table), path)
    return path


def _stem(name: str) -> str:
    stem = quote(name, safe=":=,+@ ")
    digest = hashlib.sha256(stem.encode()).hexdigest()[:32]
    return stem if len(stem) <= _LONGEST else f"{stem[: _LONGEST - 33]}-{digest}"


def parts(folder: str | Path) -> tuple[Part, ...]:
    """Parts of an unfinished build, table by table and in the order of their names."""
    folder = Path(folder)
    return tuple(
        Part(schema, unquote(path.stem), path)
        # Last table first, so that a reader sees no session without its records.
        for schema in reversed(TABLES)
        for path in sorted((folder / _PARTS / schema.table).glob("[!.]*.parquet"))
    )


def merge_parts(folder: str | Path) -> None:
    """Put the parts of a build into the tables, and remove them.

    It may be killed at any moment: `read_dataset` gives the same result before, after, and in between. Hold
    the folder's lock (`locked`) meanwhile.
    """
    folder = Path(folder)
    if parts(folder):
        dataset = read_dataset(folder)
        with _removing(folder):
            # Left by an import that was cut off before its first table; this build's tables are complete.
            (folder / _UNFINISHED).unlink(missing_ok=True)
        _write(dataset, folder)
    with _removing(folder):
        _remove_parts(folder)
        _remove_temporary(folder)


@contextmanager
def _removing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError.of(
            where=folder, problem=f"cannot remove what an earlier write left ({error.strerror})"
        ) from error


def _remove_parts(folder: Path) -> None:
    merged = folder / _MERGED
    if merged.exists():
        shutil.rmtree(merged)
    if (folder / _PARTS).exists():
        # Renamed at once: after a partial removal, the rest would replace merged rows.
        (folder / _PARTS).rename(merged)
        shutil.rmtree(merged)


def _remove_temporary(folder: Path) -> None:
    for schema in TABLES:
        for path in folder.glob(f".{schema.table}.*.parquet"):
            path.unlink()


BUNDLED = "bundled"
"""Name of the suite's dataset, accepted where a folder is expected."""

BUNDLED_CORUN = "bundled-corun"
"""Name of the dataset of the suite's mixes."""

_FOLDERS = {BUNDLED: "suite", BUNDLED_CORUN: "corun"}


def bundled_dataset(name: str = BUNDLED) -> Dataset:
    """Return a dataset that is part of the package; its folder has the commands that made it.

    Parameters
    ----------
    name
        ``bundled``: the suite at tiny, small and medium on one and two cores of a server CPU.
        ``bundled-corun``: its applications in isolation and in mixes on two cores.

    Returns
    -------
    Dataset
        Times in seconds.

    Raises
    ------
    InputError
        If there is no dataset of this name.
    """
    expect_known(name, _FOLDERS, field="name")
    return read_dataset(bundled_folder(name))


def dataset_named(folder: str | Path) -> Dataset:
    """Read the dataset of a folder, or the bundled one for ``bundled`` or ``bundled-corun``."""
    name = str(folder)
    if name in _FOLDERS and not Path(folder).exists():
        return replace(read_dataset(bundled_folder(name)), label=name)
    return read_dataset(folder)


def bundled_folder(name: str = BUNDLED) -> Path:
    """Folder of a bundled dataset."""
    return Path(crosscast.__file__).parent / "data" / "bundled" / _FOLDERS[name]

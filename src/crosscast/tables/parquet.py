"""Tables in Parquet files: written whole or not at all, checked when they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from crosscast.errors import InputError
from crosscast.tables.arrow import Table, cast, check, identity_of, notes_of
from crosscast.tables.library import pa, pq
from crosscast.tables.schema import Schema
from crosscast.tables.whole_file import whole_file

__all__ = ["Upgrade", "read_table", "save", "write_table", "write_tables"]

_LEVEL = 12
"""Of zstd's compression: where a dataset stops getting smaller at a bearable price."""

Upgrade = Callable[[Table], Table]
"""Makes a table of one version of the next."""


def write_table(table: Table, path: str | Path) -> None:
    """Write a table that has a schema's metadata; the same table gives the same bytes.

    Raises
    ------
    InputError
        If the file cannot be written (a full disk, say); nothing is left of it then.
    """
    write_tables({Path(path): table})


def write_tables(tables: Mapping[Path, Table], marker: Path | None = None) -> None:
    """Write several tables, each to its path: all are written before the first takes the place of another.

    Parameters
    ----------
    tables
        The table of each path.
    marker
        A file that is there while tables take their places: it stays if that does not come to its end.

    Raises
    ------
    InputError
        If a file cannot be written. The files that were there before are as they were then, unless the
        marker is there.
    """
    with ExitStack() as stack:
        for path, table in tables.items():
            stack.enter_context(_named(path))
            save(table, stack.enter_context(whole_file(path)))
        if marker is not None:
            with _named(marker):
                marker.touch()
    if marker is not None:
        with _named(marker):
            marker.unlink()


def save(table: Table, path: Path) -> None:
    """Write a table to a path as it is, whole or in part: for those who care for the rest themselves.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    repeated = [field.name for field in table.schema if field.type not in (pa.int64(), pa.float64())]
    pq.write_table(
        # Chunks of a table in memory would show in the pages of its file.
        table.combine_chunks(),
        path,
        compression="zstd",
        compression_level=_LEVEL,
        # Times in a list are multiples of the timer's tick, and so repeat; other numbers hardly do.
        use_dictionary=[*repeated, *(f"{name}.list.element" for name in repeated)],
        column_encoding={
            field.name: "DELTA_BINARY_PACKED" for field in table.schema if field.type == pa.int64()
        },
        # Without them, a flipped bit is read as another number.
        write_page_checksum=True,
    )


@contextmanager
def _named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot write the table ({error.strerror or error})") from error


def read_table(path: str | Path, schema: Schema, upgrades: Mapping[int, Upgrade] | None = None) -> Table:
    """Read a table and check it.

    Parameters
    ----------
    path
        A Parquet file.
    schema
        What it must be.
    upgrades
        For each past version, what makes a table of it one of the next version.

    Raises
    ------
    InputError
        If it cannot be read, is another table, is of a newer version, or holds what it must not.
    """
    path = Path(path)
    try:
        # Unlike read_table of the library, this takes no columns from names of folders.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table, rows = file.read(), file.metadata.num_rows
        table.validate(full=True)
        if table.num_rows != rows:
            raise pa.ArrowInvalid(f"expected {rows} rows, found {table.num_rows}")
        identity, _ = identity_of(table), notes_of(table)
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: cannot read the table of {schema.table} ({reason})") from error
    if identity is None or identity[0] != schema.table:
        found = "no Crosscast table" if identity is None else f"a table of {identity[0]}"
        raise InputError(f"{path}: expected a table of {schema.table}, found {found}")
    version = identity[1]
    if version > schema.version:
        raise InputError(
            f"{path}: expected a table of {schema.table} of version {schema.version} or older, found "
            f"version {version}: a newer Crosscast wrote it"
        )
    for past in range(version, schema.version):
        if past not in (upgrades or {}):
            raise InputError(f"{path}: version {version} of the table of {schema.table} is not known")
        table = (upgrades or {})[past](table)
    table = cast(schema, table, str(path))
    check(schema, table, str(path))
    return table

"""Tables in Parquet files: written whole or not at all, checked when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from crosscast.errors import InputError
from crosscast.tables.arrow import Table, cast, check, identity_of
from crosscast.tables.library import pa, pq
from crosscast.tables.schema import Schema
from crosscast.tables.whole_file import whole_file

__all__ = ["Upgrade", "read_table", "write_table"]

Upgrade = Callable[[Table], Table]
"""Makes a table of one version of the next."""


def write_table(table: Table, path: Path) -> None:
    """Write a table that has a schema's metadata; the same table gives the same bytes.

    Raises
    ------
    InputError
        If the file cannot be written (a full disk, say); nothing is left of it then.
    """
    try:
        with whole_file(path) as temporary:
            pq.write_table(table, temporary, compression="zstd", compression_level=9)
    except OSError as error:
        raise InputError(f"{path}: cannot write the table ({error.strerror or error})") from error


def read_table(path: Path, schema: Schema, upgrades: Mapping[int, Upgrade] | None = None) -> Table:
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
    try:
        table = pq.read_table(path, memory_map=False)
    except (OSError, pa.ArrowInvalid) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path}: cannot read the table of {schema.table} ({reason})") from error
    identity = identity_of(table)
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

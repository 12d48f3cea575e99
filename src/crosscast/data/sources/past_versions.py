"""Tables of profiles, and datasets, that an older Crosscast wrote."""

from __future__ import annotations

from pathlib import Path

from crosscast.data.dataset import Dataset, read_dataset
from crosscast.data.library import pc
from crosscast.data.profiles import LOOSE_PROFILES, PROFILES, UPGRADES, read_csv, to_row
from crosscast.data.table import check, read_table, table_of
from crosscast.errors import InputError


def import_past_version(path: str | Path, application: str | None = None, size: str | None = None) -> Dataset:
    """Convert a dataset, or a table of profiles, to a dataset of the current version."""
    path = Path(path)
    if path.is_dir():
        if application is not None or size is not None:
            raise InputError(f"{path}: --application and --size are for a table of profiles, found a dataset")
        return read_dataset(path)
    if path.suffix == ".parquet":
        table = read_table(path, LOOSE_PROFILES, UPGRADES)
    elif path.suffix == ".csv":
        table = table_of(LOOSE_PROFILES, map(to_row, read_csv(path)))
    else:
        raise InputError(
            f"{path}: expected a folder with a dataset, or a table of profiles (.parquet or .csv)"
        )
    for name, text in (("application", application), ("size", size)):
        if text is not None:
            index = table.schema.get_field_index(name)
            table = table.set_column(index, table.field(index), pc.fill_null(table.column(index), text))
    check(PROFILES, table, str(path))
    return Dataset(str(path), profiles=table)

"""Put what was imported into a folder, without destroying what somebody measured."""

from __future__ import annotations

from pathlib import Path

from crosscast.errors import InputError
from crosscast.tables.arrow import in_order
from crosscast.tables.dataset import TABLES, Dataset, is_cut_off, parts, read_dataset, write_dataset
from crosscast.tables.lock import locked

__all__ = ["store"]


def store(dataset: Dataset, folder: str | Path, *, replace: bool = False) -> None:
    """Write a dataset into a folder.

    Parameters
    ----------
    dataset
        What was imported.
    folder
        Where it goes; made if it is not there.
    replace
        Whether another dataset that is there may be lost.

    Raises
    ------
    InputError
        If the folder holds another dataset, or cannot be written; nothing has changed then, but for what
        `write_dataset` says.
    """
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

"""Published co-running: solo runs and bags of others' files, put into a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.arrow import table_of
from crosscast.tables.bags import BAGS
from crosscast.tables.dataset import Dataset
from crosscast.tables.devices import DEVICES
from crosscast.tables.importers.source_file import read_source
from crosscast.tables.schema import Schema
from crosscast.tables.solos import SOLOS

__all__ = ["Job", "bag_rows", "corun_dataset", "file_in", "read_rows"]


@dataclass(frozen=True)
class Job:
    """An application at a size, as a source names it."""

    application: str
    size: str

    @property
    def name(self) -> str:
        """Both, for names of bags."""
        return f"{self.application} {self.size}"


def file_in(folder: Path, *names: str) -> Path:
    """The first of these files that a folder has.

    Raises
    ------
    InputError
        If it has none, or is no folder.
    """
    for name in names:
        if (folder / name).is_file():
            return folder / name
    found = "none" if folder.is_dir() else "no folder"
    raise InputError(f"{folder}: expected a folder with {' or '.join(names)}, found {found}")


def read_rows(path: Path, schema: Schema, positive: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rows of a source's file.

    Parameters
    ----------
    path
        The file.
    schema
        Columns that it must have, in its own units.
    positive
        Columns whose numbers must be greater than 0.

    Raises
    ------
    InputError
        If it cannot be read, has no rows, or a cell holds what it must not; the message names file, column
        and row.
    """
    rows = read_source(path, schema)
    if not rows:
        raise InputError(f"{path}: expected rows of the table of {schema.table}, found none")
    for name in positive:
        for number, row in enumerate(rows, start=1):
            if row[name] <= 0:
                raise InputError(
                    f"{path}: column {name!r}, row {number}: expected more than 0, found {row[name]:g}"
                )
    return rows


def bag_rows(jobs: Sequence[Job], slowdowns: Sequence[float | None], **cells: Any) -> list[dict[str, Any]]:
    """Rows of a bag that is named after its jobs.

    Parameters
    ----------
    jobs
        Its members, in the order of their positions.
    slowdowns
        The slowdown of each, where it is known.
    cells
        What all rows share.
    """
    shared = {"bag": " + ".join(job.name for job in jobs), "configuration": "{}", "repeat": 0, **cells}
    return [
        {**shared, "position": place, "application": job.application, "size": job.size, "slowdown": slowdown}
        for place, (job, slowdown) in enumerate(zip(jobs, slowdowns, strict=True))
    ]


def corun_dataset(
    label: str,
    devices: Iterable[Mapping[str, Any]],
    solos: Iterable[Mapping[str, Any]],
    bags: Iterable[Mapping[str, Any]],
    notes: Mapping[str, Mapping[str, str]],
) -> Dataset:
    """Make a dataset of rows.

    Parameters
    ----------
    label
        Where it is from, for messages.
    devices, solos, bags
        Rows of the tables.
    notes
        Notes by table, and by their names.

    Raises
    ------
    InputError
        If a row does not fit its table.
    """
    return Dataset(
        label,
        devices=table_of(DEVICES, devices, notes.get(DEVICES.table)),
        solos=table_of(SOLOS, solos, notes.get(SOLOS.table)),
        bags=table_of(BAGS, bags, notes.get(BAGS.table)),
    )

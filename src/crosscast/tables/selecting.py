"""Parts of datasets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset
from crosscast.tables.library import pa, pc

__all__ = ["applications_of", "without_applications"]


def applications_of(dataset: Dataset) -> list[str]:
    """Names of the applications that have profiles or records, sorted."""
    tables = (dataset.profiles, dataset.records)
    names = {name for table in tables for name in pc.unique(table.column("application")).to_pylist()}
    return sorted(names)


def without_applications(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """A dataset without all that some of its applications have.

    Raises
    ------
    InputError
        If it has no application of such a name.
    """
    known = applications_of(dataset)
    for name in names:
        if name not in known:
            raise InputError(
                f"without: expected applications of {dataset.label} ({', '.join(known)}), found {name!r}"
            )
    unwanted = pa.array(list(names), type=pa.string())
    left = {
        table: getattr(dataset, table).filter(
            pc.invert(pc.is_in(getattr(dataset, table).column("application"), value_set=unwanted))
        )
        for table in ("profiles", "records", "energy", "sessions")
    }
    return replace(dataset, **left)

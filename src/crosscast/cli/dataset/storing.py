"""Put what was imported into a folder, and say what it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["store_dataset"]


def store_dataset(dataset: Dataset, out: Path, replace: bool) -> None:
    """Write a dataset, in the place of another only if it may be replaced.

    Raises
    ------
    InputError
        If another dataset is there and may not be replaced, or the folder cannot be written.
    """
    from crosscast.tables.importers.storing import store

    store(dataset, out, replace=replace)
    counts = f"{dataset.profiles.num_rows:,} profiles, {dataset.records.num_rows:,} records"
    if dataset.bags.num_rows:
        counts = f"{dataset.solos.num_rows:,} solo runs, {dataset.bags.num_rows:,} runs in bags"
    print(f"wrote {out} ({counts})", file=sys.stderr)

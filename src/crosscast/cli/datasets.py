"""The dataset that a word on the command line names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["dataset_named"]


def dataset_named(folder: Path) -> Dataset:
    """Read the dataset of a folder, or the one that comes with Crosscast for ``bundled``.

    Raises
    ------
    InputError
        If it cannot be read or is not valid.
    """
    # Imported here: `--help` needs no pyarrow.
    from crosscast.tables.bundled import BUNDLED, bundled_dataset
    from crosscast.tables.dataset import read_dataset

    if str(folder) == BUNDLED and not folder.exists():
        return replace(bundled_dataset(), label=BUNDLED)
    return read_dataset(folder)

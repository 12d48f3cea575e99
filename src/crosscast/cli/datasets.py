"""The dataset that a word on the command line names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosscast.tables.dataset import Dataset

__all__ = ["dataset_named"]


def dataset_named(folder: Path) -> Dataset:
    """Read the dataset of a folder, or one that comes with Crosscast for ``bundled`` or ``bundled-corun``.

    Raises
    ------
    InputError
        If it cannot be read or is not valid.
    """
    # Imported here: `--help` needs no pyarrow.
    from crosscast.tables.bundled import bundled_named
    from crosscast.tables.dataset import read_dataset

    bundled = None if folder.exists() else bundled_named(str(folder))
    return read_dataset(folder) if bundled is None else bundled

"""The dataset that comes with the package: the suite, measured by the project itself."""

from __future__ import annotations

from pathlib import Path

import crosscast
from crosscast.tables.dataset import Dataset, read_dataset

__all__ = ["BUNDLED", "bundled_dataset", "bundled_folder"]

BUNDLED = "bundled"
"""Word that stands for it where a folder is expected."""


def bundled_dataset() -> Dataset:
    """The suite at tiny, small and medium on one and two cores of a server CPU.

    Its folder has the commands that made it.
    """
    return read_dataset(bundled_folder())


def bundled_folder() -> Path:
    """Where its tables are."""
    return Path(crosscast.__file__).parent / "data" / "suite"

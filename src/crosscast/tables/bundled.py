"""The datasets that come with the package: the suite and bags of it, measured by the project itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import crosscast
from crosscast.tables.dataset import Dataset, read_dataset

__all__ = ["BUNDLED", "BUNDLED_CORUN", "bundled_dataset", "bundled_folder", "bundled_named"]

BUNDLED = "bundled"
"""Word that stands for the suite where a folder is expected."""

BUNDLED_CORUN = "bundled-corun"
"""Word that stands for bags of the suite."""

_FOLDERS = {BUNDLED: "suite", BUNDLED_CORUN: "corun"}


def bundled_dataset() -> Dataset:
    """The suite at tiny, small and medium on one and two cores of a server CPU.

    Its folder has the commands that made it.
    """
    return read_dataset(bundled_folder())


def bundled_named(name: str) -> Dataset | None:
    """The dataset that a word stands for, with the word as its label; ``None`` if it stands for none."""
    return replace(read_dataset(bundled_folder(name)), label=name) if name in _FOLDERS else None


def bundled_folder(name: str = BUNDLED) -> Path:
    """Where the tables of a dataset are."""
    return Path(crosscast.__file__).parent / "data" / _FOLDERS[name]

"""The datasets that come with the package: the suite and bags of it, measured by the project itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import crosscast
from crosscast.errors import InputError
from crosscast.tables.dataset import Dataset, read_dataset

__all__ = ["BUNDLED", "BUNDLED_CORUN", "bundled_dataset", "bundled_folder", "bundled_named"]

BUNDLED = "bundled"
"""Word that stands for the suite where a folder is expected."""

BUNDLED_CORUN = "bundled-corun"
"""Word that stands for bags of the suite."""

_FOLDERS = {BUNDLED: "suite", BUNDLED_CORUN: "corun"}


def bundled_dataset(name: str = BUNDLED) -> Dataset:
    """A dataset that comes with the package; its folder has the commands that made it.

    Parameters
    ----------
    name
        ``bundled``: the suite at tiny, small and medium on one and two cores of a server CPU.
        ``bundled-corun``: its applications in isolation and in mixes on two cores.

    Returns
    -------
    Dataset
        Times in seconds.

    Raises
    ------
    InputError
        If there is no dataset of this name.
    """
    if name not in _FOLDERS:
        raise InputError(f"name: expected one of {', '.join(_FOLDERS)}, found {name!r}")
    return read_dataset(bundled_folder(name))


def bundled_named(name: str) -> Dataset | None:
    """The dataset that a word stands for, with the word as its label; ``None`` if it stands for none."""
    return replace(read_dataset(bundled_folder(name)), label=name) if name in _FOLDERS else None


def bundled_folder(name: str = BUNDLED) -> Path:
    """Where the tables of a dataset are."""
    return Path(crosscast.__file__).parent / "data" / _FOLDERS[name]

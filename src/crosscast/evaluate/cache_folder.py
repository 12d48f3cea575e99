"""Folders that keep finished work: made, and written to, with one sentence for what cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosscast.errors import InputError
from crosscast.tables.whole_file import whole_file

__all__ = ["cached_file", "make_cache_folder"]


def make_cache_folder(folder: Path) -> None:
    """Make a folder if it is not there.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cache: cannot make the folder {folder} ({error.strerror})") from error


@contextmanager
def cached_file(path: Path) -> Iterator[Path]:
    """A file that is written whole or not at all, as `whole_file`.

    Yields
    ------
    Path
        Where to write.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    try:
        with whole_file(path) as temporary:
            yield temporary
    except OSError as error:
        raise InputError(f"cache: cannot write {path} ({error.strerror or error})") from error

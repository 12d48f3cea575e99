"""Files that are there whole or not at all, and the folders that they go into."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosscast.errors import InputError

__all__ = ["make_folder", "whole_file"]


def make_folder(role: str, folder: Path) -> None:
    """Make a folder if it is not there.

    Parameters
    ----------
    role
        What it is for, or the option that names it; begins the sentence of an error.
    folder
        The folder.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{role}: cannot make the folder {folder} ({error.strerror})") from error


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary name to write to; rename it to `path` if that went well, else remove it.

    The suffix stays, as some writers choose their format by it.
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

"""Where results go, looked at before the work that makes them."""

from __future__ import annotations

import os
from pathlib import Path

from crosscast.errors import InputError

__all__ = ["cache_folder", "check_place"]

_INSTEAD = "set XDG_CACHE_HOME to another folder, or give --no-cache"


def check_place(option: str, folder: Path) -> None:
    """Refuse a folder that cannot be made or written into, before a long run rather than after it.

    Parameters
    ----------
    option
        The option that it was typed for, for messages.
    folder
        The folder, which may not be there yet.

    Raises
    ------
    InputError
        If what is there of its path is a file, or is not to be written into.
    """
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError(f"{option}: cannot write into the folder {folder} ({obstacle})")


def cache_folder(named: Path | None, none: bool) -> Path | None:
    """The folder that keeps forecasts: the named one, or by default one of the user's; or none.

    Raises
    ------
    InputError
        If there is no such folder of the user's, and none can be made.
    """
    if none or named is not None:
        return None if none else named
    from crosscast.evaluation.time import default_folder

    try:
        folder = default_folder()
    except RuntimeError as error:
        # What `Path.home` raises where the user is not known, as in some containers.
        raise InputError(f"this user has no home folder to keep forecasts in: {_INSTEAD}") from error
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError(f"cannot keep forecasts in {folder} ({obstacle}): {_INSTEAD}")
    return folder


def _obstacle(folder: Path) -> str:
    """What keeps a folder from being made or written into; empty if nothing does."""
    there = folder.absolute()
    while not os.access(there, os.F_OK) and there != there.parent:
        there = there.parent
    if not there.is_dir():
        return f"{there} is no folder"
    return "" if os.access(there, os.W_OK | os.X_OK) else f"{there} is not to be written into"

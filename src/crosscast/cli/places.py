"""Where results go, looked at before the work that makes them."""

from __future__ import annotations

import os
from pathlib import Path

from crosscast.cache_home import cache_home
from crosscast.errors import InputError

__all__ = ["cache_folder", "check_file", "check_picture", "check_place"]

_INSTEAD = "set XDG_CACHE_HOME to another folder, or give --no-cache"


def check_place(option: str, folder: Path) -> None:
    """Refuse a folder that cannot be made or written into, before a long run rather than after it."""
    obstacle = _obstacle(folder)
    if obstacle:
        raise InputError(f"{option}: cannot write into the folder {folder} ({obstacle})")


def check_file(option: str, path: Path) -> None:
    """Refuse a file whose folder is not there, or that is a folder."""
    if not path.absolute().parent.is_dir():
        raise InputError(f"{option}: the folder {path.absolute().parent} does not exist")
    if path.is_dir():
        raise InputError(f"{option}: expected a file, found the folder {path}")


def check_picture(option: str, path: Path) -> None:
    """Refuse a figure whose suffix is not one of a known format, or where matplotlib is not installed."""
    from crosscast.report.canvas import FORMATS, require_matplotlib

    require_matplotlib()
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{option}: expected a file name with {', '.join(FORMATS)}, found {path.name!r}")


def cache_folder(named: Path | None, none: bool) -> Path | None:
    """Folder of the cache: the named one, or by default one of the user's; or none."""
    if none or named is not None:
        return None if none else named
    try:
        folder = cache_home() / "evaluate"
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

"""Files that will be written, looked at before the work that makes them."""

from __future__ import annotations

from pathlib import Path

from crosscast.errors import InputError

__all__ = ["check_file", "check_picture"]


def check_file(option: str, path: Path) -> None:
    """Refuse a file whose folder is not there, or that is a folder.

    Raises
    ------
    InputError
        If it cannot be written there.
    """
    if not path.absolute().parent.is_dir():
        raise InputError(f"{option}: the folder {path.absolute().parent} does not exist")
    if path.is_dir():
        raise InputError(f"{option}: expected a file, found the folder {path}")


def check_picture(option: str, path: Path) -> None:
    """Refuse a picture that cannot be drawn.

    Raises
    ------
    InputError
        If its suffix is not one of a known format.
    MissingExtraError
        If matplotlib is not installed.
    """
    from crosscast.report.canvas import FORMATS, require_matplotlib

    require_matplotlib()
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{option}: expected a file name with {', '.join(FORMATS)}, found {path.name!r}")

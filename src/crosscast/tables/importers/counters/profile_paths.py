"""Profiles that are named one by one, or lie in a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from crosscast.errors import InputError

__all__ = ["profiles_at"]


def profiles_at(paths: Sequence[Path], is_profile: Callable[[Path], bool], what: str) -> list[Path]:
    """The paths themselves, and in the place of a folder that is no profile, those that lie in it.

    Parameters
    ----------
    paths
        What was named.
    is_profile
        Whether something in a folder is one, or a folder is one itself.
    what
        What one looks like, for messages.

    Raises
    ------
    InputError
        If none was named, one was named twice, or a folder has none or cannot be listed.
    """
    found = [each for path in paths for each in _at(path, is_profile, what)]
    if not found:
        raise InputError(f"profiles: expected {what}, found none")
    for place, path in enumerate(found):
        if path in found[:place]:
            raise InputError(f"{path}: expected each profile once, found it twice")
    return found


def _at(path: Path, is_profile: Callable[[Path], bool], what: str) -> list[Path]:
    if not path.is_dir() or is_profile(path):
        return [path]
    try:
        found = sorted(each for each in path.iterdir() if is_profile(each))
    except OSError as error:
        raise InputError(f"{path}: cannot list the folder ({error.strerror})") from error
    if not found:
        raise InputError(f"{path}: expected {what} in the folder, found none")
    return found

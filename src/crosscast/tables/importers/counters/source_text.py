"""Text files of counter tools, of a bounded size."""

from __future__ import annotations

from pathlib import Path

from crosscast.errors import InputError

__all__ = ["beginning", "text_of"]

_MOST_BYTES = 256 << 20


def text_of(path: Path, what: str) -> str:
    """All of a file in UTF-8.

    Raises
    ------
    InputError
        If it cannot be read, is larger than 256 MiB, or is not UTF-8.
    """
    content = _bytes(path, _MOST_BYTES + 1, what)
    if len(content) > _MOST_BYTES:
        raise InputError(f"{path}: expected {what} of at most {_MOST_BYTES >> 20} MiB, found more")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: expected {what} in UTF-8, found another byte at place {error.start}"
        ) from error


def beginning(path: Path, size: int = 65536) -> str:
    """The first bytes of a file, with a mark for each that is not UTF-8.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    return _bytes(path, size, "a profile").decode("utf-8-sig", errors="replace")


def _bytes(path: Path, size: int, what: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise InputError(f"{path}: cannot read {what} ({error.strerror})") from error

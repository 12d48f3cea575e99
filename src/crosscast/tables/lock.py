"""A lock on a folder: one process at a time writes it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosscast.errors import InputError

__all__ = ["locked", "made"]


def made(folder: str | Path) -> Path:
    """Make a folder if it is not there, and return it.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make the folder ({error.strerror})") from error
    return folder


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Keep other builds from writing a folder; make it if it is not there.

    The lock goes with the process, however that ends.

    Raises
    ------
    InputError
        If another process holds the lock, or the folder cannot be written.
    """
    path = made(folder) / ".lock"
    try:
        lock = _lock(path)
    except BlockingIOError as error:
        raise InputError(
            f"{folder}: another process is writing this dataset: wait for it, or choose another folder"
        ) from error
    except OSError as error:
        raise InputError(f"{path}: cannot lock the folder ({error.strerror})") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


def _lock(path: Path) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The holder before may have removed the file between the two calls.
            if _is(path, lock):
                return lock
        except OSError:
            os.close(lock)
            raise
        os.close(lock)


def _is(path: Path, lock: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock))
    except FileNotFoundError:
        return False

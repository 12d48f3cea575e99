"""Appending whole lines to a file that several processes append to."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from crosscast.errors import InputError
from crosscast.measure.regions.line import MOST_BYTES, from_line, is_begun

__all__ = ["append"]

_PATIENCE_S = 2.0
_PAUSE_S = 0.005


def append(path: Path, lines: bytes) -> None:
    """Append lines in one piece, all of them or none.

    What a process left at the end that was stopped in the middle of a line is removed; what none can have
    left so stays, as a line of its own.

    Parameters
    ----------
    path
        The file; made if it is not there.
    lines
        Whole lines, each with its end.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        alone = _lock(file)
        end = os.fstat(file).st_size
        tail = _tail(file, end)
        if tail and alone and is_begun(tail) and not _is_whole(tail):
            end -= len(tail)
            os.ftruncate(file, end)
        elif tail:
            lines = b"\n" + lines
        try:
            _write(file, lines)
        except OSError:
            # The disk is full: half of a line would be in the way of those to come.
            if alone:
                os.ftruncate(file, end)
            raise
    finally:
        # With it goes the lock.
        os.close(file)


def _lock(file: int) -> bool:
    """Lock the file; tell whether that went well, as some file systems have no locks.

    Nobody waits for ever: a process may be stopped while it holds the lock. A single write in append mode
    does not mix with others anyway on local file systems.
    """
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(_PAUSE_S)
        except OSError:
            return False
        else:
            return True


def _tail(file: int, end: int) -> bytes:
    """What follows the end of the last line."""
    if end == 0 or os.pread(file, 1, end - 1) == b"\n":
        return b""
    return os.pread(file, min(end, MOST_BYTES), max(0, end - MOST_BYTES)).rpartition(b"\n")[2]


def _is_whole(tail: bytes) -> bool:
    try:
        from_line(tail, "the last line")
    except InputError:
        return False
    return True


def _write(file: int, lines: bytes) -> None:
    left = memoryview(lines)
    while left:
        left = left[os.write(file, left) :]

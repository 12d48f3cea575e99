"""Files: reading with a size limit, atomic writing, and the folders for caches and data."""

from __future__ import annotations

import atexit
import csv
import errno
import fcntl
import functools
import io
import math
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from crosscast.errors import InputError


def cache_home() -> Path:
    """Folder for caches: ``crosscast`` in ``XDG_CACHE_HOME`` or ``~/.cache``; it may not exist."""
    return _home("XDG_CACHE_HOME", ".cache")


def data_home() -> Path:
    """Folder for user data: ``crosscast`` in ``XDG_DATA_HOME`` or ``~/.local/share``; it may not exist."""
    return _home("XDG_DATA_HOME", ".local/share")


def _home(variable: str, default: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / default) / "crosscast"


def exists(path: str | Path) -> bool:
    """Whether there is such a file or folder; no file has a name as long as that of a mistaken argument."""
    try:
        return Path(path).exists()
    except OSError:
        return False


def read_bytes(path: Path, what: str, most_bytes: int) -> bytes:
    """Read a file of at most `most_bytes`; `what` names its content in messages."""
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot read the {what} ({error.strerror})") from error
    if len(content) > most_bytes:
        raise InputError.of(
            where=path, expected=f"a file of at most {most_bytes >> 20} MiB", found="a larger one"
        )
    return content


def read_text(path: Path, what: str, most_bytes: int) -> str:
    """Read a file in UTF-8 of at most `most_bytes`; `what` names its content in messages."""
    content = read_bytes(path, what, most_bytes)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.of(
            where=path, expected="UTF-8", found=f"another byte at place {error.start}"
        ) from error


@contextmanager
def atomic_file(path: Path, what: str | None = None, *, field: str | None = None) -> Iterator[Path]:
    """Write a file atomically: yield a temporary path that replaces `path`, or is removed after an error.

    Readers and other writers, of other threads too, see either the complete old file or the complete new one,
    also after a power cut. The suffix stays, as some writers choose their format by it. With `what` the file
    has, or the `field` or option that names it, an error of the system becomes an InputError.
    """
    # Not `with_name`, as a path such as `.` has no name.
    temporary = path.parent / f".{path.stem}.{secrets.token_hex(6)}{path.suffix}"
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        reason = error.strerror or error
        if field is not None:
            raise InputError.of(field=field, problem=f"cannot write {path} ({reason})") from error
        if what is not None:
            raise InputError.of(where=path, problem=f"cannot write the {what} ({reason})") from error
        raise
    finally:
        # The path may lie below a file.
        with suppress(NotADirectoryError):
            temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some file systems do not support it, as they are not persistent or sync by themselves.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def is_writable(folder: Path) -> bool:
    """Whether files can be created in a folder; it is created for this user alone if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def temporary_cache() -> Path:
    """Folder for caches where the user's folder is not writable; removed when this process ends."""
    folder, owner = Path(tempfile.mkdtemp(prefix="crosscast-")), os.getpid()

    def remove() -> None:
        # A forked child must not remove the folder of its parent.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def make_folder(folder: str | Path, role: str | None = None) -> Path:
    """Create a folder if it does not exist, and return it; `role`, such as an option, is for messages."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if role is None:
            raise InputError.of(where=folder, problem=f"cannot make the folder ({error.strerror})") from error
        problem = f"cannot make the folder {folder} ({error.strerror})"
        raise InputError.of(field=role, problem=problem) from error
    return folder


@contextmanager
def locked(folder: str | Path) -> Iterator[None]:
    """Lock a folder against other builds; create it if it does not exist.

    The lock is released when the process ends, however it ends.
    """
    path = make_folder(folder) / ".lock"
    try:
        lock = _lock(path)
    except BlockingIOError as error:
        raise InputError.of(
            where=folder,
            problem="another process is writing this dataset: wait for it, or choose another folder",
        ) from error
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot lock the folder ({error.strerror})") from error
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
            # The previous holder may have removed the file between the two calls.
            if _is_file_of(path, lock):
                return lock
        except OSError:
            os.close(lock)
            raise
        os.close(lock)


def _is_file_of(path: Path, lock: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(lock))
    except FileNotFoundError:
        return False


def csv_rows(
    path: Path, what: str, columns: str, most_bytes: int
) -> tuple[str, Sequence[str], Iterator[tuple[str, Mapping[str, str]]]]:
    """Read a CSV file in UTF-8, skipping empty lines."""
    lines = _lines(path, read_text(path, what, most_bytes))
    where, header = next(lines, ("", []))
    if not header:
        raise InputError.of(where=path, expected=f"columns such as {columns}", found="an empty file")
    seen: set[str] = set()
    for name in header:
        if name in seen:
            raise InputError.of(where=where, expected="each column once", found=f"{name[:60]!r} twice")
        seen.add(name)
    return where, header, _rows(header, lines)


def number_of_text(text: str) -> float:
    """Parse a cell as a number; NaN if it is none, or not finite."""
    try:
        # Python alone reads 1_000 as a number.
        value = math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _rows(
    header: Sequence[str], lines: Iterator[tuple[str, list[str]]]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    for where, cells in lines:
        if len(cells) != len(header):
            raise InputError.of(where=where, expected=f"{len(header)} cells", found=len(cells))
        yield where, dict(zip(header, cells, strict=True))


def _lines(path: Path, text: str) -> Iterator[tuple[str, list[str]]]:
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in lines:
            if any(cell.strip() for cell in cells):
                yield f"{path}, line {lines.line_num}", [cell.strip() for cell in cells]
    except csv.Error as error:
        raise InputError.of(
            where=f"{path}, line {lines.line_num}", expected="CSV", found=f"something else ({error})"
        ) from error

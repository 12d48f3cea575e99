"""Databases of HPCToolkit since 2022, format 4: ``meta.db`` names metrics, ``profile.db`` has their values.

The format is described in HPCToolkit's doc/FORMATS.md. Of each thread, the values of the global context
(number 0) in the scope ``execution`` are taken: all that was measured.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosscast.errors import InputError
from crosscast.tables.importers.counters.hpctoolkit_threads import Thread

__all__ = ["META", "read_new_database"]

META = "meta.db"
_PROFILE = "profile.db"
_VERSION = 4
_EXECUTION = 2
_GLOBAL = 0
_RANK = "RANK"
_IS_SUMMARY = 1
_MOST_CHARACTERS = 4096
_MOST_METRICS = 1 << 16
"""Numbers of metrics have 16 bits."""


class _File:
    """Structures at places of a file, none of which may lie outside of it."""

    def __init__(self, path: Path, content: mmap.mmap, form: bytes) -> None:
        self._path = path
        self._content = content
        magic, found, major, minor = self.take("<10s4sBB", 0)
        if magic != b"HPCTOOLKIT" or found != form:
            raise InputError(f"{path}: expected a file {form.decode()} of HPCToolkit, found another")
        if major != _VERSION:
            raise InputError(f"{path}: expected version {_VERSION} of the format, found {major}.{minor}")

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return len(self._content)

    def fail(self, expected: str, found: object) -> InputError:
        """Error about the file."""
        return InputError(f"{self._path}: expected {expected}, found {found}")

    def section(self, number: int) -> int:
        """Place of a section, from 0."""
        return int(self.take("<QQ", 16 + 16 * number)[1])

    def take(self, form: str, place: int) -> tuple[Any, ...]:
        """Numbers at a place."""
        size = struct.calcsize(form)
        if place < 0 or place + size > len(self._content):
            raise InputError(
                f"{self._path}: expected {size} bytes at place {place}, found a file that is cut off"
            )
        return struct.unpack_from(form, self._content, place)

    def text(self, place: int) -> str:
        """Text at a place, up to a byte of 0."""
        end = self._content.find(b"\0", place, place + _MOST_CHARACTERS) if place < len(self._content) else -1
        if end < 0:
            raise InputError(f"{self._path}: expected a text at place {place}, found one that is cut off")
        return self._content[place:end].decode("utf-8", errors="replace")


@contextmanager
def _opened(path: Path, form: bytes) -> Iterator[_File]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot read the database ({error.strerror})") from error
    with file:
        try:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: expected a file {form.decode()} of HPCToolkit, found none") from error
        with content:
            yield _File(path, content, form)


def read_new_database(folder: Path) -> tuple[str, list[Thread]]:
    """Name of the program, and what was measured of each of its threads.

    Raises
    ------
    InputError
        If a file is missing, cut off, or of another version.
    """
    with _opened(folder / META, b"meta") as meta:
        title = meta.text(meta.take("<Q", meta.section(0))[0])
        kinds = _kinds(meta)
        metrics = _metrics(meta)
    with _opened(folder / _PROFILE, b"prof") as profile:
        return title or folder.name, list(_threads(profile, kinds, metrics))


def _kinds(meta: _File) -> list[str]:
    place, count = meta.take("<QB", meta.section(1))
    return [meta.text(meta.take("<Q", place + 8 * number)[0]) for number in range(count)]


def _metrics(meta: _File) -> dict[int, str]:
    """Names by the numbers of their values in the scope `execution`."""
    start, count, stride, scope_stride = meta.take("<QIBB", meta.section(2))
    # Structures of a size: else damaged numbers of them would be read from the same place.
    if stride < 28 or scope_stride < 10 or count > _MOST_METRICS:
        raise meta.fail(f"{_MOST_METRICS} metrics at most, of 28 bytes or more", f"{count} of {stride} bytes")
    metrics: dict[int, str] = {}
    seen = 0
    for number in range(count):
        name_at, scopes, _, how_many = meta.take("<QQQH", start + stride * number)
        seen += how_many
        if seen > _MOST_METRICS:
            raise meta.fail(f"{_MOST_METRICS} scopes of metrics at most", "more")
        for each in range(how_many):
            scope_at, identifier = meta.take("<QH", scopes + scope_stride * each)
            if meta.take("<QB", scope_at)[1] == _EXECUTION:
                metrics[identifier] = meta.text(name_at)
    return metrics


def _threads(profile: _File, kinds: list[str], metrics: dict[int, str]) -> Iterator[Thread]:
    start, count, stride = profile.take("<QIB", profile.section(0))
    if stride < 44:
        raise profile.fail("profiles of 44 bytes or more", f"some of {stride}")
    left = profile.size
    for number in range(count):
        place = start + stride * number
        values, values_at, contexts, contexts_at, tuple_at, flags = profile.take("<QQI4xQQI", place)
        if flags & _IS_SUMMARY or not tuple_at:
            continue
        first, last = _global_values(profile, values, contexts, contexts_at)
        # Values of threads lie apart, each in ten bytes.
        left -= 10 * max(last - first, 1)
        if left < 0:
            raise profile.fail("values of threads that lie apart", "some that do not")
        pairs = (profile.take("<Hd", values_at + 10 * each) for each in range(first, last))
        found = {metrics[identifier]: value for identifier, value in pairs if identifier in metrics}
        yield Thread(_process(profile, tuple_at, kinds), found)


def _global_values(profile: _File, values: int, contexts: int, contexts_at: int) -> tuple[int, int]:
    """First and last place of the values of the global context; the same if there are none."""
    if not contexts or profile.take("<I", contexts_at)[0] != _GLOBAL:
        # Contexts are in order: without the global one first, there is none, and nothing was measured.
        return 0, 0
    last = profile.take("<Q", contexts_at + 16)[0] if contexts > 1 else values
    return profile.take("<Q", contexts_at + 4)[0], last


def _process(profile: _File, place: int, kinds: list[str]) -> int:
    """Number of the process that a thread is of; 0 for a program without ranks."""
    for number in range(profile.take("<H", place)[0]):
        kind, _, logical = profile.take("<BxHI", place + 8 + 16 * number)
        if kind < len(kinds) and kinds[kind] == _RANK:
            return int(logical)
    return 0

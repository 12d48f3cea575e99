"""Read and write files with profiles; nothing is compiled or run."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from crosscast.characterization.embedding import source, spirv
from crosscast.characterization.embedding.payload import digest
from crosscast.characterization.embedding.spirv import is_module
from crosscast.data.files import atomic_file, read_bytes
from crosscast.errors import InputError
from crosscast.profile import Profile

_MOST_BYTES = 64 << 20
"""Limit on the size of files; no kernel is nearly as large."""


def has_embedded(path: str | Path) -> bool:
    """Whether a source or a SPIR-V module contains profiles, valid or not."""
    path = Path(path)
    content = read_content(path)
    if _is_module(path, content):
        return spirv.holds(content, str(path))
    return source.holds(content)


def read_embedded(path: str | Path) -> tuple[Profile, ...]:
    """Read the profiles in a source (OpenCL C) or a SPIR-V module."""
    path = Path(path)
    content = read_content(path)
    module = _is_module(path, content)
    bare, payload = spirv.take_out(content, str(path)) if module else source.take_out(content, str(path))
    if payload is None:
        raise InputError(f"{path}: expected a profile that crosscast embed wrote into it, found none")
    if digest(bare) != payload.sha256:
        raise InputError(
            f"{path}: the {'module' if module else 'source'} has changed since its profile was embedded "
            "(another SHA-256): run crosscast embed again"
        )
    return payload.profiles


def read_content(path: Path) -> bytes:
    """Read a file within the size limit."""
    return read_bytes(path, "file", _MOST_BYTES)


def _is_module(path: Path, content: bytes) -> bool:
    return path.suffix == ".spv" or is_module(content)


@dataclass(frozen=True)
class EmbeddingTarget:
    """Output file with profiles."""

    path: Path
    before: bytes | None = None  # Its content, if the original is replaced

    @classmethod
    def new(cls, path: Path) -> EmbeddingTarget:
        """Return a new file; an existing one must have been written by embedding."""
        _expect_replaceable(path)
        return cls(path)

    @classmethod
    def of(cls, original: Path, before: bytes, beside: Path, *, in_place: bool) -> EmbeddingTarget:
        """Return the original file, or a new one beside it."""
        if in_place:
            return cls(original, before)
        if beside.resolve() == original.resolve():
            raise InputError(f"{beside}: expected another file than the original: choose one, or --in-place")
        return cls.new(beside)

    def write(self, content: bytes) -> None:
        """Write the file atomically; links and permissions are preserved."""
        if self.before is not None and read_content(self.path) != self.before:
            raise InputError(f"{self.path}: expected the file as it was read, found a change: run again")
        path = self.path.resolve()
        try:
            with atomic_file(path) as temporary:
                temporary.write_bytes(content)
                if path.exists():
                    shutil.copymode(path, temporary)
        except OSError as error:
            raise InputError(f"{self.path}: cannot write the file ({error.strerror or error})") from error


def _expect_replaceable(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: the folder {path.absolute().parent} does not exist")
    if not path.exists():
        return
    try:
        read_embedded(path)
    except InputError as error:
        raise InputError(
            f"{path}: expected no file, or one as crosscast embed wrote it, found another one: "
            "choose another name with --out, or move it away"
        ) from error

"""Profiles in a source, and files with profiles in them; nothing is compiled or run.

In a source they are a comment behind its last line, so that line numbers do not change.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from crosscast.characterization.embedding import NAME, Payload, damaged, decode, digest, encode, spirv
from crosscast.data.files import atomic_file, read_bytes
from crosscast.errors import InputError
from crosscast.profile import Profile

_BEGIN = re.compile(rb"^/\* %b " % NAME.encode(), re.MULTILINE)
_END = b"*/"
_WIDTH = 100


def holds(content: bytes) -> bool:
    """Whether there is such a comment, valid or not."""
    return _BEGIN.search(content) is not None


def embed(content: bytes, profiles: Sequence[Profile], where: str) -> bytes:
    """Return the source with the profiles as a comment, replacing earlier ones."""
    source, _ = take_out(content, where)
    # A second line end also terminates a last line with a continuation.
    newlines = 1 if source.endswith(b"\n") else 2
    header, body = encode(Payload(tuple(profiles), digest(source), newlines)).split("\n")
    lines = "\n".join(("", "/* " + header, *_lines(body), _END.decode(), ""))
    return source + b"\n" * (newlines - 1) + lines.encode()


def take_out(content: bytes, where: str) -> tuple[bytes, Payload | None]:
    """Return the original source, and the payload if there is one."""
    comment = _find(content, where)
    if comment is None:
        return content, None
    start, end, payload = comment
    before = content[start - payload.newlines : start]
    if before == b"\n" * payload.newlines:
        start -= payload.newlines
    return content[:start] + content[end:], payload


class _Comment(NamedTuple):
    start: int
    end: int
    payload: Payload


def _find(content: bytes, where: str) -> _Comment | None:
    begins = list(_BEGIN.finditer(content))
    if not begins:
        return None
    if len(begins) > 1:
        raise InputError(f"{where}: expected one comment with embedded profiles, found {len(begins)}")
    start = begins[0].start()
    inside, closed, _ = content[start:].partition(_END)
    if not closed:
        damaged(where, "its comment does not end")
    try:
        text = inside.decode("ascii").removeprefix("/* ")
    except UnicodeDecodeError as error:
        damaged(where, f"byte {start + error.start} of the file is not ASCII")
    end = start + len(inside + closed)
    return _Comment(start, end + content.startswith(b"\n", end), decode(text, where))


def _lines(body: str) -> list[str]:
    """Break lines behind commas, for people; lines without a comma are not broken."""
    lines = [""]
    for part in re.findall(r"[^,]*,|[^,]+$", body):
        if lines[-1] and len(lines[-1]) + len(part) > _WIDTH:
            lines.append("")
        lines[-1] += part
    return lines


_MOST_BYTES = 64 << 20
"""Limit on the size of files; no kernel is nearly as large."""


def has_embedded(path: str | Path) -> bool:
    """Whether a source or a SPIR-V module contains profiles, valid or not."""
    path = Path(path)
    content = read_content(path)
    if _is_module(path, content):
        return spirv.holds(content, str(path))
    return holds(content)


def read_embedded(path: str | Path) -> tuple[Profile, ...]:
    """Read the profiles in a source (OpenCL C) or a SPIR-V module."""
    path = Path(path)
    content = read_content(path)
    module = _is_module(path, content)
    bare, payload = spirv.take_out(content, str(path)) if module else take_out(content, str(path))
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
    return path.suffix == ".spv" or spirv.is_module(content)


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

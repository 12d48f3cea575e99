"""Profiles in a source: a comment behind its last line, so that line numbers do not change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from crosscast.characterization.embedding.payload import NAME, Payload, damaged, decode, digest, encode
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

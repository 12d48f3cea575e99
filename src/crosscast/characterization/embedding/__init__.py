"""Profiles in sources and SPIR-V modules: versioned JSON with a checksum, in text that is valid in both."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, NoReturn

import msgspec

import crosscast
from crosscast.data import fields
from crosscast.data.profiles import COLUMNS
from crosscast.data.schema import json_text
from crosscast.errors import InputError
from crosscast.profile import METRICS, Profile

_WHOLE = frozenset(column.name for column in COLUMNS if column.type == "integer")
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]  # as large as a table of profiles holds
_Number = _Count | Annotated[float, msgspec.Meta(ge=0, le=float(1 << 63))]
_Metrics = msgspec.defstruct(
    "_Metrics",
    [(m.name, _Count | None if m.name in _WHOLE else _Number | None) for m in METRICS],
    forbid_unknown_fields=True,
)


class _EmbeddedEntry(msgspec.Struct, kw_only=True):
    """Reproducible fields of a profile, without the printed output."""

    application: str | None = None
    size: str | None = None
    kernel: _Text
    invocation: _Count
    metrics: _Metrics  # type: ignore[valid-type]
    launch: dict[str, object]
    program: dict[str, object]
    environment: dict[str, object]


class _Content(msgspec.Struct):
    """Fields of the JSON that are read."""

    sha256: str
    newlines: Annotated[int, msgspec.Meta(ge=0, le=2)]
    profiles: Annotated[list[_EmbeddedEntry], msgspec.Meta(min_length=1)]


NAME = "crosscast-profile"
"""First word of the payload in every container."""

VERSION = 1
"""Version of the format; raised when a field changes its name, type or meaning."""


@dataclass(frozen=True)
class Payload:
    """Payload of a file."""

    profiles: tuple[Profile, ...]
    sha256: str  # Hash of the file without the payload, in hexadecimal
    newlines: int = 0  # Line ends added in front, which are removed with it


def digest(content: bytes) -> str:
    """Return the hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def encode(payload: Payload) -> str:
    """Encode as a line with name, version and checksum, and a line of JSON.

    The text is printable ASCII without an asterisk, so that no comment can begin or end in it.
    """
    compilers = sorted({str(p.program["compiler"]) for p in payload.profiles if p.program.get("compiler")})
    value = {
        "made_by": f"crosscast {crosscast.__version__}",
        "compiler": " and ".join(compilers) or None,
        "sha256": payload.sha256,
        "newlines": payload.newlines,
        "profiles": [_entry(profile) for profile in payload.profiles],
    }
    # An asterisk occurs only in JSON strings, where it can be escaped.
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("*", "\\u002a")
    return f"{NAME} {VERSION} {digest(text.encode())}\n{text}"


def _entry(profile: Profile) -> dict[str, object]:
    values: dict[str, object] = {name: getattr(profile, name) for name in _EmbeddedEntry.__struct_fields__}
    # Only the name of the program's path, as the file will be read elsewhere.
    path = profile.program.get("path")
    values["program"] = {**profile.program, "path": PurePath(str(path)).name if path else None}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def decode(text: str, where: str) -> Payload:
    """Read what `encode` wrote; line ends within the JSON do not count."""
    header, _, body = text.partition("\n")
    words = header.split()
    if len(words) != 3 or words[0] != NAME or not re.fullmatch("[0-9]{1,9}", words[1]):
        damaged(where, f"it begins with {header[:80]!r}")
    if int(words[1]) > VERSION:
        raise InputError(
            f"{where}: expected an embedded profile of version {VERSION} or older, found version "
            f"{words[1]}: a newer Crosscast wrote it"
        )
    body = "".join(body.splitlines())
    if digest(body.encode()) != words[2]:
        damaged(where, "its checksum does not match")
    try:
        value = json.loads(body)
        # Python reads numbers that are not finite; JSON has none.
        json_text(value)
        content = fields.decode(_Content, value, where)
    except InputError as error:
        damaged(where, str(error).removeprefix(f"{where}: "))
    except (ValueError, RecursionError) as error:
        damaged(where, str(error))
    return Payload(tuple(map(_profile, content.profiles)), content.sha256, content.newlines)


def profile_of(entry: object, number: int) -> Profile:
    """Make a profile of a JSON object, `number` in its list."""
    return _profile(fields.decode(_EmbeddedEntry, entry, f"profiles[{number}]"))


def _profile(entry: _EmbeddedEntry) -> Profile:
    values = msgspec.structs.asdict(entry)
    return Profile(**{**values, "metrics": msgspec.structs.asdict(entry.metrics)}, timing_s={})


def damaged(where: str, reason: str) -> NoReturn:
    """Raise for an embedded payload that cannot be read."""
    raise InputError(
        f"{where}: the embedded profile is damaged ({reason}): take it out and run crosscast embed again"
    )

"""What is embedded: profiles as versioned JSON with a checksum, in text that no container can trip over."""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import crosscast
from crosscast.characterization.embedding.entry import profile_of, to_entry
from crosscast.data.schema import json_text
from crosscast.errors import InputError
from crosscast.profile import Profile

__all__ = ["NAME", "VERSION", "Payload", "damaged", "decode", "digest", "encode"]

NAME = "crosscast-profile"
"""First word of what is embedded, in every container."""

VERSION = 1
"""Version of the format; it rises when a field changes its name, type or meaning."""


@dataclass(frozen=True)
class Payload:
    """What is embedded in a file.

    Parameters
    ----------
    profiles
        The profiles.
    sha256
        Hash of the file without them, in hexadecimal.
    newlines
        Line ends that were put in front, and go with it when it is taken out.
    """

    profiles: tuple[Profile, ...]
    sha256: str
    newlines: int = 0


def digest(content: bytes) -> str:
    """Hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def encode(payload: Payload) -> str:
    """Write as a line with name, version and checksum, and a line of JSON.

    The text is printable ASCII without an asterisk, so that no comment can end, and none begin, in it.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    compilers = sorted({str(p.program["compiler"]) for p in payload.profiles if p.program.get("compiler")})
    value = {
        "made_by": f"crosscast {crosscast.__version__}",
        "compiler": " and ".join(compilers) or None,
        "sha256": payload.sha256,
        "newlines": payload.newlines,
        "profiles": [to_entry(profile) for profile in payload.profiles],
    }
    # An asterisk is only ever inside of a JSON string, where it may be written by its number.
    text = json.dumps(value, separators=(",", ":"), allow_nan=False).replace("*", "\\u002a")
    return f"{NAME} {VERSION} {digest(text.encode())}\n{text}"


def decode(text: str, where: str) -> Payload:
    """Read what `encode` wrote; line ends within the JSON do not count.

    Parameters
    ----------
    text
        The text.
    where
        The file, for messages.

    Raises
    ------
    InputError
        If it is damaged, or of a newer version.
    """
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
        return _payload(value)
    except (ValueError, RecursionError) as error:
        damaged(where, str(error))


def damaged(where: str, reason: str) -> NoReturn:
    """Say that what is embedded cannot be read.

    Raises
    ------
    InputError
        Always.
    """
    raise InputError(
        f"{where}: the embedded profile is damaged ({reason}): take it out and run crosscast embed again"
    )


def _payload(value: Any) -> Payload:
    if not isinstance(value, Mapping):
        raise ValueError("expected a JSON object")
    sha256, newlines, entries = (value.get(key) for key in ("sha256", "newlines", "profiles"))
    if not isinstance(sha256, str):
        raise ValueError(f"sha256: expected a hash, found {reprlib.repr(sha256)}")
    if newlines not in (0, 1, 2):
        raise ValueError(f"newlines: expected 0, 1 or 2, found {reprlib.repr(newlines)}")
    if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
        raise ValueError("profiles: expected a list of one or more")
    return Payload(tuple(profile_of(entry, n) for n, entry in enumerate(entries)), sha256, newlines)

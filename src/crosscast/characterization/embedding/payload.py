"""What is embedded: profiles as versioned JSON with a checksum, in text that no container can trip over."""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NoReturn, TypeGuard

import crosscast
from crosscast.data.profiles import COLUMNS
from crosscast.data.schema import json_text
from crosscast.errors import InputError
from crosscast.profile import METRICS, MetricValue, Profile

_WHOLE = frozenset(column.name for column in COLUMNS if column.type == "integer")
_MOST = (1 << 63) - 1
"""Largest number that a table of profiles holds."""

_FACTS = ("launch", "program", "environment")


def to_entry(profile: Profile) -> dict[str, Any]:
    """Make the object of a profile.

    It holds what is the same each time that the launch is characterized: no times, and nothing that the
    kernel printed. Of the program's path the name stays, as the file will be read elsewhere.
    """
    path = profile.program.get("path")
    return {
        "application": profile.application,
        "size": profile.size,
        "kernel": profile.kernel,
        "invocation": profile.invocation,
        "metrics": dict(profile.metrics),
        "launch": dict(profile.launch),
        "program": {**profile.program, "path": PurePath(path).name if path else None},
        "environment": dict(profile.environment),
    }


def profile_of(entry: Any, number: int) -> Profile:
    """Make the profile of an object."""
    where = f"profiles[{number}]"
    if not isinstance(entry, Mapping):
        raise ValueError(f"{where}: expected an object")
    kernel, invocation = entry.get("kernel"), entry.get("invocation")
    if not isinstance(kernel, str) or not kernel:
        raise ValueError(f"{where}.kernel: expected a name, found {reprlib.repr(kernel)}")
    if not _is_whole(invocation) or not 0 <= invocation <= _MOST:
        raise ValueError(
            f"{where}.invocation: expected a whole number of at least 0, found {reprlib.repr(invocation)}"
        )
    for name in ("application", "size"):
        if not isinstance(entry.get(name), str | None):
            raise ValueError(f"{where}.{name}: expected a text, found {reprlib.repr(entry[name])}")
    for name in ("metrics", *_FACTS):
        if not isinstance(entry.get(name), Mapping):
            raise ValueError(f"{where}.{name}: expected an object")
    return Profile(
        kernel=kernel,
        invocation=invocation,
        metrics=_metrics(entry["metrics"], where),
        timing_s={},
        **{name: entry[name] for name in _FACTS},
        application=entry.get("application"),
        size=entry.get("size"),
    )


def _metrics(values: Mapping[str, Any], where: str) -> dict[str, MetricValue]:
    names = {metric.name for metric in METRICS}
    if values.keys() != names:
        wrong = min(values.keys() ^ names)
        found = "one more" if wrong in values else "none"
        raise ValueError(f"{where}.metrics: expected Crosscast's, found {found} called {reprlib.repr(wrong)}")
    for name, value in values.items():
        if value is None:
            continue
        number = _is_whole(value) or (isinstance(value, float) and name not in _WHOLE)
        if not number or not 0 <= value <= _MOST:
            kind = "whole number" if name in _WHOLE else "number"
            found = reprlib.repr(value)
            raise ValueError(f"{where}.metrics.{name}: expected a {kind} of at least 0, found {found}")
    return {metric.name: values[metric.name] for metric in METRICS}


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


NAME = "crosscast-profile"
"""First word of what is embedded, in every container."""

VERSION = 1
"""Version of the format; it rises when a field changes its name, type or meaning."""


@dataclass(frozen=True)
class Payload:
    """What is embedded in a file."""

    profiles: tuple[Profile, ...]  # The profiles
    sha256: str  # Hash of the file without them, in hexadecimal
    newlines: int = 0  # Line ends that were put in front, and go with it when it is taken out


def digest(content: bytes) -> str:
    """Hash in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def encode(payload: Payload) -> str:
    """Write as a line with name, version and checksum, and a line of JSON.

    The text is printable ASCII without an asterisk, so that no comment can end, and none begin, in it.
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
        return _payload(value)
    except (ValueError, RecursionError) as error:
        damaged(where, str(error))


def damaged(where: str, reason: str) -> NoReturn:
    """Say that what is embedded cannot be read."""
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

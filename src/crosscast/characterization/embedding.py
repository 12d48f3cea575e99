"""Profiles in sources and SPIR-V modules: versioned JSON with a checksum, in text that is valid in both.

In a source they are a comment behind its last line, so that line numbers do not change; in a module, strings
among its debug instructions. Nothing is compiled or run.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, NamedTuple, NoReturn

import msgspec

import crosscast
from crosscast.characterization import spirv
from crosscast.data import fields
from crosscast.data.files import atomic_file, read_bytes
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


_NAME = "crosscast-profile"
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
    return f"{_NAME} {VERSION} {digest(text.encode())}\n{text}"


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
    if len(words) != 3 or words[0] != _NAME or not re.fullmatch("[0-9]{1,9}", words[1]):
        _damaged(where, f"it begins with {header[:80]!r}")
    if int(words[1]) > VERSION:
        raise InputError.of(
            where=where,
            expected=f"an embedded profile of version {VERSION} or older",
            found=f"version {words[1]}: a newer Crosscast wrote it",
        )
    body = "".join(body.splitlines())
    if digest(body.encode()) != words[2]:
        _damaged(where, "its checksum does not match")
    try:
        value = json.loads(body)
        # Python reads numbers that are not finite; JSON has none.
        json_text(value)
        content = fields.decode(_Content, value, where)
    except InputError as error:
        _damaged(where, str(error).removeprefix(f"{where}: "))
    except (ValueError, RecursionError) as error:
        _damaged(where, str(error))
    return Payload(tuple(map(_profile, content.profiles)), content.sha256, content.newlines)


def profile_of(entry: object, number: int) -> Profile:
    """Make a profile of a JSON object, `number` in its list."""
    return _profile(fields.decode(_EmbeddedEntry, entry, f"profiles[{number}]"))


def _profile(entry: _EmbeddedEntry) -> Profile:
    values = msgspec.structs.asdict(entry)
    return Profile(**{**values, "metrics": msgspec.structs.asdict(entry.metrics)}, timing_s={})


def _damaged(where: str, reason: str) -> NoReturn:
    """Raise for an embedded payload that cannot be read."""
    raise InputError.of(
        where=where,
        problem=f"the embedded profile is damaged ({reason}): take it out and run crosscast embed again",
    )


_BEGIN = re.compile(rb"^/\* %b " % _NAME.encode(), re.MULTILINE)
_END = b"*/"
_WIDTH = 100


_LABEL = f"{_NAME} "


def _is_module(path: Path, content: bytes) -> bool:
    """Whether a file is a SPIR-V module, by its name or its content."""
    return path.suffix == ".spv" or spirv.is_module(content)


def embed(content: bytes, profiles: Sequence[Profile], where: str) -> bytes:
    """Return the source with the profiles as a comment, replacing earlier ones."""
    source, _ = take_out(content, where)
    # A second line end also terminates a last line with a continuation.
    newlines = 1 if source.endswith(b"\n") else 2
    header, body = encode(Payload(tuple(profiles), digest(source), newlines)).split("\n")
    lines = "\n".join(("", "/* " + header, *_lines(body), _END.decode(), ""))
    return source + b"\n" * (newlines - 1) + lines.encode()


def embed_in_module(content: bytes, profiles: Sequence[Profile], where: str) -> bytes:
    """Return the module with the profiles in strings, replacing earlier ones."""
    bare, _ = take_out_of_module(content, where)
    module = spirv.read_module(bare, where)
    for profile in profiles:
        if profile.kernel not in module.kernels:
            raise InputError.of(
                where=where,
                expected=f"a module with the kernel {profile.kernel!r}",
                found=", ".join(module.kernels) or "no kernel",
            )
    return spirv.with_strings(module, _pieces(encode(Payload(tuple(profiles), digest(bare)))))


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


def take_out_of_module(content: bytes, where: str) -> tuple[bytes, Payload | None]:
    """Return the original module, and the payload if there is one."""
    bare, texts = spirv.labelled(content, _LABEL, where)
    return bare, decode(_joined(texts, where), where) if texts else None


class _Comment(NamedTuple):
    start: int
    end: int
    payload: Payload


def _find(content: bytes, where: str) -> _Comment | None:
    begins = list(_BEGIN.finditer(content))
    if not begins:
        return None
    if len(begins) > 1:
        raise InputError.of(where=where, expected="one comment with embedded profiles", found=len(begins))
    start = begins[0].start()
    inside, closed, _ = content[start:].partition(_END)
    if not closed:
        _damaged(where, "its comment does not end")
    try:
        text = inside.decode("ascii").removeprefix("/* ")
    except UnicodeDecodeError as error:
        _damaged(where, f"byte {start + error.start} of the file is not ASCII")
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


def _pieces(text: str) -> list[str]:
    """Split a text into numbered parts that fit into a string each."""
    room = spirv.MOST_OCTETS - len(f"{_LABEL}99999/99999: ")
    count = math.ceil(len(text) / room)
    return [f"{_LABEL}{n + 1}/{count}: {text[n * room : (n + 1) * room]}" for n in range(count)]


def _joined(texts: Sequence[str], where: str) -> str:
    parts = {}
    for text in texts:
        number, _, part = text.removeprefix(_LABEL).partition(": ")
        parts[number] = part
    numbers = [f"{n + 1}/{len(texts)}" for n in range(len(texts))]
    if parts.keys() != set(numbers):
        names = ", ".join(parts)[:80]
        _damaged(where, f"expected its parts {numbers[0]} to {numbers[-1]}, found {names!r}")
    return "".join(parts[number] for number in numbers)


_MOST_BYTES = 64 << 20
"""Limit on the size of files; no kernel is nearly as large."""


def has_embedded(path: str | Path) -> bool:
    """Whether a source or a SPIR-V module contains profiles, valid or not."""
    path = Path(path)
    content = read_content(path)
    if _is_module(path, content):
        return bool(spirv.labelled(content, _LABEL, str(path))[1])
    return _BEGIN.search(content) is not None


def read_embedded(path: str | Path) -> tuple[Profile, ...]:
    """Read the profiles in a source (OpenCL C) or a SPIR-V module."""
    path = Path(path)
    content = read_content(path)
    module = _is_module(path, content)
    bare, payload = (take_out_of_module if module else take_out)(content, str(path))
    if payload is None:
        raise InputError.of(where=path, expected="a profile that crosscast embed wrote into it", found="none")
    if digest(bare) != payload.sha256:
        raise InputError.of(
            where=path,
            problem=(
                f"the {('module' if module else 'source')} has changed since its profile was "
                "embedded (another SHA-256): run crosscast embed again"
            ),
        )
    return payload.profiles


def read_content(path: Path) -> bytes:
    """Read a file within the size limit."""
    return read_bytes(path, "file", _MOST_BYTES)


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
            raise InputError.of(
                where=beside, expected="another file than the original: choose one, or --in-place"
            )
        return cls.new(beside)

    def write(self, content: bytes) -> None:
        """Write the file atomically; links and permissions are preserved."""
        if self.before is not None and read_content(self.path) != self.before:
            raise InputError.of(
                where=self.path, expected="the file as it was read", found="a change: run again"
            )
        path = self.path.resolve()
        try:
            with atomic_file(path) as temporary:
                temporary.write_bytes(content)
                if path.exists():
                    shutil.copymode(path, temporary)
        except OSError as error:
            raise InputError.of(
                where=self.path, problem=f"cannot write the file ({error.strerror or error})"
            ) from error


def _expect_replaceable(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise InputError.of(where=path, problem=f"the folder {path.absolute().parent} does not exist")
    if not path.exists():
        return
    try:
        read_embedded(path)
    except InputError as error:
        raise InputError.of(
            where=path,
            expected="no file, or one as crosscast embed wrote it",
            found="another one: choose another name with --out, or move it away",
        ) from error

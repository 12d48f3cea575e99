"""The folder of a model: a card (JSON) with a checksum, and arrays; written atomically, checked when read.

The card names the file with the arrays, and is renamed into place after that file is written. A model that is
replaced is valid until that moment, and the new one from then on. Arrays are numbers and texts in NumPy's
``.npz`` format; nothing is unpickled, and no more bytes are read than the card states.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from pathlib import Path
from typing import IO, Annotated, NoReturn

import msgspec
import numpy as np

import crosscast
from crosscast.arrays import AnyArray, Arrays, npz_bytes
from crosscast.data.fields import decode, excerpt
from crosscast.data.files import atomic_file
from crosscast.data.schema import json_text
from crosscast.errors import InputError

DAMAGE = (
    ArithmeticError,
    EOFError,
    KeyError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that Python and NumPy raise on files that are damaged or no archive of arrays."""


def array_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    """Read the shape and type of an array in an archive without allocating the array."""
    version = np.lib.format.read_magic(member)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(member)
    return shape, dtype


CARD = "card.json"
"""Name of the card's file."""

FORMAT = "crosscast model"

PROTOCOL = 2
"""Version of the format.

It rises when a field or array changes its name, type or meaning, or one is added that a prediction needs.
It stays when a field is added that earlier versions of Crosscast may ignore. Format 1 had a ``target``
instead of a ``question``, with ``time`` for none.
"""

_MOST_CARD_BYTES = 16 << 20
_MOST_BYTES = 1 << 30
"""Largest total size of arrays that is read; no model is nearly as large."""

_MOST_HEADER_BYTES = 4096
_KINDS = "fiubU"
_ARRAYS = r"arrays-[0-9a-f]{16}\.npz"
_OURS = re.compile(rf"{_ARRAYS}|\.(arrays-[0-9a-f]{{16}}\.\d+\.npz|card\.\d+\.json)")
"""Files that a crash may leave of a model: arrays without a card, and temporary files."""

_RESERVED = frozenset({"format", "protocol", "made_by", "question", "arrays", "sha256"})


class _Listed(msgspec.Struct, frozen=True):
    """Entry of an array on the card."""

    dtype: str
    shape: tuple[Annotated[int, msgspec.Meta(ge=0)], ...]
    sha256: str


class _Contents(msgspec.Struct, frozen=True):
    """Entries of all arrays on the card."""

    file: str
    contents: dict[str, _Listed]


class _Header(msgspec.Struct, frozen=True):
    """Fields of the card of every model."""

    question: Annotated[str, msgspec.Meta(min_length=1)]
    protocol: int
    arrays: _Contents


def write(
    folder: str | Path, question: str, card: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> None:
    """Write a model; an existing one is replaced."""
    folder = Path(folder)
    check_folder(folder)
    _check_written(folder / CARD, card, arrays)
    listed = {
        name: {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": _array_digest(array)}
        for name, array in arrays.items()
    }
    digest = hashlib.sha256("".join(str(each["sha256"]) for each in listed.values()).encode()).hexdigest()
    path = folder / f"arrays-{digest[:16]}.npz"
    content = {
        "format": FORMAT,
        "protocol": PROTOCOL,
        "made_by": f"crosscast {crosscast.__version__}",
        "question": question,
        **card,
        "arrays": {"file": path.name, "contents": listed},
    }
    content["sha256"] = hashlib.sha256(json_text(content).encode()).hexdigest()
    text = json.dumps(content, indent=1, allow_nan=False)
    # An existing model may have the same arrays.
    new_folder, new_arrays, written = not folder.exists(), not path.exists(), False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with atomic_file(path) as temporary:
                temporary.write_bytes(npz_bytes(arrays))
            with atomic_file(folder / CARD) as temporary:
                temporary.write_text(f"{text}\n", encoding="utf-8")
            written = True
        finally:
            if new_arrays and not written:
                path.unlink(missing_ok=True)
            if new_folder and not any(folder.iterdir()):
                folder.rmdir()
        for other in folder.iterdir():
            if other != path and re.fullmatch(_ARRAYS, other.name):
                other.unlink(missing_ok=True)
    except OSError as error:
        raise InputError.of(
            where=folder, problem=f"cannot write the model ({error.strerror or error})"
        ) from error


def check_folder(folder: str | Path) -> None:
    """Raise InputError for a folder with other files than those of a model."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError.of(where=folder, expected="a folder for the model", found="a file")
    if folder.is_dir() and not (folder / CARD).exists():
        others = [path.name for path in folder.iterdir() if not _OURS.fullmatch(path.name)]
        if others:
            found = f"other files, as {min(others)}"
            raise InputError.of(where=folder, expected="an empty folder, or one with a model", found=found)


def _check_written(path: Path, card: Mapping[str, object], arrays: Mapping[str, AnyArray]) -> None:
    """Raise InputError for a model that could not be read."""
    reserved = sorted(_RESERVED & set(card))
    if reserved:
        raise InputError.of(where=path, expected="fields of other names", found=", ".join(reserved))
    for path_in_card, value in _numbers(card, ""):
        if not isfinite(value):
            raise InputError.of(where=path, field=path_in_card, expected="a finite number", found=value)
    for name, array in arrays.items():
        if array.dtype.kind not in _KINDS:
            expected = "an array of numbers or texts"
            raise InputError.of(where=path, field=name, expected=expected, found=str(array.dtype))


def _numbers(value: object, path: str) -> Iterator[tuple[str, float]]:
    """Every real number of a JSON value, and its path."""
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _numbers(each, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            yield from _numbers(each, f"{path}[{number}]")


def _array_digest(array: AnyArray) -> str:
    """Hash of type, shape and values."""
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class StoredModel:
    """A model of a folder; its arrays are read when first needed."""

    folder: Path
    where: str  # The card's file, for messages
    question: str  # That it answers
    protocol: int  # Version of its format
    card: dict[str, object]  # The question's fields of the card
    path: Path  # File of the arrays
    listed: Mapping[str, _Listed]  # Their entries on the card

    @cached_property
    def arrays(self) -> Arrays:
        """The arrays by name."""
        arrays: Arrays = {}
        with _opened(self.path) as file:
            for name, each in self.listed.items():
                try:
                    # First the header alone, as its sizes determine the memory.
                    with file.open(f"{name}.npy") as member:
                        shape, dtype = array_header(member)
                    if (shape, dtype) != (each.shape, np.dtype(each.dtype)):
                        raise ValueError(f"it is of type {dtype} and shape {shape}, and not as the card says")
                    with file.open(f"{name}.npy") as member:
                        arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
                except DAMAGE as error:
                    raise InputError.of(
                        where=self.path, problem=f"array {name} is damaged ({error})"
                    ) from error
                if _array_digest(arrays[name]) != each.sha256:
                    raise InputError.of(
                        where=self.path, problem=f"array {name} is damaged (its checksum is not the card's)"
                    )
        return arrays


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except FileNotFoundError as error:
        raise InputError.of(where=path, expected="the arrays of the model", found="no such file") from error
    except DAMAGE as error:
        raise InputError.of(where=path, problem=f"cannot read the arrays of the model ({error})") from error


def read(folder: str | Path, question: str | tuple[str, ...] | None = None) -> StoredModel:
    """Read the card of a model for one of the questions, and check the sizes of its arrays."""
    folder = Path(folder)
    path = folder / CARD
    card = _whole_card(path, folder)
    header = decode(_Header, card, str(path))
    questions = (question,) if isinstance(question, str) else question
    if questions is not None and header.question not in questions:
        expected = " or ".join(f"'crosscast train {each}'" for each in questions)
        found = f"one by 'crosscast train {header.question}'"
        raise InputError.of(where=f"{folder}/", expected=f"a model trained by {expected}", found=found)
    listed = header.arrays
    if Path(listed.file).name != listed.file or "\0" in listed.file:
        expected = "the name of a file beside it"
        raise InputError.of(where=path, field="arrays.file", expected=expected, found=repr(listed.file))
    _check_sizes(path, folder / listed.file, listed.contents)
    of_question = {name: value for name, value in card.items() if name not in _RESERVED}
    arrays, where = folder / listed.file, str(path)
    return StoredModel(folder, where, header.question, header.protocol, of_question, arrays, listed.contents)


def _check_sizes(path: Path, file: Path, listed: Mapping[str, _Listed]) -> None:
    """Raise InputError for arrays of unknown types, or larger than the card states."""
    sizes = {}
    for name, each in listed.items():
        try:
            dtype = np.dtype(each.dtype)
        except (TypeError, ValueError, SyntaxError):
            dtype = np.dtype(object)
        if dtype.kind not in _KINDS:
            field, expected = f"arrays.contents.{name}.dtype", "that of numbers or texts"
            raise InputError.of(where=path, field=field, expected=expected, found=repr(each.dtype))
        sizes[name] = dtype.itemsize * prod(each.shape)
    total = sum(sizes.values())
    if total > _MOST_BYTES:
        expected, found = f"at most {_MOST_BYTES >> 20} MiB", f"{total >> 20} MiB"
        raise InputError.of(where=path, field="arrays", expected=expected, found=found)
    with _opened(file) as archive:
        sizes_in_file = {info.filename: info.file_size for info in archive.infolist()}
    for name, size in sizes.items():
        found_size = sizes_in_file.get(f"{name}.npy")
        if found_size is None:
            raise InputError.of(where=file, expected=f"an array {name!r} as its card says", found="none")
        if not 0 < found_size - size <= _MOST_HEADER_BYTES:
            expected = f"{size} bytes and a header as its card says"
            raise InputError.of(where=file, field=name, expected=expected, found=found_size)


def _whole_card(path: Path, folder: Path) -> dict[str, object]:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_CARD_BYTES + 1)
    except FileNotFoundError:
        raise InputError.of(
            where=folder, expected="a folder that crosscast train wrote", found=f"no {CARD}"
        ) from None
    except OSError as error:
        raise InputError.of(where=path, problem=f"cannot read the card ({error.strerror})") from error
    if len(content) > _MOST_CARD_BYTES:
        raise InputError.of(where=path, expected=f"at most {_MOST_CARD_BYTES >> 20} MiB", found="more")
    try:
        card = json.loads(content, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError.of(where=path, problem=f"the card is damaged ({error})") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise InputError.of(where=path, expected=f"the card of a {FORMAT}", found="another JSON value")
    protocol = card.get("protocol")
    if isinstance(protocol, bool) or not isinstance(protocol, int) or protocol < 1:
        expected = f"a whole number from 1 to {PROTOCOL}"
        raise InputError.of(where=path, field="protocol", expected=expected, found=excerpt(protocol))
    if protocol > PROTOCOL:
        raise InputError.of(
            where=path,
            expected=f"a model of format {PROTOCOL} or older",
            found=f"format {protocol}: a newer Crosscast wrote it",
        )
    try:
        checksum = card.pop("sha256", None)
        is_whole = checksum == hashlib.sha256(json_text(card).encode()).hexdigest()
    except (ValueError, RecursionError):
        # An infinite number, such as 1e999, which Python reads.
        is_whole = False
    if not is_whole:
        raise InputError.of(
            where=path, problem="the card is damaged (its checksum does not match): train the model again"
        )
    return card


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"expected finite numbers, found {constant}")

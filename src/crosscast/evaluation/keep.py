"""Answers of tasks in a folder, so that interrupted work can be resumed."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

import crosscast
from crosscast.arrays import AnyArray, Arrays, npz_bytes
from crosscast.data.files import atomic_file, make_folder
from crosscast.prediction.store import DAMAGE

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "xgboost-cpu")


@dataclass(frozen=True)
class AnswerCache:
    """A folder of answers, each named by a hash of all that it depends on.

    That is the query's key, the data, the source files, and the versions of the libraries.
    """

    folder: Path  # Created if it does not exist
    data: str  # The `digest` of the data
    # Files and folders of the package that an answer depends on; see `sources_digest`
    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        make_folder(self.folder, "cache")

    def load(self, key: object) -> Arrays | None:
        """A cached answer; ``None`` if there is none, or a damaged one."""
        try:
            with zipfile.ZipFile(self._path(key)) as archive:
                arrays: Arrays = {}
                for name in archive.namelist():
                    with archive.open(name) as member:
                        array = np.lib.format.read_array(member, allow_pickle=False)
                    arrays[name.removesuffix(".npy")] = array
                return arrays
        except DAMAGE:
            return None

    def save(self, key: object, answer: Mapping[str, AnyArray]) -> None:
        """Store an answer."""
        with atomic_file(self._path(key), field="cache") as temporary:
            temporary.write_bytes(npz_bytes(answer))

    def _path(self, key: object) -> Path:
        facts = {"sources": sources_digest(self.sources), "data": self.data, "ask": key}
        name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        return self.folder / f"{name}.npz"


def digest(value: object) -> str:
    """A hash of a value: of nested dataclasses, arrays, lists, mappings, texts, numbers and ``None``.

    Equal values have equal hashes: NaNs are equal, whatever their bits; arrays of reals
    are of 64 bits, as are arrays of integers; the order of a mapping and of a set does not matter.
    """
    hashed = hashlib.sha256()
    for piece in _pieces(value):
        # With its length, so that no two sequences of pieces have the same bytes.
        hashed.update(len(piece).to_bytes(8, "little") + piece)
    return hashed.hexdigest()


def _pieces(value: object) -> Iterator[bytes]:
    if isinstance(value, Enum):
        yield f"enum {type(value).__name__}.{value.name}".encode()
    elif isinstance(value, np.generic):
        yield from _pieces(value.item())
    elif value is None or isinstance(value, bool | int | float):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, str | bytes | Path):
        kind = "bytes" if isinstance(value, bytes) else "text"
        yield kind.encode()
        yield value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")
    elif isinstance(value, np.ndarray):
        yield from _array_pieces(value)
    elif is_dataclass(value) and not isinstance(value, type):
        yield f"{type(value).__name__} {len(fields(value))}".encode()
        for field in fields(value):
            yield field.name.encode()
            yield from _pieces(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for name in sorted(value, key=digest):
            yield from _pieces(name)
            yield from _pieces(value[name])
    elif isinstance(value, AbstractSet):
        yield f"set {len(value)}".encode()
        yield from (each.encode() for each in sorted(digest(each) for each in value))
    elif isinstance(value, Sequence):
        yield f"sequence {len(value)}".encode()
        for each in value:
            yield from _pieces(each)
    else:
        raise TypeError(f"expected data, found {type(value).__qualname__}")


def _array_pieces(array: AnyArray) -> Iterator[bytes]:
    kind = array.dtype.kind
    yield f"array {kind.replace('u', 'i')} {array.shape}".encode()
    if kind == "f":
        reals = array.astype(np.float64)
        yield np.where(np.isnan(reals), np.nan, reals).tobytes()
    elif kind in "iu":
        yield array.astype(np.int64).tobytes()
    elif kind == "b":
        yield array.tobytes()
    elif kind == "U":
        yield from _pieces(array.tolist())
    else:
        raise TypeError(f"expected arrays of numbers or texts, found {array.dtype}")


def fingerprint(model: object) -> str:
    """A text that identifies a model: its class, and its parameters if it is a dataclass."""
    parameters = is_dataclass(model) and not isinstance(model, type)
    kind = type(model) if parameters or not hasattr(model, "__qualname__") else model
    name = f"{kind.__module__}.{getattr(kind, '__qualname__', '')}"
    return f"{name} {model!r}" if parameters else name


_SOURCE_SUFFIXES = (".py", ".c", ".h", ".ll", ".csv")


@cache
def sources_digest(names: tuple[str, ...]) -> str:
    """A hash of files and folders of the package, of its version, and of the versions of the libraries."""
    hashed = hashlib.sha256(crosscast.__version__.encode())
    for name in names:
        path = Path(crosscast.__file__).parent / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.suffix in _SOURCE_SUFFIXES:
                hashed.update(file.read_bytes())
    versions = library_versions()
    for library in _LIBRARIES:
        hashed.update(versions.get(library, "").encode())
    return hashed.hexdigest()


def library_versions() -> dict[str, str]:
    """Versions of the installed libraries that fit models."""
    versions = {}
    for name in _LIBRARIES:
        # Not every model needs all of them.
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions

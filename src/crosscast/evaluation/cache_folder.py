"""Folders that keep finished work: made, and written to, with one sentence for what cannot be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import crosscast
from crosscast.errors import InputError
from crosscast.tables.array_file import DAMAGE
from crosscast.tables.whole_file import whole_file


@contextmanager
def cached_file(path: Path) -> Iterator[Path]:
    """A file that is written whole or not at all, as `whole_file`."""
    try:
        with whole_file(path) as temporary:
            yield temporary
    except OSError as error:
        raise InputError(f"cache: cannot write {path} ({error.strerror or error})") from error


def cache_key(facts: object) -> str:
    """A name made of all that work depends on, of what JSON knows."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def cached_arrays(path: Path, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Arrays that were kept, by name; none if there is no such file, or a damaged one."""
    try:
        # Opened here, as numpy leaves a damaged file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {name: archive[name] for name in names}
    except DAMAGE:
        return {}


_LIBRARIES = ("numpy", "scipy", "scikit-learn", "xgboost-cpu")


def fingerprint(thing: object) -> str:
    """A text that tells a model from others: its class, and its parameters if it is a dataclass."""
    parameters = is_dataclass(thing) and not isinstance(thing, type)
    kind = type(thing) if parameters or not hasattr(thing, "__qualname__") else thing
    name = f"{kind.__module__}.{getattr(kind, '__qualname__', '')}"
    return f"{name} {thing!r}" if parameters else name


@cache
def sources_digest(names: tuple[str, ...]) -> str:
    """A hash of files of the package, of its version, and of the versions of the libraries."""
    digest = hashlib.sha256(crosscast.__version__.encode())
    for path in _files(names):
        digest.update(path.read_bytes())
    versions = library_versions()
    for library in _LIBRARIES:
        digest.update(versions.get(library, "").encode())
    return digest.hexdigest()


def library_versions() -> dict[str, str]:
    """Versions of the libraries that fit models, of those that are installed."""
    found = {}
    for name in _LIBRARIES:
        # Not all of them belong to what every model needs.
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _files(names: tuple[str, ...]) -> Iterator[Path]:
    root = Path(crosscast.__file__).parent
    for name in names:
        path = root / name
        yield from sorted(path.rglob("*.py")) if path.is_dir() else (path,)

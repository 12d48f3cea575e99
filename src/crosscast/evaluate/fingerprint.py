"""What results depend on besides their data: sources, libraries, and the parameters of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import crosscast

__all__ = ["fingerprint", "library_versions", "sources_digest"]

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "xgboost-cpu")


def fingerprint(thing: object) -> str:
    """A text that tells a model from others: its class, and its parameters if it is a dataclass.

    Parameters
    ----------
    thing
        The model; of a function the name is told.
    """
    parameters = is_dataclass(thing) and not isinstance(thing, type)
    kind = type(thing) if parameters or not hasattr(thing, "__qualname__") else thing
    name = f"{kind.__module__}.{getattr(kind, '__qualname__', '')}"
    return f"{name} {thing!r}" if parameters else name


@cache
def sources_digest(names: tuple[str, ...]) -> str:
    """A hash of files of the package, of its version, and of the versions of the libraries.

    Parameters
    ----------
    names
        Files and folders, relative to the package; of a folder all modules are meant.
    """
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

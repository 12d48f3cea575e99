"""Folders that keep finished work: made, and written to, with one sentence for what cannot be."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.errors import InputError
from crosscast.tables.array_file import DAMAGE
from crosscast.tables.whole_file import whole_file

__all__ = ["cache_key", "cached_arrays", "cached_file"]


@contextmanager
def cached_file(path: Path) -> Iterator[Path]:
    """A file that is written whole or not at all, as `whole_file`.

    Yields
    ------
    Path
        Where to write.

    Raises
    ------
    InputError
        If it cannot be written.
    """
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

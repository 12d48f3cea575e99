"""Compiling the engine, and keeping what was compiled for the next run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba

from crosscast.cache_home import cache_home

__all__ = ["compiled", "is_kept", "kept"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_NUMBA: Any = numba

_LEAN = {"no_cfunc_wrapper": True, "_nrt": False}
"""Without what nobody calls, and without counting references to arrays: the caller holds on to all of them.
Counting would take most of the time, as a simulation is dozens of arrays that each function is given."""


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function when it is first called, as a part of another one that is compiled.

    With the environment variable ``NUMBA_DISABLE_JIT`` set it stays Python.
    """
    made: Callable[Parameters, Result] = _NUMBA.njit(no_cpython_wrapper=True, **_LEAN)(function)
    return made


def kept(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile a function when it is first called, and keep it with all that it calls for other processes.

    It is kept in ``NUMBA_CACHE_DIR`` if that is set, or else with other things that Crosscast keeps; if
    that cannot be written, where Numba finds a place; if there is none, it is compiled in every process.
    """
    made: Callable[Parameters, Result]
    try:
        with _cache_folder():
            made = _NUMBA.njit(cache=True, **_LEAN)(function)
    except RuntimeError:
        # There is no folder that may be written.
        made = _NUMBA.njit(**_LEAN)(function)
    return made


def is_kept(function: Callable[..., object]) -> bool:
    """Whether a function made by `kept` is compiled already, now or by an earlier process."""
    if not hasattr(function, "stats"):
        return True
    folder = function.stats.cache_path
    if getattr(function, "signatures", ()):
        return True
    return folder is not None and any(Path(folder).glob(f"*.{function.__name__}-*.nbi"))


@contextmanager
def _cache_folder() -> Iterator[None]:
    """Where Numba keeps a function is decided when it is decorated: a folder for just these sources.

    Numba looks at the file of the function only, and would go on with old code of what it calls.
    """
    before = _NUMBA.config.CACHE_DIR
    try:
        base = Path(before) / "crosscast" if before else cache_home()
    except RuntimeError:
        # Of a user without a home folder nothing is kept but what Numba keeps by itself.
        yield
        return
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    _NUMBA.config.CACHE_DIR = str(base / "simulator" / digest.hexdigest()[:16])
    try:
        yield
    finally:
        _NUMBA.config.CACHE_DIR = before

"""Applications: those of the suite by name, and others by the path of their folder."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType, TracebackType

from crosscast.errors import InputError
from crosscast.suite.application import Application

_DRIVER = "driver.py"
_FAILURES_TO_LOAD = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(OSError, SyntaxError, TypeError, ValueError),
)


@cache
def names() -> tuple[str, ...]:
    """Return the names of the suite's applications, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob("*/*.cl")))


def application(name: str) -> type[Application]:
    """Return an application by its name in the suite, or by the path of its folder.

    A folder outside the suite holds Python code, which runs: name only folders that you trust.

    Parameters
    ----------
    name
        A name such as ``fft``, or the path of a folder with a ``driver.py``.

    Returns
    -------
    type of Application
        The class, of which problems are made by their parameters and a seed.

    Raises
    ------
    InputError
        If there is none, or its driver or kernel file is not as it should be.
    """
    if name in names():
        return _only_application(importlib.import_module(f"crosscast.suite.{name}"), name)
    driver = Path(name) / _DRIVER
    if not driver.is_file():
        raise InputError(
            f"application {name!r}: expected one of {', '.join(names())}, or a folder with a {_DRIVER}"
        )
    # A relative path depends on the working directory.
    return _of_folder(driver.resolve(), str(driver))


def selected(words: Iterable[str]) -> dict[str, type[Application]]:
    """Return applications by name or path; ``all`` stands for the whole suite."""
    kinds = {name: application(name) for word in words for name in (names() if word == "all" else (word,))}
    for kind in kinds.values():
        if sum(other.name == kind.name for other in kinds.values()) > 1:
            raise InputError(f"application {kind.name!r}: there are two of this name")
    return kinds


def place_in_driver(trace: TracebackType | None) -> str:
    """Return the line of an error in a driver, as `` (own/driver.py, line 7)``; empty for other errors."""
    for frame in reversed(traceback.extract_tb(trace)):
        path = Path(frame.filename)
        if path.name == _DRIVER or path.parent.parent == Path(__file__).parent:
            return f" ({path.parent.name}/{path.name}, line {frame.lineno})"
    return ""


@cache
def _of_folder(driver: Path, label: str) -> type[Application]:
    kind = _only_application(_module_of(driver, label), label)
    for attribute, expected in (("name", str), ("kernels", tuple)):
        value = getattr(kind, attribute, None)
        if not value or not isinstance(value, expected):
            raise InputError(f"{label}: expected {attribute} to be a {expected.__name__}, found {value!r}")
    if not kind.name.isidentifier():
        raise InputError(f"{label}: expected a name of letters, digits and _, found {kind.name!r}")
    if kind.name != driver.parent.name:
        raise InputError(
            f"{label}: expected name to be that of the folder, {driver.parent.name!r}, found {kind.name!r}"
        )
    if not kind.source_path().is_file():
        raise InputError(f"{label}: expected the kernels in {kind.source_path()}, found no such file")
    return kind


def _module_of(driver: Path, label: str) -> ModuleType:
    # Folders may share a name in different parents.
    name = f"crosscast_application_{hashlib.sha256(bytes(driver)).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, driver)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except _FAILURES_TO_LOAD as error:
        del sys.modules[name]
        line = place_in_driver(error.__traceback__)
        raise InputError(
            f"{label}: the driver does not load ({type(error).__name__}: {error}){line}"
        ) from error
    return module


def _only_application(module: ModuleType, label: str) -> type[Application]:
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Application) and value.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise InputError(f"{label}: expected one subclass of Application, found {len(classes)}")
    if inspect.isabstract(classes[0]):
        lacking = ", ".join(sorted(classes[0].__abstractmethods__))
        raise InputError(f"{label}: expected {classes[0].__name__} to define {lacking}, found it does not")
    return classes[0]

"""Find applications: those of the suite by name, and those of a person by the path of their folder."""

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

__all__ = ["application", "names", "place_in_driver", "selected"]

_DRIVER = "driver.py"
_FAILURES_TO_LOAD = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
)


@cache
def names() -> tuple[str, ...]:
    """Names of the suite's applications, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob(f"*/{_DRIVER}")))


def application(name: str) -> type[Application]:
    """An application by its name in the suite, or by the path of its folder.

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
        return _of_suite(name)
    driver = Path(name) / _DRIVER
    if not driver.is_file():
        raise InputError(
            f"application {name!r}: expected one of {', '.join(names())}, or a folder with a {_DRIVER}"
        )
    # A relative path means another folder once the working directory is another.
    return _of_folder(driver.resolve(), str(driver))


def selected(words: Iterable[str]) -> dict[str, type[Application]]:
    """Applications by name or path; ``all`` stands for the whole suite.

    Returns
    -------
    dict
        The applications by the name or path that `application` finds them by.

    Raises
    ------
    InputError
        If there is no such application, or two have the same name.
    """
    found = {name: application(name) for word in words for name in (names() if word == "all" else (word,))}
    for kind in found.values():
        if sum(other.name == kind.name for other in found.values()) > 1:
            raise InputError(f"application {kind.name!r}: there are two of this name")
    return found


def place_in_driver(trace: TracebackType | None) -> str:
    """Where in a driver an error came from, as `` (own/driver.py, line 7)``; nothing if in none."""
    for frame in reversed(traceback.extract_tb(trace)):
        path = Path(frame.filename)
        if path.name == _DRIVER:
            return f" ({path.parent.name}/{path.name}, line {frame.lineno})"
    return ""


@cache
def _of_suite(name: str) -> type[Application]:
    return _only_application(importlib.import_module(f"crosscast.suite.{name}.driver"), name)


@cache
def _of_folder(driver: Path, label: str) -> type[Application]:
    found = _only_application(_module_of(driver, label), label)
    for attribute, kind in (("name", str), ("kernels", tuple)):
        value = getattr(found, attribute, None)
        if not value or not isinstance(value, kind):
            raise InputError(f"{label}: expected {attribute} to be a {kind.__name__}, found {value!r}")
    if not found.name.isidentifier():
        raise InputError(f"{label}: expected a name of letters, digits and _, found {found.name!r}")
    if found.name != driver.parent.name:
        raise InputError(
            f"{label}: expected name to be that of the folder, {driver.parent.name!r}, found {found.name!r}"
        )
    if not found.source_path().is_file():
        raise InputError(f"{label}: expected the kernels in {found.source_path()}, found no such file")
    return found


def _module_of(driver: Path, label: str) -> ModuleType:
    # Folders in different places may have the same name.
    name = f"crosscast_application_{hashlib.sha256(bytes(driver)).hexdigest()[:16]}"
    spec = importlib.util.spec_from_file_location(name, driver)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except _FAILURES_TO_LOAD as error:
        del sys.modules[name]
        place = place_in_driver(error.__traceback__)
        raise InputError(
            f"{label}: the driver does not load ({type(error).__name__}: {error}){place}"
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

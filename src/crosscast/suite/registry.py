"""Find applications: those of the suite by name, and those of a person by the path of their folder."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

from crosscast.errors import InputError
from crosscast.suite.application import Application

__all__ = ["application", "names", "selected"]

_DRIVER = "driver.py"


@cache
def names() -> tuple[str, ...]:
    """Names of the suite's applications, in alphabetical order."""
    return tuple(sorted(path.parent.name for path in Path(__file__).parent.glob(f"*/{_DRIVER}")))


@cache
def application(name: str) -> type[Application]:
    """An application by its name in the suite, or by the path of its folder.

    A folder outside the suite holds Python code, which runs: name only folders that you trust.

    Raises
    ------
    InputError
        If there is none, or its driver or kernel file is not as it should be.
    """
    if name in names():
        module = importlib.import_module(f"crosscast.suite.{name}.driver")
        return _only_application(module, name)
    driver = Path(name) / _DRIVER
    if not driver.is_file():
        raise InputError(
            f"application {name!r}: expected one of {', '.join(names())}, or a folder with a {_DRIVER}"
        )
    found = _only_application(_module_of(driver), str(driver))
    if not found.source_path().is_file():
        raise InputError(f"{driver}: expected the kernels in {found.source_path()}, found no such file")
    return found


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


def _module_of(driver: Path) -> ModuleType:
    name = f"crosscast_application_{driver.parent.resolve().name}"
    spec = importlib.util.spec_from_file_location(name, driver)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (ImportError, SyntaxError, AttributeError, TypeError, NameError, ValueError) as error:
        raise InputError(f"{driver}: the driver does not load ({error})") from error
    return module


def _only_application(module: ModuleType, label: str) -> type[Application]:
    classes = [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Application) and value.__module__ == module.__name__
    ]
    if len(classes) != 1 or inspect.isabstract(classes[0]):
        raise InputError(
            f"{label}: expected one subclass of Application with fit, run and check, found {len(classes)}"
        )
    return classes[0]

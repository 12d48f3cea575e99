"""Applications: those of the suite by name, and others by the path of their folder."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING

from crosscast.errors import InputError
from crosscast.kernel import Argument, Kernel, Launch, Program
from crosscast.profile import Profile
from crosscast.suite.application import Application, Array, check_result, expect_arguments

if TYPE_CHECKING:
    from crosscast.characterization import run

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
        return _of_suite(name)
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
def _of_suite(name: str) -> type[Application]:
    return _only_application(importlib.import_module(f"crosscast.suite.{name}"), name)


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
    assert spec is not None
    assert spec.loader is not None
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


def profiles_of(
    application: Application,
    size: str,
    *,
    options: run.Options | None = None,
    launched: Callable[[Profile], None] = lambda profile: None,
) -> list[Profile]:
    """Run an application once and return the profile of each of its launches, in order.

    The result is checked, as it is on a device.

    Parameters
    ----------
    application
        A problem, ready to run.
    size
        Name of its size, for the profiles.
    options
        How to run each launch.
    launched
        Called with each profile as soon as it is complete.

    Returns
    -------
    list of Profile
        A profile of each launch, in order.

    Raises
    ------
    LaunchError
        If an argument of a launch is not as it should be.
    KernelFault
        If a kernel fails.
    CheckFailed
        If the result is wrong.
    MissingExtraError
        If the library that the check compares with is not installed.
    """
    # Imported here, as below: measuring does not need it, and starts twice as fast without.
    from crosscast.characterization import run

    queue = _Engine(application, size, options or run.Options(), launched)
    application.run(queue)
    check_result(application)
    return queue.profiles


class _Engine:
    """A queue whose device is the characterizing engine: arrays are its buffers."""

    def __init__(
        self,
        application: Application,
        size: str,
        options: run.Options,
        launched: Callable[[Profile], None],
    ) -> None:
        self.profiles: list[Profile] = []
        self._program = Program.from_file(application.source_path(), options=application.options)
        self._application = application.name
        self._arrays = application.arrays
        self._size = size
        self._options = options
        self._launched = launched
        self._invocations: Counter[str] = Counter()

    def write(self, *arrays: Array) -> None:
        """Do nothing: the engine works on the arrays."""

    def read(self, *arrays: Array) -> None:
        """Do nothing: the engine works on the arrays."""

    def launch(
        self, kernel: str, global_size: tuple[int, ...], local_size: tuple[int, ...], *args: Argument
    ) -> None:
        """Characterize a launch."""
        from crosscast.characterization import frontend, run

        parameters = frontend.parameters(self._program, kernel)
        expect_arguments(kernel, args, self._arrays, len(parameters))
        launch = Launch(Kernel(self._program, kernel), global_size, local_size, args)
        profile = run.characterize_launch(launch, invocation=self._invocations[kernel], options=self._options)
        self._invocations[kernel] += 1
        profile = replace(profile, application=self._application, size=self._size)
        self.profiles.append(profile)
        self._launched(profile)

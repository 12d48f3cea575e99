"""Applications: their interface, checks of results, and how they are found by name or folder."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from crosscast.data.schema import SIZES
from crosscast.errors import CheckFailed, InputError, LaunchError, MissingExtraError, expect_known
from crosscast.kernel import Argument, Image, Local, Sampler

_TIMES_LAST_CACHE = 4


@dataclass(frozen=True)
class Caches:
    """Capacities of a device's caches, in bytes."""

    l1: int  # First-level data cache of one core, second level, last level
    l2: int
    l3: int


TYPICAL = Caches(32 << 10, 256 << 10, 8 << 20)
"""Caches of the Core i7-6700K of Johnston and Milthorpe 2018 (table II), which fix the default sizes."""


def working_set(size: str, caches: Caches = TYPICAL) -> int:
    """Return the most bytes of a working set of this size.

    Parameters
    ----------
    size
        One of `SIZES`; large is four times the last-level cache.
    caches
        The caches that define the sizes.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    InputError
        If there is no such size.
    """
    expect_known(size, SIZES, field="size")
    return (caches.l1, caches.l2, caches.l3, _TIMES_LAST_CACHE * caches.l3)[SIZES.index(size)]


Array = npt.NDArray[Any]
Parameters = Mapping[str, int]
Sizes = tuple[int, ...]
_PIECE = 1 << 18
_REFERENCES = frozenset({"networkx", "scipy"})  # Modules of the extra `suite`


class Queue(Protocol):
    """The operations of a driver on a device, executed in order.

    A NumPy array stands for a buffer on the device, the same array for the same buffer. Only `write`
    and `read` copy between them; the content of a buffer that was never written is undefined.
    """

    def write(self, *arrays: Array) -> None:
        """Copy arrays to their buffers on the device."""

    def read(self, *arrays: Array) -> None:
        """Copy buffers from the device into their arrays, and wait for the end."""

    def launch(self, kernel: str, global_size: Sizes, local_size: Sizes, *args: Argument) -> None:
        """Run a kernel; arguments are as in `crosscast.kernel.Launch`."""


class Application(ABC):
    """A problem of one size, ready to run; each application of the suite is a subclass.

    Parameters
    ----------
    parameters
        Extents of the problem, as `fit` returns them.
    seed
        Seed of the random numbers that fill it.
    """

    name: ClassVar[str]
    """Name of the application, which is that of its ``.cl`` file and, outside of the suite, of its folder."""

    kernels: ClassVar[tuple[str, ...]]
    """Kernels that a run launches, each at least once at every size."""

    options: ClassVar[tuple[str, ...]] = ()
    """Options of the kernel compiler."""

    arrays: tuple[Array, ...]
    """Every array that stands for a buffer: together, the working set."""

    @abstractmethod
    def __init__(self, parameters: Parameters, seed: int) -> None: ...

    @classmethod
    @abstractmethod
    def fit(cls, nbytes: int) -> dict[str, int]:
        """Return parameters of about the largest problem whose working set is at most `nbytes`."""

    @abstractmethod
    def run(self, queue: Queue) -> None:
        """Solve the problem: write the input, launch kernels, read the result.

        Called many times; each starts from the same input and gives the same result.
        """

    @abstractmethod
    def check(self) -> None:
        """Compare the result of the last run with that of another implementation."""

    @property
    def nbytes(self) -> int:
        """Bytes of the working set."""
        return sum(array.nbytes for array in self.arrays)

    @classmethod
    def folder(cls) -> Path:
        """Return the folder of the driver and of the kernels."""
        return Path(inspect.getfile(cls)).parent

    @classmethod
    def source_path(cls) -> Path:
        """Return the path of the OpenCL C file."""
        return cls.folder() / f"{cls.name}.cl"


class Checked(Protocol):
    """An application with a check of its result."""

    def check(self) -> None:
        """Raise `CheckFailed` if the result of the last run is wrong."""


def check_result(application: Checked) -> None:
    """Check the result of an application's last run."""
    try:
        application.check()
    except ImportError as error:
        if str(error.name).partition(".")[0] in _REFERENCES:
            raise MissingExtraError("suite", "checking results of the suite") from error
        raise InputError.of(
            where=type(application).__name__, problem=f"its check does not import a module ({error})"
        ) from error


def whole_groups(items: int, group: int) -> int:
    """Round a number of work-items up to whole work-groups.

    Examples
    --------
    >>> whole_groups(65, 64), whole_groups(64, 64)
    (128, 64)
    """
    return -(-items // group) * group


def expect_close(what: str, found: Array, expected: Array, *, rtol: float, atol: float = 0.0) -> None:
    """Check a result of real numbers.

    Parameters
    ----------
    what
        Name of the result, for the message.
    found, expected
        Arrays of the same shape.
    rtol, atol
        As in `numpy.isclose`; NaN and infinities are never close.

    Raises
    ------
    CheckFailed
        If an element differs by more than the tolerance.
    """

    def agree(some: Array, right: Array) -> Array:
        return np.isclose(some, right, rtol=rtol, atol=atol) & np.isfinite(some)

    _expect(what, found, expected, agree)


def expect_equal(what: str, found: Array, expected: Array) -> None:
    """Check a result of integers."""
    _expect(what, found, expected, np.equal)


def _expect(what: str, found: Array, expected: Array, agree: Callable[[Array, Array], Array]) -> None:
    if found.shape != expected.shape:
        raise CheckFailed(f"{what}: expected shape {expected.shape}, found {found.shape}")
    some, right, wrong = found.ravel(), expected.ravel(), list[int]()
    # By pieces, as comparing takes several times their memory.
    for start in range(0, found.size, _PIECE):
        piece = slice(start, start + _PIECE)
        wrong += (start + np.flatnonzero(~agree(some[piece], right[piece]))).tolist()
    if wrong:
        index = tuple(int(each) for each in np.unravel_index(wrong[0], found.shape))
        raise CheckFailed(
            f"{what}: {len(wrong)} of {found.size} values are wrong, first at {index}: "
            f"expected {expected[index]}, found {found[index]}"
        )


NO_BUFFER = "expected one of the application's arrays (its `arrays`), found another"
"""Message for an array that stands for no buffer."""


_KINDS = np.ndarray | np.generic | bytes | Local | Image | Sampler | None


def expect_arguments(kernel: str, args: Sequence[Argument], arrays: Sequence[Array], count: int) -> None:
    """Check the arguments of a launch."""
    buffers = set(map(id, arrays))
    for number, arg in enumerate(args):
        if not isinstance(arg, _KINDS):
            raise LaunchError.of(
                where=kernel,
                problem=f"argument {number}: expected a NumPy scalar, found {type(arg).__name__}",
            )
        if isinstance(arg, np.ndarray) and id(arg) not in buffers:
            raise LaunchError.of(where=kernel, problem=f"argument {number}: {NO_BUFFER}")
    if len(args) != count:
        number = min(len(args), count)
        raise LaunchError.of(
            where=kernel, problem=f"argument {number}: expected {count} arguments, found {len(args)}"
        )


_DRIVER = "driver.py"
_MODULES = ("discrete", "grids", "linear_algebra", "sequences")  # Of the suite's applications
_FAILURES_TO_LOAD = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(OSError, RuntimeError, SyntaxError, TypeError, ValueError),
)


@cache
def names() -> tuple[str, ...]:
    """Return the names of the suite's applications, in alphabetical order."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.cl")))


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
        modules = (importlib.import_module(f"crosscast.suite.{module}") for module in _MODULES)
        kinds = (kind for module in modules for kind in _applications_in(module) if kind.name == name)
        if (kind := next(kinds, None)) is None:
            raise InputError.of(
                where=name, expected=f"a class of this application in {', '.join(_MODULES)}", found="none"
            )
        return kind
    driver = Path(name) / _DRIVER
    if not driver.is_file():
        raise InputError.of(
            where=f"application {name!r}",
            expected=f"one of {', '.join(names())}, or a folder with a {_DRIVER}",
        )
    # A relative path depends on the working directory.
    return _of_folder(driver.resolve(), str(driver))


def selected(words: Iterable[str]) -> dict[str, type[Application]]:
    """Return applications by name or path; ``all`` stands for the whole suite."""
    kinds = {name: application(name) for word in words for name in (names() if word == "all" else (word,))}
    for kind in kinds.values():
        if sum(other.name == kind.name for other in kinds.values()) > 1:
            raise InputError.of(where=f"application {kind.name!r}", problem="there are two of this name")
    return kinds


def place_in_driver(trace: TracebackType | None) -> str:
    """Return the line of an error in a driver, as `` (own/driver.py, line 7)``; empty for other errors."""
    for frame in reversed(traceback.extract_tb(trace)):
        path = Path(frame.filename)
        if path.name == _DRIVER or (path.stem in _MODULES and path.parent == Path(__file__).parent):
            return f" ({path.parent.name}/{path.name}, line {frame.lineno})"
    return ""


@cache
def _of_folder(driver: Path, label: str) -> type[Application]:
    kind = _only_application(_module_of(driver, label), label)
    for attribute, expected in (("name", str), ("kernels", tuple)):
        value = getattr(kind, attribute, None)
        if not value or not isinstance(value, expected):
            raise InputError.of(
                where=label, expected=f"{attribute} to be a {expected.__name__}", found=repr(value)
            )
    if not kind.name.isidentifier():
        raise InputError.of(where=label, expected="a name of letters, digits and _", found=repr(kind.name))
    if kind.name != driver.parent.name:
        raise InputError.of(
            where=label,
            expected=f"name to be that of the folder, {driver.parent.name!r}",
            found=repr(kind.name),
        )
    if not kind.source_path().is_file():
        raise InputError.of(
            where=label, expected=f"the kernels in {kind.source_path()}", found="no such file"
        )
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
        raise InputError.of(
            where=label, problem=f"the driver does not load ({type(error).__name__}: {error}){line}"
        ) from error
    return module


def _only_application(module: ModuleType, label: str) -> type[Application]:
    classes = _applications_in(module)
    if len(classes) != 1:
        raise InputError.of(where=label, expected="one subclass of Application", found=len(classes))
    if inspect.isabstract(classes[0]):
        lacking = ", ".join(sorted(classes[0].__abstractmethods__))
        raise InputError.of(
            where=label, expected=f"{classes[0].__name__} to define {lacking}", found="it does not"
        )
    return classes[0]


def _applications_in(module: ModuleType) -> list[type[Application]]:
    return [
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Application) and value.__module__ == module.__name__
    ]

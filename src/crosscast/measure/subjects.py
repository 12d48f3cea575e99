"""What is measured: an application of the suite at some size, a launch file, or a microbenchmark."""

from __future__ import annotations

import hashlib
import inspect
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosscast.characterization import frontend
from crosscast.characterization.engine.arguments import lay_out
from crosscast.characterization.launchfiles.launches import read_launches
from crosscast.errors import InputError
from crosscast.kernel import Argument, Launch, Program
from crosscast.measure.corun.microbenchmarks.microbenchmark import LEVELS
from crosscast.suite.application import Application, Array, Queue
from crosscast.suite.registry import application, names, place_in_driver

__all__ = [
    "GIVEN",
    "Identity",
    "LaunchFile",
    "Loaded",
    "Microbenchmark",
    "Subject",
    "SuiteProblem",
    "fitted",
    "identity",
    "load",
]

GIVEN = "given"
"""Name of the size of a launch file, whose sizes are what they are."""


@dataclass(frozen=True)
class SuiteProblem:
    """An application of the suite with its parameters.

    Parameters
    ----------
    name
        Name in the suite, or path of its folder.
    size
        Name of the size.
    parameters
        Extents of the problem.
    seed
        Start of its random numbers.
    most_bytes
        What its working set should fit, in bytes; ``None`` if nothing.
    """

    name: str
    size: str
    parameters: Mapping[str, int]
    seed: int
    most_bytes: int | None = None


@dataclass(frozen=True)
class LaunchFile:
    """The launches of a file, one after another.

    Parameters
    ----------
    path
        A launch file (TOML) or a simulator file of Oclgrind.
    """

    path: str


@dataclass(frozen=True)
class Microbenchmark:
    """A microbenchmark that stands for neighbours (paper 004, section 5.1.4).

    Parameters
    ----------
    level
        ``low``, ``medium`` or ``high``, by the misses of the last-level cache.
    parameters
        Extents, as `crosscast.measure.corun.microbenchmarks.microbenchmark.ImageReader` takes them.
    """

    level: str
    parameters: Mapping[str, int]

    @property
    def name(self) -> str:
        """What it is called beside the name of a size."""
        return self.level

    @property
    def size(self) -> str:
        """In the place of a problem size."""
        return "microbenchmark"


Subject = SuiteProblem | LaunchFile | Microbenchmark


@dataclass(frozen=True)
class Identity:
    """What a subject is, before it is ready to run.

    Parameters
    ----------
    name
        Name of the application.
    size
        Name of the size.
    kernels
        Kernels that it launches.
    program
        Their source.
    parameters
        Extents of the problem; empty for a launch file.
    seed
        Start of its random numbers; ``None`` for a launch file.
    source_sha256
        Hash of the kernels' source, and outside the suite of the driver too.
    """

    name: str
    size: str
    kernels: tuple[str, ...]
    program: Program
    parameters: Mapping[str, int]
    seed: int | None
    source_sha256: str


@dataclass(frozen=True)
class Loaded(Identity):
    """A subject that is ready to run.

    Parameters
    ----------
    application
        What runs, and is checked.
    most_bytes
        What its working set should fit, in bytes; ``None`` if nothing.
    """

    application: Application | _Launches
    most_bytes: int | None = None


def fitted(kind: type[Application], nbytes: int) -> dict[str, int]:
    """Extents of an application whose working set is at most `nbytes`.

    Raises
    ------
    InputError
        If the application's driver fails at it.
    """
    try:
        return {name: operator.index(value) for name, value in kind.fit(nbytes).items()}
    except _MISTAKES as error:
        raise InputError(
            f"{kind.name}: expected its driver to fit a problem into {nbytes} bytes, found "
            f"{type(error).__name__} ({error}){place_in_driver(error.__traceback__)}"
        ) from error


_MISTAKES = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
"""What Python code with a mistake raises."""


def identity(problem: SuiteProblem) -> Identity:
    """What an application of the suite is; nothing of its driver runs but its definition.

    Raises
    ------
    InputError
        If there is no such application.
    """
    kind = application(problem.name)
    program = Program.from_file(kind.source_path(), options=kind.options)
    sha256 = program.sha256 if problem.name in names() else _with_driver(program, kind)
    return Identity(kind.name, problem.size, kind.kernels, program, problem.parameters, problem.seed, sha256)


def _with_driver(program: Program, kind: type[Application]) -> str:
    """Hash of kernels and driver; those of the suite's drivers go by the version of the package."""
    driver = Path(inspect.getfile(kind)).read_bytes()
    return hashlib.sha256(program.content + b"\0" + driver).hexdigest()


def load(subject: Subject) -> Loaded:
    """Load what is to be measured.

    Raises
    ------
    InputError
        If there is no such application, or the file is wrong.
    """
    if isinstance(subject, LaunchFile):
        launches = _Launches(Path(subject.path))
        name = Path(subject.path).stem
        program = launches.program
        return Loaded(name, GIVEN, launches.kernels, program, {}, None, program.sha256, launches)
    if isinstance(subject, Microbenchmark):
        return _microbenchmark(subject)
    problem = application(subject.name)(subject.parameters, subject.seed)
    return Loaded(**vars(identity(subject)), application=problem, most_bytes=subject.most_bytes)


def _microbenchmark(subject: Microbenchmark) -> Loaded:
    kind = LEVELS[subject.level]
    program = Program.from_file(kind.source_path(), options=kind.options)
    ready = kind(subject.parameters, 0)
    return Loaded(
        subject.name,
        subject.size,
        kind.kernels,
        program,
        subject.parameters,
        None,
        program.sha256,
        application=ready,
    )


class _Launches:
    """Runs the launches of a file: writes their buffers, and launches one after another.

    Nothing is read back, so that each run starts from the same contents.
    """

    def __init__(self, path: Path) -> None:
        launches = read_launches(path)
        programs = {launch.kernel.program for launch in launches}
        if len(programs) != 1:
            raise InputError(f"{path}: expected launches of one program, found {len(programs)} programs")
        self.program = programs.pop()
        self.kernels = tuple(dict.fromkeys(launch.kernel.name for launch in launches))
        self._launches = [(launch, _arguments(launch)) for launch in launches]
        buffers = {id(arg): arg for _, args in self._launches for arg in args if isinstance(arg, np.ndarray)}
        self.arrays: tuple[Array, ...] = tuple(buffers.values())

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(array.nbytes for array in self.arrays)

    def run(self, queue: Queue) -> None:
        """Write all buffers, then launch."""
        queue.write(*self.arrays)
        for launch, args in self._launches:
            if any(launch.global_offset):
                raise InputError(f"{launch.kernel.name}: a launch with a global offset is not measured")
            queue.launch(launch.kernel.name, launch.global_size, launch.local_size, *args)

    def check(self) -> None:
        """Nothing: a launch file does not say what the result should be."""


def _arguments(launch: Launch) -> tuple[Argument, ...]:
    """Arguments with vectors and structures as bytes, so that every array left is a buffer."""
    parameters = frontend.parameters(launch.kernel.program, launch.kernel.name)
    # OpenCL looks at sizes alone; this checks number and types too.
    lay_out(launch, parameters, 0)
    return tuple(
        np.asarray(arg).tobytes() if parameter.kind == "value" and isinstance(arg, np.ndarray) else arg
        for parameter, arg in zip(parameters, launch.args, strict=True)
    )

"""Subjects of measurements: applications, launch files and stressors, their loading, and their profiles."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from crosscast.data.profiles import to_row
from crosscast.errors import InputError, MissingExtraError
from crosscast.kernel import Argument, Launch, Program
from crosscast.measure.stressors import LEVELS
from crosscast.suite.application import (
    TYPICAL,
    Application,
    Array,
    Caches,
    Queue,
    application,
    names,
    place_in_driver,
    working_set,
)

if TYPE_CHECKING:
    from crosscast.characterization.engine.child import Options
    from crosscast.profile import Profile

_EXTRA = "suite"
_MEASURING = ("pyopencl", "pyarrow")
_CHECKING = ("scipy",)


def expect_installed(applications: Iterable[str]) -> None:
    """Check that libraries are installed before any work starts; none is imported."""
    if not all(map(importlib.util.find_spec, _MEASURING)):
        raise MissingExtraError(_EXTRA, "measuring applications")
    if set(applications) & set(names()) and not all(map(importlib.util.find_spec, _CHECKING)):
        raise MissingExtraError(_EXTRA, "checking results of the suite")


@dataclass(frozen=True)
class Settings:
    """Settings of a measurement of one application on one device."""

    # As in the published study (Johnston, Falzon and Milthorpe 2018): runs to record at least, and seconds
    # that they take at least
    min_runs: int = 50
    min_time_s: float = 2.0
    warmups: int = 2  # Runs before, not recorded
    timeout_s: float = 600.0  # Seconds after which the measuring process is killed
    sensor: str = "auto"  # `auto`, `none`, or the name of a sensor of energy
    counters: bool = True  # Whether to count events of the CPU

    def __post_init__(self) -> None:
        check_counts(self, min_runs=1, warmups=0)
        check_seconds("min_time_s", self.min_time_s, self.timeout_s)


def check_counts(settings: object, **least: int) -> None:
    """Check that counts of settings are ``None`` or at least `least`."""
    for name, smallest in least.items():
        value = getattr(settings, name)
        if value is not None and value < smallest:
            raise InputError.of(field=name, expected=f"at least {smallest}", found=value)


def check_seconds(name: str, value: float, limit_s: float) -> None:
    """Check a time of settings, and that it is within their limit."""
    for field, seconds in ((name, value), ("timeout_s", limit_s)):
        least = "more than" if field == "timeout_s" else "at least"
        if not math.isfinite(seconds) or seconds < 0 or (field == "timeout_s" and seconds == 0):
            raise InputError.of(field=field, expected=f"{least} 0 seconds", found=f"{seconds:g}")
    if value >= limit_s:
        expected = f"less than the time limit of {limit_s:g} s"
        raise InputError.of(field=name, expected=expected, found=f"{value:g}")


GIVEN = "given"
"""Name of the size of a launch file, whose sizes are fixed."""


class SuiteProblem(msgspec.Struct, frozen=True, tag=True):
    """An application of the suite with its parameters."""

    name: str  # Name in the suite, or path of its folder
    size: str  # Name of the size
    parameters: Mapping[str, int]  # Extents of the problem
    seed: int  # Seed of its random numbers
    most_bytes: int | None = None  # Limit of its working set in bytes; `None` if none

    @property
    def label(self) -> str:
        """Label for people."""
        return f"{Path(self.name).name} {self.size}"


class LaunchFile(msgspec.Struct, frozen=True, tag=True):
    """The launches of a file, one after another."""

    path: str  # A launch file (TOML) or a simulator file of Oclgrind

    @property
    def label(self) -> str:
        """Label for people: the file without its folder and suffix."""
        return Path(self.path).stem


class Stressor(msgspec.Struct, frozen=True, tag=True):
    """A microbenchmark that loads memory as co-runners do (Moolchandani et al. 2022, section 5.1.4)."""

    level: str  # `low`, `medium` or `high`, by the misses of the last-level cache
    # Extents, as `crosscast.measure.stressors.ImageReader` takes them
    parameters: Mapping[str, int]

    @property
    def label(self) -> str:
        """Label for people."""
        return f"stressor {self.level}"


Subject = SuiteProblem | LaunchFile | Stressor


@dataclass(frozen=True)
class Identity:
    """Identity of a subject, before it is loaded."""

    name: str  # Name of the application
    size: str  # Name of the size
    kernels: tuple[str, ...]  # Launched kernels
    program: Program  # Source of the kernels
    parameters: Mapping[str, int]  # Extents of the problem; empty for a launch file
    seed: int | None  # Seed of its random numbers; `None` for a launch file
    source_sha256: str  # Hash of the kernels' source, and outside the suite of the driver too


class LaunchRunner:
    """Runs the launches of a file: writes their buffers, and launches one after another.

    Nothing is read back, so that each run starts from the same contents.
    """

    def __init__(self, path: Path) -> None:
        # Imported here, as below: applications are measured without the compiler.
        from crosscast.characterization.launchfiles import read_launches

        launches = read_launches(path)
        programs = {launch.kernel.program for launch in launches}
        if len(programs) != 1:
            raise InputError.of(
                where=path, expected="launches of one program", found=f"{len(programs)} programs"
            )
        for launch in launches:
            if any(launch.global_offset):
                raise InputError.of(
                    where=launch.kernel.name, problem="a launch with a global offset is not measured"
                )
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
            queue.launch(launch.kernel.name, launch.global_size, launch.local_size, *args)

    def check(self) -> None:
        """Do nothing: a launch file has no expected result."""


def _arguments(launch: Launch) -> tuple[Argument, ...]:
    """Return arguments with vectors and structures as bytes, so that only buffers are arrays."""
    from crosscast.characterization import frontend
    from crosscast.characterization.engine.arguments import lay_out

    parameters = frontend.parameters(launch.kernel.program, launch.kernel.name)
    # OpenCL checks sizes only; this checks number and types too.
    lay_out(launch, parameters, 0, is_accessed=lambda position: True)
    return tuple(
        np.asarray(arg).tobytes() if parameter.kind == "value" and isinstance(arg, np.ndarray) else arg
        for parameter, arg in zip(parameters, launch.args, strict=True)
    )


@dataclass(frozen=True)
class Loaded(Identity):
    """A loaded subject."""

    application: Application | LaunchRunner
    most_bytes: int | None = None  # Limit of its working set in bytes; `None` if none


def fitted(kind: type[Application], nbytes: int) -> dict[str, int]:
    """Return the extents of an application for a working set of at most `nbytes`."""
    try:
        return {name: operator.index(value) for name, value in kind.fit(nbytes).items()}
    except _MISTAKES as error:
        raise InputError.of(
            where=kind.name,
            expected=f"its driver to fit a problem into {nbytes} bytes",
            found=f"{type(error).__name__} ({error}){place_in_driver(error.__traceback__)}",
        ) from error


def problem_of(
    name: str, kind: type[Application], size: str, caches: Caches = TYPICAL, seed: int = 0
) -> SuiteProblem:
    """Return the problem of an application, by its given name or path, at a size that fits caches."""
    nbytes = working_set(size, caches)
    return SuiteProblem(name, size, fitted(kind, nbytes), seed, nbytes)


_MISTAKES = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
"""Exceptions of Python code with a mistake."""


def identity(problem: SuiteProblem) -> Identity:
    """Identify an application of the suite; only the definition of its driver is executed."""
    kind = application(problem.name)
    program = Program.from_file(kind.source_path(), options=kind.options)
    sha256 = program.sha256 if problem.name in names() else _with_driver(program, kind)
    return Identity(kind.name, problem.size, kind.kernels, program, problem.parameters, problem.seed, sha256)


def _with_driver(program: Program, kind: type[Application]) -> str:
    """Hash kernels and driver; the suite's drivers are identified by the version of the package."""
    driver = Path(inspect.getfile(kind)).read_bytes()
    return hashlib.sha256(program.content + b"\0" + driver).hexdigest()


def load(subject: Subject) -> Loaded:
    """Load a subject."""
    if isinstance(subject, LaunchFile):
        launches = LaunchRunner(Path(subject.path))
        name = Path(subject.path).stem
        program = launches.program
        return Loaded(name, GIVEN, launches.kernels, program, {}, None, program.sha256, launches)
    if isinstance(subject, Stressor):
        kind = LEVELS[subject.level]
        program = Program.from_file(kind.source_path(), options=kind.options)
        stressor, sha256 = kind(subject.parameters, 0), program.sha256
        parameters = subject.parameters
        return Loaded(subject.level, "stressor", kind.kernels, program, parameters, None, sha256, stressor)
    problem = application(subject.name)(subject.parameters, subject.seed)
    return Loaded(**vars(identity(subject)), application=problem, most_bytes=subject.most_bytes)


def characterized(subject: SuiteProblem | LaunchFile, options: Options) -> list[Profile]:
    """Characterize all launches of a run in this process."""
    from crosscast.characterization.launchfiles import read_launches
    from crosscast.characterization.run import characterize_launch
    from crosscast.suite.profiles import profiles_of

    if isinstance(subject, LaunchFile):
        launches = read_launches(Path(subject.path))
        return [characterize_launch(launch, options=options) for launch in launches]
    application = load(subject).application
    assert isinstance(application, Application)
    return profiles_of(application, subject.size, options=options)


def instruction_mix_of(subject: SuiteProblem | LaunchFile, timeout_s: float) -> dict[str, float]:
    """Return the share of each class of instructions in a run, characterized in this process."""
    from crosscast.characterization.metrics import instruction_mix

    return instruction_mix(characterized(subject, _options(timeout_s)))


def _options(timeout_s: float, *, optimize: bool = False) -> Options:
    from crosscast.characterization.engine.child import Options

    return Options(optimize=optimize, timeout_s=timeout_s)


def profile_rows(problem: SuiteProblem, timeout_s: float) -> list[dict[str, object]]:
    """Characterize an application in this process; return rows of the table of profiles.

    Rows have the problem, but neither timings of the characterization nor the folder of the source.
    """
    subject, profiles = identity(problem), characterized(problem, _options(timeout_s, optimize=True))
    if not profiles:
        raise InputError.of(where=subject.name, expected="a run to launch kernels", found="none")
    return [to_row(_reproducible(profile, subject)) for profile in profiles]


def _reproducible(profile: Profile, subject: Identity) -> Profile:
    problem: dict[str, object] = {"parameters": dict(subject.parameters), "seed": subject.seed}
    if subject.source_sha256 != subject.program.sha256:
        problem["source_sha256"] = subject.source_sha256
    return replace(
        profile,
        timing_s={},
        launch={**profile.launch, "problem": problem},
        program={**profile.program, "path": Path(str(profile.program["path"])).name},
    )

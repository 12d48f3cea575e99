"""Subjects of measurements: applications of the suite, launch files and stressors, and their loading."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from crosscast.errors import InputError, MissingExtraError
from crosscast.kernel import Program
from crosscast.measure.stressors import LEVELS
from crosscast.suite.application import Application, application, names, place_in_driver

if TYPE_CHECKING:
    from crosscast.measure.launch_runner import LaunchRunner

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
        check_seconds(self, "min_time_s")


def check_counts(settings: object, **least: int) -> None:
    """Check that counts of settings are ``None`` or at least `least`."""
    for name, smallest in least.items():
        value = getattr(settings, name)
        if value is not None and value < smallest:
            raise InputError.of(field=name, expected=f"at least {smallest}", found=value)


class TimedSettings(Protocol):
    """Settings with a time limit."""

    @property
    def timeout_s(self) -> float:
        """Longest time of a process, in seconds."""


def check_seconds(settings: TimedSettings, name: str) -> None:
    """Check a time of settings, and that it is within their limit."""
    value, limit_s = getattr(settings, name), settings.timeout_s
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
        raise InputError(
            f"{kind.name}: expected its driver to fit a problem into {nbytes} bytes, found "
            f"{type(error).__name__} ({error}){place_in_driver(error.__traceback__)}"
        ) from error


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
        # Imported here: applications are measured without the compiler.
        from crosscast.measure.launch_runner import LaunchRunner

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

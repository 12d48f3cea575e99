"""What can be measured: applications of the suite, launch files and stressors, made ready."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from crosscast.errors import InputError, MissingExtraError
from crosscast.kernel import Argument, Launch, Program
from crosscast.measure.stressors import LEVELS
from crosscast.profile import Profile
from crosscast.suite.application import Application, Array, Queue
from crosscast.suite.registry import application, names, place_in_driver, profiles_of

if TYPE_CHECKING:
    from crosscast.characterization.engine.child import Options

_EXTRA = "suite"
_MEASURING = ("pyopencl", "pyarrow")
_CHECKING = ("scipy",)


def expect_installed(applications: Iterable[str]) -> None:
    """Check that the libraries are there, so that no work starts in vain; none is imported."""
    if not all(map(importlib.util.find_spec, _MEASURING)):
        raise MissingExtraError(_EXTRA, "measuring applications")
    if set(applications) & set(names()) and not all(map(importlib.util.find_spec, _CHECKING)):
        raise MissingExtraError(_EXTRA, "checking results of the suite")


@dataclass(frozen=True)
class Settings:
    """How to measure one application on one device."""

    # As in the published study (Johnston, Falzon and Milthorpe 2018): runs to record at least, and seconds
    # that they take at least
    min_runs: int = 50
    min_time_s: float = 2.0
    warmups: int = 2  # Runs before, which are not recorded
    timeout_s: float = 600.0  # Seconds after which the process that measures is killed
    sensor: str = "auto"  # `auto`, `none`, or the name of a sensor of energy
    counters: bool = True  # Whether to count events of the CPU

    def __post_init__(self) -> None:
        check_counts(self, min_runs=1, warmups=0)
        check_seconds(self, "min_time_s")


def check_counts(settings: object, **least: int) -> None:
    """Check that numbers of settings, where they are given, are not below the least."""
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
        if not math.isfinite(seconds) or seconds < 0 or (field == "timeout_s" and seconds == 0):
            raise InputError.of(field=field, expected="a number of seconds", found=f"{seconds:g}")
    if value >= limit_s:
        expected = f"less than the time limit of {limit_s:g} s"
        raise InputError.of(field=name, expected=expected, found=f"{value:g}")


GIVEN = "given"
"""Name of the size of a launch file, whose sizes are what they are."""


class SuiteProblem(msgspec.Struct, frozen=True, tag=True):
    """An application of the suite with its parameters."""

    name: str  # Name in the suite, or path of its folder
    size: str  # Name of the size
    parameters: Mapping[str, int]  # Extents of the problem
    seed: int  # Start of its random numbers
    most_bytes: int | None = None  # What its working set should fit, in bytes; `None` if nothing

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{Path(self.name).name} {self.size}"


class LaunchFile(msgspec.Struct, frozen=True, tag=True):
    """The launches of a file, one after another."""

    path: str  # A launch file (TOML) or a simulator file of Oclgrind

    @property
    def label(self) -> str:
        """What it is, for people: the file without its folder."""
        return Path(self.path).stem


class Stressor(msgspec.Struct, frozen=True, tag=True):
    """A microbenchmark that presses on memory as co-runners do (Moolchandani et al. 2022, section 5.1.4)."""

    level: str  # `low`, `medium` or `high`, by the misses of the last-level cache
    # Extents, as `crosscast.measure.stressors.ImageReader` takes them
    parameters: Mapping[str, int]

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"stressor {self.level}"


Subject = SuiteProblem | LaunchFile | Stressor


@dataclass(frozen=True)
class Identity:
    """What a subject is, before it is ready to run."""

    name: str  # Name of the application
    size: str  # Name of the size
    kernels: tuple[str, ...]  # Kernels that it launches
    program: Program  # Their source
    parameters: Mapping[str, int]  # Extents of the problem; empty for a launch file
    seed: int | None  # Start of its random numbers; `None` for a launch file
    source_sha256: str  # Hash of the kernels' source, and outside the suite of the driver too


@dataclass(frozen=True)
class Loaded(Identity):
    """A subject that is ready to run."""

    application: Application | _LaunchRunner  # What runs, and is checked
    most_bytes: int | None = None  # What its working set should fit, in bytes; `None` if nothing


def fitted(kind: type[Application], nbytes: int) -> dict[str, int]:
    """Extents of an application whose working set is at most `nbytes`."""
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
    """What an application of the suite is; nothing of its driver runs but its definition."""
    kind = application(problem.name)
    program = Program.from_file(kind.source_path(), options=kind.options)
    sha256 = program.sha256 if problem.name in names() else _with_driver(program, kind)
    return Identity(kind.name, problem.size, kind.kernels, program, problem.parameters, problem.seed, sha256)


def _with_driver(program: Program, kind: type[Application]) -> str:
    """Hash of kernels and driver; those of the suite's drivers go by the version of the package."""
    driver = Path(inspect.getfile(kind)).read_bytes()
    return hashlib.sha256(program.content + b"\0" + driver).hexdigest()


def load(subject: Subject) -> Loaded:
    """Load what is to be measured."""
    if isinstance(subject, LaunchFile):
        launches = _LaunchRunner(Path(subject.path))
        name = Path(subject.path).stem
        program = launches.program
        return Loaded(name, GIVEN, launches.kernels, program, {}, None, program.sha256, launches)
    if isinstance(subject, Stressor):
        kind = LEVELS[subject.level]
        program = Program.from_file(kind.source_path(), options=kind.options)
        ready, sha256 = kind(subject.parameters, 0), program.sha256
        extents = subject.parameters
        return Loaded(subject.level, "stressor", kind.kernels, program, extents, None, sha256, ready)
    problem = application(subject.name)(subject.parameters, subject.seed)
    return Loaded(**vars(identity(subject)), application=problem, most_bytes=subject.most_bytes)


class _LaunchRunner:
    """Runs the launches of a file: writes their buffers, and launches one after another.

    Nothing is read back, so that each run starts from the same contents.
    """

    def __init__(self, path: Path) -> None:
        # Imported here, as everywhere in this file: applications are measured without the characterization.
        from crosscast.characterization.launchfiles.launchfile import read_launches

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
    from crosscast.characterization import frontend
    from crosscast.characterization.engine.arguments import lay_out

    parameters = frontend.parameters(launch.kernel.program, launch.kernel.name)
    # OpenCL looks at sizes alone; this checks number and types too.
    lay_out(launch, parameters, 0, is_accessed=lambda position: True)
    return tuple(
        np.asarray(arg).tobytes() if parameter.kind == "value" and isinstance(arg, np.ndarray) else arg
        for parameter, arg in zip(parameters, launch.args, strict=True)
    )


TIMEOUT_S = 600.0
"""Seconds after which characterizing an application is given up: it takes much longer than a run."""


def characterized(subject: SuiteProblem | LaunchFile, options: Options) -> list[Profile]:
    """Profiles of all launches of a run, made in this process."""
    from crosscast.characterization import run
    from crosscast.characterization.launchfiles.launchfile import read_launches

    if isinstance(subject, LaunchFile):
        launches = read_launches(Path(subject.path))
        return [run.characterize_launch(launch, options=options) for launch in launches]
    application = load(subject).application
    assert isinstance(application, Application)
    return profiles_of(application, subject.size, options=options)


def mix_here(subject: SuiteProblem | LaunchFile, timeout_s: float) -> dict[str, float]:
    """Share of each class of instructions in a run, characterized in this process."""
    from crosscast.characterization.engine.child import Options
    from crosscast.characterization.metrics import instruction_mix

    return instruction_mix(characterized(subject, Options(timeout_s=timeout_s)))


def profile_rows(problem: SuiteProblem, timeout_s: float) -> list[dict[str, object]]:
    """Characterize an application in this process; return rows of the table of profiles.

    They say nothing of how long that took or where the source lies, and name the problem instead.
    """
    from crosscast.characterization.engine.child import Options
    from crosscast.data.profiles import to_row

    loaded = load(problem)
    application = loaded.application
    assert isinstance(application, Application)
    found = profiles_of(application, problem.size, options=Options(timeout_s=timeout_s))
    if not found:
        raise InputError(f"{application.name}: expected a run to launch kernels, found none")
    return [to_row(_lasting(profile, loaded)) for profile in found]


def _lasting(profile: Profile, subject: Identity) -> Profile:
    made_for: dict[str, object] = {"parameters": dict(subject.parameters), "seed": subject.seed}
    if subject.source_sha256 != subject.program.sha256:
        made_for["source_sha256"] = subject.source_sha256
    return replace(
        profile,
        timing_s={},
        launch={**profile.launch, "problem": made_for},
        program={**profile.program, "path": Path(str(profile.program["path"])).name},
    )

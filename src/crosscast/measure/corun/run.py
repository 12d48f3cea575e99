"""Mixes: applications that run at the same time on one device, each in a process that stays ready."""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from statistics import fmean, median
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import msgspec
import numpy as np

from crosscast.errors import CrosscastError, DeviceFault, InputError, MissingExtraError, UnsupportedError
from crosscast.measure import host_state
from crosscast.measure.energy import Reading, Sensor, Watch
from crosscast.measure.opencl import OpenCLDevice
from crosscast.measure.processes import (
    OUT_OF_BOUNDS,
    AnsweringProcess,
    CoRunJob,
    Report,
    heard,
    render_job,
    said,
)
from crosscast.measure.sensors import open_sensor
from crosscast.measure.subjects import Subject, check_counts, check_seconds


@dataclass(frozen=True)
class CoRunSettings:
    """How to measure a mix: applications that run at the same time on one device."""

    round_s: float = 0.2  # Seconds that a job takes alone at least, where its number of runs is not given
    # Whole jobs of each co-runner while all run, for so many times `round_s` at least; then all start one
    # job together, as often
    jobs: int = 3
    warmups: int = 1  # Runs of each co-runner before, which are not recorded
    timeout_s: float = 60.0  # Seconds after which a co-runner that does not answer is given up
    sensor: str = "auto"  # `auto`, `none`, or the name of a sensor of energy
    counters: bool = True  # Whether to count events of the CPU
    # Threads that each co-runner may use on a CPU device of PoCL; `None` for all cores
    threads: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, jobs=1, warmups=0, threads=1)
        check_seconds(self, "round_s")
        if self.window_s >= self.timeout_s:
            raise InputError.of(
                field="jobs",
                expected=(
                    f"fewer than fit into the time limit of {self.timeout_s:g} s, each of {self.round_s:g} s"
                ),
                found=f"{self.jobs}",
            )

    @property
    def window_s(self) -> float:
        """Seconds that all co-runners run together at least."""
        return self.jobs * self.round_s


@dataclass(frozen=True)
class JobWork:
    """Jobs of one application: a job is a number of its runs."""

    subject: Subject  # What runs
    runs: int | None = None  # Runs in a job; `None` for the fewest that take `CoRunSettings.round_s` alone

    def __post_init__(self) -> None:
        check_counts(self, runs=1)


class Span(NamedTuple):
    """A time from start to end, in seconds of a clock that all co-runners share."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """Its length, in seconds."""
        return self.end_s - self.start_s


def window(jobs: Sequence[Sequence[Span]]) -> Span | None:
    """The time in which all co-runners run: from the last first start to the first last end."""
    if not jobs or not all(jobs):
        return None
    found = Span(max(some[0].start_s for some in jobs), min(some[-1].end_s for some in jobs))
    return found if found.length_s > 0 else None


def inside(jobs: Sequence[Span], time: Span) -> slice:
    """Which of a co-runner's jobs, that are one after another, lie wholly inside of a time."""
    first = bisect_left(jobs, time.start_s, key=attrgetter("start_s"))
    last = bisect_right(jobs, time.end_s, key=attrgetter("end_s"))
    return slice(first, max(first, last))


def overlap(round_: Sequence[Span]) -> float:
    """Share of the time from the first start to the last end in which all run, 0 to 1."""
    whole = max(job.end_s for job in round_) - min(job.start_s for job in round_)
    shared = min(job.end_s for job in round_) - max(job.start_s for job in round_)
    return max(shared, 0.0) / whole if whole > 0 else 1.0


def powers(readings: Sequence[Reading], started_s: float, time: Span) -> dict[str, float]:
    """Mean power in a time, in watts, by domain.

    Energy grows on the straight line between two readings. Before the first and after the last nothing is
    known: the mean is that of the part of the time which the sensor watched.
    """
    found = {}
    for reading in readings:
        times_s = started_s + np.asarray(reading.times_s)
        start, end = np.clip(time, times_s[0], times_s[-1])
        if end > start:
            before, after = np.interp((start, end), times_s, reading.energies_j)
            found[reading.domain] = float((after - before) / (end - start))
    return found


@dataclass(frozen=True)
class CoRunnerRun:
    """What one co-runner did in a mix."""

    runs: int | None = None  # Runs of the application in a job; `None` if it failed before they were counted
    # Time of each job that lies wholly in the window in which all co-runners ran, in seconds; empty where
    # there was no such window
    times_s: list[float] = field(default_factory=list)
    cpu_s: float | None = None  # CPU time of a job of those, in seconds; `None` where it is not known
    # What the CPU counted in a job of those, by event, without those that it does not count
    counters: dict[str, float] = field(default_factory=dict)
    # Memory of the device that it takes, in bytes; `None` if it failed before that was known
    memory_bytes: int | None = None
    failure: str | None = None  # Why it failed, in one sentence; `None` if it did not


@dataclass(frozen=True)
class MixRun:
    """What came of a mix."""

    co_runners: tuple[CoRunnerRun, ...]  # What each co-runner did, in the order in which they were given
    # Time from the common start of one job of each co-runner to the end of the last, in seconds, of each
    # round; empty if a co-runner failed
    mix_times_s: list[float] = field(default_factory=list)
    # Share of a round in which all co-runners ran, the median of the rounds; `None` if a co-runner failed
    overlap: float | None = None
    # Mean power while all co-runners ran, in watts, by domain of the sensor; empty without a sensor
    powers_w: dict[str, float] = field(default_factory=dict)
    # How the device is shared, and what it is restricted to: settings for the configuration
    sharing: dict[str, str | int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # What went wrong without ending it, for people

    @property
    def failed(self) -> bool:
        """Whether a co-runner failed."""
        return any(co_runner.failure is not None for co_runner in self.co_runners)


class CoRunnerProcess:
    """An application in a process of its own, which gets ready when it is made."""

    def __init__(
        self, subject: Subject, device: str, settings: CoRunSettings, environment: Mapping[str, str]
    ) -> None:
        self.label = subject.label
        self.process = AnsweringProcess(environment)
        self.process.tell(render_job(CoRunJob(subject, device, settings.warmups, settings.counters)))
        self.awaited = True
        """Whether it has still to answer."""
        self.answer: object = None
        """What it answered last."""
        self.failure: str | None = None
        """Why it failed; its process is killed then."""
        self.memory_bytes: int | None = None
        """What the application takes, once that is known."""
        self.jobs: list[Span] = []
        """Its jobs in the loop of this mix."""
        self.cpu_s: list[float] = []
        """CPU time of each, in seconds."""

    def order(self, do: str, **how: float) -> None:
        """Tell what to do next; a co-runner that has failed is told nothing."""
        if self.failure is None:
            self.process.tell(json.dumps({"do": do, **how}) + "\n")
            self.awaited = True

    def hear(self, line: bytes | None) -> None:
        """Take a line of its process, or that there will be none."""
        if self.failure is not None:
            return
        if line is None:
            self.fail(self.process.crash(self.label, OUT_OF_BOUNDS))
            return
        try:
            found = said(line)
        except MissingExtraError:
            raise
        except CrosscastError as error:
            self.fail(error)
            return
        if "jobs" in found:
            self.jobs += [Span(start, end) for start, end, _ in found["jobs"]]
            self.cpu_s += [cpu_s for _, _, cpu_s in found["jobs"]]
        else:
            self.answer, self.awaited = found["answer"], False

    def fail(self, error: CrosscastError) -> None:
        """Let it be a co-runner that has failed."""
        self.failure, self.awaited = str(error), False
        self.process.kill()

    def begin(self) -> None:
        """Begin a mix: take what it said of itself when it was ready, and forget the jobs of the last one."""
        if self.memory_bytes is None and self.failure is None:
            self.memory_bytes = msgspec.convert(self.answer, dict[str, int])["memory_bytes"]
        self.jobs, self.cpu_s = [], []


def hear(
    co_runners: Sequence[CoRunnerProcess], end: float, until: Callable[[], bool] = lambda: False
) -> None:
    """Hear what co-runners say until all have answered or failed, `until` is so, or the time is over."""
    awaited = {co_runner.process: co_runner for co_runner in co_runners if co_runner.awaited}
    for process, line in heard(list(awaited), end):
        awaited[process].hear(line)
        if until() or not any(co_runner.awaited for co_runner in awaited.values()):
            return


def hear_all(co_runners: Sequence[CoRunnerProcess], timeout_s: float) -> None:
    """Hear co-runners until all have answered; those that do not in time fail."""
    hear(co_runners, time.monotonic() + timeout_s)
    for co_runner in co_runners:
        if co_runner.awaited:
            co_runner.fail(
                DeviceFault(f"{co_runner.label}: did not answer within {timeout_s:g} s (the time limit)")
            )


_LEAD_S = 0.02
"""Time from an order to the common start, in which all must have heard of it."""
_LOOK_S = 0.05
"""Time after which the loop is looked at where nobody says anything."""


class _Mixing:
    """A mix of co-runners that are ready.

    They repeat jobs until each has enough of them in the time in which all run; then all start one job
    together, as often; then all results are checked. As soon as one fails, the others stop, and what they did
    is kept.
    """

    def __init__(
        self, co_runners: Sequence[CoRunnerProcess], runs: Sequence[int], settings: CoRunSettings
    ) -> None:
        self._co_runners, self._runs, self._settings = co_runners, runs, settings

    def measured(self, sensor: Sensor | None, sharing: Mapping[str, str | int], report: Report) -> MixRun:
        notes: list[str] = []
        watch = Watch(sensor, notes)
        self._loop(watch, report)
        readings = watch.readings()
        counters = [
            {} if each.failure else msgspec.convert(each.answer, dict[str, float])
            for each in self._co_runners
        ]
        together = self._window()
        rounds = self._rounds()
        self._ask("check")
        if self._failed():
            rounds = []
        else:
            notes += self._shortage(together)
        return MixRun(
            tuple(
                _run_of(*each, together) for each in zip(self._co_runners, self._runs, counters, strict=True)
            ),
            [max(job.end_s for job in jobs) - min(job.start_s for job in jobs) for jobs in rounds],
            median(map(overlap, rounds)) if rounds else None,
            powers(readings, watch.started_s, together) if together else {},
            dict(sharing),
            notes,
        )

    def _start_all(self, do: str) -> None:
        at = time.monotonic() + _LEAD_S
        for co_runner, number in zip(self._co_runners, self._runs, strict=True):
            co_runner.order(do, at=at, runs=number)

    def _ask(self, do: str) -> None:
        for co_runner in self._co_runners:
            co_runner.order(do)
        hear_all(self._co_runners, self._settings.timeout_s)

    def _loop(self, watch: Watch, report: Report) -> None:
        """Let all repeat their jobs until there is enough, one fails, or the time is over."""
        start = time.monotonic()
        limit_s = self._settings.timeout_s
        self._start_all("loop")
        while not self._failed() and not (self._enough() and watch.has_enough()):
            now = time.monotonic()
            if now > start + limit_s:
                for co_runner in self._co_runners:
                    if not co_runner.jobs:
                        why = f"did not end a job within {limit_s:g} s (the time limit)"
                        co_runner.fail(DeviceFault(f"{co_runner.label}: {why}"))
                break
            hear(self._co_runners, min(now + _LOOK_S, start + limit_s), until=lambda: True)
            report(min(len(co_runner.jobs) for co_runner in self._co_runners), now - start)
        self._ask("stop")

    def _rounds(self) -> list[tuple[Span, ...]]:
        """Jobs of each round; fewer rounds if a co-runner fails."""
        rounds: list[tuple[Span, ...]] = []
        while len(rounds) < self._settings.jobs and not self._failed():
            self._start_all("round")
            hear_all(self._co_runners, self._settings.timeout_s)
            if not self._failed():
                rounds.append(tuple(msgspec.convert(each.answer, Span) for each in self._co_runners))
        return rounds

    def _failed(self) -> bool:
        return any(co_runner.failure for co_runner in self._co_runners)

    def _window(self) -> Span | None:
        return window([co_runner.jobs for co_runner in self._co_runners])

    def _enough(self) -> bool:
        together = self._window()
        if together is None or together.length_s < self._settings.window_s:
            return False
        return all(len(_inside(each, together)) >= self._settings.jobs for each in self._co_runners)

    def _shortage(self, together: Span | None) -> list[str]:
        """Which co-runners have fewer jobs than asked, for people."""
        wanted, limit_s = self._settings.jobs, self._settings.timeout_s
        return [
            f"{each.label}: expected {wanted} whole jobs while all run, found {jobs} within {limit_s:g} s "
            "(the time limit)"
            for each in self._co_runners
            if (jobs := len(_inside(each, together))) < wanted
        ]


def _inside(co_runner: CoRunnerProcess, together: Span | None) -> range:
    return range(len(co_runner.jobs))[inside(co_runner.jobs, together)] if together else range(0)


def _run_of(
    co_runner: CoRunnerProcess, runs: int, counters: Mapping[str, float], together: Span | None
) -> CoRunnerRun:
    if co_runner.failure is not None:
        return CoRunnerRun(runs, memory_bytes=co_runner.memory_bytes, failure=co_runner.failure)
    jobs = _inside(co_runner, together)
    return CoRunnerRun(
        runs,
        [co_runner.jobs[job].length_s for job in jobs],
        fmean(co_runner.cpu_s[job] for job in jobs) if jobs else None,
        # The CPU counted a run of the whole loop.
        {name: value * runs for name, value in counters.items()},
        co_runner.memory_bytes,
    )


class MixRunner(Protocol):
    """Measures mixes on one device, as `Crew` does."""

    def run(self, works: Sequence[JobWork], /) -> MixRun:
        """Measure a mix; a mix of one is an isolated run."""


_MPS_FOLDER, _DEFAULT_MPS_FOLDER = "CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"


def sharing(
    device: str, threads: int | None = None, environment: Mapping[str, str] = os.environ
) -> dict[str, str | int]:
    """How processes share a device, and what each is limited to: settings for the configuration of a mix.

    On NVIDIA, kernels of several processes run at the same time only through the Multi-Process Service
    (MPS); else the processes take turns. Elsewhere there is one way, of which nothing need be said.
    """
    limits: dict[str, str | int] = {} if threads is None else {"threads": threads}
    if not device.startswith("nvidia:"):
        return limits
    folder = Path(environment.get(_MPS_FOLDER) or _DEFAULT_MPS_FOLDER)
    return {"sharing": "mps" if mps_runs(folder) else "time-slicing", **limits}


def mps_runs(folder: Path) -> bool:
    """Whether a control daemon of MPS listens in a folder; nothing is asked of it."""
    control = folder / "control"
    try:
        mode = control.stat().st_mode
        if stat.S_ISSOCK(mode):
            return _accepts(control)
        return stat.S_ISFIFO(mode) and _is_read(control)
    except OSError:
        return False


def _accepts(path: Path) -> bool:
    """Whether anybody listens on a socket, which one that was left behind does not."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        with socket.socket(socket.AF_UNIX, kind) as client:
            client.settimeout(1.0)
            try:
                client.connect(str(path))
            except OSError as error:
                if error.errno == errno.EPROTOTYPE:
                    continue
                # Somebody else's, or busy: it is there.
                return error.errno in (errno.EACCES, errno.EPERM, errno.EAGAIN)
            return True
    return False


def _is_read(path: Path) -> bool:
    """Whether anybody has a pipe open for reading."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EPERM)
    return True


_MOST_PROCESSES = 32
_SHARE_OF_MEMORY = 0.5
"""What processes may take together before those that wait are ended."""
_THREADS = ("POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT")
"""Variables that limit PoCL's threads: up to version 4, and since."""
_Key = tuple[str, int]


class Crew:
    """Runs mixes; every application of a mix has a process of its own.

    Processes stay ready for later mixes with the same applications. Those that were not needed for longest
    end when there are too many, or when they take more than half of the memory. Ends all at the end of its
    ``with`` block.
    """

    def __init__(
        self, device: OpenCLDevice, settings: CoRunSettings | None = None, *, most: int = _MOST_PROCESSES
    ) -> None:
        self.device = device
        self.settings = settings or CoRunSettings()
        self._most = most
        self._limits = _limits(device, self.settings.threads)
        self._sensor = open_sensor(self.settings.sensor, device.type, device.pci_bus_id)
        self._processes: dict[_Key, CoRunnerProcess] = {}
        self._counted: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes."""
        self._end(list(self._processes))

    @property
    def sharing(self) -> dict[str, str | int]:
        """How the device is shared now, and what each application is limited to."""
        return sharing(self.device.id, self.settings.threads)

    def run(self, works: Sequence[JobWork], report: Report = lambda runs, elapsed_s: None) -> MixRun:
        """Measure a mix; a mix of one is an isolated run."""
        if not works:
            raise InputError.of(field="works", expected="a co-runner at least", found="none")
        with ExitStack() as undo:
            # Whoever interrupts a mix leaves its co-runners in the middle of something.
            undo.callback(self.close)
            mix = self._run(works, report)
            undo.pop_all()
        return mix

    def _run(self, works: Sequence[JobWork], report: Report) -> MixRun:
        keys = _keys(works)
        co_runners = self._ready(keys, works)
        runs = self._runs(keys, works, co_runners)
        if any(co_runner.failure for co_runner in co_runners):
            mix = MixRun(
                tuple(
                    CoRunnerRun(number, memory_bytes=co_runner.memory_bytes, failure=co_runner.failure)
                    for co_runner, number in zip(co_runners, runs, strict=True)
                ),
                sharing=self.sharing,
            )
        else:
            counted = [number for number in runs if number is not None]
            mixing = _Mixing(co_runners, counted, self.settings)
            mix = mixing.measured(self._sensor, self.sharing, report)
        self._end(key for key in keys if self._processes[key].failure)
        self._end_idle(keys)
        return mix

    def _ready(self, keys: Sequence[_Key], works: Sequence[JobWork]) -> list[CoRunnerProcess]:
        """Processes that are ready or have failed, which are the most recent ones from now on."""
        co_runners = self._started(keys, works)
        if self.device.type != "cpu" and any(co_runner.failure for co_runner in co_runners):
            # Those that wait hold memory of the device, for want of which these may have failed.
            self._end([key for key in self._processes if key not in keys])
            self._end([key for key in keys if self._processes[key].failure])
            co_runners = self._started(keys, works)
        return co_runners

    def _started(self, keys: Sequence[_Key], works: Sequence[JobWork]) -> list[CoRunnerProcess]:
        environment = {**os.environ, **self._limits}
        for key, work in zip(keys, works, strict=True):
            if key in self._processes and not self._processes[key].process.runs:
                self._end([key])
            co_runner = self._processes.pop(key, None)
            self._processes[key] = co_runner or CoRunnerProcess(
                work.subject, self.device.id, self.settings, environment
            )
        co_runners = [self._processes[key] for key in keys]
        hear_all(co_runners, self.settings.timeout_s)
        for co_runner in co_runners:
            co_runner.begin()
        return co_runners

    def _runs(
        self, keys: Sequence[_Key], works: Sequence[JobWork], co_runners: Sequence[CoRunnerProcess]
    ) -> list[int | None]:
        """Runs in a job of each co-runner: counted, one after another, where they are not given."""
        for (subject, _), work, co_runner in zip(keys, works, co_runners, strict=True):
            if work.runs is None and subject not in self._counted and co_runner.failure is None:
                co_runner.order("count", seconds=self.settings.round_s)
                hear_all([co_runner], self.settings.timeout_s)
                if co_runner.failure is None:
                    self._counted[subject] = msgspec.convert(co_runner.answer, int)
        return [
            work.runs or self._counted.get(subject) for (subject, _), work in zip(keys, works, strict=True)
        ]

    def _end_idle(self, needed: Sequence[_Key]) -> None:
        for key in list(self._processes):
            if key not in needed and (len(self._processes) > self._most or self._is_full()):
                self._end([key])

    def _is_full(self) -> bool:
        """Whether processes take so much memory that none should be kept for later."""
        here = sum(_resident_bytes(co_runner.process.pid) for co_runner in self._processes.values())
        there = sum(co_runner.memory_bytes or 0 for co_runner in self._processes.values())
        most_here = host_state.memory_bytes()
        most_there = int(self.device.handle.global_mem_size)
        too_much_here = most_here is not None and here > _SHARE_OF_MEMORY * most_here
        return too_much_here or there > _SHARE_OF_MEMORY * most_there

    def _end(self, keys: Iterable[_Key]) -> None:
        for key in list(keys):
            self._processes.pop(key).process.end()


def _limits(device: OpenCLDevice, threads: int | None) -> Mapping[str, str]:
    """Variables for the environment that limit the threads of a device."""
    if threads is None:
        return {}
    if not device.id.startswith("pocl:") or device.type != "cpu" or "/" in device.id:
        raise UnsupportedError(
            f"threads: expected a CPU device of PoCL, whose threads can be limited, found {device.id!r}"
        )
    if threads > device.compute_units:
        raise InputError.of(
            field="threads", expected=f"at most {device.compute_units} ({device.id})", found=f"{threads}"
        )
    return dict.fromkeys(_THREADS, str(threads))


def _keys(works: Sequence[JobWork]) -> list[_Key]:
    """What tells co-runners apart: their subject, and their number among those of the same subject."""
    keys: list[_Key] = []
    for work in works:
        subject = msgspec.json.encode(work.subject, order="deterministic").decode()
        keys.append((subject, sum(known == subject for known, _ in keys)))
    return keys


def _resident_bytes(process: int) -> int:
    """Memory that a process takes now; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")

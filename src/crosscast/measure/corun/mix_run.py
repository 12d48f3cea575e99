"""A run of a mix: applications that run at the same time on one device, each in a process."""

from __future__ import annotations

import json
import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from crosscast.errors import CrosscastError, DeviceFault, InputError, MissingExtraError
from crosscast.measure.energy import Reading, Sensor, Watch
from crosscast.measure.processes import (
    OUT_OF_BOUNDS,
    AnsweringProcess,
    CoRunJob,
    Report,
    heard,
    render_job,
    said,
)
from crosscast.measure.subjects import Subject


@dataclass(frozen=True)
class CoRunSettings:
    """How to measure a mix: applications that run at the same time on one device."""

    round_s: float = 0.2  # Seconds that a job takes alone at least, where its number of runs is not given
    window_s: float = 0.6  # Seconds that all co-runners run together at least
    jobs: int = 3  # Whole jobs of each co-runner in that time at least
    rounds: int = 3  # How often all co-runners start one job together
    warmups: int = 1  # Runs of each co-runner before, which are not recorded
    timeout_s: float = 60.0  # Seconds after which a co-runner that does not answer is given up
    sensor: str = "auto"  # `auto`, `none`, or the name of a sensor of energy
    counters: bool = True  # Whether to count events of the CPU
    # Threads that each co-runner may use on a CPU device of PoCL; `None` for all cores
    threads: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("jobs", 1), ("rounds", 1), ("warmups", 0), ("threads", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name}: expected at least {least}, found {value}")
        for name in ("round_s", "window_s", "timeout_s"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0 or (name == "timeout_s" and value == 0):
                raise InputError(f"{name}: expected a number of seconds, found {value:g}")
        for name in ("round_s", "window_s"):
            if getattr(self, name) >= self.timeout_s:
                raise InputError(
                    f"{name}: expected less than the time limit of {self.timeout_s:g} s, "
                    f"found {getattr(self, name):g}"
                )


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
        self.answer: Any = None
        """What it answered last."""
        self.failure: str | None = None
        """Why it failed; its process is killed then."""
        self.memory_bytes: int | None = None
        """What the application takes, once that is known."""
        self.jobs: list[Span] = []
        """Its jobs in the loop of this mix."""
        self.cpu_s: list[float] = []
        """CPU time of each, in seconds."""

    def order(self, do: str, **how: Any) -> None:
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
            self.memory_bytes = int(self.answer["memory_bytes"])
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


def measure_mix(
    co_runners: Sequence[CoRunnerProcess],
    runs: Sequence[int],
    sensor: Sensor | None,
    settings: CoRunSettings,
    sharing: Mapping[str, str | int],
    report: Report = lambda runs, elapsed_s: None,
) -> MixRun:
    """Measure co-runners that are ready.

    They repeat jobs until each has enough of them in the time in which all run; then all start one job
    together, round by round; then all results are checked. As soon as one fails, the others stop, and what
    they did is kept.
    """
    notes: list[str] = []
    watch = Watch(sensor, notes)
    _loop(co_runners, runs, settings, watch, report)
    readings = watch.readings()
    counters = [{} if co_runner.failure else dict(co_runner.answer) for co_runner in co_runners]
    together = window([co_runner.jobs for co_runner in co_runners])
    rounds = _rounds(co_runners, runs, settings)
    _ask(co_runners, settings, "check")
    if not _failed(co_runners):
        notes += _shortage(co_runners, together, settings)
    else:
        rounds = []
    return MixRun(
        tuple(map(_run_of, co_runners, runs, counters, [together] * len(co_runners))),
        [max(job.end_s for job in jobs) - min(job.start_s for job in jobs) for jobs in rounds],
        median(map(overlap, rounds)) if rounds else None,
        powers(readings, watch.started_s, together) if together else {},
        dict(sharing),
        notes,
    )


def _loop(
    co_runners: Sequence[CoRunnerProcess],
    runs: Sequence[int],
    settings: CoRunSettings,
    watch: Watch,
    report: Report,
) -> None:
    """Let all repeat their jobs until there is enough, one fails, or the time is over."""
    start = time.monotonic()
    end = start + settings.timeout_s
    for co_runner, number in zip(co_runners, runs, strict=True):
        co_runner.order("loop", at=start + _LEAD_S, runs=number)
    while not _failed(co_runners) and not (_enough(co_runners, settings) and watch.has_enough()):
        now = time.monotonic()
        if now > end:
            _give_up_the_silent(co_runners, settings)
            break
        hear(co_runners, min(now + _LOOK_S, end), until=lambda: True)
        report(min(len(co_runner.jobs) for co_runner in co_runners), now - start)
    _ask(co_runners, settings, "stop")


def _give_up_the_silent(co_runners: Sequence[CoRunnerProcess], settings: CoRunSettings) -> None:
    for co_runner in co_runners:
        if not co_runner.jobs:
            limit = f"{settings.timeout_s:g} s (the time limit)"
            co_runner.fail(DeviceFault(f"{co_runner.label}: did not end a job within {limit}"))


def _rounds(
    co_runners: Sequence[CoRunnerProcess], runs: Sequence[int], settings: CoRunSettings
) -> list[tuple[Span, ...]]:
    """Jobs of each round; fewer rounds if a co-runner fails."""
    rounds: list[tuple[Span, ...]] = []
    while len(rounds) < settings.rounds and not _failed(co_runners):
        at = time.monotonic() + _LEAD_S
        for co_runner, number in zip(co_runners, runs, strict=True):
            co_runner.order("round", at=at, runs=number)
        hear_all(co_runners, settings.timeout_s)
        if not _failed(co_runners):
            rounds.append(tuple(Span(*co_runner.answer) for co_runner in co_runners))
    return rounds


def _ask(co_runners: Sequence[CoRunnerProcess], settings: CoRunSettings, do: str) -> None:
    for co_runner in co_runners:
        co_runner.order(do)
    hear_all(co_runners, settings.timeout_s)


def _failed(co_runners: Sequence[CoRunnerProcess]) -> bool:
    return any(co_runner.failure for co_runner in co_runners)


def _enough(co_runners: Sequence[CoRunnerProcess], settings: CoRunSettings) -> bool:
    together = window([co_runner.jobs for co_runner in co_runners])
    if together is None or together.length_s < settings.window_s:
        return False
    return all(len(_inside(co_runner, together)) >= settings.jobs for co_runner in co_runners)


def _inside(co_runner: CoRunnerProcess, together: Span) -> range:
    return range(len(co_runner.jobs))[inside(co_runner.jobs, together)]


def _shortage(
    co_runners: Sequence[CoRunnerProcess], together: Span | None, settings: CoRunSettings
) -> list[str]:
    """Which co-runners have fewer jobs than asked, for people."""
    found = [
        (co_runner.label, len(_inside(co_runner, together)) if together else 0) for co_runner in co_runners
    ]
    return [
        f"{label}: expected {settings.jobs} whole jobs while all run, found {jobs} within "
        f"{settings.timeout_s:g} s (the time limit)"
        for label, jobs in found
        if jobs < settings.jobs
    ]


def _run_of(
    co_runner: CoRunnerProcess, runs: int, counters: Mapping[str, float], together: Span | None
) -> CoRunnerRun:
    if co_runner.failure is not None:
        return CoRunnerRun(runs, memory_bytes=co_runner.memory_bytes, failure=co_runner.failure)
    jobs = _inside(co_runner, together) if together else range(0)
    return CoRunnerRun(
        runs,
        [co_runner.jobs[job].length_s for job in jobs],
        fmean(co_runner.cpu_s[job] for job in jobs) if jobs else None,
        # The CPU counted a run of the whole loop.
        {name: value * runs for name, value in counters.items()},
        co_runner.memory_bytes,
    )

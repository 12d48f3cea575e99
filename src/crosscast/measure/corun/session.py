"""How long to measure bags, and what with."""

from __future__ import annotations

import json
import math
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np

from crosscast.errors import CrosscastError, DeviceFault, InputError, MissingExtraError
from crosscast.measure.energy import Reading, Sensor
from crosscast.measure.processes import (
    OUT_OF_BOUNDS,
    AnsweringProcess,
    Report,
    SessionJob,
    heard,
    raised,
    render_job,
)
from crosscast.measure.session import Watch
from crosscast.measure.subjects import LaunchFile, Microbenchmark, Settings, Subject


@dataclass(frozen=True)
class CoRunSettings:
    """How to measure a bag: applications that run at the same time on one device."""

    round_s: float = 0.2  # Seconds that a job takes alone at least, where its number of runs is not given
    window_s: float = 0.6  # Seconds that all members run together at least
    jobs: int = 3  # Whole jobs of each member in that time at least
    rounds: int = 3  # How often all members start one job together
    warmups: int = 1  # Runs of each member before, which are not recorded
    timeout_s: float = 60.0  # Seconds after which a member that does not answer is given up
    sensor: str = "auto"  # `auto`, `none`, or the name of a sensor of energy
    counters: bool = True  # Whether to count events of the CPU
    # Threads that each member may use on a CPU device of PoCL; `None` for all cores
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
    """A time from start to end, in seconds of a clock that all members share."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """Its length, in seconds."""
        return self.end_s - self.start_s


def window(jobs: Sequence[Sequence[Span]]) -> Span | None:
    """The time in which all members run: from the last first start to the first last end."""
    if not jobs or not all(jobs):
        return None
    found = Span(max(some[0].start_s for some in jobs), min(some[-1].end_s for some in jobs))
    return found if found.length_s > 0 else None


def inside(jobs: Sequence[Span], time: Span) -> slice:
    """Which of a member's jobs, that are one after another, lie wholly inside of a time."""
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
class MemberRun:
    """What one member did in a bag."""

    runs: int | None = None  # Runs of the application in a job; `None` if it failed before they were counted
    # Time of each job that lies wholly in the window in which all members ran, in seconds; empty where there
    # was no such window
    times_s: list[float] = field(default_factory=list)
    cpu_s: float | None = None  # CPU time of a job of those, in seconds; `None` where it is not known
    # What the CPU counted in a job of those, by event, without those that it does not count
    counters: dict[str, float] = field(default_factory=dict)
    # Memory of the device that it takes, in bytes; `None` if it failed before that was known
    memory_bytes: int | None = None
    failure: str | None = None  # Why it failed, in one sentence; `None` if it did not


@dataclass(frozen=True)
class BagRun:
    """What came of a bag."""

    members: tuple[MemberRun, ...]  # What each member did, in the order in which they were given
    # Time from the common start of one job of each member to the end of the last, in seconds, of each round;
    # empty if a member failed
    bag_times_s: list[float] = field(default_factory=list)
    # Share of a round in which all members ran, the median of the rounds; `None` if a member failed
    overlap: float | None = None
    # Mean power while all members ran, in watts, by domain of the sensor; empty without a sensor
    powers_w: dict[str, float] = field(default_factory=dict)
    # How the device is shared, and what it is restricted to: settings for the configuration
    sharing: dict[str, str | int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # What went wrong without ending it, for people

    @property
    def failed(self) -> bool:
        """Whether a member failed."""
        return any(member.failure is not None for member in self.members)


_WORKER = "crosscast.measure.corun.worker"


class Member:
    """An application in a process of its own, which gets ready when it is made."""

    def __init__(
        self, subject: Subject, device: str, settings: CoRunSettings, environment: Mapping[str, str]
    ) -> None:
        self.label = _label(subject)
        how = Settings(
            min_runs=1,
            min_time_s=0.0,
            warmups=settings.warmups,
            timeout_s=settings.timeout_s,
            sensor="none",
            counters=settings.counters,
        )
        self.process = AnsweringProcess(_WORKER, environment)
        self.process.tell(render_job(SessionJob(subject, device, how)) + "\n")
        self.awaited = True
        """Whether it has still to answer."""
        self.answer: Any = None
        """What it answered last."""
        self.failure: str | None = None
        """Why it failed; its process is killed then."""
        self.memory_bytes: int | None = None
        """What the application takes, once that is known."""
        self.jobs: list[Span] = []
        """Its jobs in the loop of this bag."""
        self.cpu_s: list[float] = []
        """CPU time of each, in seconds."""

    def order(self, do: str, **how: Any) -> None:
        """Tell what to do next; a member that has failed is told nothing."""
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
        said = json.loads(line)
        if "error" in said:
            error = raised(said["error"], said["message"], said["extra"])
            if isinstance(error, MissingExtraError):
                raise error
            self.fail(error)
        elif "jobs" in said:
            self.jobs += [Span(start, end) for start, end, _ in said["jobs"]]
            self.cpu_s += [cpu_s for _, _, cpu_s in said["jobs"]]
        else:
            self.answer, self.awaited = said["answer"], False

    def fail(self, error: CrosscastError) -> None:
        """Let it be a member that has failed."""
        self.failure, self.awaited = str(error), False
        self.process.kill()

    def begin(self) -> None:
        """Begin a bag: take what it said of itself when it was ready, and forget the jobs of the last one."""
        if self.memory_bytes is None and self.failure is None:
            self.memory_bytes = int(self.answer["memory_bytes"])
        self.jobs, self.cpu_s = [], []


def hear(members: Sequence[Member], end: float, until: Callable[[], bool] = lambda: False) -> None:
    """Hear what members say until all have answered or failed, something else is so, or the time is over."""
    awaited = {member.process: member for member in members if member.awaited}
    for process, line in heard(list(awaited), end):
        awaited[process].hear(line)
        if until() or not any(member.awaited for member in awaited.values()):
            return


def hear_all(members: Sequence[Member], timeout_s: float) -> None:
    """Hear members until all have answered; those that do not in time fail."""
    hear(members, time.monotonic() + timeout_s)
    for member in members:
        if member.awaited:
            member.fail(
                DeviceFault(f"{member.label}: did not answer within {timeout_s:g} s (the time limit)")
            )


def _label(subject: Subject) -> str:
    """Name of what runs, without its folder."""
    if isinstance(subject, LaunchFile):
        return Path(subject.path).stem
    if isinstance(subject, Microbenchmark):
        return f"microbenchmark {subject.level}"
    return f"{Path(subject.name).name} {subject.size}"


_LEAD_S = 0.02
"""Time from an order to the common start, in which all must have heard of it."""
_LOOK_S = 0.05
"""Time after which the loop is looked at where nobody says anything."""


def measure_bag(
    members: Sequence[Member],
    runs: Sequence[int],
    sensor: Sensor,
    settings: CoRunSettings,
    sharing: Mapping[str, str | int],
    report: Report = lambda runs, elapsed_s: None,
) -> BagRun:
    """Measure members that are ready.

    They repeat jobs until each has enough of them in the time in which all run; then all start one job
    together, round by round; then all results are checked. As soon as one fails, the others stop, and what
    they did is kept.
    """
    notes: list[str] = []
    started_s = time.monotonic()
    watch = Watch(sensor, notes)
    _loop(members, runs, settings, watch, report)
    readings = watch.readings()
    counters = [{} if member.failure else dict(member.answer) for member in members]
    together = window([member.jobs for member in members])
    rounds = _rounds(members, runs, settings)
    _ask(members, settings, "check")
    if not _failed(members):
        notes += _shortage(members, together, settings)
    else:
        rounds = []
    return BagRun(
        tuple(map(_run_of, members, runs, counters, [together] * len(members))),
        [max(job.end_s for job in jobs) - min(job.start_s for job in jobs) for jobs in rounds],
        median(map(overlap, rounds)) if rounds else None,
        powers(readings, started_s, together) if together else {},
        dict(sharing),
        notes,
    )


def _loop(
    members: Sequence[Member],
    runs: Sequence[int],
    settings: CoRunSettings,
    watch: Watch,
    report: Report,
) -> None:
    """Let all repeat their jobs until there is enough, one fails, or the time is over."""
    start = time.monotonic()
    end = start + settings.timeout_s
    for member, number in zip(members, runs, strict=True):
        member.order("loop", at=start + _LEAD_S, runs=number)
    while not _failed(members) and not (_enough(members, settings) and watch.has_enough()):
        now = time.monotonic()
        if now > end:
            _give_up_the_silent(members, settings)
            break
        hear(members, min(now + _LOOK_S, end), until=lambda: True)
        report(min(len(member.jobs) for member in members), now - start)
    _ask(members, settings, "stop")


def _give_up_the_silent(members: Sequence[Member], settings: CoRunSettings) -> None:
    for member in members:
        if not member.jobs:
            limit = f"{settings.timeout_s:g} s (the time limit)"
            member.fail(DeviceFault(f"{member.label}: did not end a job within {limit}"))


def _rounds(
    members: Sequence[Member], runs: Sequence[int], settings: CoRunSettings
) -> list[tuple[Span, ...]]:
    """Jobs of each round; fewer rounds if a member fails."""
    rounds: list[tuple[Span, ...]] = []
    while len(rounds) < settings.rounds and not _failed(members):
        at = time.monotonic() + _LEAD_S
        for member, number in zip(members, runs, strict=True):
            member.order("round", at=at, runs=number)
        hear_all(members, settings.timeout_s)
        if not _failed(members):
            rounds.append(tuple(Span(*member.answer) for member in members))
    return rounds


def _ask(members: Sequence[Member], settings: CoRunSettings, do: str) -> None:
    for member in members:
        member.order(do)
    hear_all(members, settings.timeout_s)


def _failed(members: Sequence[Member]) -> bool:
    return any(member.failure for member in members)


def _enough(members: Sequence[Member], settings: CoRunSettings) -> bool:
    together = window([member.jobs for member in members])
    if together is None or together.length_s < settings.window_s:
        return False
    return all(len(_inside(member, together)) >= settings.jobs for member in members)


def _inside(member: Member, together: Span) -> range:
    return range(len(member.jobs))[inside(member.jobs, together)]


def _shortage(members: Sequence[Member], together: Span | None, settings: CoRunSettings) -> list[str]:
    """Which members have fewer jobs than asked, for people."""
    found = [(member.label, len(_inside(member, together)) if together else 0) for member in members]
    return [
        f"{label}: expected {settings.jobs} whole jobs while all run, found {jobs} within "
        f"{settings.timeout_s:g} s (the time limit)"
        for label, jobs in found
        if jobs < settings.jobs
    ]


def _run_of(member: Member, runs: int, counters: Mapping[str, float], together: Span | None) -> MemberRun:
    if member.failure is not None:
        return MemberRun(runs, memory_bytes=member.memory_bytes, failure=member.failure)
    jobs = _inside(member, together) if together else range(0)
    return MemberRun(
        runs,
        [member.jobs[job].length_s for job in jobs],
        fmean(member.cpu_s[job] for job in jobs) if jobs else None,
        # The CPU counted a run of the whole loop.
        {name: value * runs for name, value in counters.items()},
        member.memory_bytes,
    )

"""Applications that share a device: mixes that run concurrently, each application in a persistent process."""

from __future__ import annotations

import json
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from statistics import fmean, median
from typing import NamedTuple

import msgspec
import numpy as np

from crosscast.errors import CrosscastError, DeviceFault, InputError, MissingExtraError
from crosscast.measure import Reading, Sensor, Watch
from crosscast.measure.processes import (
    OUT_OF_BOUNDS,
    AnsweringProcess,
    CoRunJob,
    Report,
    messages,
    parse_message,
    render_job,
)
from crosscast.measure.subjects import Subject, check_counts, check_seconds


@dataclass(frozen=True)
class CoRunSettings:
    """Settings of a mix: applications that run concurrently on one device."""

    round_s: float = 0.2  # Least isolated seconds of a job whose number of runs is not given
    # Complete jobs of each co-runner while all run, for at least that many times `round_s`; then the number
    # of rounds in which all start one job together
    jobs: int = 3
    warmups: int = 1  # Runs of each co-runner before, not recorded
    timeout_s: float = 60.0  # Seconds after which a co-runner that does not answer is killed
    sensor: str = "auto"  # `auto`, `none`, or the name of a sensor of energy
    counters: bool = True  # Whether to count events of the CPU
    # Threads of each co-runner on a CPU device of PoCL; `None` for all cores
    threads: int | None = None

    def __post_init__(self) -> None:
        check_counts(self, jobs=1, warmups=0, threads=1)
        check_seconds("round_s", self.round_s, self.timeout_s)
        if self.round_s == 0:
            raise InputError.of(field="round_s", expected="more than 0 seconds", found="0")
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
        """Least seconds in which all co-runners run together."""
        return self.jobs * self.round_s


@dataclass(frozen=True)
class JobWork:
    """Jobs of one application: a job is a number of its runs."""

    subject: Subject
    runs: int | None = None  # Runs in a job; `None` for the fewest that take `CoRunSettings.round_s` alone

    def __post_init__(self) -> None:
        check_counts(self, runs=1)


class Span(NamedTuple):
    """An interval, in seconds of a clock that all co-runners share."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """Length in seconds."""
        return self.end_s - self.start_s


def window(jobs: Sequence[Sequence[Span]]) -> Span | None:
    """Return the interval in which all co-runners run: from the last first start to the first last end."""
    if not jobs or not all(jobs):
        return None
    common = Span(max(spans[0].start_s for spans in jobs), min(spans[-1].end_s for spans in jobs))
    return common if common.length_s > 0 else None


def inside(jobs: Sequence[Span], time: Span) -> slice:
    """Return the slice of a co-runner's consecutive jobs that lie entirely inside of an interval."""
    first = bisect_left(jobs, time.start_s, key=attrgetter("start_s"))
    last = bisect_right(jobs, time.end_s, key=attrgetter("end_s"))
    return slice(first, max(first, last))


def overlap(round_: Sequence[Span]) -> float:
    """Return the share of the time from the first start to the last end in which all run, 0 to 1."""
    total = max(job.end_s for job in round_) - min(job.start_s for job in round_)
    shared = min(job.end_s for job in round_) - max(job.start_s for job in round_)
    return max(shared, 0.0) / total if total > 0 else 1.0


def powers(readings: Sequence[Reading], started_s: float, time: Span) -> dict[str, float]:
    """Return the mean power in an interval, in watts, by domain.

    Energy is interpolated linearly between readings. The mean is over the part of the interval that the
    readings cover.
    """
    power_w = {}
    for reading in readings:
        times_s = started_s + np.asarray(reading.times_s)
        start, end = np.clip(time, times_s[0], times_s[-1])
        if end > start:
            before, after = np.interp((start, end), times_s, reading.energies_j)
            power_w[reading.domain] = float((after - before) / (end - start))
    return power_w


@dataclass(frozen=True)
class CoRunnerRun:
    """Result of one co-runner in a mix."""

    runs: int | None = None  # Runs of the application in a job; `None` if it failed before they were counted
    # Time in seconds of each job entirely inside the window in which all co-runners ran; empty without one
    times_s: list[float] = field(default_factory=list)
    cpu_s: float | None = None  # CPU time of such a job, in seconds; `None` if unknown
    counters: dict[str, float] = field(default_factory=dict)  # CPU counters of such a job, by event
    # Memory of the device in use, in bytes; `None` if it failed before that was known
    memory_bytes: int | None = None
    failure: str | None = None  # Reason of a failure, in one sentence


@dataclass(frozen=True)
class MixRun:
    """Result of a mix."""

    co_runners: tuple[CoRunnerRun, ...]  # In the given order
    # Time from the common start of one job of each co-runner to the end of the last, in seconds, of each
    # round; empty if a co-runner failed
    mix_times_s: list[float] = field(default_factory=list)
    # Share of a round in which all co-runners ran, the median of the rounds; `None` if a co-runner failed
    overlap: float | None = None
    # Mean power while all co-runners ran, in watts, by domain of the sensor; empty without a sensor
    powers_w: dict[str, float] = field(default_factory=dict)
    # Sharing of the device and its limits: settings for the configuration
    sharing: dict[str, str | int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # Problems that were no failures

    @property
    def failed(self) -> bool:
        """Whether a co-runner failed."""
        return any(co_runner.failure is not None for co_runner in self.co_runners)


class CoRunnerProcess:
    """An application in a process, which starts to prepare at once."""

    def __init__(
        self, subject: Subject, device: str, settings: CoRunSettings, environment: Mapping[str, str]
    ) -> None:
        self.label = subject.label
        self.process = AnsweringProcess(environment)
        self.process.write(render_job(CoRunJob(subject, device, settings.warmups, settings.counters)))
        self.awaited = True  # Whether an answer is outstanding
        self.answer: object = None  # Its last answer
        self.failure: str | None = None  # Reason of a failure, after which its process is killed
        self.memory_bytes: int | None = None  # Memory of the application, once known
        self.jobs: list[Span] = []  # Its jobs in the loop of this mix
        self.cpu_s: list[float] = []  # CPU time of each, in seconds

    def order(self, do: str, **how: float) -> None:
        """Send an order, unless the co-runner has failed."""
        if self.failure is None:
            self.process.write(json.dumps({"do": do, **how}) + "\n")
            self.awaited = True

    def receive(self, line: bytes | None) -> None:
        """Process a line of the output, or its end."""
        if self.failure is not None:
            return
        if line is None:
            self.fail(self.process.crash(self.label, OUT_OF_BOUNDS))
            return
        try:
            message = parse_message(line)
        except MissingExtraError:
            raise
        except CrosscastError as error:
            self.fail(error)
            return
        if "jobs" in message:
            self.jobs += [Span(start, end) for start, end, _ in message["jobs"]]
            self.cpu_s += [cpu_s for _, _, cpu_s in message["jobs"]]
        else:
            self.answer, self.awaited = message["answer"], False

    def fail(self, error: CrosscastError) -> None:
        """Mark the co-runner as failed, and kill its process."""
        self.failure, self.awaited = str(error), False
        self.process.kill()

    def begin(self) -> None:
        """Begin a mix: take the memory from its first answer, and reset the jobs."""
        if self.memory_bytes is None and self.failure is None:
            self.memory_bytes = msgspec.convert(self.answer, dict[str, int])["memory_bytes"]
        self.jobs, self.cpu_s = [], []


def receive(
    co_runners: Sequence[CoRunnerProcess], end: float, until: Callable[[], bool] = lambda: False
) -> None:
    """Receive messages until all co-runners have answered or failed, `until` holds, or the time is over."""
    awaited = {co_runner.process: co_runner for co_runner in co_runners if co_runner.awaited}
    for process, line in messages(list(awaited), end):
        awaited[process].receive(line)
        if until() or not any(co_runner.awaited for co_runner in awaited.values()):
            return


def await_answers(co_runners: Sequence[CoRunnerProcess], timeout_s: float) -> None:
    """Receive messages until all co-runners have answered; those that do not in time fail."""
    receive(co_runners, time.monotonic() + timeout_s)
    for co_runner in co_runners:
        if co_runner.awaited:
            co_runner.fail(
                DeviceFault(f"{co_runner.label}: did not answer within {timeout_s:g} s (the time limit)")
            )


_LEAD_S = 0.02  # Time from an order to the common start, in which all must have received it
_LOOK_S = 0.05  # Time between checks of the loop without messages


class Mixing:
    """A measurement of a mix of co-runners that are ready.

    They repeat jobs until each has enough of them in the window in which all run; then all start one job
    together, in as many rounds; then all results are checked. As soon as one fails, the others stop, and
    their jobs are kept.
    """

    def __init__(
        self, co_runners: Sequence[CoRunnerProcess], runs: Sequence[int], settings: CoRunSettings
    ) -> None:
        self._co_runners, self._runs, self._settings = co_runners, runs, settings

    def measured(self, sensor: Sensor | None, sharing: Mapping[str, str | int], report: Report) -> MixRun:
        """Measure, with a sensor of the device if it has one."""
        notes: list[str] = []
        watch = Watch(sensor, notes)
        self._loop(watch, report)
        readings = watch.readings()
        counters = [
            {} if co_runner.failure else msgspec.convert(co_runner.answer, dict[str, float])
            for co_runner in self._co_runners
        ]
        common = self._window()
        rounds = self._rounds()
        self._ask("check")
        if self._failed():
            rounds = []
        else:
            notes += self._shortage(common)
        return MixRun(
            tuple(run_of(*each, common) for each in zip(self._co_runners, self._runs, counters, strict=True)),
            [max(job.end_s for job in jobs) - min(job.start_s for job in jobs) for jobs in rounds],
            median(map(overlap, rounds)) if rounds else None,
            powers(readings, watch.started_s, common) if common else {},
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
        await_answers(self._co_runners, self._settings.timeout_s)

    def _loop(self, watch: Watch, report: Report) -> None:
        """Let all repeat their jobs until there are enough, one fails, or the time is over."""
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
            receive(self._co_runners, min(now + _LOOK_S, start + limit_s), until=lambda: True)
            report(min(len(co_runner.jobs) for co_runner in self._co_runners), now - start)
        self._ask("stop")

    def _rounds(self) -> list[tuple[Span, ...]]:
        """Return the jobs of each round; fewer rounds if a co-runner fails."""
        rounds: list[tuple[Span, ...]] = []
        while len(rounds) < self._settings.jobs and not self._failed():
            self._start_all("round")
            await_answers(self._co_runners, self._settings.timeout_s)
            if not self._failed():
                rounds.append(tuple(msgspec.convert(each.answer, Span) for each in self._co_runners))
        return rounds

    def _failed(self) -> bool:
        return any(co_runner.failure for co_runner in self._co_runners)

    def _window(self) -> Span | None:
        return window([co_runner.jobs for co_runner in self._co_runners])

    def _enough(self) -> bool:
        common = self._window()
        if common is None or common.length_s < self._settings.window_s:
            return False
        return all(len(_inside(each, common)) >= self._settings.jobs for each in self._co_runners)

    def _shortage(self, common: Span | None) -> list[str]:
        """Return notes on co-runners with fewer jobs than needed."""
        needed, limit_s = self._settings.jobs, self._settings.timeout_s
        return [
            f"{each.label}: expected {needed} whole jobs while all run, found {jobs} within {limit_s:g} s "
            "(the time limit)"
            for each in self._co_runners
            if (jobs := len(_inside(each, common))) < needed
        ]


def _inside(co_runner: CoRunnerProcess, common: Span | None) -> range:
    return range(len(co_runner.jobs))[inside(co_runner.jobs, common)] if common else range(0)


def run_of(
    co_runner: CoRunnerProcess, runs: int | None, counters: Mapping[str, float], common: Span | None
) -> CoRunnerRun:
    """Return the result of a co-runner whose jobs have as many runs, with those of a window."""
    if co_runner.failure is not None:
        return CoRunnerRun(runs, memory_bytes=co_runner.memory_bytes, failure=co_runner.failure)
    jobs = _inside(co_runner, common)
    return CoRunnerRun(
        runs,
        [co_runner.jobs[job].length_s for job in jobs],
        fmean(co_runner.cpu_s[job] for job in jobs) if jobs else None,
        # Counters are means of a run over the whole loop.
        {name: value * (runs or 0) for name, value in counters.items()},
        co_runner.memory_bytes,
    )

"""A crew that answers at once, by a law, instead of processes that measure."""

from __future__ import annotations

import errno
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence

import pyopencl as cl
from hypothesis import strategies as st

from crosscast.data.configuration import Configuration
from crosscast.errors import SensorFault
from crosscast.measure.corun import CoRunnerRun, JobWork, MixRun
from crosscast.measure.host_state import CounterValue, LinuxPerf
from crosscast.measure.regions import RegionKey, RegionRun
from crosscast.measure.stressors import LEVELS
from crosscast.measure.subjects import LaunchFile, Stressor, Subject


def name_of(subject: Subject) -> str:
    if isinstance(subject, LaunchFile):
        return subject.path
    return subject.level if isinstance(subject, Stressor) else subject.name


class MadeCrew:
    """Says that jobs take as long as their application does alone, times a factor for each other one.

    `times_s` has the time of a run of each application alone, of a stressor that of a byte of its images;
    `presses` the factor by which each slows others down, `failing` why applications fail, `counters` what
    the CPU counts in a run of each, and `powers_w` the power of a mix by domain and co-runner.
    """

    def __init__(
        self,
        times_s: Mapping[str, float] | None = None,
        *,
        presses: Mapping[str, float] | None = None,
        failing: Mapping[str, str] | None = None,
        counters: Mapping[str, Mapping[str, float]] | None = None,
        powers_w: Mapping[str, float] | None = None,
        cache_bytes: int = 0,
    ) -> None:
        self.times_s = {"low": 1e-11, "medium": 5e-11, "high": 1e-10, **(times_s or {})}
        self.presses = {"low": 1.0, "medium": 1.5, "high": 2.0, **(presses or {})}
        self.failing = dict(failing or {})
        self.counters = dict(counters or {})
        self.powers_w = dict(powers_w or {})
        self.cache_bytes = cache_bytes
        self.mixes: list[tuple[str, ...]] = []

    def __enter__(self) -> MadeCrew:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, works: Sequence[JobWork], /) -> MixRun:
        names = [name_of(work.subject) for work in works]
        self.mixes.append(tuple(names))
        co_runners = []
        for number, work in enumerate(works):
            if names[number] in self.failing:
                co_runners.append(CoRunnerRun(work.runs, failure=self.failing[names[number]]))
                continue
            runs = work.runs or 4
            others = (*names[:number], *names[number + 1 :])
            factor = math.prod(self.presses.get(other, 1.0) for other in others)
            job_s = self._run_s(work.subject) * runs * factor
            counted = {name: runs * count for name, count in self.counters.get(names[number], {}).items()}
            co_runners.append(CoRunnerRun(runs, [0.9 * job_s, 1.1 * job_s], 1.5 * job_s, counted, 1000))
        if any(member.failure for member in co_runners):
            return MixRun(tuple(co_runners))
        longest = max(member.times_s[1] for member in co_runners)
        powers_w = {name: watts * len(works) for name, watts in self.powers_w.items()}
        return MixRun(tuple(co_runners), [longest] * 3, 0.75, powers_w)

    def _run_s(self, subject: Subject) -> float:
        byte_s = self.times_s[name_of(subject)]
        if not isinstance(subject, Stressor):
            return byte_s
        made = LEVELS[subject.level](subject.parameters, 0)
        # A pool that a cache holds in part is read faster.
        cached = subject.parameters["image_bytes"] * subject.parameters["images"] < self.cache_bytes
        return byte_s * made.iterations * made.image_bytes * (0.2 if cached else 1.0)


def cl_error(code: int, routine: str = "clFinish", kind: type[Exception] = cl.RuntimeError) -> Exception:
    """An error with a code of OpenCL."""
    return kind(cl._cl._ErrorRecord(msg="", code=code, routine=routine))


class SteadySensor:
    """Draws the same power all the time, and fails when it is told to."""

    def __init__(
        self, *powers_w: float, clock: Callable[[], float] = time.perf_counter, resolution_s: float = 0.0
    ) -> None:
        self.name = "steady"
        self.samples_wanted, self.interval_s, self.is_quick = 1, 10.0, True
        self.domains = tuple(f"package-{i}" for i in range(len(powers_w)))
        self.powers_w = powers_w
        self.resolution_s = resolution_s
        self.clock = clock
        self.fails = False

    def begin(self) -> None: ...

    def read_j(self) -> tuple[float, ...]:
        if self.fails:
            raise SensorFault("steady: the sensor was unplugged")
        now_s = self.clock()
        return tuple(power_w * now_s for power_w in self.powers_w)


TEXTS = st.text(min_size=1, max_size=20)
NUMBERS = st.floats(0, 1e12)
TABLES = st.dictionaries(TEXTS, NUMBERS | st.integers(0, 10**15), max_size=3)
KEYS = st.builds(
    RegionKey, TEXTS, st.lists(TEXTS, max_size=3).map(tuple), st.lists(TEXTS, max_size=2).map(tuple)
)
SETTINGS = st.dictionaries(TEXTS, st.floats(-1e9, 1e9) | st.text(max_size=5), max_size=3)
CONFIGURATIONS = st.builds(Configuration, TEXTS, SETTINGS)
MAYBE = st.none() | NUMBERS
RUNS = st.builds(
    RegionRun,
    key=KEYS,
    configuration=st.none() | CONFIGURATIONS,
    started_s=NUMBERS,
    duration_s=NUMBERS,
    metered_s=MAYBE,
    energy_j=TABLES,
    powers_w=TABLES,
    power_w=MAYBE,
    counters=TABLES,
    failure=st.none() | TEXTS,
)


def run_of(key: RegionKey, duration_s: float = 0.5, **rest: object) -> RegionRun:
    """A run, of which a test says only what matters."""
    plain = RegionRun(key, None, 1_700_000_000.0, duration_s)
    return plain._replace(**rest)  # type: ignore[arg-type]


Answer = Callable[[int, int], CounterValue]
"""Tells what a counter of an event (its number) and a thread holds."""


class FakePerf(LinuxPerf):
    """Counters that hold what the test says, and note what is asked of them."""

    def __init__(self, answer: Answer, refused: dict[tuple[int, int], int] | None = None) -> None:
        self.answer = answer
        self.refused = refused or {}
        self.opened: dict[int, tuple[int, int, int, int, bool]] = {}
        self.closed: list[int] = []
        self.enabled: set[int] = set()
        self.gone: set[int] = set()

    def open(self, kind: int, config: int, thread: int, leader: int, kernel_too: bool) -> int:
        if thread in self.gone:
            raise ProcessLookupError(errno.ESRCH, "No such process")
        if (kind, config) in self.refused:
            code = self.refused[kind, config]
            raise OSError(code, os.strerror(code))
        descriptor = 100 + len(self.opened)
        self.opened[descriptor] = (kind, config, thread, leader, kernel_too)
        return descriptor

    def enable(self, descriptor: int) -> None:
        self.enabled.add(descriptor)

    def disable(self, descriptor: int) -> None:
        self.enabled.remove(descriptor)

    def read(self, descriptor: int) -> CounterValue:
        assert descriptor not in self.enabled
        kind, config, thread, _, _ = self.opened[descriptor]
        return self.answer(kind * 10 + config, thread)

    def close(self, descriptor: int) -> None:
        self.closed.append(descriptor)

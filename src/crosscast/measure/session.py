"""Work of the measuring process: a session of an isolated application, or a co-runner of a mix."""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from statistics import median

from crosscast.data import environment
from crosscast.data.schema import SESSIONS
from crosscast.errors import InputError
from crosscast.measure import Sensor, Watch, host_state
from crosscast.measure.host_state import Counters
from crosscast.measure.inventory import describe
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, RunTimes, find, opencl_faults
from crosscast.measure.processes import CoRunJob, DescribeJob, Orders, Report, Row, Send, SessionJob
from crosscast.measure.sensors import open_sensor
from crosscast.measure.subjects import Identity, Loaded, Settings, load
from crosscast.suite.application import check_result

_REPORT_S = 0.5
_MOST_S_FOR_SAMPLES = 60.0


def answer(job: SessionJob | DescribeJob | CoRunJob, orders: Orders, send: Send) -> None:
    """Do the job of a measuring process."""
    if isinstance(job, CoRunJob):
        CoRunner(job, orders, send).serve()
        return
    device = find(job.device)
    if isinstance(job, DescribeJob):
        send(answer={"device": describe(device)})
        return
    measured = measure_session(
        load(job.subject),
        device,
        job.settings,
        open_sensor(job.settings.sensor, device.type, device.pci_bus_id),
        repeat=job.repeat,
        report=lambda runs, elapsed_s: send(runs=runs, elapsed_s=elapsed_s),
    )
    send(answer=asdict(measured))


def measuring_loop(
    run: Callable[[OpenCLQueue], None],
    queue: OpenCLQueue,
    settings: Settings,
    watch: Watch,
    report: Report = lambda runs, elapsed_s: None,
) -> tuple[list[RunTimes], float]:
    """Repeat a run; return the times of each, and the seconds of all.

    Errors of OpenCL are left to the caller's `opencl_faults`.
    """
    runs: list[RunTimes] = []
    with no_garbage_collection():
        start = reported = time.perf_counter()
        while True:
            runs.append(queue.timed(run))
            now = time.perf_counter()
            elapsed = now - start
            if now - reported >= _REPORT_S:
                reported = now
                report(len(runs), elapsed)
            if len(runs) < settings.min_runs or elapsed < settings.min_time_s:
                continue
            if elapsed > settings.min_time_s + _MOST_S_FOR_SAMPLES or watch.has_enough():
                return runs, elapsed


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection, which would disturb runs, more so with every recorded one."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def warmed_up(loaded: Loaded, device: OpenCLDevice, warmups: int) -> OpenCLQueue:
    """Return a queue on which an application ran with a correct result, with buffers overwritten since."""
    queue = OpenCLQueue(device, loaded.program, loaded.application.arrays)
    with opencl_faults(device.id, loaded.name):
        for _ in range(max(warmups, 1)):
            expect_kernels(loaded, queue.timed(loaded.application.run))
    check_result(loaded.application)
    with opencl_faults(device.id, loaded.name):
        # Otherwise the next check would pass with the warm-up's result.
        queue.spoil()
    return queue


def expect_kernels(loaded: Loaded, times: RunTimes) -> None:
    """Check that a run launched the kernels that its driver names."""
    launched, named = sorted(times.kernels_s), sorted(loaded.kernels)
    if launched != named or not named:
        raise InputError.of(
            where=loaded.name,
            expected=f"each run to launch the kernels that its driver names ({', '.join(named) or 'none'})",
            found=", ".join(launched) or "none",
        )


@dataclass
class SessionRows:
    """Rows of the tables from a session."""

    session: Row
    records: list[Row]
    energy: list[Row]
    notes: list[str]  # Problems that were no failures


def measure_session(
    loaded: Loaded,
    device: OpenCLDevice,
    settings: Settings,
    sensor: Sensor | None,
    *,
    repeat: int = 0,
    report: Report = lambda runs, elapsed_s: None,
) -> SessionRows:
    """Measure in this process: warm-ups, a check, the recorded runs, and another check."""
    session = session_row(loaded, device, settings, repeat)
    queue = warmed_up(loaded, device, settings.warmups)
    before = host_state.clock_hz(), host_state.others_running()
    notes: list[str] = []
    nbytes, most_bytes = loaded.application.nbytes, loaded.most_bytes
    if most_bytes is not None and nbytes > most_bytes:
        notes.append(
            f"{loaded.name}: its working set has {nbytes} bytes, more than the {most_bytes} that "
            f"{loaded.size} stands for (its driver's fit)"
        )
    with opencl_faults(device.id, loaded.name), Counters(settings.counters) as counters:
        watch = Watch(sensor, notes)
        runs, loop_s = measuring_loop(loaded.application.run, queue, settings, watch, report)
        readings = watch.readings()
    after = host_state.clock_hz(), host_state.others_running()
    check_result(loaded.application)
    for times in runs:
        expect_kernels(loaded, times)
    session |= {
        "working_set_bytes": nbytes,
        "runs": len(runs),
        "loop_s": loop_s,
        "clock_before_hz": before[0],
        "clock_after_hz": after[0],
        "load_before": before[1],
        "load_after": after[1],
        "counters": json.dumps(counters.values) if counters.values else None,
    }
    key = {name: session[name] for name in SESSIONS.key}
    records = [
        {
            **key,
            "kernel": kernel,
            "run": number,
            "invocations": len(times.kernels_s[kernel]),
            "time_s": times.kernels_s[kernel],
            "transfer_s": times.transfer_s,
            "host_s": times.host_s,
            "started_s": times.started_s,
        }
        for number, times in enumerate(runs)
        for kernel in loaded.kernels
    ]
    energy = [
        {
            **key,
            "sensor": sensor.name if sensor else None,
            "domain": reading.domain,
            "energy_j": reading.energy_j,
            "duration_s": reading.duration_s,
            "runs": len(runs),
            "samples": reading.samples,
            "times_s": list(reading.times_s),
            "energies_j": list(reading.energies_j),
        }
        for reading in readings
    ]
    return SessionRows(session, records, energy, notes)


def facts_of(device: OpenCLDevice) -> dict[str, object]:
    """Return the environment of a measurement: software, host, and driver of the device."""
    return {
        **environment.facts(),
        "host": host_state.name(),
        "opencl_platform": device.platform,
        "opencl_driver": device.driver,
    }


def session_row(subject: Identity, device: OpenCLDevice, settings: Settings, repeat: int) -> Row:
    """Return the row of the table of sessions as known before the first run."""
    return {
        "application": subject.name,
        "size": subject.size,
        "device": device.key,
        "configuration": "{}",
        "repeat": repeat,
        "kernels": json.dumps(subject.kernels),
        "started_s": time.time(),
        "warmups": max(settings.warmups, 1),
        "parameters": json.dumps(dict(subject.parameters)),
        "seed": subject.seed,
        "source_sha256": subject.source_sha256,
        "timer_resolution_s": device.timer_resolution_s,
        "environment": json.dumps({**facts_of(device), "governor": host_state.governor()}),
    }


_SEND_S = 0.01  # Least time between two messages on jobs, as sending takes time


class CoRunner:
    """An application that runs beside others, as its orders say."""

    def __init__(self, job: CoRunJob, orders: Orders, send: Send) -> None:
        self._orders = orders
        self._send = send
        self._counters = job.counters
        self._loaded = load(job.subject)
        self._device = find(job.device)
        self._queue = warmed_up(self._loaded, self._device, job.warmups)
        self._has_run = False
        send(answer={"memory_bytes": self._loaded.application.nbytes})

    def serve(self) -> None:
        """Follow orders until the input ends."""
        while (order := self._orders.next()) is not None:
            do: Callable[..., object] = getattr(self, order.pop("do"))
            self._send(answer=do(**order))

    def count(self, seconds: float) -> int:
        """Return the number of runs that take a time together."""
        times_s: list[float] = []
        with self._faults(), no_garbage_collection():
            now = start = time.monotonic()
            while now - start < seconds or not times_s:
                before = now
                self._run()
                now = time.monotonic()
                times_s.append(now - before)
        # The median is robust against disturbances by other programs.
        return max(math.ceil(seconds / median(times_s)), 1)

    def round(self, at: float, runs: int) -> tuple[float, float]:
        """Do one job from a time on; return its start and end."""
        with self._faults(), no_garbage_collection():
            start = _wait_until(at)
            for _ in range(runs):
                self._run()
            return start, time.monotonic()

    def loop(self, at: float, runs: int) -> dict[str, float]:
        """Do jobs from a time on until the next order; send each, and return the counters of a run."""
        done = 0
        jobs: list[tuple[float, float, float]] = []
        with self._faults(), no_garbage_collection(), Counters(self._counters) as counters:
            sent = _wait_until(at)
            while not self._orders.waiting():
                start, cpu_s = time.monotonic(), time.process_time()
                for _ in range(runs):
                    self._run()
                    done += 1
                    if self._orders.waiting():
                        break
                else:
                    end = time.monotonic()
                    jobs.append((start, end, time.process_time() - cpu_s))
                    if end - sent >= _SEND_S:
                        self._send(jobs=jobs)
                        jobs, sent = [], end
        self._send(jobs=jobs)
        self._orders.next()
        return {name: value / done for name, value in counters.values.items()} if done else {}

    def check(self) -> None:
        """Check the result of the last runs."""
        if not self._has_run:
            return
        check_result(self._loaded.application)
        self._has_run = False
        with self._faults():
            # Otherwise the next check would pass with this result.
            self._queue.spoil()

    def _run(self) -> None:
        self._has_run = True
        self._queue.complete(self._loaded.application.run)

    def _faults(self) -> AbstractContextManager[None]:
        return opencl_faults(self._device.id, self._loaded.name)


def _wait_until(at: float) -> float:
    """Wait until a time; return the time then."""
    time.sleep(max(at - time.monotonic(), 0))
    return time.monotonic()

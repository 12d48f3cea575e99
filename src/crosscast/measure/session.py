"""A session: an application measured on a device in this process."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from crosscast import environment
from crosscast.errors import InputError
from crosscast.measure import host_state
from crosscast.measure.cpu_counters import Counters
from crosscast.measure.energy import Reading, Sensor, Watch
from crosscast.measure.opencl import OpenCLDevice, OpenCLQueue, RunTimes, opencl_faults
from crosscast.measure.processes import Report
from crosscast.measure.subjects import Identity, Loaded, Settings
from crosscast.suite.application import check_result

_REPORT_S = 0.5
_MOST_S_FOR_SAMPLES = 60.0


def measuring_loop(
    run: Callable[[OpenCLQueue], None],
    queue: OpenCLQueue,
    settings: Settings,
    watch: Watch,
    report: Report = lambda runs, elapsed_s: None,
) -> tuple[list[RunTimes], float]:
    """Run again and again; return what each run took, and the seconds of all.

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
    """Collecting takes longer with every run that is kept, and would do so within some of them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def warmed_up(loaded: Loaded, device: OpenCLDevice, warmups: int) -> OpenCLQueue:
    """A queue on which an application ran, with a result that was right, and is spoiled since."""
    queue = OpenCLQueue(device, loaded.program, loaded.application.arrays)
    with opencl_faults(device.id, loaded.name):
        for _ in range(max(warmups, 1)):
            expect_kernels(loaded, queue.timed(loaded.application.run))
    check_result(loaded.application)
    with opencl_faults(device.id, loaded.name):
        # Else the next check would pass with what the warm-up left.
        queue.spoil()
    return queue


def expect_kernels(loaded: Loaded, times: RunTimes) -> None:
    """Check that a run launched the kernels that its driver names."""
    launched, named = sorted(times.kernels_s), sorted(loaded.kernels)
    if launched != named or not named:
        raise InputError(
            f"{loaded.name}: expected each run to launch the kernels that its driver names "
            f"({', '.join(named) or 'none'}), found {', '.join(launched) or 'none'}"
        )


_DEFAULT_CONFIGURATION = "{}"


@dataclass
class Measured:
    """Rows of the tables that a session gives."""

    session: dict[str, Any]  # Its row of the table of sessions
    records: list[dict[str, Any]] = field(default_factory=list)  # Its rows of the table of records
    energy: list[dict[str, Any]] = field(default_factory=list)  # Its rows of the table of energy
    notes: list[str] = field(default_factory=list)  # What went wrong without ending it, for people


def measure_here(
    loaded: Loaded,
    device: OpenCLDevice,
    settings: Settings,
    sensor: Sensor | None,
    *,
    repeat: int = 0,
    report: Report = lambda runs, elapsed_s: None,
) -> Measured:
    """Measure in this process: warm-ups, a check, the recorded runs, a check again."""
    session = session_row(loaded, device, settings, repeat)
    queue = warmed_up(loaded, device, settings.warmups)
    before = host_state.clock_hz(), host_state.others_running()
    notes = _size_notes(loaded)
    with opencl_faults(device.id, loaded.name), Counters(settings.counters) as counters:
        watch = Watch(sensor, notes)
        runs, loop_s = measuring_loop(loaded.application.run, queue, settings, watch, report)
        readings = watch.readings()
    after = host_state.clock_hz(), host_state.others_running()
    check_result(loaded.application)
    for times in runs:
        expect_kernels(loaded, times)
    session |= {
        "working_set_bytes": loaded.application.nbytes,
        "runs": len(runs),
        "loop_s": loop_s,
        "clock_before_hz": before[0],
        "clock_after_hz": after[0],
        "load_before": before[1],
        "load_after": after[1],
        "counters": json.dumps(counters.values) if counters.values else None,
    }
    cell = {name: session[name] for name in ("application", "size", "device", "configuration", "repeat")}
    records = [
        {**cell, "kernel": kernel, "run": number, **_times(times, kernel)}
        for number, times in enumerate(runs)
        for kernel in loaded.kernels
    ]
    name = sensor.name if sensor else None
    energy = [{**cell, **_energy(name, reading, len(runs))} for reading in readings]
    return Measured(session, records, energy, notes)


def session_row(subject: Identity, device: OpenCLDevice, settings: Settings, repeat: int) -> dict[str, Any]:
    """Row of the table of sessions with all that is known before the first run."""
    return {
        "application": subject.name,
        "size": subject.size,
        "device": device.key,
        "configuration": _DEFAULT_CONFIGURATION,
        "repeat": repeat,
        "kernels": json.dumps(subject.kernels),
        "started_s": time.time(),
        "warmups": max(settings.warmups, 1),
        "parameters": json.dumps(dict(subject.parameters)),
        "seed": subject.seed,
        "source_sha256": subject.source_sha256,
        "timer_resolution_s": device.timer_resolution_s,
        "environment": json.dumps({**environment.facts(), **_driver(device), "host": host_state.name()}),
    }


def _size_notes(loaded: Loaded) -> list[str]:
    nbytes, most = loaded.application.nbytes, loaded.most_bytes
    if most is None or nbytes <= most:
        return []
    return [
        f"{loaded.name}: its working set has {nbytes} bytes, more than the {most} that {loaded.size} stands "
        "for (its driver's fit)"
    ]


def _driver(device: OpenCLDevice) -> Mapping[str, str | None]:
    return {
        "opencl_platform": device.platform,
        "opencl_driver": device.driver,
        "governor": host_state.governor(),
    }


def _times(times: RunTimes, kernel: str) -> dict[str, Any]:
    return {
        "invocations": len(times.kernels_s[kernel]),
        "time_s": times.kernels_s[kernel],
        "transfer_s": times.transfer_s,
        "host_s": times.host_s,
        "started_s": times.started_s,
    }


def _energy(sensor: str | None, reading: Reading, runs: int) -> dict[str, Any]:
    return {
        "sensor": sensor,
        "domain": reading.domain,
        "energy_j": reading.energy_j,
        "duration_s": reading.duration_s,
        "runs": runs,
        "samples": reading.samples,
        "times_s": list(reading.times_s),
        "energies_j": list(reading.energies_j),
    }

"""One session: measure an application on a device in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crosscast import environment
from crosscast.measure import host_state
from crosscast.measure.counters import Counters
from crosscast.measure.jobs import Report
from crosscast.measure.loop import Watch, measuring_loop
from crosscast.measure.opencl.devices import OpenCLDevice
from crosscast.measure.opencl.faults import opencl_faults
from crosscast.measure.opencl.queue import RunTimes
from crosscast.measure.sensors.sensor import Reading, Sensor
from crosscast.measure.settings import Settings
from crosscast.measure.subjects import Identity, Loaded
from crosscast.measure.warmed_up import expect_kernels, warmed_up
from crosscast.suite.application import check_result

__all__ = ["Measured", "measure_here", "session_row"]

_DEFAULT_CONFIGURATION = "{}"


@dataclass
class Measured:
    """Rows of the tables that a session gives.

    Parameters
    ----------
    session
        Its row of the table of sessions.
    records
        Its rows of the table of records.
    energy
        Its rows of the table of energy.
    notes
        What went wrong without ending it, for people.
    """

    session: dict[str, Any]
    records: list[dict[str, Any]] = field(default_factory=list)
    energy: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def measure_here(
    loaded: Loaded,
    device: OpenCLDevice,
    settings: Settings,
    sensor: Sensor,
    *,
    repeat: int = 0,
    report: Report = lambda runs, elapsed_s: None,
) -> Measured:
    """Measure in this process: warm-ups, a check, the recorded runs, a check again.

    Parameters
    ----------
    loaded
        What to measure.
    device
        Where.
    settings
        How long.
    sensor
        What watches the energy meanwhile.
    repeat
        Number of this process among those that measure the same.
    report
        Told how far it is.

    Raises
    ------
    CheckFailed
        If the result is wrong.
    InputError
        If it launches other kernels than it says.
    CompileError
        If the device's compiler refuses the kernels.
    DeviceFault
        If the device fails.
    """
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
    energy = [{**cell, **_energy(sensor, reading, len(runs))} for reading in readings]
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
        "environment": json.dumps({**environment.facts(), **_driver(device)}),
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


def _energy(sensor: Sensor, reading: Reading, runs: int) -> dict[str, Any]:
    return {
        "sensor": sensor.name,
        "domain": reading.domain,
        "energy_j": reading.energy_j,
        "duration_s": reading.duration_s,
        "runs": runs,
        "samples": reading.samples,
        "times_s": list(reading.times_s),
        "energies_j": list(reading.energies_j),
    }

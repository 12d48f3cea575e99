"""The measuring loop: run again and again until there are enough runs, enough time and enough samples."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crosscast.errors import SensorFault
from crosscast.measure.jobs import Report
from crosscast.measure.opencl.queue import OpenCLQueue, RunTimes
from crosscast.measure.sensors.sensor import Reading, Sensor
from crosscast.measure.settings import Settings

__all__ = ["Watch", "measuring_loop", "no_garbage_collection"]

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

    Parameters
    ----------
    run
        What to run on the queue.
    queue
        Where.
    settings
        How many runs and seconds at least.
    watch
        A sensor that may want more, for at most a minute.
    report
        Told how far it is.
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


class Watch:
    """A sensor during the loop; one that goes away costs its readings, and nothing else.

    Parameters
    ----------
    sensor
        What watches, from now on.
    notes
        Where to say that it went away.
    """

    def __init__(self, sensor: Sensor, notes: list[str]) -> None:
        self._sensor = sensor
        self._notes = notes
        self._lost = False
        with self._noting():
            sensor.start()

    def has_enough(self) -> bool:
        """Whether the sensor needs no more runs."""
        enough = True
        if not self._lost:
            with self._noting():
                enough = self._sensor.samples_so_far() >= self._sensor.samples_wanted
        return enough

    def readings(self) -> tuple[Reading, ...]:
        """What it saw, after which it watches no longer."""
        readings: tuple[Reading, ...] = ()
        if not self._lost:
            with self._noting():
                readings = self._sensor.stop()
        return readings

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except SensorFault as error:
            self._lost = True
            self._notes.append(str(error))

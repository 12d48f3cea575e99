"""Measuring on real devices: sensors that can be read at any time, and their readings over an interval."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from crosscast.errors import SensorFault

Clock = Callable[[], float]
"""A monotonic clock, in seconds."""


class Sensor(Protocol):
    """Interface of a sensor, which can be read at any time."""

    @property
    def name(self) -> str:
        """Name of the sensor in tables, such as ``rapl``."""

    @property
    def domains(self) -> tuple[str, ...]:
        """Measured domains, such as ``package-0``."""

    @property
    def resolution_s(self) -> float:
        """Longest time between two updates of the counter while power is drawn, in seconds."""

    def read_j(self) -> tuple[float, ...]:
        """Return the energy of each domain since a fixed time, in joules; never decreasing."""

    @property
    def interval_s(self) -> float:
        """Longest time between two readings without loss, in seconds."""

    @property
    def samples_wanted(self) -> int:
        """Distinct readings that an interval needs for a reliable energy."""

    @property
    def is_quick(self) -> bool:
        """Whether reading takes microseconds, without a call of a driver."""

    def begin(self) -> None:
        """Count from now on; reset earlier readings and faults."""


@dataclass(frozen=True)
class Reading:
    """Readings of one domain of a sensor over an interval."""

    domain: str  # Measured domain, such as `package-0`
    samples: int  # Distinct readings: a counter that is polled faster than it updates repeats its value
    # `(n,)` Times of the readings in seconds since the start, ascending; at least two
    times_s: tuple[float, ...]
    energies_j: tuple[float, ...]  # `(n,)` Energy since the start at each time, in joules

    @property
    def duration_s(self) -> float:
        """Time from the first reading to the last, in seconds."""
        return self.times_s[-1]

    @property
    def energy_j(self) -> float:
        """Energy from the first reading to the last, in joules."""
        return self.energies_j[-1]


class Watch:
    """Reads a sensor from now on, in a thread; a fault costs its readings and adds a note."""

    def __init__(self, sensor: Sensor | None, notes: list[str], clock: Clock = time.monotonic) -> None:
        self._sensor = sensor
        self._notes = notes
        self._clock = clock
        self._samples: list[tuple[float, tuple[float, ...]]] = []
        self._distinct = 0  # Samples that differ from the previous one
        self._fault: SensorFault | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.started_s = clock()  # Time of the start, by its clock
        if sensor is not None:
            self._take(begin=True)
            self._thread = threading.Thread(target=self._poll, name="crosscast sensor", daemon=True)
            self._thread.start()

    def has_enough(self) -> bool:
        """Whether there are enough samples."""
        return (
            self._sensor is None or self._fault is not None or self._distinct >= self._sensor.samples_wanted
        )

    def readings(self) -> tuple[Reading, ...]:
        """Stop, and return the readings by domain."""
        self._ended.set()
        if self._sensor is None or self._thread is None:
            return ()
        self._thread.join()
        self._thread = None
        self._take()
        if self._fault is None and self._distinct < 2:
            lasted_s = self._samples[-1][0] - self._samples[0][0]
            self._fault = SensorFault(f"{self._sensor.name}: the counters stood still for {lasted_s:.3g} s")
        if self._fault is not None:
            self._notes.append(str(self._fault))
            return ()
        (start_s, start_j), *_ = self._samples
        times_s = tuple(taken_s - start_s for taken_s, _ in self._samples)
        return tuple(
            Reading(
                domain, self._distinct, times_s, tuple(read_j[i] - start_j[i] for _, read_j in self._samples)
            )
            for i, domain in enumerate(self._sensor.domains)
        )

    def _take(self, begin: bool = False) -> None:
        if self._sensor is None or self._fault is not None:
            return
        try:
            if begin:
                self._sensor.begin()
            sample = self._clock(), self._sensor.read_j()
        except SensorFault as fault:
            self._fault = fault
            return
        if not self._samples or self._samples[-1][1] != sample[1]:
            self._distinct += 1
        self._samples.append(sample)

    def _poll(self) -> None:
        while self._sensor and self._fault is None and not self._ended.wait(self._sensor.interval_s):
            self._take()

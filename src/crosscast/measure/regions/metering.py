"""Readings of regions: meters, polled by threads, and CPU counters."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from crosscast.data.schema import device_domains
from crosscast.errors import InputError, SensorFault, expect_known
from crosscast.measure.cpu_counters import EVENTS, Counters, CounterValue, LinuxPerf, added_up
from crosscast.measure.energy import Meter, Sensor
from crosscast.measure.regions.key import NOTHING, say_once
from crosscast.measure.sensors import open_sensors


class Polled:
    """A sensor for regions, which begin and end at any time, in any number of threads.

    A thread polls it at its interval. With a slow driver, regions use the thread's last reading.
    """

    def __init__(self, sensor: Sensor) -> None:
        self._sensor = sensor
        self.name, self.domains = sensor.name, sensor.domains
        self.resolution_s = sensor.resolution_s + (0.0 if sensor.is_quick else sensor.interval_s)
        self._fault: SensorFault | None = None
        self._last_j = (0.0,) * len(sensor.domains)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        # A sensor that is exact at any time needs no polling.
        self._needs_polling = self.resolution_s > 0

    def read_j(self) -> tuple[float, ...]:
        """Return the energy of each domain since the sensor began, in joules."""
        if self._needs_polling and self._fault is None and not self.is_watched:
            self._watch()
        if self._fault is not None:
            raise self._fault
        return self._sensor.read_j() if self._sensor.is_quick else self._last_j

    @property
    def is_watched(self) -> bool:
        """Whether a thread polls it; a forked process has none until it reads."""
        return self._thread is not None and self._thread.is_alive()

    def _watch(self) -> None:
        with self._starting:
            if self.is_watched:
                return
            self._poll()
            thread = threading.Thread(target=self._poll_forever, name=f"crosscast {self.name}", daemon=True)
            # Threads cannot start at exit, or beyond the system's limit.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def _poll_forever(self) -> None:
        while self._fault is None:
            time.sleep(self._sensor.interval_s)
            self._poll()

    def _poll(self) -> None:
        try:
            self._last_j = self._sensor.read_j()
        except SensorFault as fault:
            self._fault = fault


Energies = tuple[tuple[float, ...] | None, ...]
"""``(meters, domains of each)`` Readings of each meter in joules; ``None`` for a failed one."""


class Metering:
    """Meters that regions read when they are entered and left.

    A failed meter is not read again, and logged once; the others continue.
    """

    def __init__(self, meters: Sequence[Meter], reasons: Sequence[str] = ()) -> None:
        self.meters = tuple(meters)
        self.reasons = list(reasons)
        self.domains = tuple(domain for meter in meters for domain in meter.domains)
        self.resolution_s = max((meter.resolution_s for meter in meters), default=0.0)
        self._working: list[Meter | None] = list(meters)

    @property
    def works(self) -> bool:
        """Whether any meter works."""
        return any(meter is not None for meter in self._working)

    def read(self) -> Energies:
        """Read all meters."""
        return tuple([self._read(number) for number in range(len(self._working))])

    def _read(self, number: int) -> tuple[float, ...] | None:
        meter = self._working[number]
        if meter is None:
            return None
        try:
            return meter.read_j()
        except SensorFault as fault:
            self.give_up(number, str(fault))
            return None

    def give_up(self, number: int, reason: str) -> None:
        """Stop using a meter."""
        if self._working[number] is not None:
            self._working[number] = None
            self.reasons.append(reason)
            say_once(
                f"regions have no energy of {', '.join(self.meters[number].domains)} from now on: {reason}"
            )

    def by_domain(self, values: Energies) -> dict[str, float]:
        """Return the values by domain, of meters that have any."""
        return {
            domain: value
            for meter, readings in zip(self.meters, values, strict=True)
            if readings is not None
            for domain, value in zip(meter.domains, readings, strict=True)
        }


_SHARED: dict[tuple[int, str], Metering] = {}
"""Keys include the process: a driver's library need not work after a fork."""


def metering_of(sensors: str | Meter | Metering) -> Metering:
    """Return the meters of a name, opened once in a process, or your own."""
    if isinstance(sensors, Metering):
        return sensors
    if isinstance(sensors, Meter):
        return Metering([sensors])
    if not isinstance(sensors, str):
        expected = "the name of a sensor, auto for all that work, or a sensor with read_j() and domains"
        raise InputError.of(field="sensors", expected=expected, found=f"{type(sensors).__name__}")
    key = os.getpid(), sensors
    metering = _SHARED.get(key)
    if metering is None:
        opened, reasons = open_sensors(sensors)
        metering = _SHARED.setdefault(key, Metering(list(map(Polled, opened)), reasons))
    return metering


_STANDARD_ERROR = 0.05
_STILL_S = 0.1  # Time in which every working counter increases


class Pool:
    """Runs of a region in one configuration since their power was last reported.

    A counter that updates every `r` seconds is read up to `r` late, at both ends of a run: two uniform errors
    in the time of the energy, of variance ``r²/12`` each. Over `n` runs of `t` seconds in total, the power
    has the relative standard error ``r √(n/6) / t``. It is reported once that is at most 5 %: for a single
    run of more than eight times `r`, or after several shorter ones.
    """

    def __init__(self, metering: Metering) -> None:
        self._metering = metering
        self._lock = threading.Lock()
        self._sums: Energies = ()
        self._clear()

    def add(self, metered_s: float, energies_j: Energies) -> Mapping[str, float] | None:
        """Add a run; return the power of each domain and reset, if it is accurate enough."""
        with self._lock:
            return self._add(metered_s, energies_j)

    def _add(self, metered_s: float, energies_j: Energies) -> Mapping[str, float] | None:
        if any((now is None) != (sum_ is None) for now, sum_ in zip(energies_j, self._sums, strict=True)):
            self._clear()
        self._runs += 1
        self._time_s += metered_s
        self._sums = tuple(
            None if now is None else tuple(map(sum, zip(now, sum_ or (0.0,) * len(now), strict=True)))
            for now, sum_ in zip(energies_j, self._sums, strict=True)
        )
        if self._resolution_s * (self._runs / 6) ** 0.5 > _STANDARD_ERROR * self._time_s or self._time_s <= 0:
            return None
        if any(sums is not None and not any(sums) for sums in self._sums):
            self._give_up_still_meters()
            return None
        powers_w = self._metering.by_domain(
            tuple(sums and tuple(energy / self._time_s for energy in sums) for sums in self._sums)
        )
        self._clear()
        return powers_w

    def _give_up_still_meters(self) -> None:
        """Give up meters that stood still for too long, as in virtual machines that do not count."""
        if self._time_s < _STILL_S + self._resolution_s:
            return
        for number, sums in enumerate(self._sums):
            if sums is not None and not any(sums):
                name = self._metering.meters[number].name
                self._metering.give_up(number, f"{name}: the counters stood still for {self._time_s:.3g} s")
        self._clear()

    def _clear(self) -> None:
        self._runs, self._time_s = 0, 0.0
        self._resolution_s = self._metering.resolution_s
        self._sums = (None,) * len(self._metering.meters)


def total_w(powers_w: Mapping[str, float], domains: Collection[str]) -> float | None:
    """Return the power of all domains that are not parts of others, in watts; ``None`` if one is not known.

    >>> powers_w = {"package-0": 30.0, "package-0/core": 20.0, "gpu": 70.0}
    >>> total_w(powers_w, powers_w)
    100.0
    """
    parts = device_domains(domains)
    if not parts or any(domain not in powers_w for domain in parts):
        return None
    return sum(powers_w[domain] for domain in parts)


Counted = Mapping[str, Sequence[CounterValue]]
"""Counters of each event, one a thread."""


class OpenCounters:
    """Counters of all threads that exist at construction, and of those that they start."""

    def __init__(self, events: Sequence[str], perf: LinuxPerf | None = None) -> None:
        self._counters = Counters(perf=perf, events=events)
        self._counters.__enter__()
        self._works = True

    def read(self) -> Counted:
        """Read all counters; none if they were closed, as by a process that becomes a daemon."""
        if not self._works:
            return {}
        try:
            return self._counters.so_far()
        except OSError as error:
            self._works = False
            say_once(f"regions have no CPU counters from now on: {error.strerror}")
            return {}


def difference(before: Counted, after: Counted) -> Mapping[str, float]:
    """Return the counts between two readings, by event."""
    counts = {}
    for name, ends in after.items():
        pairs = zip(before[name], ends, strict=True)
        steps = [CounterValue(*(now - then for then, now in zip(*pair, strict=True))) for pair in pairs]
        value = added_up(name, steps)
        if value is not None:
            counts[name] = value
    return counts or NOTHING


_OPEN_COUNTERS: dict[tuple[int, tuple[str, ...]], OpenCounters] = {}
"""Keys include the process: a forked one would read the counters of its parent."""


def counters_of(events: tuple[str, ...]) -> OpenCounters:
    """Return the counters of some events, opened once in a process."""
    key = os.getpid(), events
    counters = _OPEN_COUNTERS.get(key)
    if counters is None:
        expect_known(events, EVENTS, field="counters", words="some of")
        counters = _OPEN_COUNTERS.setdefault(key, OpenCounters(events))
    return counters

"""What regions read when they are entered and left: meters, kept up by threads, and the CPU's counters."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from weakref import WeakSet

from crosscast.errors import InputError, SensorFault
from crosscast.measure.cpu_counters import EVENTS, Count, Counters, LinuxPerf, added_up
from crosscast.measure.energy import Meter, Sensor
from crosscast.measure.regions.key import NOTHING, say_once
from crosscast.measure.sensors import open_sensors


class Background:
    """A thread that runs when it is needed.

    A process that forks does so without the thread: a fork copies the locks that other threads hold, but
    not the threads. Afterwards the parent's thread goes on; the child starts one when it needs it.
    """

    def __init__(
        self, work: Callable[[], None], interval_s: float, name: str, wanted: Callable[[], bool]
    ) -> None:
        self._work = work
        self._wanted = wanted
        self._interval_s = interval_s
        self._name = name
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        _ALL.add(self)

    def ensure(self) -> bool:
        """Start the thread if it does not run; tell whether that was so."""
        if self._thread is not None:
            return False
        with self._lock:
            if self._thread is not None:
                return False
            self._ended = threading.Event()
            thread = threading.Thread(target=self._run, args=(self._ended,), name=self._name, daemon=True)
            # Python starts no threads at its end, and the system only so many.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread
        return True

    @property
    def runs(self) -> bool:
        """Whether there is a thread."""
        return self._thread is not None

    def stop(self) -> bool:
        """End the thread and wait until it has; tell whether it ran."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._ended.set()
        if thread is None or thread is threading.current_thread():
            return False
        thread.join()
        return True

    def forget(self) -> None:
        """Take it that there is no thread, as in a process that was forked."""
        self._lock = threading.Lock()
        self._thread = None

    def _run(self, ended: threading.Event) -> None:
        try:
            self._repeat(ended)
        finally:
            # Work that raises ends the thread: whoever brings more starts another one.
            with self._lock:
                if self._thread is threading.current_thread():
                    self._thread = None

    def _repeat(self, ended: threading.Event) -> None:
        while not ended.wait(self._interval_s):
            self._work()
            with self._lock:
                if ended.is_set():
                    return
                # Whoever brings work after this starts a thread; what came before is seen now.
                self._thread = None
                if not self._wanted():
                    return
                self._thread = threading.current_thread()


_ALL: WeakSet[Background] = WeakSet()
_RESTING: list[Background] = []


def _rest() -> None:
    _RESTING[:] = [background for background in list(_ALL) if background.stop()]


def _go_on() -> None:
    for background in _RESTING:
        background.ensure()
    _RESTING.clear()


def _begin_anew() -> None:
    _RESTING.clear()
    for background in list(_ALL):
        background.forget()


os.register_at_fork(before=_rest, after_in_parent=_go_on, after_in_child=_begin_anew)


class Polled:
    """A sensor for regions, which begin and end as they like, in any number of threads.

    A thread reads it as often as it needs. Where a driver has to be asked, what the thread read last counts.
    """

    def __init__(self, sensor: Sensor) -> None:
        self._sensor = sensor
        self.name, self.domains = sensor.name, sensor.domains
        self.resolution_s = sensor.resolution_s + (0.0 if sensor.is_quick else sensor.interval_s)
        self._fault: SensorFault | None = None
        self._last_j = (0.0,) * len(sensor.domains)
        name = f"crosscast {sensor.name}"
        self._background = Background(self._poll, sensor.interval_s, name, lambda: self._fault is None)
        # What is known at any moment needs nobody to keep up with it.
        self._keeps_up = self.resolution_s > 0

    def read_j(self) -> tuple[float, ...]:
        """Energy of each domain since the sensor began, in joules."""
        if self._keeps_up and self._fault is None and not self._background.runs:
            self._poll()
            self._background.ensure()
        if self._fault is not None:
            raise self._fault
        return self._sensor.read_j() if self._sensor.is_quick else self._last_j

    def _poll(self) -> None:
        try:
            self._last_j = self._sensor.read_j()
        except SensorFault as fault:
            self._fault = fault


Energies = tuple[tuple[float, ...] | None, ...]
"""``(meters, domains of each)`` What each meter says, in joules; none for one that failed."""


class Metering:
    """Meters that regions read when they are entered and left.

    One that fails is not asked again, and said once; the others go on.
    """

    def __init__(self, meters: Sequence[Meter], reasons: Sequence[str] = ()) -> None:
        self.meters = tuple(meters)
        self.reasons = list(reasons)
        self.domains = tuple(domain for meter in meters for domain in meter.domains)
        self.resolution_s = max((meter.resolution_s for meter in meters), default=0.0)
        self._working: list[Meter | None] = list(meters)

    @property
    def works(self) -> bool:
        """Whether any meter is left."""
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
        """Ask a meter no more."""
        if self._working[number] is not None:
            self._working[number] = None
            self.reasons.append(reason)
            say_once(
                f"regions have no energy of {', '.join(self.meters[number].domains)} from now on: {reason}"
            )

    def by_domain(self, values: Energies) -> dict[str, float]:
        """Values of the meters that have any, by domain."""
        return {
            domain: value
            for meter, found in zip(self.meters, values, strict=True)
            if found is not None
            for domain, value in zip(meter.domains, found, strict=True)
        }


_SHARED: dict[str, Metering] = {}


def metering_of(sensors: str | Metering) -> Metering:
    """The meters of a name, opened once in a process."""
    if isinstance(sensors, Metering):
        return sensors
    found = _SHARED.get(sensors)
    if found is None:
        opened, reasons = open_sensors(sensors)
        found = _SHARED.setdefault(sensors, Metering(list(map(Polled, opened)), reasons))
    return found


# A library of a driver need not work in a forked process: there the meters are opened again.
os.register_at_fork(after_in_child=lambda: _SHARED.clear())


_STANDARD_ERROR = 0.05

_STILL_S = 0.1
"""Time in which no counter that works stands still."""


class Pool:
    """Runs of a region in one configuration since their power was told last.

    A counter that moves every `r` seconds is read up to `r` late, at both ends of a run: as two uniform
    errors, of variance ``r²/12`` each, in the time that the energy belongs to. Over `n` runs of `t` seconds
    together, the power has the relative standard error ``r √(n/6) / t``. It is told once that is 5 % at most:
    for a single run of more than eight times `r`, or after some more of shorter ones.
    """

    def __init__(self, metering: Metering) -> None:
        self._metering = metering
        self._lock = threading.Lock()
        self._sums: Energies = ()
        self._clear()

    def add(self, metered_s: float, energies_j: Energies) -> Mapping[str, float] | None:
        """Add a run; tell the power of each domain if that can be told, and begin anew."""
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
        if any(found is not None and not any(found) for found in self._sums):
            self._judge_still()
            return None
        powers_w = self._metering.by_domain(
            tuple(found and tuple(energy / self._time_s for energy in found) for found in self._sums)
        )
        self._clear()
        return powers_w

    def _judge_still(self) -> None:
        """Give meters up that stood still for too long, as on virtual machines that show but do not count."""
        if self._time_s < _STILL_S + self._resolution_s:
            return
        for number, found in enumerate(self._sums):
            if found is not None and not any(found):
                name = self._metering.meters[number].name
                self._metering.give_up(number, f"{name}: the counters stood still for {self._time_s:.3g} s")
        self._clear()

    def _clear(self) -> None:
        self._runs, self._time_s = 0, 0.0
        self._resolution_s = self._metering.resolution_s
        self._sums = (None,) * len(self._metering.meters)


def total_w(powers_w: Mapping[str, float], domains: Iterable[str]) -> float | None:
    """Power of all domains that are not parts of others, in watts.

    >>> powers_w = {"package-0": 30.0, "package-0/core": 20.0, "gpu": 70.0}
    >>> total_w(powers_w, powers_w)
    100.0
    """
    # `psys` is the whole board, packages and all.
    whole = [domain for domain in domains if "/" not in domain]
    parts = [domain for domain in whole if domain != "psys"] or whole
    if not parts or any(domain not in powers_w for domain in parts):
        return None
    return sum(powers_w[domain] for domain in parts)


Counted = Mapping[str, Sequence[Count]]
"""What the counters of each event hold, one a thread."""


class OpenCounters:
    """Counters of all threads that there are when it is made, and of those that they start."""

    def __init__(self, events: Sequence[str], perf: LinuxPerf | None = None) -> None:
        self._counters = Counters(perf=perf, events=events)
        self._counters.__enter__()
        self._works = True

    def read(self) -> Counted:
        """Read all counters; nothing if they were closed, as by a process that becomes a daemon."""
        if not self._works:
            return {}
        try:
            return self._counters.so_far()
        except OSError as error:
            self._works = False
            say_once(f"regions have no CPU counters from now on: {error.strerror}")
            return {}


def difference(before: Counted, after: Counted) -> Mapping[str, float]:
    """What was counted between two readings, by event."""
    found = {}
    for name, ends in after.items():
        pairs = zip(before[name], ends, strict=True)
        steps = [Count(*(now - then for then, now in zip(*pair, strict=True))) for pair in pairs]
        value = added_up(name, steps)
        if value is not None:
            found[name] = value
    return found or NOTHING


_OPEN_COUNTERS: dict[tuple[str, ...], OpenCounters] = {}


def counters_of(events: tuple[str, ...]) -> OpenCounters:
    """The counters of some events, opened once in a process."""
    found = _OPEN_COUNTERS.get(events)
    if found is None:
        for name in events:
            if name not in EVENTS:
                raise InputError(f"counters: expected some of {', '.join(EVENTS)}, found {name!r}")
        found = _OPEN_COUNTERS.setdefault(events, OpenCounters(events))
    return found


# A forked process would read the counters of its parent.
os.register_at_fork(after_in_child=lambda: _OPEN_COUNTERS.clear())

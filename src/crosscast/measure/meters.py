"""Something that is done every so often in a thread, and rests while the process forks."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from operator import lt
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError, SensorFault
from crosscast.measure.energy import (
    COUNTER_INTERVAL_S,
    MICRO,
    POWER_INTERVAL_S,
    ROOT,
    Clock,
    NvmlSensor,
    ReplaySensor,
    gpus,
    safe_interval_s,
    working_zones,
)


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


class Meter(Protocol):
    """Something that counts energy all the time.

    Unlike a `Sensor`, which watches one thing from `start` to `stop`, it serves any number of things that
    begin and end as they like, inside of each other or in several threads.
    """

    @property
    def name(self) -> str:
        """Name of the sensor in tables, such as ``rapl``."""

    @property
    def domains(self) -> tuple[str, ...]:
        """What it measures, such as ``package-0``."""

    @property
    def resolution_s(self) -> float:
        """Longest time between two moves of the counter while power is drawn, in seconds."""

    def read_j(self) -> tuple[float, ...]:
        """Energy of each domain since some moment, in joules; never falling. Quick: microseconds."""


_MILLI = 1e-3

_COUNTER_STEP_S = 0.1
"""As long as the energy counter takes to move on."""


class NvmlMeter:
    """Energy of a GPU as a thread read it last, as a driver may take its time to answer."""

    name = "nvml"

    def __init__(self, device: str, domain: str = "gpu", clock: Clock = time.monotonic) -> None:
        self._sensor = NvmlSensor(device)
        self.domains = (domain,)
        counts = self._sensor.counts_energy
        interval_s = COUNTER_INTERVAL_S if counts else POWER_INTERVAL_S
        self.resolution_s = interval_s + _COUNTER_STEP_S if counts else interval_s
        self._clock = clock
        self._lock = threading.RLock()
        self._fault: SensorFault | None = None
        self._energy_j = 0.0
        self._last: tuple[float, int] | None = None
        self._background = Background(self._poll, interval_s, "crosscast nvml", self._works)

    def read_j(self) -> tuple[float, ...]:
        """Energy since the first reading."""
        if self._fault is None and not self._background.runs:
            self._poll()
            self._background.ensure()
        if self._fault is not None:
            raise self._fault
        return (self._energy_j,)

    def _poll(self) -> None:
        with self._lock:
            try:
                self._add(self._clock(), self._sensor.read_milli())
            except SensorFault as fault:
                self._fault = fault

    def _works(self) -> bool:
        return self._fault is None

    def _add(self, now_s: float, value: int) -> None:
        if self._last is not None:
            last_s, last = self._last
            if not self._sensor.counts_energy:
                self._energy_j += (now_s - last_s) * (last + value) / 2 * _MILLI
            elif value < last:
                raise SensorFault("nvml: the energy counter was set back, as when the driver is loaded anew")
            else:
                self._energy_j += (value - last) * _MILLI
        self._last = now_s, value


class RaplMeter:
    """Counters of the CPU packages; a thread reads them too, so often that no wrap-around is missed."""

    name = "rapl"
    resolution_s = 1e-3

    def __init__(self, root: Path = ROOT, clock: Clock = time.monotonic) -> None:
        zones = working_zones(root)
        self.domains = tuple(zone.domain for zone in zones)
        # Opening the files each time would take longer than reading them.
        files = [os.open(zone.file, os.O_RDONLY | os.O_CLOEXEC) for zone in zones]
        weakref.finalize(self, _close, files)
        self._zones, self._files = zones, files
        self._clock = clock
        self._lock = threading.RLock()
        self._fault: SensorFault | None = None
        self._last_s, self._last_uj = clock(), self._counts()
        self._added_j = [-count * MICRO for count in self._last_uj]
        self._background = Background(self._keep_up, safe_interval_s(zones), "crosscast rapl", self._works)

    def read_j(self) -> tuple[float, ...]:
        """Energy of each zone since the meter was made."""
        self._background.ensure()
        return self._read_j()

    def _read_j(self) -> tuple[float, ...]:
        with self._lock:
            if self._fault is not None:
                raise self._fault
            try:
                return self._add_up()
            except SensorFault as fault:
                self._fault = fault
                raise

    def _add_up(self) -> tuple[float, ...]:
        now_s, now_uj = self._clock(), self._counts()
        if any(map(lt, now_uj, self._last_uj)):
            for i, zone in enumerate(self._zones):
                step_j = zone.step_j((self._last_s, self._last_uj[i]), (now_s, now_uj[i]))
                self._added_j[i] += step_j - (now_uj[i] - self._last_uj[i]) * MICRO
        self._last_s, self._last_uj = now_s, now_uj
        return tuple([count * MICRO + added_j for count, added_j in zip(now_uj, self._added_j, strict=True)])

    def _counts(self) -> list[int]:
        found: list[int] = []
        try:
            for file in self._files:
                found.append(int(os.pread(file, 32, 0)))
        except (OSError, ValueError) as error:
            raise self._zones[len(found)].fault(error) from error
        return found

    def _keep_up(self) -> None:
        with suppress(SensorFault):
            self._read_j()

    def _works(self) -> bool:
        return self._fault is None


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


class ReplayMeter:
    """Tells what a recording tells, from the moment at which it is made."""

    name = "replay"
    # Between two rows the energy is on a straight line: it moves all the time.
    resolution_s = 0.0

    def __init__(self, path: Path, clock: Clock = time.monotonic) -> None:
        self._sensor = ReplaySensor(path, clock)
        self.domains = self._sensor.domains
        self._sensor.start()

    def read_j(self) -> tuple[float, ...]:
        """Energy of each domain since the meter was made."""
        return self._sensor.read_j()


_REPLAY, _NVML = "replay:", "nvml:"


def open_meters(spec: str, root: Path = ROOT) -> tuple[list[Meter], list[str]]:
    """Open the meters of this machine by name."""
    if spec.startswith(_REPLAY):
        return [ReplayMeter(Path(spec.removeprefix(_REPLAY)))], []
    if spec.startswith(_NVML):
        return [NvmlMeter(spec.removeprefix(_NVML))], []
    if spec == "none":
        return [], []
    if spec == "rapl":
        return [RaplMeter(root)], []
    if spec == "nvml":
        return _gpu_meters(), []
    if spec != "auto":
        known = f"auto, rapl, nvml, {_NVML}UUID, {_REPLAY}PATH"
        raise InputError(f"sensors must be one of {known} and none, found {spec!r}")
    found: list[Meter] = []
    reasons = []
    for name in ("rapl", "nvml"):
        try:
            found += open_meters(name, root)[0]
        except (EnvironmentFault, MissingExtraError) as error:
            reasons.append(str(error))
    return found, reasons


def _gpu_meters() -> list[Meter]:
    there = gpus()
    if not there:
        raise EnvironmentFault("nvml: this machine has no NVIDIA GPU")
    if len(there) == 1:
        return [NvmlMeter(there[0])]
    return [NvmlMeter(gpu, f"gpu-{number}") for number, gpu in enumerate(there)]

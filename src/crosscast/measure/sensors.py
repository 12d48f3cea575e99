"""Sensors: RAPL of CPUs, NVML of NVIDIA GPUs, and recordings; each reads a counter at any time."""

from __future__ import annotations

import csv
import importlib
import math
import os
import re
import threading
import time
import weakref
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from crosscast.data.files import atomic_file, csv_rows, number_of_text
from crosscast.errors import EnvironmentFault, InputError, MissingExtraError, SensorFault
from crosscast.measure import Clock, Sensor, Watch
from crosscast.measure.host_state import text_of


class CounterSensor:
    """A sensor that sums the increments of a counter; a fault persists until it begins anew."""

    unit_j: float
    """Joules in a unit of `_step`."""

    def __init__(self, domains: tuple[str, ...], clock: Clock) -> None:
        self.domains = domains
        self._clock = clock
        self._lock = threading.RLock()
        self.begin()

    def begin(self) -> None:
        """Count from the next reading on."""
        with self._lock:
            self._fault: SensorFault | None = None
            self._last: tuple[float, Sequence[int]] | None = None
            self._total = [0.0] * len(self.domains)

    def read_j(self) -> tuple[float, ...]:
        """Return the energy of each domain since the first reading, in joules."""
        with self._lock:
            if self._fault is not None:
                raise self._fault
            try:
                self._add_up()
            except SensorFault as fault:
                self._fault = fault
                raise
            return tuple([total * self.unit_j for total in self._total])

    def _add_up(self) -> None:
        now_s, now = self._clock(), self._counts()
        if self._last is not None:
            last_s, last = self._last
            for domain, (before, after) in enumerate(zip(last, now, strict=True)):
                self._total[domain] += self._step(domain, before, after, now_s - last_s)
        self._last = now_s, now

    @abstractmethod
    def _counts(self) -> Sequence[int]:
        """Return the counter of each domain."""

    @abstractmethod
    def _step(self, domain: int, before: int, after: int, seconds: float) -> float:
        """Return the increment of a counter between two readings."""


ROOT = Path("/sys/class/powercap")
"""Folder of the zones on Linux."""

_POWER_BOUND_W = 1000.0  # Upper bound on the power of a package: twice that of the largest ones
_LONGEST_INTERVAL_S = 10.0  # Time between two readings that is never exceeded, in seconds
_RAPL_SLACK_S = 0.1  # Far more than the update interval of CPU counters (about a millisecond)

MICRO = 1e-6
"""Joules in a microjoule."""


class _Zone(NamedTuple):
    """A counter: its domain, its file, and its largest value in microjoules if that is known."""

    domain: str
    file: Path
    range_uj: int | None

    def fault(self, error: Exception) -> SensorFault:
        """Return the fault for a failed reading, with its reason."""
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return SensorFault(f"rapl: reading {self.file} failed: {why}")


def _zone_number(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in folder.name.split(":")[1:])


def _zone(folder: Path) -> _Zone:
    names = [text_of(folder / "name") or folder.name]
    if len(_zone_number(folder)) == 2:
        package = folder.parent / folder.name.rpartition(":")[0]
        names.insert(0, text_of(package / "name") or package.name)
    largest = text_of(folder / "max_energy_range_uj")
    range_uj = int(largest) if largest.isdecimal() else 0
    return _Zone("/".join(names), folder / "energy_uj", range_uj or None)


def _working_zones(root: Path) -> list[_Zone]:
    """Return the readable zones."""
    folders = [f for f in root.glob("intel-rapl:*") if re.fullmatch(r"intel-rapl:\d+(:\d+)?", f.name)]
    if not folders:
        raise EnvironmentFault(f"rapl: this machine shows no energy counters (no intel-rapl:* in {root})")
    working, reasons = [], []
    for zone in map(_zone, sorted(folders, key=_zone_number)):
        try:
            int(zone.file.read_text())
        except PermissionError:
            reasons.append(f"rapl: {zone.file} may be read by root only")
        except (OSError, ValueError) as error:
            reasons.append(str(zone.fault(error)))
        else:
            working.append(zone)
    if not working:
        raise EnvironmentFault(reasons[0])
    return working


class RaplSensor(CounterSensor):
    """Energy counters of the CPU packages; each counts all its cores and all processes."""

    name = "rapl"
    resolution_s = 1e-3
    # The counters update every millisecond: readings at both ends suffice.
    samples_wanted = 1
    is_quick = True
    unit_j = MICRO

    def __init__(self, root: Path | None = None, clock: Clock = time.monotonic) -> None:
        self._zones = zones = _working_zones(root or ROOT)
        # Opening the files each time would take longer than reading them.
        self._files = [os.open(zone.file, os.O_RDONLY | os.O_CLOEXEC) for zone in zones]
        # Not at exit, when threads of regions may still read.
        weakref.finalize(self, _close, self._files).atexit = False
        # A wrap-around shows as a decrease only if less than one range has passed. Half of it leaves time for
        # a thread that wakes late.
        ranges_j = [zone.range_uj * MICRO for zone in zones if zone.range_uj is not None]
        self.interval_s = min([_LONGEST_INTERVAL_S, *(range_j / 2 / _POWER_BOUND_W for range_j in ranges_j)])
        super().__init__(tuple(zone.domain for zone in zones), clock)

    def begin(self) -> None:
        """Count from now on."""
        super().begin()
        self._last = self._clock(), self._counts()

    def _counts(self) -> Sequence[int]:
        counts: list[int] = []
        try:
            for file in self._files:
                counts.append(int(os.pread(file, 32, 0)))
        except (OSError, ValueError) as error:
            raise self._zones[len(counts)].fault(error) from error
        return counts

    def _step(self, domain: int, before: int, after: int, seconds: float) -> float:
        """Return the increment of a counter, which wraps around after its largest value.

        A decrease that no wrap-around explains at possible power is a fault: a reset, as by a suspend.
        """
        if after >= before:
            return after - before
        zone = self._zones[domain]
        step_uj = after - before + (zone.range_uj or 0)
        if not 0 <= step_uj * MICRO <= _POWER_BOUND_W * (seconds + _RAPL_SLACK_S):
            raise SensorFault(
                f"rapl: {zone.file} went back from {before} to {after}, which is no wrap-around"
            )
        return step_uj


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


_MILLI = 1e-3
_COUNTER_STEP_S = 0.1
"""Update interval of NVIDIA's energy counters."""
_COUNTER_INTERVAL_S = 0.02  # Below the update interval (some 20 to 100 ms), so that no update is missed
_POWER_INTERVAL_S = 0.1  # Update interval of power on the slowest cards, so that every reading is a new one
_NOT_SUPPORTED = 3
_FUNCTION_NOT_FOUND = 13

_SENTENCES = {
    1: "the library was not initialized",
    2: "the device's PCI bus id or UUID is not a valid one",
    _NOT_SUPPORTED: "this GPU measures neither energy nor power",
    4: "this user may not read the GPU",
    6: "there is no NVIDIA GPU with this PCI bus id or UUID",
    8: "the GPU's power cables are not plugged in",
    9: "the NVIDIA driver is not loaded",
    10: "the GPU did not answer in time",
    11: "the GPU has a problem with interrupts",
    12: "libnvidia-ml.so.1 of the NVIDIA driver is not installed",
    _FUNCTION_NOT_FOUND: "the NVIDIA driver is too old to tell energy or power",
    14: "the GPU's stored settings (infoROM) are corrupt",
    15: "the GPU is lost: it fell off the bus or is no longer there",
    16: "the GPU must be reset before it can be used",
    17: "the operating system blocked the request",
    18: "the NVIDIA driver and its library have different versions",
    20: "there is not enough memory",
    999: "the driver reports an unknown error",
}
"""Sentence for each error of NVML, by its number."""


def _library() -> ModuleType:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise MissingExtraError("nvidia", "reading the energy of NVIDIA GPUs") from None


def _sentence(error: Any) -> str:
    return f"nvml: {_SENTENCES.get(error.value, str(error))} (NVML error {error.value})"


def gpus() -> list[str]:
    """Return the UUIDs of the NVIDIA GPUs of this machine."""
    nvml = _library()
    try:
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
        return [str(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    except nvml.NVMLError as error:
        raise EnvironmentFault(_sentence(error)) from error


class NvmlSensor(CounterSensor):
    """Energy counter of an NVIDIA GPU, or else its power, integrated by trapezoids.

    It counts the whole card, memory included, and all processes.
    """

    name = "nvml"
    # Both quantities update some ten times a second: 20 readings bound the error of the ends to 5 %.
    samples_wanted = 20
    is_quick = False
    unit_j = _MILLI

    def __init__(self, device: str, domain: str = "gpu", clock: Clock = time.monotonic) -> None:
        self._nvml = _library()
        try:
            self._nvml.nvmlInit()
            by_uuid = device.startswith(("GPU-", "MIG-"))
            find = (
                self._nvml.nvmlDeviceGetHandleByUUID if by_uuid else self._nvml.nvmlDeviceGetHandleByPciBusId
            )
            self._handle = find(device)
            self.counts_energy = self._has_energy_counter()
            self._query: Callable[[object], int] = (
                self._nvml.nvmlDeviceGetTotalEnergyConsumption
                if self.counts_energy
                else self._nvml.nvmlDeviceGetPowerUsage
            )
            if not self.counts_energy:
                self._query(self._handle)
        except self._nvml.NVMLError as error:
            raise EnvironmentFault(_sentence(error)) from error
        self.interval_s = _COUNTER_INTERVAL_S if self.counts_energy else _POWER_INTERVAL_S
        self.resolution_s = _COUNTER_STEP_S if self.counts_energy else 0.0
        super().__init__((domain,), clock)

    def _has_energy_counter(self) -> bool:
        try:
            self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        except self._nvml.NVMLError as error:
            if error.value in (_NOT_SUPPORTED, _FUNCTION_NOT_FOUND):
                return False
            raise
        return True

    def _counts(self) -> Sequence[int]:
        try:
            return (self._query(self._handle),)
        except self._nvml.NVMLError as error:
            raise SensorFault(_sentence(error)) from error

    def _step(self, domain: int, before: int, after: int, seconds: float) -> float:
        if not self.counts_energy:
            return seconds * (before + after) / 2
        if after < before:
            raise SensorFault("nvml: the energy counter was set back, as when the driver is loaded anew")
        return after - before


_HEADER = ("domain", "time_s", "energy_j")
_MOST_BYTES = 1 << 28
_REPLAY_INTERVAL_S = 0.02


class ReplaySensor:
    """Replays a recording from the time at which the sensor begins.

    Energy is interpolated linearly between rows.
    """

    name = "replay"
    resolution_s = 0.0
    interval_s = _REPLAY_INTERVAL_S
    samples_wanted = 1
    is_quick = True

    def __init__(self, path: Path, clock: Clock = time.monotonic) -> None:
        self._path = path
        self._tracks = _load(path)
        self._clock = clock
        self._length_s = min(times_s[-1] for times_s, _ in self._tracks.values())
        self.domains = tuple(self._tracks)
        self.begin()

    def begin(self) -> None:
        """Restart the recording."""
        self._start_s = self._clock()

    def read_j(self) -> tuple[float, ...]:
        """Return the energy of each domain since the beginning, in joules."""
        now_s = self._clock() - self._start_s
        if now_s > self._length_s:
            raise SensorFault(f"replay: {self._path} ends after {self._length_s:.3g} s")
        return tuple([_energy_at(now_s, *track) for track in self._tracks.values()])


def _energy_at(time_s: float, times_s: Sequence[float], energies_j: Sequence[float]) -> float:
    i = min(bisect_right(times_s, time_s), len(times_s) - 1)
    (t0, t1), (e0, e1) = times_s[i - 1 : i + 1], energies_j[i - 1 : i + 1]
    return e0 + (e1 - e0) * (time_s - t0) / (t1 - t0)


def _load(path: Path) -> dict[str, tuple[list[float], list[float]]]:
    """Read a recording: times in seconds and energies in joules by domain, both from 0 on."""
    where, header, rows = csv_rows(path, "recording", ",".join(_HEADER), _MOST_BYTES)
    if tuple(header) != _HEADER:
        raise InputError.of(where=where, expected=",".join(_HEADER), found=",".join(header)[:80])
    tracks: dict[str, tuple[list[float], list[float]]] = {}
    for row_where, row in rows:
        domain = row["domain"]
        if not domain:
            raise InputError.of(where=row_where, field="domain", expected="a name", found="an empty cell")
        for column, previous in zip(_HEADER[1:], tracks.setdefault(domain, ([], [])), strict=True):
            value, rises = number_of_text(row[column]), column == "time_s"
            if math.isnan(value):
                raise InputError.of(
                    where=row_where, field=column, expected="a finite number", found=row[column]
                )
            if previous and (value < previous[-1] or (rises and value == previous[-1])):
                bound = f"{'more than' if rises else 'at least'} {previous[-1]} (domain {domain} before)"
                raise InputError.of(where=row_where, field=column, expected=bound, found=value)
            previous.append(value)
    if not tracks:
        raise InputError.of(where=path, expected="a recording with samples", found="none")
    for domain, (times_s, _) in tracks.items():
        if len(times_s) < 2:
            raise InputError.of(
                where=path, problem=f"domain {domain}: expected two samples or more, found one"
            )
    return {name: ([t - ts[0] for t in ts], [e - es[0] for e in es]) for name, (ts, es) in tracks.items()}


def record(sensor: Sensor, seconds: float, path: Path) -> None:
    """Read a sensor for some seconds, and write its readings as a recording."""
    notes: list[str] = []
    watch = Watch(sensor, notes)
    time.sleep(seconds)
    readings = watch.readings()
    if notes:
        raise SensorFault(notes[0])
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(_HEADER)
        for reading in readings:
            samples = zip(reading.times_s, reading.energies_j, strict=True)
            rows.writerows((reading.domain, *sample) for sample in samples)


_REPLAY, _NVML = "replay:", "nvml:"

_OF_TYPE = {"cpu": ("rapl",), "gpu": ("nvml",), None: ("rapl", "nvml")}
"""Names of the sensors that a type of device, or a whole machine, may have."""


@dataclass(frozen=True)
class SensorAvailability:
    """A sensor that a device may have."""

    name: str  # Name of the sensor
    works: bool  # Whether it can be read
    reason: str | None  # Sentence why not; `None` if it works


def sensors(device_type: str | None, pci_bus_id: str | None = None) -> list[SensorAvailability]:
    """Return the sensors that a device, or else the machine, may have, and whether they work."""
    tried = _try_sensors(device_type, pci_bus_id)
    reasons = {name: result if isinstance(result, str) else None for name, result in tried.items()}
    return [SensorAvailability(name, works=reason is None, reason=reason) for name, reason in reasons.items()]


def _try_sensors(device_type: str | None, pci_bus_id: str | None) -> dict[str, list[Sensor] | str]:
    """Open each kind of sensor that a device or the machine may have; else give the reason."""
    results: dict[str, list[Sensor] | str] = {}
    for name in _OF_TYPE.get(device_type, ()):
        try:
            results[name] = open_sensors(name, device_type, pci_bus_id)[0]
        except (EnvironmentFault, MissingExtraError) as error:
            results[name] = str(error)
    return results


def open_sensor(spec: str, device_type: str, pci_bus_id: str | None = None) -> Sensor | None:
    """Open a sensor of a device by name; ``None`` for ``none``, and for ``auto`` if none works."""
    return next(iter(open_sensors(spec, device_type, pci_bus_id)[0]), None)


def open_sensors(
    spec: str, device_type: str | None = None, pci_bus_id: str | None = None
) -> tuple[list[Sensor], list[str]]:
    """Open sensors of a device or of the machine by name; return also the reasons of faults with ``auto``."""
    if spec.startswith(_REPLAY):
        return [ReplaySensor(Path(spec.removeprefix(_REPLAY)))], []
    if spec.startswith(_NVML):
        return [NvmlSensor(spec.removeprefix(_NVML))], []
    if spec == "none":
        return [], []
    if spec == "rapl":
        return [RaplSensor()], []
    if spec == "nvml":
        return _gpu_sensors(device_type, pci_bus_id), []
    if spec != "auto":
        known = f"auto, rapl, nvml, {_NVML}UUID, {_REPLAY}PATH, none"
        raise InputError.of(where="sensor", expected=f"one of {known}", found=repr(spec))
    tried = list(_try_sensors(device_type, pci_bus_id).values())
    opened = chain.from_iterable(result for result in tried if not isinstance(result, str))
    return list(opened), [result for result in tried if isinstance(result, str)]


def _gpu_sensors(device_type: str | None, pci_bus_id: str | None) -> list[Sensor]:
    if device_type is not None:
        if pci_bus_id is None:
            raise EnvironmentFault("nvml: the device has no PCI bus id or UUID to find it by")
        return [NvmlSensor(pci_bus_id)]
    uuids = gpus()
    if not uuids:
        raise EnvironmentFault("nvml: this machine has no NVIDIA GPU")
    if len(uuids) == 1:
        return [NvmlSensor(uuids[0])]
    return [NvmlSensor(uuid, f"gpu-{number}") for number, uuid in enumerate(uuids)]

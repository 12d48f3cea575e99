"""The sensors: RAPL of CPUs, NVML of NVIDIA GPUs, and recordings; each reads a counter at any moment."""

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
from crosscast.measure.energy import Clock, Sensor, Watch


class CounterSensor:
    """A sensor that adds up what a counter moves by; a fault stays one until it begins anew."""

    unit_j: float
    """Joules of what `_step` gives."""

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
        """Energy of each domain since the first reading, in joules."""
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
        """What the counter of each domain says."""

    @abstractmethod
    def _step(self, domain: int, before: int, after: int, seconds: float) -> float:
        """By how much a counter moved between two readings."""


ROOT = Path("/sys/class/powercap")
"""Where Linux shows the zones."""

_POWER_BOUND_W = 1000.0
"""More than any package draws: twice the largest that are sold."""

_LONGEST_INTERVAL_S = 10.0
"""Time between two readings that is never exceeded, in seconds."""

_RAPL_SLACK_S = 0.1
"""Far more than the counters of CPUs take to move on (about a millisecond)."""

MICRO = 1e-6
"""Joules in a microjoule."""


class _Zone(NamedTuple):
    """A counter: its domain, its file, and its largest value in microjoules if that is known."""

    domain: str
    file: Path
    range_uj: int | None

    def fault(self, error: Exception) -> SensorFault:
        """Say that the counter could not be read, and why."""
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return SensorFault(f"rapl: reading {self.file} failed: {why}")


def _zone_number(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in folder.name.split(":")[1:])


def _text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None


def _zone(folder: Path) -> _Zone:
    names = [_text(folder / "name") or folder.name]
    if len(_zone_number(folder)) == 2:
        package = folder.parent / folder.name.rpartition(":")[0]
        names.insert(0, _text(package / "name") or package.name)
    largest = _text(folder / "max_energy_range_uj")
    range_uj = int(largest) if largest is not None and largest.isdecimal() and int(largest) > 0 else None
    return _Zone("/".join(names), folder / "energy_uj", range_uj)


def _working_zones(root: Path) -> list[_Zone]:
    """Zones that can be read."""
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
    """Energy counters of the CPU packages, each of which counts for all its cores, whoever uses them."""

    name = "rapl"
    resolution_s = 1e-3
    # The counters move every millisecond; a reading at the start and one at the end say it all.
    samples_wanted = 1
    is_quick = True
    unit_j = MICRO

    def __init__(self, root: Path = ROOT, clock: Clock = time.monotonic) -> None:
        self._zones = zones = _working_zones(root)
        # Opening the files each time would take longer than reading them.
        self._files = [os.open(zone.file, os.O_RDONLY | os.O_CLOEXEC) for zone in zones]
        weakref.finalize(self, _close, self._files)
        # A wrap-around is seen by a count that went back, which is certain only if less than one range went
        # by. Half of it leaves time for a thread that wakes late.
        ranges_j = [zone.range_uj * MICRO for zone in zones if zone.range_uj is not None]
        self.interval_s = min([_LONGEST_INTERVAL_S, *(range_j / 2 / _POWER_BOUND_W for range_j in ranges_j)])
        super().__init__(tuple(zone.domain for zone in zones), clock)

    def begin(self) -> None:
        """Count from now on."""
        super().begin()
        self._last = self._clock(), self._counts()

    def _counts(self) -> Sequence[int]:
        found: list[int] = []
        try:
            for file in self._files:
                found.append(int(os.pread(file, 32, 0)))
        except (OSError, ValueError) as error:
            raise self._zones[len(found)].fault(error) from error
        return found

    def _step(self, domain: int, before: int, after: int, seconds: float) -> float:
        """By how much a counter moved, which starts again at 0 after its largest value.

        One that went back without that being possible in the time was set to 0 by something else, such as a
        suspend.
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
"""As long as an energy counter of NVIDIA takes to move on."""
_COUNTER_INTERVAL_S = 0.02
"""Shorter than the counter takes to move on (some 20 to 100 ms), so that every move is seen."""
_POWER_INTERVAL_S = 0.1
"""As long as the slowest cards take to renew their power, so that every reading is a new one."""

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
"""What each error of NVML says, by its number."""


def _library() -> ModuleType:
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        raise MissingExtraError("nvidia", "reading the energy of NVIDIA GPUs") from None


def _sentence(error: Any) -> str:
    return f"nvml: {_SENTENCES.get(error.value, str(error))} (NVML error {error.value})"


def gpus() -> list[str]:
    """Tell the UUIDs of the NVIDIA GPUs of this machine."""
    nvml = _library()
    try:
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]
        return [str(nvml.nvmlDeviceGetUUID(handle)) for handle in handles]
    except nvml.NVMLError as error:
        raise EnvironmentFault(_sentence(error)) from error


class NvmlSensor(CounterSensor):
    """Energy counter of an NVIDIA GPU, or else its power, added up by trapezoids.

    It counts the whole card, memory included, whoever uses it.
    """

    name = "nvml"
    # Both quantities are renewed some ten times a second: 20 of them bound the error of the ends to 5 %.
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
            self.counts_energy = self._tells_energy()
            self._ask: Callable[[object], int] = (
                self._nvml.nvmlDeviceGetTotalEnergyConsumption
                if self.counts_energy
                else self._nvml.nvmlDeviceGetPowerUsage
            )
            if not self.counts_energy:
                self._ask(self._handle)
        except self._nvml.NVMLError as error:
            raise EnvironmentFault(_sentence(error)) from error
        self.interval_s = _COUNTER_INTERVAL_S if self.counts_energy else _POWER_INTERVAL_S
        self.resolution_s = _COUNTER_STEP_S if self.counts_energy else 0.0
        super().__init__((domain,), clock)

    def _tells_energy(self) -> bool:
        try:
            self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        except self._nvml.NVMLError as error:
            if error.value in (_NOT_SUPPORTED, _FUNCTION_NOT_FOUND):
                return False
            raise
        return True

    def _counts(self) -> Sequence[int]:
        try:
            return (self._ask(self._handle),)
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
    """Tells what a recording tells, which runs from the moment at which the sensor begins.

    Between two rows the energy is on the straight line: it moves all the time.
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
        """Begin at the beginning of the recording."""
        self._start_s = self._clock()

    def read_j(self) -> tuple[float, ...]:
        """Energy of each domain since the beginning, in joules."""
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
    for place, row in rows:
        domain = row["domain"]
        if not domain:
            raise InputError.of(where=place, field="domain", expected="a name", found="an empty cell")
        for column, known in zip(_HEADER[1:], tracks.setdefault(domain, ([], [])), strict=True):
            value, rises = number_of_text(row[column]), column == "time_s"
            if math.isnan(value):
                raise InputError.of(where=place, field=column, expected="a finite number", found=row[column])
            if known and (value < known[-1] or (rises and value == known[-1])):
                bound = f"{'more than' if rises else 'at least'} {known[-1]} (domain {domain} before)"
                raise InputError.of(where=place, field=column, expected=bound, found=value)
            known.append(value)
    if not tracks:
        raise InputError(f"{path}: expected a recording with samples, found none")
    for domain, (times_s, _) in tracks.items():
        if len(times_s) < 2:
            raise InputError(f"{path}: domain {domain}: expected two samples or more, found one")
    return {name: ([t - ts[0] for t in ts], [e - es[0] for e in es]) for name, (ts, es) in tracks.items()}


def record(sensor: Sensor, seconds: float, path: Path) -> None:
    """Watch for a while, and write what the sensor says as a recording."""
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
"""Names of the sensors that a type of device may have, and that a whole machine may."""


@dataclass(frozen=True)
class SensorAvailability:
    """A sensor that a device may have."""

    name: str  # Name of the sensor
    works: bool  # It can be read here and now
    reason: str | None  # Why it cannot, as a sentence; none if it can


def sensors(device_type: str, pci_bus_id: str | None = None, root: Path = ROOT) -> list[SensorAvailability]:
    """Tell which sensors a device may have, and whether they work."""
    tried = _tried(device_type, pci_bus_id, root)
    reasons = {name: found if isinstance(found, str) else None for name, found in tried.items()}
    return [SensorAvailability(name, works=reason is None, reason=reason) for name, reason in reasons.items()]


def _tried(device_type: str | None, pci_bus_id: str | None, root: Path) -> dict[str, list[Sensor] | str]:
    """Each kind of sensor that a device or the machine may have: opened, or why it does not work."""
    found: dict[str, list[Sensor] | str] = {}
    for name in _OF_TYPE.get(device_type, ()):
        try:
            found[name] = open_sensors(name, device_type, pci_bus_id, root)[0]
        except (EnvironmentFault, MissingExtraError) as error:
            found[name] = str(error)
    return found


def open_sensor(
    spec: str, device_type: str, pci_bus_id: str | None = None, root: Path = ROOT
) -> Sensor | None:
    """Open a sensor of a device by name; none for ``none``, and for ``auto`` where none works."""
    return next(iter(open_sensors(spec, device_type, pci_bus_id, root)[0]), None)


def open_sensors(
    spec: str, device_type: str | None = None, pci_bus_id: str | None = None, root: Path = ROOT
) -> tuple[list[Sensor], list[str]]:
    """Open sensors by name, of a device or of the machine; tell too why those of ``auto`` do not work."""
    if spec.startswith(_REPLAY):
        return [ReplaySensor(Path(spec.removeprefix(_REPLAY)))], []
    if spec.startswith(_NVML):
        return [NvmlSensor(spec.removeprefix(_NVML))], []
    if spec == "none":
        return [], []
    if spec == "rapl":
        return [RaplSensor(root)], []
    if spec == "nvml":
        return _gpu_sensors(device_type, pci_bus_id), []
    if spec != "auto":
        known = f"auto, rapl, nvml, {_NVML}UUID, {_REPLAY}PATH, none"
        raise InputError.of(where="sensor", expected=f"one of {known}", found=repr(spec))
    tried = list(_tried(device_type, pci_bus_id, root).values())
    opened = chain.from_iterable(found for found in tried if not isinstance(found, str))
    return list(opened), [found for found in tried if isinstance(found, str)]


def _gpu_sensors(device_type: str | None, pci_bus_id: str | None) -> list[Sensor]:
    if device_type is not None:
        if pci_bus_id is None:
            raise EnvironmentFault("nvml: the device has no PCI bus id or UUID to find it by")
        return [NvmlSensor(pci_bus_id)]
    there = gpus()
    if not there:
        raise EnvironmentFault("nvml: this machine has no NVIDIA GPU")
    if len(there) == 1:
        return [NvmlSensor(there[0])]
    return [NvmlSensor(gpu, f"gpu-{number}") for number, gpu in enumerate(there)]

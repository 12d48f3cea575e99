"""A thread that reads something every so often."""

from __future__ import annotations

import csv
import importlib
import math
import re
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar

from crosscast.data.files import whole_file
from crosscast.errors import EnvironmentFault, InputError, MissingExtraError, SensorFault
from crosscast.measure import energy as rapl

T = TypeVar("T")

Clock = Callable[[], float]
"""Tells the time in seconds since some moment, and never goes back."""


class Sampler(Generic[T]):
    """Readings at the start, at the end, and every `interval_s` seconds in between."""

    def __init__(self, read: Callable[[], T], interval_s: float, clock: Clock = time.monotonic) -> None:
        self._read = read
        self._interval_s = interval_s
        self._clock = clock
        self._samples: list[tuple[float, T]] = []
        self._ended = threading.Event()
        self._fault: SensorFault | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Forget earlier readings, take the first, and start the thread."""
        self._end_thread()
        self._samples, self._fault = [], None
        self._take()
        self._ended.clear()
        self._thread = threading.Thread(target=self._sample, name="crosscast sensor", daemon=True)
        self._thread.start()

    def so_far(self) -> list[tuple[float, T]]:
        """Readings since the start, with the time of each."""
        if self._fault is not None:
            raise self._fault
        return list(self._samples)

    def stop(self) -> list[tuple[float, T]]:
        """End the thread, take the last reading, and give all of them."""
        self._end_thread()
        if self._fault is None:
            self._take()
        return self.so_far()

    def _end_thread(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _take(self) -> None:
        taken = self._clock()
        self._samples.append((taken, self._read()))

    def _sample(self) -> None:
        while not self._ended.wait(self._interval_s):
            try:
                self._take()
            except SensorFault as fault:
                self._fault = fault
                return


@dataclass(frozen=True)
class Reading:
    """What a sensor saw of one domain while it watched."""

    domain: str  # What the sensor measured, such as `package-0`
    # Readings that brought news. A counter that is polled faster than it counts says the same thing several
    # times, which is one sample
    samples: int
    # `(n,)` When each reading was taken, in seconds since the start, rising; at least two
    times_s: tuple[float, ...]
    values: tuple[float, ...]  # `(n,)` The readings: energy since the start, or power
    unit: Literal["J", "W"]  # Unit of the values: `J` for energy, `W` for power

    @property
    def duration_s(self) -> float:
        """Time from the first reading to the last, in seconds."""
        return self.times_s[-1] - self.times_s[0]

    @property
    def energies_j(self) -> tuple[float, ...]:
        """``(n,)`` Energy since the start at each time, in joules; power is integrated by trapezoids."""
        if self.unit == "J":
            return self.values
        steps = zip(pairwise(self.times_s), pairwise(self.values), strict=True)
        return tuple(accumulate(((b - a) * (p + q) / 2 for (a, b), (p, q) in steps), initial=0.0))

    @property
    def energy_j(self) -> float:
        """Energy from the first reading to the last, in joules."""
        return self.energies_j[-1]


class Sensor(Protocol):
    """Something that tells the energy used between two moments.

    `start` and `stop` may be called again and again, in turns. All but `stop` leave the sensor watching.
    """

    @property
    def name(self) -> str:
        """Name of the sensor in tables, such as ``rapl``."""

    @property
    def domains(self) -> tuple[str, ...]:
        """What it measures, such as ``package-0``; one reading each."""

    @property
    def samples_wanted(self) -> int:
        """Samples that it should have before `stop`, for what it says to be worth keeping."""

    def start(self) -> None:
        """Begin to watch."""

    def samples_so_far(self) -> int:
        """Fewest samples that any domain has since `start`."""

    def stop(self) -> tuple[Reading, ...]:
        """End watching, and tell what was seen, by domain."""


class NullSensor:
    """Measures nothing and asks for nothing, so that measuring needs no second way."""

    name = "none"
    domains: tuple[str, ...] = ()
    samples_wanted = 0

    def start(self) -> None:
        """Do nothing."""

    def samples_so_far(self) -> int:
        """Give 0."""
        return 0

    def stop(self) -> tuple[Reading, ...]:
        """Give no reading."""
        return ()


_MILLI = 1e-3

COUNTER_INTERVAL_S = 0.02
"""Shorter than the counter takes to move on (some 20 to 100 ms), so that every move is seen."""

POWER_INTERVAL_S = 0.1
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


def _library() -> Any:
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


class NvmlSensor:
    """Energy counter of an NVIDIA GPU, or else its power, sampled.

    It counts the whole card, memory included, whoever uses it.
    """

    name = "nvml"
    domains: tuple[str, ...] = ("gpu",)
    # Both quantities are renewed some ten times a second: 20 of them bound the error of the ends to 5 %.
    samples_wanted = 20

    def __init__(self, device: str, clock: Clock = time.monotonic) -> None:
        self._nvml = _library()
        try:
            self._nvml.nvmlInit()
            by_uuid = device.startswith(("GPU-", "MIG-"))
            find = (
                self._nvml.nvmlDeviceGetHandleByUUID if by_uuid else self._nvml.nvmlDeviceGetHandleByPciBusId
            )
            self._handle = find(device)
            self.counts_energy = self._tells_energy()
            if not self.counts_energy:
                self._nvml.nvmlDeviceGetPowerUsage(self._handle)
        except self._nvml.NVMLError as error:
            raise EnvironmentFault(_sentence(error)) from error
        interval_s = COUNTER_INTERVAL_S if self.counts_energy else POWER_INTERVAL_S
        self._sampler = Sampler(self.read_milli, interval_s, clock)

    def start(self) -> None:
        """Begin to watch."""
        self._sampler.start()

    def samples_so_far(self) -> int:
        """Samples since `start`."""
        return self._count([value for _, value in self._sampler.so_far()])

    def stop(self) -> tuple[Reading, ...]:
        """End watching, and tell the energy."""
        taken = self._sampler.stop()
        times_s = tuple(moment - taken[0][0] for moment, _ in taken)
        values = [value for _, value in taken]
        samples = self._count(values)
        if self.counts_energy and values != sorted(values):
            raise SensorFault("nvml: the energy counter was set back, as when the driver is loaded anew")
        if samples < 2:
            raise SensorFault(f"nvml: the energy counter stood still for {times_s[-1]:.3g} s")
        zero = values[0] if self.counts_energy else 0
        unit: Any = "J" if self.counts_energy else "W"
        return (Reading("gpu", samples, times_s, tuple((value - zero) * _MILLI for value in values), unit),)

    def _tells_energy(self) -> bool:
        try:
            self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)
        except self._nvml.NVMLError as error:
            if error.value in (_NOT_SUPPORTED, _FUNCTION_NOT_FOUND):
                return False
            raise
        return True

    def _count(self, values: list[int]) -> int:
        return len(set(values)) if self.counts_energy else len(values)

    def read_milli(self) -> int:
        """Read the energy in millijoules since the driver was loaded, or the power in milliwatts."""
        tell: Callable[[Any], int] = (
            self._nvml.nvmlDeviceGetTotalEnergyConsumption
            if self.counts_energy
            else self._nvml.nvmlDeviceGetPowerUsage
        )
        try:
            return tell(self._handle)
        except self._nvml.NVMLError as error:
            raise SensorFault(_sentence(error)) from error


ROOT = Path("/sys/class/powercap")
"""Where Linux shows the zones."""

_POWER_BOUND_W = 1000.0
"""More than any package draws: twice the largest that are sold."""

LONGEST_INTERVAL_S = 10.0
"""Time between two readings that is never exceeded, in seconds."""

COUNTING_STEP_S = 0.1
"""Far more than the counters take to move on (about a millisecond)."""

MICRO = 1e-6
"""Joules in a microjoule."""


@dataclass(frozen=True)
class Zone:
    """A counter: its domain, its file, and its largest value in microjoules if that is known."""

    domain: str
    file: Path
    range_uj: int | None

    def read_uj(self) -> int:
        """Read the counter, in microjoules."""
        try:
            return int(self.file.read_text())
        except (OSError, ValueError) as error:
            raise self.fault(error) from error

    def fault(self, error: Exception) -> SensorFault:
        """Say that the counter could not be read, and why."""
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        return SensorFault(f"rapl: reading {self.file} failed: {why}")

    def step_j(self, before: tuple[float, int], after: tuple[float, int]) -> float:
        """Energy between two readings (time in seconds, count in microjoules), in joules.

        The counter starts again at 0 after its largest value. A count that went back without that being
        possible in the time was set to 0 by something else, such as a suspend.
        """
        step_uj = after[1] - before[1]
        if step_uj >= 0:
            return step_uj * MICRO
        wrapped_j = (step_uj + (self.range_uj or 0)) * MICRO
        if not 0 <= wrapped_j <= _POWER_BOUND_W * (after[0] - before[0] + COUNTING_STEP_S):
            raise SensorFault(
                f"rapl: {self.file} went back from {before[1]} to {after[1]}, which is no wrap-around"
            )
        return wrapped_j


def _zone_number(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in folder.name.split(":")[1:])


def _text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None


def _zone(folder: Path) -> Zone:
    names = [_text(folder / "name") or folder.name]
    if len(_zone_number(folder)) == 2:
        package = folder.parent / folder.name.rpartition(":")[0]
        names.insert(0, _text(package / "name") or package.name)
    largest = _text(folder / "max_energy_range_uj")
    range_uj = int(largest) if largest is not None and largest.isdecimal() and int(largest) > 0 else None
    return Zone("/".join(names), folder / "energy_uj", range_uj)


def working_zones(root: Path) -> tuple[Zone, ...]:
    """Zones that can be read."""
    folders = [f for f in root.glob("intel-rapl:*") if re.fullmatch(r"intel-rapl:\d+(:\d+)?", f.name)]
    if not folders:
        raise EnvironmentFault(f"rapl: this machine shows no energy counters (no intel-rapl:* in {root})")
    working, reasons = [], []
    for zone in map(_zone, sorted(folders, key=_zone_number)):
        try:
            zone.read_uj()
        except SensorFault as fault:
            denied = isinstance(fault.__cause__, PermissionError)
            reasons.append(f"rapl: {zone.file} may be read by root only" if denied else str(fault))
        else:
            working.append(zone)
    if not working:
        raise EnvironmentFault(reasons[0])
    return tuple(working)


def safe_interval_s(zones: tuple[Zone, ...]) -> float:
    """Time between readings in which no counter passes more than half of its range, in seconds.

    A wrap-around is seen by a count that went back, which is certain only if less than one range went by.
    Half of it leaves time for a thread that wakes late.
    """
    ranges_j = [zone.range_uj * MICRO for zone in zones if zone.range_uj is not None]
    return min([LONGEST_INTERVAL_S, *(range_j / 2 / _POWER_BOUND_W for range_j in ranges_j)])


class RaplSensor:
    """Energy counters of the CPU packages.

    A package counts for all its cores, whoever uses them.
    """

    name = "rapl"
    # The counters move every millisecond; the reading of `start` and that of `stop` say it all.
    samples_wanted = 1

    def __init__(
        self, root: Path = ROOT, interval_s: float | None = None, clock: Clock = time.monotonic
    ) -> None:
        self._zones = working_zones(root)
        self.domains = tuple(zone.domain for zone in self._zones)
        self.interval_s = min(safe_interval_s(self._zones), interval_s or LONGEST_INTERVAL_S)
        self._sampler = Sampler(self._read_uj, self.interval_s, clock)

    def start(self) -> None:
        """Begin to watch."""
        self._sampler.start()

    def samples_so_far(self) -> int:
        """Readings since `start`."""
        return len(self._sampler.so_far())

    def stop(self) -> tuple[Reading, ...]:
        """End watching, and tell the energy of each zone."""
        samples = self._sampler.stop()
        start_s = samples[0][0]
        times_s = tuple(taken - start_s for taken, _ in samples)
        readings = []
        for i, zone in enumerate(self._zones):
            counts = [(taken, values[i]) for taken, values in samples]
            steps_j = (zone.step_j(before, after) for before, after in pairwise(counts))
            energies_j = tuple(accumulate(steps_j, initial=0.0))
            readings.append(Reading(zone.domain, len(samples), times_s, energies_j, "J"))
        if times_s[-1] >= COUNTING_STEP_S and not any(reading.energy_j for reading in readings):
            raise SensorFault(f"rapl: the counters stood still for {times_s[-1]:.3g} s")
        return tuple(readings)

    def _read_uj(self) -> tuple[int, ...]:
        return tuple(zone.read_uj() for zone in self._zones)


_HEADER = ["domain", "time_s", "energy_j"]
_MOST_SAMPLES_WANTED = 20


@dataclass
class _Track:
    """Samples of one domain: times in seconds and energies in joules, both since the first."""

    times_s: list[float]
    energies_j: list[float]

    def energy_at(self, time_s: float) -> float:
        """Energy at a time inside the recording, on the straight line between two samples."""
        i = min(bisect_right(self.times_s, time_s), len(self.times_s) - 1)
        (t0, t1), (e0, e1) = self.times_s[i - 1 : i + 1], self.energies_j[i - 1 : i + 1]
        return e0 + (e1 - e0) * (time_s - t0) / (t1 - t0)


def _number(text: str, column: str, place: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{place}: {column} must be a finite number, found {text!r}")
    return value


def _extend(tracks: dict[str, _Track], row: list[str], place: str) -> None:
    if len(row) != len(_HEADER):
        raise InputError(f"{place}: a row must hold {','.join(_HEADER)}, found {len(row)} fields")
    domain, time_s, energy_j = row[0], _number(row[1], "time_s", place), _number(row[2], "energy_j", place)
    if not domain:
        raise InputError(f"{place}: domain must not be empty")
    track = tracks.setdefault(domain, _Track([], []))
    if track.times_s and time_s <= track.times_s[-1]:
        raise InputError(f"{place}: time_s of {domain} must rise, found {time_s} after {track.times_s[-1]}")
    if track.times_s and energy_j < track.energies_j[-1]:
        raise InputError(
            f"{place}: energy_j of {domain} must not fall, found {energy_j} after {track.energies_j[-1]}"
        )
    track.times_s.append(time_s)
    track.energies_j.append(energy_j)


def _load(path: Path) -> dict[str, _Track]:
    """Read a recording."""
    tracks: dict[str, _Track] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file, strict=True)
            if (header := next(rows, [])) != _HEADER:
                raise InputError(
                    f"{path}: the first line must be {','.join(_HEADER)}, found {','.join(header)[:80]!r}"
                )
            for row in rows:
                _extend(tracks, row, f"{path}, line {rows.line_num}")
    except OSError as error:
        raise InputError(f"{path}: cannot read the recording: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: must be a CSV file in UTF-8: {error}") from error
    if not tracks:
        raise InputError(f"{path}: the recording holds no samples")
    for domain, track in tracks.items():
        if len(track.times_s) < 2:
            raise InputError(f"{path}: domain {domain} needs two samples or more, found one")
    return {domain: _from_zero(track) for domain, track in tracks.items()}


def _from_zero(track: _Track) -> _Track:
    time_s, energy_j = track.times_s[0], track.energies_j[0]
    return _Track([t - time_s for t in track.times_s], [e - energy_j for e in track.energies_j])


class ReplaySensor:
    """Tells what a recording tells; each `start` begins at the beginning of the recording."""

    name = "replay"

    def __init__(self, path: Path, clock: Clock = time.monotonic) -> None:
        self._path = path
        self._tracks = _load(path)
        self._clock = clock
        self._start_s: float | None = None
        self._length_s = min(track.times_s[-1] for track in self._tracks.values())
        self.domains = tuple(self._tracks)
        fewest = min(len(track.times_s) for track in self._tracks.values())
        self.samples_wanted = min(_MOST_SAMPLES_WANTED, fewest - 1)

    def start(self) -> None:
        """Begin at the beginning of the recording."""
        self._start_s = self._clock()

    def samples_so_far(self) -> int:
        """Samples of the recording since its start, of the domain that has fewest."""
        now_s = self._now_s()
        return min(bisect_right(track.times_s, now_s) for track in self._tracks.values())

    def read_j(self) -> tuple[float, ...]:
        """Energy of each domain since `start`, in joules."""
        now_s = self._now_s()
        return tuple(track.energy_at(now_s) for track in self._tracks.values())

    def stop(self) -> tuple[Reading, ...]:
        """Tell the energy since `start`, on the straight line between two samples."""
        now_s = self._now_s()
        return tuple(self._reading(domain, track, now_s) for domain, track in self._tracks.items())

    def _now_s(self) -> float:
        if self._start_s is None:
            raise SensorFault("replay: the sensor was asked before it was started")
        now_s = self._clock() - self._start_s
        if now_s > self._length_s:
            raise SensorFault(f"replay: {self._path} ends after {self._length_s:.3g} s")
        return now_s

    def _reading(self, domain: str, track: _Track, now_s: float) -> Reading:
        passed = max(1, bisect_left(track.times_s, now_s))
        times_s = (*track.times_s[:passed], now_s)
        energies_j = (*track.energies_j[:passed], track.energy_at(now_s))
        return Reading(domain, len(times_s), times_s, energies_j, "J")


def record(sensor: Sensor, seconds: float, path: Path) -> None:
    """Watch for a while, and write what the sensor says as a recording."""
    sensor.start()
    time.sleep(seconds)
    readings = sensor.stop()
    if not readings:
        raise SensorFault(f"sensor {sensor.name} measures nothing that could be recorded")
    with whole_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(_HEADER)
        for reading in readings:
            samples = zip(reading.times_s, reading.energies_j, strict=True)
            rows.writerows((reading.domain, *sample) for sample in samples)


_REPLAY = "replay:"

_OF_TYPE = {"cpu": ("rapl",), "gpu": ("nvml",)}
"""Names of the sensors that a type of device may have."""


@dataclass(frozen=True)
class Availability:
    """A sensor that a device may have."""

    name: str  # Name of the sensor
    works: bool  # It can be read here and now
    reason: str | None  # Why it cannot, as a sentence; none if it can


def sensors(device_type: str, pci_bus_id: str | None = None, root: Path = rapl.ROOT) -> list[Availability]:
    """Tell which sensors a device may have, and whether they work."""
    return [_availability(name, pci_bus_id, root) for name in _OF_TYPE.get(device_type, ())]


def open_sensor(spec: str, device_type: str, pci_bus_id: str | None = None, root: Path = rapl.ROOT) -> Sensor:
    """Open a sensor by name."""
    if spec.startswith(_REPLAY):
        return ReplaySensor(Path(spec.removeprefix(_REPLAY)))
    if spec == "none":
        return NullSensor()
    if spec == "auto":
        working = (found.name for found in sensors(device_type, pci_bus_id, root) if found.works)
        return open_sensor(next(working, "none"), device_type, pci_bus_id, root)
    if spec not in _OPENERS:
        known = ", ".join(("auto", *_OPENERS, f"{_REPLAY}PATH"))
        raise InputError(f"sensor must be one of {known} and none, found {spec!r}")
    return _OPENERS[spec](pci_bus_id, root)


def _availability(name: str, pci_bus_id: str | None, root: Path) -> Availability:
    try:
        _OPENERS[name](pci_bus_id, root)
    except (EnvironmentFault, MissingExtraError) as error:
        return Availability(name, works=False, reason=str(error))
    return Availability(name, works=True, reason=None)


def _open_rapl(pci_bus_id: str | None, root: Path) -> Sensor:
    return RaplSensor(root)


def _open_nvml(pci_bus_id: str | None, root: Path) -> Sensor:
    if pci_bus_id is None:
        raise EnvironmentFault("nvml: the device has no PCI bus id or UUID to find it by")
    return NvmlSensor(pci_bus_id)


_OPENERS: dict[str, Callable[[str | None, Path], Sensor]] = {"rapl": _open_rapl, "nvml": _open_nvml}

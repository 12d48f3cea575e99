"""Energy of CPU packages, from the counters that Linux shows as powercap files.

The zones are ``intel-rapl:N`` (a package, or the whole platform) and ``intel-rapl:N:M`` (a part of it:
core, uncore, dram). AMD packages appear under the same names. The zones of ``intel-rapl-mmio`` are the
same packages again, by another way, and are left out.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from crosscast.errors import EnvironmentFault, SensorFault
from crosscast.measure.sensors.sampler import Clock, Sampler
from crosscast.measure.sensors.sensor import Reading

__all__ = ["ROOT", "RaplSensor"]

ROOT = Path("/sys/class/powercap")
"""Where Linux shows the zones."""

_POWER_BOUND_W = 1000.0
"""More than any package draws: twice the largest that are sold."""

_LONGEST_INTERVAL_S = 10.0

_COUNTING_STEP_S = 0.1
"""Far more than the counters take to move on (about a millisecond)."""

_MICRO = 1e-6


@dataclass(frozen=True)
class _Zone:
    """A counter: its domain, its file, and its largest value in microjoules if that is known."""

    domain: str
    file: Path
    range_uj: int | None

    def read_uj(self) -> int:
        try:
            return int(self.file.read_text())
        except (OSError, ValueError) as error:
            raise SensorFault(f"rapl: reading {self.file} failed: {_why(error)}") from error

    def step_j(self, before: tuple[float, int], after: tuple[float, int]) -> float:
        """Energy between two readings (time in seconds, count in microjoules), in joules.

        The counter starts again at 0 after its largest value. A count that went back without that being
        possible in the time was set to 0 by something else, such as a suspend.
        """
        step_uj = after[1] - before[1]
        if step_uj >= 0:
            return step_uj * _MICRO
        wrapped_j = (step_uj + (self.range_uj or 0)) * _MICRO
        if not 0 <= wrapped_j <= _POWER_BOUND_W * (after[0] - before[0] + _COUNTING_STEP_S):
            raise SensorFault(
                f"rapl: {self.file} went back from {before[1]} to {after[1]}, which is no wrap-around"
            )
        return wrapped_j


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


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


def _working_zones(root: Path) -> tuple[_Zone, ...]:
    """Zones that can be read.

    Raises
    ------
    EnvironmentFault
        If there is none, with the reason.
    """
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


def _interval_s(zones: tuple[_Zone, ...]) -> float:
    """Time between readings in which no counter passes more than half of its range, in seconds.

    A wrap-around is seen by a count that went back, which is certain only if less than one range went by.
    Half of it leaves time for a thread that wakes late.
    """
    ranges_j = [zone.range_uj * _MICRO for zone in zones if zone.range_uj is not None]
    return min([_LONGEST_INTERVAL_S, *(range_j / 2 / _POWER_BOUND_W for range_j in ranges_j)])


class RaplSensor:
    """Energy counters of the CPU packages.

    A package counts for all its cores, whoever uses them.

    Parameters
    ----------
    root
        Folder of the zones.
    interval_s
        Time between readings while it watches, in seconds; by default as long as no wrap-around can be
        missed, which is 10 s for the counters of today.
    clock
        Tells when a reading was taken.

    Raises
    ------
    EnvironmentFault
        If no counter can be read, with the reason.
    """

    name = "rapl"
    # The counters move every millisecond; the reading of `start` and that of `stop` say it all.
    samples_wanted = 1

    def __init__(
        self, root: Path = ROOT, interval_s: float | None = None, clock: Clock = time.monotonic
    ) -> None:
        self._zones = _working_zones(root)
        self.domains = tuple(zone.domain for zone in self._zones)
        self.interval_s = min(_interval_s(self._zones), interval_s or _LONGEST_INTERVAL_S)
        self._sampler = Sampler(self._read_uj, self.interval_s, clock)

    def start(self) -> None:
        """Begin to watch."""
        self._sampler.start()

    def samples_so_far(self) -> int:
        """Readings since `start`."""
        return len(self._sampler.so_far())

    def stop(self) -> tuple[Reading, ...]:
        """End watching, and tell the energy of each zone.

        Raises
        ------
        SensorFault
            If a file went away, a counter was set back, or no counter moved in a tenth of a second or
            more, as on virtual machines that show counters without counting.
        """
        samples = self._sampler.stop()
        start_s = samples[0][0]
        times_s = tuple(taken - start_s for taken, _ in samples)
        readings = []
        for i, zone in enumerate(self._zones):
            counts = [(taken, values[i]) for taken, values in samples]
            steps_j = (zone.step_j(before, after) for before, after in pairwise(counts))
            energies_j = tuple(accumulate(steps_j, initial=0.0))
            readings.append(Reading(zone.domain, len(samples), times_s, energies_j, "J"))
        if times_s[-1] >= _COUNTING_STEP_S and not any(reading.energy_j for reading in readings):
            raise SensorFault(f"rapl: the counters stood still for {times_s[-1]:.3g} s")
        return tuple(readings)

    def _read_uj(self) -> tuple[int, ...]:
        return tuple(zone.read_uj() for zone in self._zones)

"""Counters of energy that Linux shows as powercap files.

The zones are ``intel-rapl:N`` (a package, or the whole platform) and ``intel-rapl:N:M`` (a part of it:
core, uncore, dram). AMD packages appear under the same names. The zones of ``intel-rapl-mmio`` are the
same packages again, by another way, and are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from crosscast.errors import EnvironmentFault, SensorFault

__all__ = [
    "COUNTING_STEP_S",
    "LONGEST_INTERVAL_S",
    "MICRO",
    "ROOT",
    "Zone",
    "safe_interval_s",
    "working_zones",
]

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
        """Read the counter, in microjoules.

        Raises
        ------
        SensorFault
            If the file cannot be read, or holds something else.
        """
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


def safe_interval_s(zones: tuple[Zone, ...]) -> float:
    """Time between readings in which no counter passes more than half of its range, in seconds.

    A wrap-around is seen by a count that went back, which is certain only if less than one range went by.
    Half of it leaves time for a thread that wakes late.
    """
    ranges_j = [zone.range_uj * MICRO for zone in zones if zone.range_uj is not None]
    return min([LONGEST_INTERVAL_S, *(range_j / 2 / _POWER_BOUND_W for range_j in ranges_j)])

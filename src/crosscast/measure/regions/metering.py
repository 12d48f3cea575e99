"""All meters of a process, read together."""

from __future__ import annotations

import os
from collections.abc import Sequence

from crosscast.errors import SensorFault
from crosscast.measure.regions.notice import say_once
from crosscast.measure.sensors.meter import Meter
from crosscast.measure.sensors.meters import open_meters

__all__ = ["Counts", "Metering", "metering_of"]

Counts = tuple[tuple[float, ...] | None, ...]
"""``(meters, domains of each)`` What each meter says, in joules; none for one that failed."""


class Metering:
    """Meters that regions read when they are entered and left.

    One that fails is not asked again, and said once; the others go on.

    Parameters
    ----------
    meters
        The meters.
    reasons
        Why others do not work.
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

    def read(self) -> Counts:
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

    def by_domain(self, values: Counts) -> dict[str, float]:
        """Values of the meters that have any, by domain."""
        return {
            domain: value
            for meter, found in zip(self.meters, values, strict=True)
            if found is not None
            for domain, value in zip(meter.domains, found, strict=True)
        }


_SHARED: dict[str, Metering] = {}


def metering_of(sensors: str | Metering) -> Metering:
    """The meters of a name, opened once in a process.

    Raises
    ------
    InputError, MissingExtraError, EnvironmentFault
        As `open_meters`.
    """
    if isinstance(sensors, Metering):
        return sensors
    found = _SHARED.get(sensors)
    if found is None:
        found = _SHARED.setdefault(sensors, Metering(*open_meters(sensors)))
    return found


# A library of a driver need not work in a forked process: there the meters are opened again.
os.register_at_fork(after_in_child=lambda: _SHARED.clear())

"""Energy of CPU packages, from the counters that Linux shows as powercap files."""

from __future__ import annotations

import time
from itertools import accumulate, pairwise
from pathlib import Path

from crosscast.errors import SensorFault
from crosscast.measure.sensors.sampler import Clock, Sampler
from crosscast.measure.sensors.sensor import Reading
from crosscast.measure.sensors.zones import (
    COUNTING_STEP_S,
    LONGEST_INTERVAL_S,
    ROOT,
    safe_interval_s,
    working_zones,
)

__all__ = ["ROOT", "RaplSensor"]


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
        if times_s[-1] >= COUNTING_STEP_S and not any(reading.energy_j for reading in readings):
            raise SensorFault(f"rapl: the counters stood still for {times_s[-1]:.3g} s")
        return tuple(readings)

    def _read_uj(self) -> tuple[int, ...]:
        return tuple(zone.read_uj() for zone in self._zones)

"""Energy of CPU packages at any moment."""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import suppress
from operator import lt
from pathlib import Path

from crosscast.errors import SensorFault
from crosscast.measure.background import Background
from crosscast.measure.sensors.sampler import Clock
from crosscast.measure.sensors.zones import MICRO, ROOT, safe_interval_s, working_zones

__all__ = ["RaplMeter"]


class RaplMeter:
    """Counters of the CPU packages; a thread reads them too, so often that no wrap-around is missed.

    Parameters
    ----------
    root
        Folder of the zones.
    clock
        Tells when a reading was taken.

    Raises
    ------
    EnvironmentFault
        If no counter can be read, with the reason.
    """

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
        """Energy of each zone since the meter was made.

        Raises
        ------
        SensorFault
            If a file went away, or a counter was set back.
        """
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

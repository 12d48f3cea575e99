"""A meter that replays a recording, for tests and for machines without sensors."""

from __future__ import annotations

import time
from pathlib import Path

from crosscast.measure.sensors.replay import ReplaySensor
from crosscast.measure.sensors.sampler import Clock

__all__ = ["ReplayMeter"]


class ReplayMeter:
    """Tells what a recording tells, from the moment at which it is made.

    Parameters
    ----------
    path
        The recording, as `ReplaySensor` reads it.
    clock
        Tells how far the replay is.

    Raises
    ------
    InputError
        If the file cannot be read or is not a recording.
    """

    name = "replay"
    # Between two rows the energy is on a straight line: it moves all the time.
    resolution_s = 0.0

    def __init__(self, path: Path, clock: Clock = time.monotonic) -> None:
        self._sensor = ReplaySensor(path, clock)
        self.domains = self._sensor.domains
        self._sensor.start()

    def read_j(self) -> tuple[float, ...]:
        """Energy of each domain since the meter was made.

        Raises
        ------
        SensorFault
            If the recording has ended.
        """
        return self._sensor.read_j()

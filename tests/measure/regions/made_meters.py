"""Meters whose every reading a test knows."""

import time
from collections.abc import Callable

from crosscast.errors import SensorFault


class SteadyMeter:
    """Draws the same power all the time, and fails when it is told to."""

    def __init__(
        self, *powers_w: float, clock: Callable[[], float] = time.perf_counter, resolution_s: float = 0.0
    ) -> None:
        self.name = "steady"
        self.domains = tuple(f"package-{i}" for i in range(len(powers_w)))
        self.powers_w = powers_w
        self.resolution_s = resolution_s
        self.clock = clock
        self.reads = 0
        self.fails = False

    def read_j(self) -> tuple[float, ...]:
        self.reads += 1
        if self.fails:
            raise SensorFault("steady: the sensor was unplugged")
        now_s = self.clock()
        return tuple(power_w * now_s for power_w in self.powers_w)

"""Energy of an NVIDIA GPU at any moment."""

from __future__ import annotations

import threading
import time

from crosscast.errors import SensorFault
from crosscast.measure.background import Background
from crosscast.measure.sensors.nvml import COUNTER_INTERVAL_S, POWER_INTERVAL_S, NvmlSensor
from crosscast.measure.sensors.sampler import Clock

__all__ = ["NvmlMeter"]

_MILLI = 1e-3

_COUNTER_STEP_S = 0.1
"""As long as the energy counter takes to move on."""


class NvmlMeter:
    """Energy of a GPU as a thread read it last, as a driver may take its time to answer.

    Parameters
    ----------
    device
        PCI bus id or UUID of the GPU.
    domain
        Name of the domain.
    clock
        Tells when a reading was taken.

    Raises
    ------
    MissingExtraError
        If the Python package is not installed.
    EnvironmentFault
        If there is no driver, no such GPU, or it measures nothing, with the reason.
    """

    name = "nvml"

    def __init__(self, device: str, domain: str = "gpu", clock: Clock = time.monotonic) -> None:
        self._sensor = NvmlSensor(device)
        self.domains = (domain,)
        counts = self._sensor.counts_energy
        interval_s = COUNTER_INTERVAL_S if counts else POWER_INTERVAL_S
        self.resolution_s = interval_s + _COUNTER_STEP_S if counts else interval_s
        self._clock = clock
        self._lock = threading.RLock()
        self._fault: SensorFault | None = None
        self._energy_j = 0.0
        self._last: tuple[float, int] | None = None
        self._background = Background(self._poll, interval_s, "crosscast nvml", self._works)

    def read_j(self) -> tuple[float, ...]:
        """Energy since the first reading.

        Raises
        ------
        SensorFault
            If the GPU went away, or its counter was set back.
        """
        if self._fault is None and not self._background.runs:
            self._poll()
            self._background.ensure()
        if self._fault is not None:
            raise self._fault
        return (self._energy_j,)

    def _poll(self) -> None:
        with self._lock:
            try:
                self._add(self._clock(), self._sensor.read_milli())
            except SensorFault as fault:
                self._fault = fault

    def _works(self) -> bool:
        return self._fault is None

    def _add(self, now_s: float, value: int) -> None:
        if self._last is not None:
            last_s, last = self._last
            if not self._sensor.counts_energy:
                self._energy_j += (now_s - last_s) * (last + value) / 2 * _MILLI
            elif value < last:
                raise SensorFault("nvml: the energy counter was set back, as when the driver is loaded anew")
            else:
                self._energy_j += (value - last) * _MILLI
        self._last = now_s, value

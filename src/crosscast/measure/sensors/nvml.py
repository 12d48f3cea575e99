"""Energy of NVIDIA GPUs, from the driver's management library (NVML).

Cards since Volta count their energy. Older ones tell their power only, which is sampled and integrated.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

from crosscast.errors import EnvironmentFault, MissingExtraError, SensorFault
from crosscast.measure.sensors.sampler import Clock, Sampler
from crosscast.measure.sensors.sensor import Reading

__all__ = ["NvmlSensor", "gpus"]

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
    """Tell the UUIDs of the NVIDIA GPUs of this machine.

    Raises
    ------
    MissingExtraError
        If the Python package is not installed.
    EnvironmentFault
        If there is no driver, or it does not list its GPUs, with the reason.
    """
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

    Parameters
    ----------
    device
        PCI bus id (``0000:65:00.0``) or UUID (``GPU-...``) of the GPU.
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
        """End watching, and tell the energy.

        Raises
        ------
        SensorFault
            If the GPU went away, or its counter did not move.
        """
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
        """Read the energy in millijoules since the driver was loaded, or the power in milliwatts.

        Raises
        ------
        SensorFault
            If the GPU does not answer.
        """
        tell: Callable[[Any], int] = (
            self._nvml.nvmlDeviceGetTotalEnergyConsumption
            if self.counts_energy
            else self._nvml.nvmlDeviceGetPowerUsage
        )
        try:
            return tell(self._handle)
        except self._nvml.NVMLError as error:
            raise SensorFault(_sentence(error)) from error

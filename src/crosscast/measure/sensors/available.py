"""Which sensors a device has, and opening them by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crosscast.errors import EnvironmentFault, InputError, MissingExtraError
from crosscast.measure.sensors import rapl
from crosscast.measure.sensors.null import NullSensor
from crosscast.measure.sensors.nvml import NvmlSensor
from crosscast.measure.sensors.rapl import RaplSensor
from crosscast.measure.sensors.replay import ReplaySensor
from crosscast.measure.sensors.sensor import Sensor

__all__ = ["Availability", "open_sensor", "sensors"]

_REPLAY = "replay:"

_OF_TYPE = {"cpu": ("rapl",), "gpu": ("nvml",)}
"""Names of the sensors that a type of device may have."""


@dataclass(frozen=True)
class Availability:
    """A sensor that a device may have.

    Parameters
    ----------
    name
        Name of the sensor.
    works
        It can be read here and now.
    reason
        Why it cannot, as a sentence; none if it can.
    """

    name: str
    works: bool
    reason: str | None


def sensors(device_type: str, pci_bus_id: str | None = None, root: Path = rapl.ROOT) -> list[Availability]:
    """Tell which sensors a device may have, and whether they work.

    Parameters
    ----------
    device_type
        ``cpu``, ``gpu`` or ``accelerator``.
    pci_bus_id
        PCI bus id or UUID of a GPU.
    root
        Folder of the powercap zones.
    """
    return [_availability(name, pci_bus_id, root) for name in _OF_TYPE.get(device_type, ())]


def open_sensor(spec: str, device_type: str, pci_bus_id: str | None = None, root: Path = rapl.ROOT) -> Sensor:
    """Open a sensor by name.

    Parameters
    ----------
    spec
        ``rapl``, ``nvml``, ``replay:PATH`` or ``none``; ``auto`` is the first that works of those that
        the device may have, else none.
    device_type
        ``cpu``, ``gpu`` or ``accelerator``.
    pci_bus_id
        PCI bus id or UUID of a GPU.
    root
        Folder of the powercap zones.

    Raises
    ------
    InputError
        If there is no sensor of that name, or the recording is not one.
    MissingExtraError
        If the sensor needs a Python package that is not installed.
    EnvironmentFault
        If the sensor does not work here, with the reason.
    """
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

"""What this machine can measure: its devices, their descriptors, sensors and counters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from crosscast.measure import counters
from crosscast.measure.opencl.describe import static_facts
from crosscast.measure.opencl.devices import OpenCLDevice, devices
from crosscast.measure.sensors.available import Availability, sensors

__all__ = ["Entry", "inventory"]


@dataclass(frozen=True)
class Entry:
    """A device and what can be measured on it.

    Parameters
    ----------
    device
        The device.
    facts
        What its driver says, by the columns of the table of devices; ``None`` where it does not.
    sensors
        Sensors of energy that a device of this type may have.
    counters
        For each counter of the CPU, why it does not work; ``None`` if it does. Empty for other devices.
    """

    device: OpenCLDevice
    facts: dict[str, Any]
    sensors: tuple[Availability, ...]
    counters: dict[str, str | None]

    def to_dict(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        device = self.device
        given = {"id": device.id, "name": device.name, "type": device.type}
        return {
            **given,
            "compute_units": device.compute_units,
            "sensors": [asdict(sensor) for sensor in self.sensors],
            "counters": [
                {"name": name, "works": reason is None, "reason": reason}
                for name, reason in self.counters.items()
            ],
            **{name: value for name, value in self.facts.items() if name not in given},
        }


def inventory() -> list[Entry]:
    """The devices of this machine.

    Raises
    ------
    MissingExtraError
        If pyopencl is not installed.
    EnvironmentFault
        If there is no OpenCL platform.
    """
    counting = counters.available()
    return [
        Entry(
            device,
            static_facts(device),
            tuple(sensors(device.type, device.pci_bus_id)),
            counting if device.type == "cpu" else {},
        )
        for device in devices()
    ]

"""Inventory of this machine: devices with their properties, sensors and counters."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from crosscast.data.fields import TableRow
from crosscast.errors import EnvironmentFault, InputError, MissingExtraError
from crosscast.measure import cpu_counters as counters
from crosscast.measure import host_state
from crosscast.measure.microbenchmarks.backends import OpenCLBackend
from crosscast.measure.microbenchmarks.bench import sheet_numbers
from crosscast.measure.microbenchmarks.cuda import CudaDevice
from crosscast.measure.microbenchmarks.cuda import devices as cuda_devices
from crosscast.measure.sensors import SensorAvailability, sensors
from crosscast.suite.application import Caches

if TYPE_CHECKING:  # it needs PyOpenCL
    from crosscast.measure.opencl import OpenCLDevice

_HZ_PER_MHZ = 1e6


def describe(device: OpenCLDevice) -> TableRow:
    """Measure the row of the table of devices, in this process."""
    row = known_row(device)
    measured = sheet_numbers(OpenCLBackend(device))
    sources = json.loads(row.text("sources")) | dict.fromkeys(measured, "measured: microbenchmarks")
    return TableRow({**row, **measured, "sources": json.dumps(sources)})


def known_row(device: OpenCLDevice) -> TableRow:
    """Return the row of the table of devices without measured columns."""
    from crosscast.measure.opencl import opencl_faults

    with opencl_faults(device.id, "describing it"):
        facts = static_facts(device)
    sources = {name: "OpenCL driver" for name, value in facts.items() if isinstance(value, int | float)}
    sources |= dict.fromkeys(_host_caches(device), "operating system")
    return TableRow({**facts, "sources": json.dumps(sources)})


def static_facts(device: OpenCLDevice) -> TableRow:
    """Return the properties of a device by its driver and the operating system; ``None`` where unknown."""
    handle = device.handle
    facts = {
        "device": device.key,
        "name": device.name,
        "vendor": str(handle.vendor),
        "type": device.type,
        "compute_units": device.compute_units,
        "clock_hz": handle.max_clock_frequency * _HZ_PER_MHZ or None,
        "memory_bytes": int(handle.global_mem_size),
        "local_memory_bytes": int(handle.local_mem_size),
        "l2_bytes": int(handle.global_mem_cache_size) or None,
        "timer_resolution_s": device.timer_resolution_s,
        "max_work_group_size": int(handle.max_work_group_size),
        "platform": device.platform,
        "driver": device.driver,
        **_host_caches(device),
    }
    return TableRow(facts)


def caches_of(device: OpenCLDevice) -> Caches:
    """Return the caches for problem sizes.

    A GPU has two relevant levels: the local memory of a compute unit, and the shared cache, which stands
    for the last two.
    """
    facts = static_facts(device)
    l1, l2, l3 = map(facts.integer_or_none, ("l1_bytes", "l2_bytes", "l3_bytes"))
    if device.type == "gpu":
        l1, l3 = l1 or facts.integer("local_memory_bytes"), l3 or l2
    if not (l1 and l2 and l3):
        raise InputError(
            f"{device.id}: expected a device that tells its cache sizes, found one that does not"
        )
    return Caches(l1, l2, l3)


def _host_caches(device: OpenCLDevice) -> dict[str, int | None]:
    """Return the caches of a CPU, of which OpenCL shows only the last."""
    return host_state.caches()._asdict() if device.type == "cpu" else {}


@dataclass(frozen=True)
class Entry:
    """A device with its sensors and counters."""

    device: OpenCLDevice | CudaDevice
    # Properties from its driver, by column of the table of devices; `None` where unknown
    facts: TableRow
    sensors: tuple[SensorAvailability, ...]  # Sensors of energy that a device of this type may have
    # Reason why each counter of the CPU does not work; `None` if it does. Empty for other devices
    counters: dict[str, str | None]

    def to_dict(self) -> dict[str, object]:
        """Return the object that ``--json`` prints."""
        device = self.device
        identity = {"id": device.id, "name": device.name, "type": device.type}
        return {
            **identity,
            "compute_units": device.compute_units,
            "sensors": [asdict(sensor) for sensor in self.sensors],
            "counters": [
                {"name": name, "works": reason is None, "reason": reason}
                for name, reason in self.counters.items()
            ],
            **{name: value for name, value in self.facts.items() if name not in identity},
        }


def inventory() -> list[Entry]:
    """Return the devices of this machine: those of OpenCL, and others of CUDA."""
    cards: list[CudaDevice] = []
    with suppress(MissingExtraError, EnvironmentFault):
        cards = cuda_devices()
    by_opencl: list[OpenCLDevice] = []
    try:
        from crosscast.measure.opencl import devices

        by_opencl = devices()
    except (MissingExtraError, EnvironmentFault):
        if not cards:
            raise
    counting = counters.available()
    listed = {device.pci_bus_id for device in by_opencl}
    found: list[OpenCLDevice | CudaDevice] = [*by_opencl]
    found += [card for card in cards if card.pci_bus_id not in listed]
    return [
        Entry(
            device,
            device.facts if isinstance(device, CudaDevice) else static_facts(device),
            tuple(sensors(device.type, device.pci_bus_id)),
            counting if device.type == "cpu" else {},
        )
        for device in found
    ]

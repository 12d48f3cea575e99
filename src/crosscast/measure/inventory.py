"""What this machine can measure: its devices, their descriptors, sensors and counters."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crosscast.data.library import pc
from crosscast.data.table import Table
from crosscast.data.views import cells_of
from crosscast.measure import cpu_counters as counters
from crosscast.measure.opencl import OpenCLDevice, devices, static_facts
from crosscast.measure.sensors import Availability, sensors


@dataclass(frozen=True)
class Entry:
    """A device and what can be measured on it."""

    device: OpenCLDevice  # The device
    # What its driver says, by the columns of the table of devices; `None` where it does not
    facts: dict[str, Any]
    sensors: tuple[Availability, ...]  # Sensors of energy that a device of this type may have
    # For each counter of the CPU, why it does not work; `None` if it does. Empty for other devices
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
    """The devices of this machine."""
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


@dataclass(frozen=True)
class KernelSummary:
    """What the runs of a kernel took."""

    kernel: str  # Name of the kernel
    runs: int  # Runs that were recorded
    invocations: int  # Invocations of all runs together
    median_s: float  # Over the runs, of the mean time of an invocation in a run, in seconds
    mean_s: float
    min_s: float
    max_s: float
    sd_s: float | None  # Its standard deviation; `None` for a single run

    @property
    def spread(self) -> float | None:
        """Standard deviation over mean; ``None`` if it is not defined."""
        return None if self.sd_s is None or self.mean_s == 0 else self.sd_s / self.mean_s

    def to_dict(self) -> dict[str, Any]:
        """Its fields, for JSON."""
        return asdict(self)


def summaries(records: Table) -> list[KernelSummary]:
    """Summarize the records of one application on one device, kernel by kernel."""
    cells = cells_of(records)
    times, counts = cells.times, cells.times.counts
    invocations = np.bincount(cells.numbers, weights=pc.list_value_length(records.column("time_s")))
    return [
        KernelSummary(
            kernel,
            runs=int(counts[cell]),
            invocations=int(invocations[cell]),
            median_s=float(times.quantile(0.5)[cell]),
            mean_s=float(times.mean()[cell]),
            min_s=float(times.least()[cell]),
            max_s=float(times.most()[cell]),
            sd_s=float(times.sd()[cell]) if counts[cell] > 1 else None,
        )
        for cell, kernel in enumerate(cells.keys.column("kernel").to_pylist())
    ]

"""A device: its key in the tables, and the descriptors that predictors use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SPEED_NUMBERS = (
    *("peak_flop_per_s", "clock_hz", "bandwidth_bytes_per_s", "compute_units", "cores"),
    *("l1_bytes", "l2_bytes", "tdp_w"),
)
"""Columns of the table of devices that may explain how fast a device is.

Sizes of memory limit which problems fit, not speed; only CPUs have lowest clocks, turbo clocks and third
caches.
"""


@dataclass(frozen=True)
class Device:
    """A device on which kernels run.

    Parameters
    ----------
    key
        Its key in all tables.
    name
        Its name for people.
    vendor, type, series
        Its vendor; ``cpu``, ``gpu`` or ``accelerator``; its architecture. Empty where not known.
    numbers
        Numeric descriptors, by the columns of the table of devices and in their units; unknown ones are
        absent.
    measured
        Measured rates, by the names and in the units of `crosscast.devices.device_files.QUANTITIES`.
    """

    key: str
    name: str = ""
    vendor: str = ""
    type: str = ""
    series: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash(self.key)  # Mappings have none

    @property
    def kind(self) -> Literal["gpu", "cpu"]:
        """``gpu``, or ``cpu`` for any other: devices whose rates on paper err alike."""
        return "gpu" if self.type == "gpu" else "cpu"

"""A device, by its key in the tables and what describes it to a predictor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SPEED_NUMBERS", "Device"]

SPEED_NUMBERS = (
    *("peak_flop_per_s", "clock_hz", "bandwidth_bytes_per_s", "compute_units", "cores"),
    *("l1_bytes", "l2_bytes", "tdp_w"),
)
"""Columns of the table of devices that may set how fast a device is.

Sizes of memory set what fits, not how fast it is; lowest clocks, turbo clocks and third caches are of CPUs
alone.
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
        Who makes it; ``cpu``, ``gpu`` or ``accelerator``; its architecture. Empty where not known.
    numbers
        Descriptors that are numbers, by the columns of the table of devices and in their units; what is
        not known is not there.
    measured
        What was measured on it, by the names and in the units of `crosscast.devices.measured.QUANTITIES`.
    """

    key: str
    name: str = ""
    vendor: str = ""
    type: str = ""
    series: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)

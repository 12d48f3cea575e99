"""What to expect of a device that was not measured: what its siblings reach of their data sheets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from statistics import median

from crosscast.device import Device
from crosscast.devices.catalogue import catalogue, device_named

FACTS = ("read", "fp32", "int32", "launch_s")
"""What devices reach of their data sheets.

- read: bandwidth of reading main memory, over the sheet's.
- fp32: rate of multiply-adds in single precision, over the sheet's peak.
- int32: rate of multiply-adds of integers of 32 bits, over the sheet's peak in single precision.
- launch_s: seconds from the call of a launch to its start.
"""

_SOURCES = {
    "read": ("read_bytes_per_s", "bandwidth_bytes_per_s"),
    "fp32": ("fp32_flop_per_s", "peak_flop_per_s"),
    "int32": ("int32_op_per_s", "peak_flop_per_s"),
    "launch_s": ("launch_s", None),
}
_LEVELS = ("architecture", "vendor", "type")
_OF_ONE = 0.25
"""Deviation of a logarithm that is known of one sibling alone."""


@dataclass(frozen=True)
class Expected:
    """A value that is expected of a device."""

    value: float
    deviation: float  # Of its logarithm; 0 where it was measured on the device itself
    of: str  # "device", or whose siblings it is the median of: their "architecture", "vendor" or "type"
    count: int  # Of how many devices


def reached(device: Device) -> Mapping[str, float]:
    """What of the facts was measured on a device itself."""
    found = {}
    for fact, (quantity, column) in _SOURCES.items():
        value = device.measured.get(quantity)
        on_paper = device.numbers.get(column, 0.0) if column else 1.0
        if value and on_paper:
            found[fact] = value / on_paper
    return found


def expected(device: Device, fact: str) -> Expected | None:
    """A fact as measured on a device, or the median of its nearest siblings; ``None`` if of none is known."""
    own = reached(device).get(fact)
    if own is not None:
        return Expected(own, 0.0, "device", 1)
    kind = "gpu" if device.type == "gpu" else "cpu"
    for level, of in zip(_LEVELS, _groups(kind, device.vendor, device.series), strict=True):
        values = _facts().get((of, fact), {})
        logs = [math.log(value) for key, value in values.items() if key != device.key]
        if logs:
            centre = median(logs)
            spread = math.sqrt(sum((each - centre) ** 2 for each in logs) / len(logs))
            return Expected(math.exp(centre), max(spread, _OF_ONE / len(logs)), level, len(logs))
    return None


def _groups(kind: str, vendor: str, series: str) -> Iterator[str]:
    yield f"{kind} {vendor} {series}"
    yield f"{kind} {vendor}"
    yield kind


@cache
def _facts() -> Mapping[tuple[str, str], Mapping[str, float]]:
    """Facts of the catalogue's devices, by whose siblings they are and fact, by device."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for device in map(device_named, catalogue()):
        kind = "gpu" if device.type == "gpu" else "cpu"
        for fact, value in reached(device).items():
            for of in _groups(kind, device.vendor, device.series):
                found.setdefault((of, fact), {})[device.key] = value
    return found

"""What to expect of a device that was not measured: what its siblings reach of their data sheets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    return Expected(own, 0.0, "device", 1) if own is not None else _of_siblings(device, _facts()[fact])


def _of_siblings(device: Device, values: Mapping[str, Mapping[str, float]]) -> Expected | None:
    """The median of values by whose they are and device, of the nearest siblings that have any."""
    for level, of in zip(_LEVELS, _groups(device), strict=True):
        logs = [math.log(value) for key, value in values.get(of, {}).items() if key != device.key]
        if logs:
            centre = median(logs)
            spread = math.sqrt(sum((each - centre) ** 2 for each in logs) / len(logs))
            return Expected(math.exp(centre), max(spread, _OF_ONE / len(logs)), level, len(logs))
    return None


def _groups(device: Device) -> Iterator[str]:
    kind = "gpu" if device.type == "gpu" else "cpu"
    yield f"{kind} {device.vendor} {device.series}"
    yield f"{kind} {device.vendor}"
    yield kind


@cache
def _facts() -> Mapping[str, Mapping[str, Mapping[str, float]]]:
    """Facts of the catalogue's devices, by fact, whose siblings they are, and device."""
    found: dict[str, dict[str, dict[str, float]]] = {fact: {} for fact in FACTS}
    for device in map(device_named, catalogue()):
        for fact, value in reached(device).items():
            for of in _groups(device):
                found[fact].setdefault(of, {})[device.key] = value
    return found


_SCALES: Mapping[str, Sequence[tuple[str, ...]]] = {
    "clock_hz": [()],
    "compute_units": [("cores",), ("peak_flop_per_s",), ()],
    "cores": [("compute_units",)],
    "peak_flop_per_s": [("cores", "clock_hz"), ("compute_units", "clock_hz")],
    "bandwidth_bytes_per_s": [("peak_flop_per_s",)],
    "l1_bytes": [()],
    "l2_bytes": [("compute_units",)],
}
"""What numbers of a data sheet go with, the best first: siblings have about as much of one for the other."""

_MEASURED_FOR = {"bandwidth_bytes_per_s": "read", "peak_flop_per_s": "fp32"}
"""Numbers that follow from what was measured, of which siblings reach a share."""


@dataclass(frozen=True)
class Filled:
    """A device with numbers of its siblings where its own data sheet has none."""

    device: Device
    taken: Mapping[str, Expected]  # By column of the table of devices


def filled(device: Device) -> Filled:
    """Take what a data sheet lacks from siblings: of its architecture, else its vendor, else its type."""
    numbers = {name: value for name, value in device.numbers.items() if value}
    taken: dict[str, Expected] = {}
    for name, scales in _SCALES.items():
        if name in numbers:
            continue
        expectation = by_measurement(device, name) or _by_scale(device, name, scales, numbers)
        if expectation is not None:
            numbers[name], taken[name] = expectation.value, expectation
    return Filled(replace(device, numbers=numbers) if taken else device, taken)


def by_measurement(device: Device, name: str) -> Expected | None:
    """A number of a data sheet by what was measured on a device, of which siblings reach a share of it."""
    fact = _MEASURED_FOR.get(name)
    value = device.measured.get(_SOURCES[fact][0]) if fact else None
    share = expected(device, fact) if fact else None
    return replace(share, value=value / share.value) if value and share else None


def _by_scale(
    device: Device, name: str, scales: Sequence[tuple[str, ...]], numbers: Mapping[str, float]
) -> Expected | None:
    for scale in scales:
        if all(column in numbers for column in scale):
            ratio = _of_siblings(device, _ratios(name, scale))
            if ratio is not None:
                return replace(ratio, value=ratio.value * math.prod(numbers[column] for column in scale))
    return None


@cache
def _ratios(name: str, scale: tuple[str, ...]) -> Mapping[str, Mapping[str, float]]:
    """A number of the catalogue's devices over others, by whose siblings they are, and device."""
    found: dict[str, dict[str, float]] = {}
    for device in map(device_named, catalogue()):
        if all(device.numbers.get(column) for column in (name, *scale)):
            ratio = device.numbers[name] / math.prod(device.numbers[column] for column in scale)
            for of in _groups(device):
                found.setdefault(of, {})[device.key] = ratio
    return found

"""Expectations for devices without measurements: the shares of data sheets that siblings reach."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

from crosscast.device import Device
from crosscast.devices.catalogue import catalogue, device_named

FACTS = ("read", "fp32", "int32", "launch_s")
"""Measured facts of devices, relative to data sheets.

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
_WORTH = 3.0
"""Weight of the usual spread among siblings, in siblings."""


@dataclass(frozen=True)
class Expected:
    """An expected value of a device."""

    value: float
    deviation: float  # Standard deviation of its logarithm; 0 if it was measured on the device itself
    of: str  # "device", or the level of the siblings: "architecture", "vendor" or "type"
    count: int  # Number of these devices


def reached(device: Device) -> Mapping[str, float]:
    """Return the facts that were measured on a device itself."""
    shares = {}
    for fact, (quantity, column) in _SOURCES.items():
        value = device.measured.get(quantity)
        on_paper = device.numbers.get(column, 0.0) if column else 1.0
        if value and on_paper:
            shares[fact] = value / on_paper
    return shares


def expected(device: Device, fact: str) -> Expected | None:
    """Return a fact as measured on a device, or the median of its nearest siblings, if any is known."""
    measured = reached(device).get(fact)
    return Expected(measured, 0.0, "device", 1) if measured is not None else _facts()[fact].expect(device)


class _Known:
    """A value of several devices, for the expectation of another from its siblings."""

    def __init__(self, values: Iterable[tuple[Device, float]]) -> None:
        # Logarithms by level and group, and device.
        self._logs: dict[tuple[str, str], dict[str, float]] = {}
        for device, value in values:
            for group in _groups(device):
                self._logs.setdefault(group, {})[device.key] = math.log(value)
        squares: dict[str, list[float]] = {}
        for (level, _), logs in self._logs.items():
            for key, log in logs.items():
                if others := [each for other, each in logs.items() if other != key]:
                    squares.setdefault(level, []).append((log - median(others)) ** 2)
        # Mean squared deviations from the median of the other siblings.
        self._usual = {level: sum(each) / len(each) for level, each in squares.items()}

    def expect(self, device: Device) -> Expected | None:
        """Return the median of the nearest known siblings; ``None`` if none is known.

        Few siblings may agree by chance, so their variance is shrunk towards the usual one of their level,
        and increased by the variance of the median.
        """
        for level, group in _groups(device):
            logs = [each for key, each in self._logs.get((level, group), {}).items() if key != device.key]
            if logs:
                centre, count = median(logs), len(logs)
                squares = sum((each - centre) ** 2 for each in logs)
                variance = (squares + _WORTH * self._usual.get(level, 0.0)) / (count + _WORTH)
                return Expected(math.exp(centre), math.sqrt(variance * (1 + 1 / count)), level, count)
        return None


def _groups(device: Device) -> Iterator[tuple[str, str]]:
    """Return the levels and groups of a device's siblings, the nearest first."""
    kind = "gpu" if device.type == "gpu" else "cpu"
    names = (f"{kind} {device.vendor} {device.series}", f"{kind} {device.vendor}", kind)
    return zip(_LEVELS, names, strict=True)


@cache
def _facts() -> Mapping[str, _Known]:
    """Return the facts of the catalogue's devices."""
    devices = [device_named(key) for key in catalogue()]
    return {
        fact: _Known((device, facts[fact]) for device in devices if fact in (facts := reached(device)))
        for fact in FACTS
    }


_SCALES: Mapping[str, Sequence[tuple[str, ...]]] = {
    "clock_hz": [()],
    "compute_units": [("cores",), ("peak_flop_per_s",), ()],
    "cores": [("compute_units",)],
    "peak_flop_per_s": [("cores", "clock_hz"), ("compute_units", "clock_hz")],
    "bandwidth_bytes_per_s": [("peak_flop_per_s",)],
    "l1_bytes": [()],
    "l2_bytes": [("compute_units",)],
}
"""Columns to which a number of a data sheet is about proportional among siblings, the best first."""

_MEASURED_FOR = {"bandwidth_bytes_per_s": "read", "peak_flop_per_s": "fp32"}
"""Numbers that follow from measurements, by the share that siblings reach."""


@dataclass(frozen=True)
class Filled:
    """A device with numbers of its siblings for those missing from its data sheet."""

    device: Device
    taken: Mapping[str, Expected]  # By column of the table of devices


def filled(device: Device) -> Filled:
    """Fill a data sheet with numbers of siblings: of its architecture, else its vendor, else its type."""
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
    """Estimate a number of a data sheet by a measurement on the device and the share that siblings reach."""
    fact = _MEASURED_FOR.get(name)
    value = device.measured.get(_SOURCES[fact][0]) if fact else None
    share = expected(device, fact) if fact else None
    return replace(share, value=value / share.value) if value and share else None


def _by_scale(
    device: Device, name: str, scales: Sequence[tuple[str, ...]], numbers: Mapping[str, float]
) -> Expected | None:
    for scale in scales:
        if all(column in numbers for column in scale):
            ratio = _ratios(name, scale).expect(device)
            if ratio is not None:
                return replace(ratio, value=ratio.value * math.prod(numbers[column] for column in scale))
    return None


@cache
def _ratios(name: str, scale: tuple[str, ...]) -> _Known:
    """Return the ratios of a number of the catalogue's devices to the product of others."""
    devices = [device_named(key) for key in catalogue()]
    return _Known(
        (device, device.numbers[name] / math.prod(device.numbers[column] for column in scale))
        for device in devices
        if all(device.numbers.get(column) for column in (name, *scale))
    )

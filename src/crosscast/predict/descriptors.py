"""What tells devices apart without a measurement: their kind, and logarithms of what their makers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.state import kept_names, kept_reals

__all__ = ["NUMBERS", "Descriptors", "Pairs"]

NUMBERS = (
    "peak_flop_per_s",
    "clock_hz",
    "bandwidth_bytes_per_s",
    "compute_units",
    "cores",
    "l1_bytes",
    "l2_bytes",
    "tdp_w",
)
"""Columns of the table of devices that may set how fast a device is.

All count alike: a choice or weights would have to be learned from the few devices that there are. Sizes of
memory set what fits, not how fast it is; lowest clocks, turbo clocks and third caches are of CPUs alone.
"""

_TREND = NUMBERS[:2]
_LEAST_SCALE = 0.1


@dataclass(frozen=True)
class Pairs:
    """How alike devices are, two by two.

    Parameters
    ----------
    types, vendors, series
        Ones where both are of the same type, vendor or series, of shape ``(d, d)``; of a series are those of
        one name, type and vendor.
    gpus
        Ones where both are GPUs, or neither is.
    squares
        Mean square of how many standard deviations their numbers lie apart.
    products
        Mean product of how many standard deviations their numbers lie from the mean.
    trend
        Logarithm of the time of an instruction, as clock and peak rate let expect it, of shape ``(d,)``.
    """

    types: Reals
    vendors: Reals
    series: Reals
    gpus: Reals
    squares: Reals
    products: Reals
    trend: Reals

    def __len__(self) -> int:
        """Number of devices."""
        return len(self.trend)

    def take(self, devices: Sequence[int]) -> Pairs:
        """Those of some of the devices, by their numbers."""
        places = np.array(devices, dtype=np.int64)
        both = np.ix_(places, places)
        return Pairs(
            self.types[both],
            self.vendors[both],
            self.series[both],
            self.gpus[both],
            self.squares[both],
            self.products[both],
            self.trend[places],
        )


@dataclass(frozen=True)
class Descriptors:
    """Descriptors of ``d`` devices.

    Parameters
    ----------
    types, vendors, series
        Texts, of length ``d``; empty where not known.
    names
        Those of `NUMBERS` that at least one of the devices has.
    logs
        Their logarithms, of shape ``(d, len(names))``. Where a device lacks a number, the mean over the
        devices of its type and vendor that have it, or else of its type, or else of all.
    """

    types: tuple[str, ...]
    vendors: tuple[str, ...]
    series: tuple[str, ...]
    names: tuple[str, ...]
    logs: Reals

    @classmethod
    def of(cls, devices: Sequence[Device]) -> Descriptors:
        """Collect those of some devices."""
        names = tuple(name for name in NUMBERS if any(_number(device, name) for device in devices))
        found = np.array([[_log(device, name) for name in names] for device in devices])
        types, vendors, series = _texts(devices)
        logs = found.reshape(len(devices), len(names))
        return cls(types, vendors, series, names, _filled(logs, types, vendors))

    def joined(self, device: Device) -> Descriptors:
        """The same with a further device, the last.

        Raises
        ------
        InputError
            If nothing is known of the device.
        """
        numbers = np.array([_log(device, name) for name in self.names])
        if not (device.type or device.vendor or device.series or np.isfinite(numbers).any()):
            raise InputError(f"device {device.key}: expected a type, vendor, series or number, found none")
        (kind,), (vendor,), (series,) = _texts([device])
        types, vendors = (*self.types, kind), (*self.vendors, vendor)
        logs = _filled(np.vstack([self.logs, numbers]), types, vendors)
        return Descriptors(types, vendors, (*self.series, series), self.names, logs)

    def pairs(self, known: int) -> Pairs:
        """How alike they are, in standard deviations of the first `known` of them."""
        scale = np.maximum(self.logs[:known].std(axis=0), _LEAST_SCALE)
        scaled = (self.logs - self.logs[:known].mean(axis=0)) / scale
        count = max(len(self.names), 1)
        types, vendors, series = _equal(self.types), _equal(self.vendors), _equal(self.series)
        return Pairs(
            types,
            vendors,
            types * vendors * series,
            _equal(["gpu" if kind == "gpu" else "other" for kind in self.types]),
            ((scaled[:, None] - scaled) ** 2).sum(axis=2) / count,
            scaled @ scaled.T / count,
            self._trend(),
        )

    def _trend(self) -> Reals:
        columns = [place for place, name in enumerate(self.names) if name in _TREND]
        trend: Reals = -self.logs[:, columns].sum(axis=1) / max(len(columns), 1)
        return trend

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes them again."""
        return {
            "device_types": np.array(self.types, dtype=np.str_),
            "device_vendors": np.array(self.vendors, dtype=np.str_),
            "device_series": np.array(self.series, dtype=np.str_),
            "device_numbers": np.array(self.names, dtype=np.str_),
            "device_logs": self.logs,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> Descriptors:
        """Make them from their arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged, or a number is not known.
        """
        texts = [kept_names(state, f"device_{name}") for name in ("types", "vendors", "series", "numbers")]
        types, vendors, series, names = texts
        logs = kept_reals(state, "device_logs", 2)
        unknown = sorted(set(names) - set(NUMBERS))
        if unknown:
            raise InputError(
                f"model: device_numbers: expected some of {', '.join(NUMBERS)}, found {', '.join(unknown)}"
            )
        if not (len(types) == len(vendors) == len(series) and logs.shape == (len(types), len(names))):
            raise InputError(
                f"model: device_logs: expected shape ({len(types)}, {len(names)}), found {logs.shape}"
            )
        return cls(types, vendors, series, names, logs)


def _texts(devices: Sequence[Device]) -> tuple[tuple[str, ...], ...]:
    return (
        tuple(device.type for device in devices),
        tuple(device.vendor for device in devices),
        tuple(device.series for device in devices),
    )


def _number(device: Device, name: str) -> float | None:
    value = device.numbers.get(name)
    return value if value is not None and 0 < value < np.inf else None


def _log(device: Device, name: str) -> float:
    value = _number(device, name)
    return float("nan") if value is None else float(np.log(value))


def _filled(logs: Reals, types: Sequence[str], vendors: Sequence[str]) -> Reals:
    """Numbers that are not known, by the means over the devices that are most alike and have them."""
    filled = logs.copy()
    alike = _equal(types)
    for row, column in np.argwhere(np.isnan(logs)):
        there = ~np.isnan(logs[:, column])
        nearer = [alike[row] * _equal(vendors)[row], alike[row], np.ones(len(logs))]
        chosen = next(flags for each in nearer if (flags := there & (each > 0)).any())
        filled[row, column] = logs[chosen, column].mean()
    return filled


def _equal(texts: Sequence[str]) -> Reals:
    """Ones where texts are the same; one that is not known is like itself alone."""
    array = np.array(texts, dtype=np.str_)
    equal: Flags = (array[:, None] == array) & (array != "") | np.eye(len(array), dtype=np.bool_)
    return equal.astype(np.float64)

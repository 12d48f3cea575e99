"""Quantities that are measured on devices, and bundled public results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

import msgspec


class MeasuredQuantity(NamedTuple):
    """A quantity that is measured on a device."""

    unit: str
    title: str
    sheet: str | None = None  # Column of the data sheet with its upper bound


QUANTITIES: Mapping[str, MeasuredQuantity] = {
    "read_bytes_per_s": MeasuredQuantity("B/s", "reading main memory", "bandwidth_bytes_per_s"),
    "write_bytes_per_s": MeasuredQuantity("B/s", "writing main memory", "bandwidth_bytes_per_s"),
    "copy_bytes_per_s": MeasuredQuantity(
        "B/s", "copying in main memory, read and written", "bandwidth_bytes_per_s"
    ),
    "scattered_bytes_per_s": MeasuredQuantity(
        "B/s", "words read from all over main memory", "bandwidth_bytes_per_s"
    ),
    "cache_bytes_per_s": MeasuredQuantity("B/s", "reading what fits the first cache"),
    "local_bytes_per_s": MeasuredQuantity("B/s", "reading local memory"),
    "fp16_flop_per_s": MeasuredQuantity("flop/s", "multiply-adds of half precision", "peak_fp16_flop_per_s"),
    "fp32_flop_per_s": MeasuredQuantity("flop/s", "multiply-adds of single precision", "peak_flop_per_s"),
    "chain_flop_per_s": MeasuredQuantity("flop/s", "one chain of multiply-adds in each work-item"),
    "fp64_flop_per_s": MeasuredQuantity(
        "flop/s", "multiply-adds of double precision", "peak_fp64_flop_per_s"
    ),
    "int32_op_per_s": MeasuredQuantity("op/s", "multiply-adds of integers of 32 bits"),
    "int32_add_op_per_s": MeasuredQuantity("op/s", "additions of integers of 32 bits"),
    "transcendental_op_per_s": MeasuredQuantity("op/s", "exponential functions of single precision"),
    "atomic_op_per_s": MeasuredQuantity("op/s", "atomic additions to words of different cache lines"),
    "launch_s": MeasuredQuantity("s", "from the call of a launch to its start", "launch_overhead_s"),
    "empty_s": MeasuredQuantity("s", "an empty kernel on the device, from its start to its end"),
    "round_trip_s": MeasuredQuantity(
        "s", "from the call of an empty launch to the host's knowing of its end"
    ),
    "group_s": MeasuredQuantity("s", "a work-group with nothing to do, on one compute unit"),
    "to_device_bytes_per_s": MeasuredQuantity("B/s", "copying from the host to the device"),
    "from_device_bytes_per_s": MeasuredQuantity("B/s", "copying from the device to the host"),
}
"""The measured quantities; a multiply-add is two operations."""


@dataclass(frozen=True)
class MeasuredValue:
    """A measured value."""

    value: float
    low: float | None  # Minimum and maximum of several results, or of a run's repetitions
    high: float | None
    statistic: str  # Statistic of the measurements, such as the median
    source: str

    def to_dict(self) -> dict[str, object]:
        """Return the value and its source, for JSON."""
        return vars(self)


@cache
def measured_devices() -> Mapping[str, Mapping[str, MeasuredValue]]:
    """Return the bundled measurements by key of the catalogue and quantity."""
    content = resources.files(__package__).joinpath("measured.json").read_bytes()
    table = msgspec.json.decode(content, type=_Measurements)
    return {
        key: {name: _measurement(name, entry, table) for name, entry in entries.items()}
        for key, entries in table.devices.items()
    }


class _Measurement(msgspec.Struct):
    value: int | float
    results: list[str]
    range: tuple[int | float | None, int | float | None] = (None, None)


class _Measurements(msgspec.Struct):
    source: str
    licence: str
    statistic: str
    launches: str
    devices: dict[str, dict[str, _Measurement]]


def _measurement(quantity: str, entry: _Measurement, table: _Measurements) -> MeasuredValue:
    results = entry.results
    several = f"median of {len(results)} results" if len(results) > 1 else "one result"
    return MeasuredValue(
        entry.value,
        *entry.range,
        f"{several}; {table.launches if quantity == 'launch_s' else table.statistic}",
        f"{table.source}, {table.licence}: {', '.join(f'results/{each}' for each in results)}",
    )

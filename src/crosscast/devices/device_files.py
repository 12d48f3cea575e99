"""Rates that were measured on devices, and files of devices with data sheets and measurements."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import msgspec

from crosscast.data.fields import Fields
from crosscast.data.files import atomic_file, data_home, read_text
from crosscast.data.schema import DEVICES
from crosscast.device import SPEED_NUMBERS, Device
from crosscast.errors import InputError


class MeasuredQuantity(NamedTuple):
    """A quantity that is measured on a device."""

    unit: str
    title: str
    sheet: str | None = None  # Column of the data sheet with its upper bound


_BANDWIDTH = "bandwidth_bytes_per_s"
QUANTITIES: Mapping[str, MeasuredQuantity] = {
    name: MeasuredQuantity(*row)
    for name, *row in (
        ("read_bytes_per_s", "B/s", "reading main memory", _BANDWIDTH),
        ("write_bytes_per_s", "B/s", "writing main memory", _BANDWIDTH),
        ("copy_bytes_per_s", "B/s", "copying in main memory, read and written", _BANDWIDTH),
        ("scattered_bytes_per_s", "B/s", "words read from all over main memory", _BANDWIDTH),
        ("cache_bytes_per_s", "B/s", "reading what fits the first cache"),
        ("own_cache_bytes_per_s", "B/s", "reading what fits the second caches of the cores"),
        ("last_cache_bytes_per_s", "B/s", "reading what fits the last cache"),
        ("local_bytes_per_s", "B/s", "reading local memory"),
        ("fp16_flop_per_s", "flop/s", "multiply-adds of half precision", "peak_fp16_flop_per_s"),
        ("fp32_flop_per_s", "flop/s", "multiply-adds of single precision", "peak_flop_per_s"),
        ("chain_flop_per_s", "flop/s", "one chain of multiply-adds in each work-item"),
        ("guarded_flop_per_s", "flop/s", "multiply-adds in straight code behind a condition"),
        ("guarded_item_s", "s", "a work-item with one of these behind a condition, on one compute unit"),
        ("barrier_flop_per_s", "flop/s", "multiply-adds in straight code behind a barrier"),
        ("fp64_flop_per_s", "flop/s", "multiply-adds of double precision", "peak_fp64_flop_per_s"),
        ("int32_op_per_s", "op/s", "multiply-adds of integers of 32 bits"),
        ("int32_add_op_per_s", "op/s", "additions and logic of integers of 32 bits"),
        ("int32_div_op_per_s", "op/s", "divisions of integers of 32 bits by variables"),
        ("int64_div_op_per_s", "op/s", "divisions of integers of 64 bits by variables"),
        ("transcendental_op_per_s", "op/s", "exponential functions of single precision"),
        ("atomic_op_per_s", "op/s", "atomic additions to words of different cache lines"),
        ("launch_s", "s", "from the call of a launch to its start", "launch_overhead_s"),
        ("empty_s", "s", "an empty kernel on the device after another, from its start to its end"),
        ("round_trip_s", "s", "from the call of an empty launch to the host's knowing of its end"),
        ("group_s", "s", "a work-group with nothing to do, on one compute unit"),
        ("to_device_bytes_per_s", "B/s", "copying from the host to the device"),
        ("from_device_bytes_per_s", "B/s", "copying from the device to the host"),
    )
}
"""The measured quantities; a multiply-add is two operations."""

GUARDED_FLOP, GUARDED_ITEMS = 32, 64
"""Operations of a work-item in straight code, a chain of multiply-adds; work-items of its groups."""


@dataclass(frozen=True)
class MeasuredValue:
    """A measured value."""

    value: float
    low: float | None  # Minimum and maximum of several results
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
    return {
        key: {name: _measurement(name, entry, table) for name, entry in entries.items()}
        for table in msgspec.json.decode(content, type=list[_Measurements])
        for key, entries in table.devices.items()
    }


class _Measurement(msgspec.Struct):
    value: int | float
    results: list[str]
    range: tuple[int | float | None, int | float | None] = (None, None)


class _Measurements(msgspec.Struct):
    """Measurements of a program; no other has measured its devices."""

    source: str
    licence: str
    statistic: str
    devices: dict[str, dict[str, _Measurement]]
    launches: str = ""
    folder: str = ""  # Of the results


def _measurement(quantity: str, entry: _Measurement, table: _Measurements) -> MeasuredValue:
    results = entry.results
    several = f"median of {len(results)} results" if len(results) > 1 else "one result"
    return MeasuredValue(
        entry.value,
        *entry.range,
        f"{several}; {table.launches if quantity == 'launch_s' else table.statistic}",
        f"{table.source}, {table.licence}: {', '.join(f'{table.folder}{each}' for each in results)}",
    )


TYPES = ("cpu", "gpu", "accelerator")
LEAST_NUMBERS = 5
"""Least known numbers on the speed of a device: fewer fit too many devices."""

NUMBERS = {column.name: column for column in DEVICES.columns if column.type in ("integer", "real")}
_TEXTS = ("name", "vendor", "series")
_MOST_BYTES = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")

_CLOCKS = (5e7, 2e10)
_GPU = {
    "compute_units": (1, 1e4),
    "cores": (8, 1e6),
    "clock_hz": _CLOCKS,
    "clock_min_hz": (1e7, 2e10),
    "clock_turbo_hz": _CLOCKS,
    "memory_bytes": (2.0**28, 2.0**44),
    "local_memory_bytes": (2.0**12, 2.0**24),
    "l1_bytes": (2.0**12, 2.0**24),
    "l2_bytes": (2.0**17, 2.0**33),
    "l3_bytes": (2.0**19, 2.0**36),
    "bandwidth_bytes_per_s": (4e9, 1e14),
    "peak_flop_per_s": (1e10, 1e16),
    "peak_fp64_flop_per_s": (1e9, 1e16),
    "peak_fp16_flop_per_s": (1e9, 1e17),
    "launch_overhead_s": (1e-8, 1e-1),
    "timer_resolution_s": (1e-11, 1e-1),
    "tdp_w": (1, 2e4),
}
_PLAUSIBLE = {
    "gpu": _GPU,
    "accelerator": _GPU,
    "cpu": {
        **_GPU,
        "compute_units": (1, 4096),
        "cores": (1, 4096),
        "bandwidth_bytes_per_s": (1e9, 1e13),
        "peak_flop_per_s": (1e9, 1e15),
        "peak_fp64_flop_per_s": (1e9, 1e15),
    },
}
"""Bounds of numbers by type of device, so wide that only numbers in another unit are outside."""
_MEASURED = {"B/s": (1e6, 1e15), "flop/s": (1e7, 1e18), "op/s": (1e5, 1e18), "s": (1e-9, 1.0)}
"""Bounds of measured values, by unit."""
_MEASURED_AT_ONCE = {"guarded_item_s": (1e-13, 1e-3)}
"""Bounds of times of what a compute unit does many of in a vector."""

_BINARY = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_OTHER_UNITS = {
    "Hz": {"GHz": 1e9, "MHz": 1e6, "kHz": 1e3},
    "B": _BINARY,
    "B/s": {"GB/s": 1e9, "TB/s": 1e12, "MB/s": 1e6},
    "flop/s": {"Tflop/s": 1e12, "Gflop/s": 1e9},
    "op/s": {"Top/s": 1e12, "Gop/s": 1e9},
    "s": {"µs": 1e-6, "ms": 1e-3, "ns": 1e-9},
    "W": {"mW": 1e-3, "kW": 1e3},
}
"""Units of likely mistakes, by the unit of the column; the likeliest first."""


def read_device(path: Path) -> Device:
    """Read the description of a device in TOML, whose numbers must be those of one (`check_sheet`).

    It has ``device`` (its key), ``type``, and optionally ``name``, ``vendor``, ``series``, the numbers of the
    table of devices in its units, and measurements by the names of `QUANTITIES` under ``measured``.
    """
    text = read_text(path, "description of a device", _MOST_BYTES)
    try:
        fields = Fields(tomllib.loads(text), str(path))
    except (ValueError, RecursionError) as error:
        raise InputError.of(where=path, expected=f"a description of a device in TOML ({error})") from error
    fields.require("device", "a key such as gtx1080")
    fields.require("type", f"one of {', '.join(TYPES)}")
    key, kind = fields.text("device"), fields.choice("type", TYPES, "")
    name, vendor, series = (fields.text(column) or "" for column in _TEXTS)
    numbers = {}
    for number, column in NUMBERS.items():
        value = fields.number(number)
        if value is not None:
            if value <= 0:
                raise fields.fail(number, f"a number above 0, the {column.title}, or no such line")
            if column.type == "integer" and not float(value).is_integer():
                raise fields.fail(number, f"a whole number, the {column.title}")
            numbers[number] = float(value)
    measured = _read_measured(fields.table("measured"))
    for table in ("how", "conditions", "working_sets"):
        fields.take(table)  # For people, and for the page.
    fields.finish()
    device = Device(str(key), name, vendor, kind, series, numbers, measured)
    check_sheet(device, str(path))
    return device


def check_sheet(device: Device, where: str) -> None:
    """Refuse a data sheet with numbers in other units, or with too few on the speed of a device."""
    for name, value in device.numbers.items():
        bounds = _PLAUSIBLE[device.type].get(name, (0.0, float("inf")))
        unit = NUMBERS[name].unit.replace("count", "")
        _expect_within(bounds, value, unit, f", as {device.type}s have", where=where, field=name)
    known = [*(name for name in SPEED_NUMBERS if name in device.numbers), *device.measured]
    if len(known) < LEAST_NUMBERS:
        raise InputError.of(
            where=where,
            expected=f"at least {LEAST_NUMBERS} of {', '.join(SPEED_NUMBERS)}",
            found=f"{len(known)} ({', '.join(known) or 'none'})",
        )


def _read_measured(fields: Fields | None) -> dict[str, float]:
    """Return measured values, each in the bounds of its unit."""
    values: dict[str, float] = {}
    if fields is None:
        return values
    for name, quantity in QUANTITIES.items():
        value = fields.number(name)
        if value is not None:
            bounds = _MEASURED_AT_ONCE.get(name, _MEASURED[quantity.unit])
            _expect_within(bounds, value, quantity.unit, where=fields.where, field=name)
            values[name] = float(value)
    fields.finish()
    return values


def write_device(
    path: Path,
    device: Device,
    *,
    how: Mapping[str, str] | None = None,
    conditions: Mapping[str, object] | None = None,
    working_sets: Mapping[str, Sequence[float]] | None = None,
) -> None:
    """Write a device for `read_device`, atomically; `how` and under which `conditions` it was measured.

    `working_sets` are columns of numbers, for the page: sizes in bytes and the measurement at each.
    """
    texts = {"device": device.key, "type": device.type, "name": device.name}
    texts |= {"vendor": device.vendor, "series": device.series}
    lines = [*_lines({name: text for name, text in texts.items() if text}), *_lines(device.numbers)]
    tables = {"measured": device.measured, "how": how, "conditions": conditions, "working_sets": working_sets}
    for name, table in tables.items():
        if table:
            lines += ["", f"[{name}]", *_lines(table)]
    with atomic_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _lines(table: Mapping[str, object]) -> list[str]:
    # Strings, numbers and lists of these are written the same in TOML and JSON.
    return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in table.items()]


def how_measured(path: Path) -> Mapping[str, str]:
    """Return the method of measurement of each value of a device's file, by quantity."""
    how = tomllib.loads(read_text(path, "description of a device", _MOST_BYTES)).get("how", {})
    return {str(name): str(text) for name, text in how.items()} if isinstance(how, dict) else {}


def check_name(name: str) -> None:
    """Refuse a name under which a device cannot be stored."""
    if not _NAME.fullmatch(name):
        raise InputError.of(
            field="name", expected="letters, digits, -, _ and ., 64 at most", found=repr(name)
        )


def own_folder() -> Path:
    """Return the folder of calibrated devices, which may not exist yet."""
    return data_home() / "devices"


def own_devices() -> list[str]:
    """Return the names of calibrated devices."""
    try:
        return sorted(path.stem for path in own_folder().glob("*.toml") if _NAME.fullmatch(path.stem))
    except (OSError, RuntimeError):
        return []  # No home folder, or an unreadable one


def own_device(name: str) -> Device | None:
    """Return the device that was calibrated under a name, if any."""
    return read_device(own_folder() / f"{name}.toml") if name in own_devices() else None


def _expect_within(
    bounds: tuple[float, float], value: float, unit: str, of: str = "", *, where: str, field: str
) -> None:
    """Refuse a number that is outside of bounds, with a note if it is plausible in another likely unit."""
    low, high = bounds
    if low <= value <= high:
        return
    expected, found = f"{low:.2g} to {high:.2g} {unit}".rstrip() + of, f"{value:g}"
    for other, factor in _OTHER_UNITS.get(unit, {}).items():
        if low <= value * factor <= high:
            found += f", which would be {value * factor:.4g} if it is in {other}"
            break
    raise InputError.of(where=where, field=field, expected=expected, found=found)

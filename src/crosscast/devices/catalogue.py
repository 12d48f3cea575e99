"""Data sheets of devices: the catalogue that comes along, and files of one's own, checked alike."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from crosscast.data.schema import DEVICES
from crosscast.device import SPEED_NUMBERS, Device
from crosscast.devices.measured import measured_devices
from crosscast.errors import InputError
from crosscast.fields import Fields

TYPES = ("cpu", "gpu", "accelerator")
LEAST_NUMBERS = 5
"""So many numbers that say how fast a device is must be known: fewer fit too many devices."""

_FILES = ("published.json", "sheets.json")
_TEXTS = ("name", "vendor", "series")
_NUMBERS = {column.name: column for column in DEVICES.columns if column.type in ("integer", "real")}

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
"""What numbers of devices of a type lie between: wide, so that only what is in another unit is outside."""

_BINARY = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_OTHER_UNITS = {
    "Hz": {"GHz": 1e9, "MHz": 1e6, "kHz": 1e3},
    "B": _BINARY,
    "B/s": {"GB/s": 1e9, "TB/s": 1e12, "MB/s": 1e6},
    "flop/s": {"Tflop/s": 1e12, "Gflop/s": 1e9},
    "s": {"µs": 1e-6, "ms": 1e-3, "ns": 1e-9},
    "W": {"mW": 1e-3, "kW": 1e3},
}
"""What numbers may have been typed in by mistake, by the unit of the column; the likeliest first."""


def rows_of(content: Mapping[str, Any], origin: str = "") -> dict[str, dict[str, Any]]:
    """Rows of the table of devices by key, with the source of each cell, of the tables of a file."""
    sources: Mapping[str, str] = content.get("sources", {})
    rows = {}
    for device, facts in content.get("devices", {}).items():
        told: dict[str, str] = dict(facts.get("from", {}))
        default = told.pop("*", f"{{{next(iter(sources))}}}")
        cells = {name: value for name, value in facts.items() if name not in ("from", "also")}
        texts = {
            name: told.get(name, default).format_map(sources).format(origin=origin, device=device)
            for name in cells
        }
        rows[device] = {"device": device, **cells, "sources": texts}
    return rows


@cache
def published_sheets() -> Mapping[str, dict[str, Any]]:
    """Rows of the table of devices by key: the 15 devices of the study of 2018."""
    return rows_of(_read("published.json"))


@cache
def catalogue() -> Mapping[str, dict[str, Any]]:
    """Rows of the table of devices by key: the devices of the study of 2018, and current ones."""
    return {**published_sheets(), **rows_of(_read("sheets.json"))}


@cache
def _read(name: str) -> Mapping[str, Any]:
    content: dict[str, Any] = json.loads(resources.files(__package__).joinpath(name).read_bytes())
    return content


@cache
def _spellings() -> Mapping[str, tuple[str, ...]]:
    """Keys of the devices that a plain spelling may stand for."""
    found: dict[str, list[str]] = {}
    for key, row in catalogue().items():
        also = [text for name in _FILES for text in _read(name)["devices"].get(key, {}).get("also", ())]
        for text in dict.fromkeys(map(_plain, (key, row["name"], *also))):
            found.setdefault(text, []).append(key)
    return {text: tuple(keys) for text, keys in found.items()}


def sheet_named(name: str) -> dict[str, Any]:
    """Row of the catalogue by its key or name, however these are spelt: ``RTX 4090`` is ``rtx4090``."""
    if name in catalogue():
        return catalogue()[name]
    expected = "a device of the catalogue (crosscast devices --catalogue lists it)"
    keys = _spellings().get(_plain(name), ())
    if len(keys) == 1:
        return catalogue()[keys[0]]
    if keys:
        of = ", ".join(f"{key} ({catalogue()[key]['name']}, {catalogue()[key]['series']})" for key in keys)
        raise InputError.of(
            where="device",
            expected="the key of one device",
            found=f"{name!r}, as {len(keys)} are called: {of}",
        )
    plain = {_plain(key): key for key in catalogue()}
    starts = [each for each in plain if len(name) > 1 and each.startswith(_plain(name))]
    near = dict.fromkeys([*starts, *difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.5)])
    like = f", near to which it has {', '.join(plain[each] for each in near)}" if near else ""
    raise InputError.of(where="device", expected=expected, found=f"{name!r}{like}")


def device_named(name: str) -> Device:
    """Describe a device by its data sheet in the catalogue that comes with Crosscast.

    Parameters
    ----------
    name
        Its key or name, as ``crosscast devices --catalogue`` lists them, however spelt: ``rtx4090`` or
        ``GeForce RTX 4090``.

    Returns
    -------
    Device
        For ``model.predict(profile, [device])``. Numbers are in SI units.

    Raises
    ------
    InputError
        If the catalogue does not have it; near names are listed.

    Examples
    --------
    >>> device_named("RTX 4090").numbers["bandwidth_bytes_per_s"]
    1008000000000.0
    """
    return device_of(sheet_named(name))


def device_of(row: Mapping[str, Any]) -> Device:
    """The device of a row of the table of devices."""
    numbers = {name: float(row[name]) for name in _NUMBERS if row.get(name) is not None}
    measured = measured_devices().get(row["device"], {}) if row["device"] in catalogue() else {}
    values = {name: each.value for name, each in measured.items()}
    name, vendor, kind, series = (row.get(column) or "" for column in ("name", "vendor", "type", "series"))
    return Device(row["device"], name, vendor, kind, series, numbers, values)


def read_device(path: Path) -> Device:
    """Read the description of a device.

    Parameters
    ----------
    path
        A TOML file with ``device`` (its key), ``type``, and what is known of ``name``, ``vendor``, ``series``
        and the table's numbers, in its units.

    Raises
    ------
    InputError
        If it cannot be read, a field is missing, unknown or wrong, or the numbers cannot be those of a device
        (`check_sheet`).
    """
    try:
        with path.open("rb") as file:
            fields = Fields(tomllib.load(file), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a description of a device in TOML ({error})") from error
    fields.require("device", "a key such as gtx1080")
    fields.require("type", f"one of {', '.join(TYPES)}")
    key, kind = fields.text("device"), fields.choice("type", TYPES, "")
    name, vendor, series = (fields.text(column) or "" for column in _TEXTS)
    numbers = {}
    for number, column in _NUMBERS.items():
        value = fields.number(number)
        if value is not None:
            if value < (column.ge or 0):
                raise fields.fail(number, f"a number of at least {column.ge:g}")
            numbers[number] = float(value)
    fields.finish()
    device = Device(str(key), name, vendor, kind, series, numbers)
    check_sheet(device, str(path))
    return device


def check_sheet(device: Device, where: str) -> None:
    """Refuse a data sheet with numbers in other units, or with too few that set how fast a device is."""
    for name, value in device.numbers.items():
        low, high = _PLAUSIBLE[device.type].get(name, (0.0, float("inf")))
        if not low <= value <= high:
            unit = _NUMBERS[name].unit.replace("count", "")
            expected = f"{low:.2g} to {high:.2g} {unit}".rstrip() + f", as {device.type}s have"
            found = f"{value:g}{_meant(value, low, high, unit)}"
            raise InputError.of(where=where, field=name, expected=expected, found=found)
    known = [*(name for name in SPEED_NUMBERS if name in device.numbers), *device.measured]
    if len(known) < LEAST_NUMBERS:
        raise InputError.of(
            where=where,
            expected=f"at least {LEAST_NUMBERS} of {', '.join(SPEED_NUMBERS)}",
            found=f"{len(known)} ({', '.join(known) or 'none'})",
        )


def _meant(value: float, low: float, high: float, unit: str) -> str:
    """What a number in a likely other unit would be; empty if it is plausible in none."""
    for other, factor in _OTHER_UNITS.get(unit, {}).items():
        if low <= value * factor <= high:
            return f", which would be {value * factor:.4g} if it is in {other}"
    return ""


def _plain(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())

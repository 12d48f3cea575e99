"""Devices by name: those of the bundled catalogue, and calibrated ones of the user.

Devices without measurements are expected to reach the shares of their data sheets that siblings reach.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from statistics import median

import msgspec

from crosscast.data.fields import TableRow
from crosscast.device import Device
from crosscast.devices.device_files import NUMBERS, measured_devices, own_device, own_devices
from crosscast.errors import InputError


class NameOfSeveral(InputError):
    """A name that several devices share."""


_SIBLINGS = ("published.json", "sheets.json")
"""Files of devices of which expectations are made, as when their intervals were checked."""
_FILES = (*_SIBLINGS, "recent.json")


class DeviceTables(msgspec.Struct):
    """Tables of a file of devices."""

    sources: dict[str, str] = {}  # Sources of facts, by a word
    # Facts of each device by column; `from` has the source of each, * that of the rest; `also` further names
    devices: dict[str, dict[str, object]] = {}


def rows_of(content: DeviceTables, origin: str = "") -> dict[str, TableRow]:
    """Return rows of the table of devices by key, with the source of each cell, from the tables of a file."""
    rows, words = {}, dict(content.sources)
    for device, facts in content.devices.items():
        given = TableRow(facts).entries("from") if "from" in facts else {}
        words["*"] = str(given.get("*", f"{{{next(iter(words))}}}")).format_map(words)
        # Most cells have the same source.
        full = {
            text: text.format_map(words).format(origin=origin, device=device) if "{" in text else text
            for text in ("{*}", *map(str, given.values()))
        }
        cells = {name: value for name, value in facts.items() if name not in ("from", "also")}
        texts = {name: full[str(given.get(name, "{*}"))] for name in cells}
        rows[device] = TableRow({"device": device, **cells, "sources": texts})
    return rows


@cache
def published_sheets() -> Mapping[str, TableRow]:
    """Return rows of the table of devices by key: the 15 devices of the study of 2018."""
    return rows_of(_read("published.json"))


@cache
def catalogue() -> Mapping[str, TableRow]:
    """Return rows of the table of devices by key: the devices of the study of 2018, and current ones."""
    return {
        **published_sheets(),
        **{key: row for name in _FILES[1:] for key, row in rows_of(_read(name)).items()},
    }


@cache
def _read(name: str) -> DeviceTables:
    content = resources.files(__package__).joinpath(name).read_bytes()
    return msgspec.json.decode(content, type=DeviceTables)


@cache
def _spellings() -> Mapping[str, tuple[str, ...]]:
    """Return the keys of devices by plain spelling."""
    keys_of: dict[str, list[str]] = {}
    for key, row in catalogue().items():
        facts = [TableRow(_read(name).devices.get(key, {})) for name in _FILES]
        also = [text for each in facts for text in each.texts("also")]
        for text in dict.fromkeys(map(_plain, (key, row.text("name"), *also))):
            keys_of.setdefault(text, []).append(key)
    return {text: tuple(keys) for text, keys in keys_of.items()}


def sheet_named(name: str) -> TableRow:
    """Return a row of the catalogue by its key or name, in any spelling: ``RTX 4090`` is ``rtx4090``."""
    if name in catalogue():
        return catalogue()[name]
    expected = "a device of the catalogue (crosscast devices --catalogue lists it)"
    keys = _spellings().get(_plain(name), ())
    if len(keys) == 1:
        return catalogue()[keys[0]]
    if keys:
        of = ", ".join(f"{key} ({catalogue()[key]['name']}, {catalogue()[key]['series']})" for key in keys)
        raise NameOfSeveral.of(
            where="device",
            expected="the key of one device",
            found=f"{name!r}, as {len(keys)} are called: {of}",
        )
    near = like(name, (*catalogue(), *own_devices()))
    raise InputError.of(where="device", expected=expected, found=f"{name!r}{near}")


def like(name: str, keys: Iterable[str]) -> str:
    """Say which keys begin with a name, in any spelling, or else are similar; or that it is a vendor."""
    if any(_plain(row.text("vendor")) == _plain(name) for row in catalogue().values()):
        return f", a vendor: crosscast devices --catalogue {name} lists its devices"
    plain = {_plain(key): key for key in keys}
    starts = [key for text, key in plain.items() if len(name) > 1 and text.startswith(_plain(name))]
    near = starts or [plain[each] for each in difflib.get_close_matches(_plain(name), plain, cutoff=0.5)]
    return f", near to which are {', '.join(near)}" if near else ""


def filtered(texts: Iterable[str], vendor: str | None = None, kind: str | None = None) -> list[TableRow]:
    """Return rows of devices of a vendor and a type, with each text in key, name, vendor, type or series."""
    columns = ("device", "name", "vendor", "type", "series")
    return [
        row
        for row in catalogue().values()
        if kind in (None, row["type"])
        and (vendor is None or _plain(vendor) == _plain(row.text("vendor")))
        and all(any(_plain(text) in _plain(row.text(name)) for name in columns) for text in texts)
    ]


def device_named(name: str) -> Device:
    """Describe a device of the bundled catalogue, or a calibrated one.

    Parameters
    ----------
    name
        Its key or name, as ``crosscast devices --catalogue`` lists them, however spelt: ``rtx4090`` or
        ``GeForce RTX 4090``; or the name that `crosscast calibrate` gave a device of this machine.

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
    calibrated = None if name in catalogue() else own_device(name)
    return device_of(sheet_named(name)) if calibrated is None else calibrated


def device_of(row: Mapping[str, object]) -> Device:
    """Return the device of a row of the table of devices."""
    cells = TableRow(row)
    key = cells.text("device")
    numbers = {name: float(value) for name, value in cells.numbers(NUMBERS).items()}
    measured = measured_devices().get(key, {}) if key in catalogue() else {}
    values = {name: each.value for name, each in measured.items()}
    name, vendor, kind, series = (
        cells.text_or_none(column) or "" for column in ("name", "vendor", "type", "series")
    )
    return Device(key, name, vendor, kind, series, numbers, values)


def _plain(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())


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
    of_vendor = f"{device.kind} {device.vendor}"
    names = (f"{of_vendor} {device.series}", of_vendor, device.kind)
    return zip(_LEVELS, names, strict=True)


@cache
def _siblings() -> Sequence[Device]:
    """Return the devices of which expectations are made."""
    return [device_named(key) for name in _SIBLINGS for key in _read(name).devices]


@cache
def _facts() -> Mapping[str, _Known]:
    """Return the facts of the catalogue's devices."""
    return {
        fact: _Known((device, facts[fact]) for device in _siblings() if fact in (facts := reached(device)))
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

_MEASURED_FOR = {
    "bandwidth_bytes_per_s": ("read", "read_bytes_per_s"),
    "peak_flop_per_s": ("fp32", "fp32_flop_per_s"),
}
"""Numbers that follow from measurements: the share that siblings reach, and what is measured."""


@dataclass(frozen=True)
class Filled:
    """A device with numbers of its siblings for those missing from its data sheet."""

    device: Device
    taken: Mapping[str, Expected]  # By column of the table of devices


@lru_cache(1024)
def filled(device: Device) -> Filled:
    """Fill a data sheet with numbers of siblings: of its architecture, else its vendor, else its type."""
    numbers = {name: value for name, value in device.numbers.items() if value}
    taken: dict[str, Expected] = {}
    for name, scales in _SCALES.items():
        if name in numbers:
            continue
        expectation = by_measurement(device, name)
        # Runtimes reach quite different shares of CPUs: of a part of a machine, or without its vectors.
        if expectation is None or device.kind == "cpu":
            scaled = _by_scale(device, name, scales, numbers)
            if expectation is None or (scaled is not None and scaled.of != "type"):
                expectation = scaled
        if expectation is not None:
            if device.kind == "cpu":
                _, quantity = _MEASURED_FOR.get(name, ("", ""))
                least = device.measured.get(quantity, 0.0)
                expectation = replace(expectation, value=max(expectation.value, least))
            numbers[name], taken[name] = expectation.value, expectation
    return Filled(replace(device, numbers=numbers) if taken else device, taken)


def by_measurement(device: Device, name: str) -> Expected | None:
    """Estimate a number of a data sheet by a measurement on the device and the share that siblings reach."""
    fact, quantity = _MEASURED_FOR.get(name, ("", ""))
    value = device.measured.get(quantity)
    share = expected(device, fact) if value else None
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
    return _Known(
        (device, device.numbers[name] / math.prod(device.numbers[column] for column in scale))
        for device in _siblings()
        if all(device.numbers.get(column) for column in (name, *scale))
    )

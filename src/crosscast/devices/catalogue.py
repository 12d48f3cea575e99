"""Devices by name: those of the bundled catalogue, and calibrated ones of the user."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources

import msgspec

from crosscast.data.fields import TableRow
from crosscast.device import Device
from crosscast.devices.device_files import NUMBERS, measured_devices, own_device, own_devices
from crosscast.errors import InputError


class NameOfSeveral(InputError):
    """A name that several devices share."""


_FILES = ("published.json", "sheets.json")


class DeviceTables(msgspec.Struct):
    """Tables of a file of devices."""

    sources: dict[str, str] = {}  # Sources of facts, by a word
    # Facts of each device by column; `from` has the word of the source of each, `also` further names
    devices: dict[str, dict[str, object]] = {}


def rows_of(content: DeviceTables, origin: str = "") -> dict[str, TableRow]:
    """Return rows of the table of devices by key, with the source of each cell, from the tables of a file."""
    sources = content.sources
    rows = {}
    for device, facts in content.devices.items():
        given = TableRow(facts).entries("from") if "from" in facts else {}
        source_words = {name: str(text) for name, text in given.items()}
        default = source_words.pop("*", f"{{{next(iter(sources))}}}")
        cells = {name: value for name, value in facts.items() if name not in ("from", "also")}
        texts = {
            name: source_words.get(name, default).format_map(sources).format(origin=origin, device=device)
            for name in cells
        }
        rows[device] = TableRow({"device": device, **cells, "sources": texts})
    return rows


@cache
def published_sheets() -> Mapping[str, TableRow]:
    """Return rows of the table of devices by key: the 15 devices of the study of 2018."""
    return rows_of(_read("published.json"))


@cache
def catalogue() -> Mapping[str, TableRow]:
    """Return rows of the table of devices by key: the devices of the study of 2018, and current ones."""
    return {**published_sheets(), **rows_of(_read("sheets.json"))}


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
    near = similar_keys(name, (*catalogue(), *own_devices()))
    suggestion = f", near to which it has {', '.join(near)}" if near else ""
    raise InputError.of(where="device", expected=expected, found=f"{name!r}{suggestion}")


def similar_keys(name: str, keys: Iterable[str]) -> list[str]:
    """Return the keys that begin with a name, in any spelling, or else up to three similar ones."""
    plain = {_plain(key): key for key in keys}
    starts = [key for text, key in plain.items() if len(name) > 1 and text.startswith(_plain(name))]
    return starts or [plain[each] for each in difflib.get_close_matches(_plain(name), plain, cutoff=0.5)]


def filtered(text: str | None, vendor: str | None, kind: str | None) -> list[TableRow]:
    """Return rows of devices by a text in their key, name, vendor or series, by vendor, and by type."""
    return [
        row
        for row in catalogue().values()
        if kind in (None, row["type"])
        and (vendor is None or _plain(vendor) == _plain(row.text("vendor")))
        and (
            text is None
            or any(_plain(text) in _plain(row.text(name)) for name in ("device", "name", "vendor", "series"))
        )
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

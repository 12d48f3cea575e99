"""Files of isolated runs: JSON with what is known of an application alone on a device, and of the device."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from crosscast.configuration import Configuration
from crosscast.data.corun import Solo
from crosscast.data.files import read_bytes, whole_file
from crosscast.data.schema import DEVICES, json_text
from crosscast.errors import InputError
from crosscast.fields import STRICT_JSON, Fields

FORMAT = "crosscast solo profile"
"""What the field ``format`` of these files says."""
VERSION = 1
"""Rises when a field changes its name, type or meaning."""

_WHAT = "isolated run"
_MOST_BYTES = 1 << 20
_MOST_NUMBERS = 512
_MOST_CHARACTERS = 200
_FACTS = {column.name: column for column in DEVICES.columns if column.name not in ("device", "sources")}


@dataclass(frozen=True, eq=False)
class SoloProfile:
    """What a file holds."""

    solo: Solo  # The application alone; its `device` is the key of the device
    # What is known of the device: cells by column of the table of devices, `device` and `type` among them,
    # without their sources
    device: Mapping[str, Any]


def write_profile(solo: Solo, device: Mapping[str, Any], path: str | Path) -> None:
    """Write an isolated run to a file, in the place of what is there; the same run gives the same bytes."""
    path = Path(path)
    content = _content(solo, device, path)
    _profile(Fields(content, str(path)))
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    if len(text) >= _MOST_BYTES:
        raise InputError(f"{path}: expected a file of at most {_MOST_BYTES >> 20} MiB, found a larger one")
    try:
        with whole_file(path) as temporary:
            temporary.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot write the {_WHAT} ({error.strerror or error})") from error


def _content(solo: Solo, device: Mapping[str, Any], path: Path) -> dict[str, Any]:
    if device.get("device", solo.device) != solo.device:
        raise InputError(f"{path}: device: expected {solo.device!r}, found {device['device']!r}")
    facts = {name: device[name] for name in _FACTS if device.get(name) not in (None, "")}
    told = {"time_s": solo.time_s, "power_w": solo.power_w, "memory_bytes": solo.memory_bytes}
    return {
        "format": FORMAT,
        "version": VERSION,
        "application": solo.application,
        "size": solo.size,
        "device": {"device": solo.device, **facts},
        "configuration": _settings(solo, path),
        "runs": solo.runs,
        **{name: value for name, value in told.items() if value is not None},
        "features": {name: float(value) for name, value in solo.features.items()},
    }


def _settings(solo: Solo, path: Path) -> Any:
    try:
        Configuration.of(solo.device, solo.configuration)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    # As they are: a configuration has all numbers as real ones.
    return json.loads(solo.configuration)


def read_profile(path: str | Path) -> SoloProfile:
    """Read an isolated run of an application, as ``crosscast corun profile`` writes it.

    Parameters
    ----------
    path
        The file, JSON.

    Returns
    -------
    SoloProfile
        `solo` is the isolated run (seconds, watts, features), `device` the row of its device.

    Raises
    ------
    InputError
        If it cannot be read, is no such file or one of a newer version, is larger than 1 MiB, or a field is
        missing, unknown or wrong.
    """
    path = Path(path)
    try:
        found = STRICT_JSON.decode(read_bytes(path, _WHAT, _MOST_BYTES).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected an isolated run in JSON ({error})") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(
            f"{path}: expected an isolated run, as crosscast corun profile writes it, found other JSON"
        )
    version = found.get("version")
    if isinstance(version, int) and version > VERSION:
        raise InputError(
            f"{path}: expected an isolated run of version {VERSION} or older, found version {version}: a "
            "newer Crosscast wrote it"
        )
    return _profile(Fields(found, str(path)))


def _profile(fields: Fields) -> SoloProfile:
    fields.choice("format", (FORMAT,), FORMAT)
    fields.require("version", str(VERSION))
    fields.integer("version", VERSION)
    device = _device(_table(fields, "device", "a description of the device"))
    solo = Solo(
        _text(fields, "application", "a name"),
        _text(fields, "size", "the name of a problem size"),
        device["device"],
        _real(fields.number("time_s", gt=0)),
        _configuration(_table(fields, "configuration", "settings by name"), device["device"]),
        fields.integer("runs", 1) or 1,
        _real(fields.number("power_w", ge=0)),
        fields.integer("memory_bytes", 0),
        _features(_table(fields, "features", "numbers by name")),
    )
    fields.finish()
    return SoloProfile(solo, MappingProxyType(device))


def _table(fields: Fields, name: str, expected: str) -> Fields:
    fields.require(name, expected)
    table = fields.table(name)
    assert table is not None
    return table


def _text(fields: Fields, name: str, expected: str) -> str:
    fields.require(name, expected)
    return str(fields.text(name, _MOST_CHARACTERS))


def _real(value: float | None) -> float | None:
    return None if value is None else float(value)


def _device(fields: Fields) -> dict[str, Any]:
    row: dict[str, Any] = {"device": _text(fields, "device", "the key of the device")}
    for name, column in _FACTS.items():
        if column.type == "text":
            row[name] = fields.text(name, _MOST_CHARACTERS)
        elif column.type == "integer":
            row[name] = fields.integer(name, int(column.ge or 0))
        else:
            row[name] = _real(fields.number(name, ge=0))
    fields.finish()
    return {name: cell for name, cell in row.items() if cell is not None}


def _configuration(fields: Fields, device: str) -> str:
    settings = dict(fields.items())
    _check_bounds(fields, settings)
    try:
        Configuration(device, settings)
    except InputError as error:
        raise InputError(f"{fields.where}: {error}") from error
    return json_text(settings)


def _features(fields: Fields) -> dict[str, float]:
    found = dict(fields.items())
    _check_bounds(fields, found)
    for name, value in found.items():
        if value is None:
            raise fields.fail(name, "a number")
    return {name: float(fields.number(name) or 0) for name in sorted(found)}


def _check_bounds(fields: Fields, found: Mapping[str, Any]) -> None:
    if len(found) > _MOST_NUMBERS:
        raise InputError(f"{fields.where}: expected at most {_MOST_NUMBERS} numbers, found {len(found)}")
    if any(len(name) > _MOST_CHARACTERS for name in found):
        raise InputError(f"{fields.where}: expected names of {_MOST_CHARACTERS} characters at most")

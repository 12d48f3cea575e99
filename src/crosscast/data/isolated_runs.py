"""Files of isolated runs: JSON with an application's run alone on a device, and facts about the device."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from crosscast.data.configuration import Configuration
from crosscast.data.corun import IsolatedRun
from crosscast.data.fields import STRICT_JSON, decode
from crosscast.data.files import atomic_file, read_bytes
from crosscast.data.schema import DEVICES, Column, json_text
from crosscast.errors import InputError

FORMAT = "crosscast isolated run"
"""Value of the field ``format``."""
VERSION = 1
"""Rises when a field changes its name, type or meaning."""

_WHAT = "isolated run"
_MOST_BYTES = 1 << 20
_FACTS = {column.name: column for column in DEVICES.columns if column.name not in ("device", "sources")}

_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Real = Annotated[float, Meta(ge=-sys.float_info.max, le=sys.float_info.max)]
_AtLeast0 = Annotated[float, Meta(ge=0, le=sys.float_info.max)]


def _kind(column: Column) -> object:
    if column.type == "text":
        return _Name | None
    return (
        Annotated[int, Meta(ge=int(column.ge or 0))] | None if column.type == "integer" else _AtLeast0 | None
    )


_Device: Any = msgspec.defstruct(
    "_Device",
    [("device", _Name), *((name, _kind(column), None) for name, column in _FACTS.items())],
    forbid_unknown_fields=True,
)
"""Facts about a device: the columns of its table."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: Annotated[int, Meta(ge=VERSION, le=VERSION)]
    application: _Name
    size: _Name
    device: _Device
    configuration: Annotated[dict[_Name, object], Meta(max_length=512)]
    features: Annotated[dict[_Name, _Real], Meta(max_length=512)]
    runs: Annotated[int, Meta(ge=1)] | None = None
    time_s: Annotated[float, Meta(gt=0, le=sys.float_info.max)] | None = None
    power_w: _AtLeast0 | None = None
    memory_bytes: Annotated[int, Meta(ge=0)] | None = None


@dataclass(frozen=True, eq=False)
class IsolatedRunProfile:
    """Contents of a file."""

    isolated_run: IsolatedRun  # The application alone; its `device` is the key of the device
    # Facts about the device: cells by column of the table of devices, `device` and `type` among them,
    # without their sources
    device: Mapping[str, object]


def write_profile(isolated_run: IsolatedRun, device: Mapping[str, object], path: str | Path) -> None:
    """Write an isolated run to a file, replacing it; equal runs give equal bytes."""
    path = Path(path)
    content = _content(isolated_run, device, path)
    _profile(content, str(path))
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False)
    if len(text) >= _MOST_BYTES:
        raise InputError(f"{path}: expected a file of at most {_MOST_BYTES >> 20} MiB, found a larger one")
    try:
        with atomic_file(path) as temporary:
            temporary.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot write the {_WHAT} ({error.strerror or error})") from error


def _content(isolated_run: IsolatedRun, device: Mapping[str, object], path: Path) -> dict[str, object]:
    if device.get("device", isolated_run.device) != isolated_run.device:
        raise InputError(f"{path}: device: expected {isolated_run.device!r}, found {device['device']!r}")
    facts = {name: device[name] for name in _FACTS if device.get(name) not in (None, "")}
    measured = {
        "time_s": isolated_run.time_s,
        "power_w": isolated_run.power_w,
        "memory_bytes": isolated_run.memory_bytes,
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "application": isolated_run.application,
        "size": isolated_run.size,
        "device": {"device": isolated_run.device, **facts},
        "configuration": _settings(isolated_run, path),
        "runs": isolated_run.runs,
        **{name: value for name, value in measured.items() if value is not None},
        "features": {name: float(value) for name, value in isolated_run.features.items()},
    }


def _settings(isolated_run: IsolatedRun, path: Path) -> object:
    try:
        Configuration.of(isolated_run.device, isolated_run.configuration)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    # Parsed from the text, as `Configuration` would turn whole numbers into real ones.
    return json.loads(isolated_run.configuration)


def read_profile(path: str | Path) -> IsolatedRunProfile:
    """Read an isolated run of an application, as ``crosscast corun profile`` writes it.

    Parameters
    ----------
    path
        The file, JSON.

    Returns
    -------
    SoloProfile
        `isolated run` is the isolated run (seconds, watts, features), `device` the row of its device.

    Raises
    ------
    InputError
        If it cannot be read, is no such file or one of a newer version, is larger than 1 MiB, or a field is
        missing, unknown or wrong.
    """
    path = Path(path)
    try:
        content = STRICT_JSON.decode(read_bytes(path, _WHAT, _MOST_BYTES).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected an isolated run in JSON ({error})") from error
    return profile_from(content, str(path))


def profile_from(content: object, where: str) -> IsolatedRunProfile:
    """Read an isolated run from the JSON value of a file; messages begin with `where`."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(
            f"{where}: expected an isolated run, as crosscast corun profile writes it, found other JSON"
        )
    version = content.get("version")
    if isinstance(version, int) and version > VERSION:
        raise InputError(
            f"{where}: expected an isolated run of version {VERSION} or older, found version {version}: a "
            "newer Crosscast wrote it"
        )
    return _profile(content, where)


def _profile(content: Mapping[str, object], where: str) -> IsolatedRunProfile:
    file = decode(_File, content, where)
    device = {name: cell for name, cell in msgspec.structs.asdict(file.device).items() if cell is not None}
    try:
        Configuration.of_values(device["device"], file.configuration)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    isolated_run = IsolatedRun(
        file.application,
        file.size,
        device["device"],
        file.time_s,
        json_text(file.configuration),
        file.runs or 1,
        file.power_w,
        file.memory_bytes,
        dict(sorted(file.features.items())),
    )
    return IsolatedRunProfile(isolated_run, MappingProxyType(device))

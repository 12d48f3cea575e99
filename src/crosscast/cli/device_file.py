"""A device that nobody has measured, described in a TOML file by the columns of the table of devices."""

from __future__ import annotations

import tomllib
from pathlib import Path

from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.fields import Fields
from crosscast.tables.devices import DEVICES

__all__ = ["read_device"]

_TEXTS = ("name", "vendor", "series")
_TYPES = ("cpu", "gpu", "accelerator")
_NUMBERS = {column.name: column for column in DEVICES.columns if column.type in ("integer", "real")}


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
        If it cannot be read, or a field is missing, unknown or wrong.
    """
    try:
        with path.open("rb") as file:
            fields = Fields(tomllib.load(file), str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror})") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a description of a device in TOML ({error})") from error
    fields.require("device", "a key such as gtx1080")
    fields.require("type", f"one of {', '.join(_TYPES)}")
    key, kind = fields.text("device"), fields.choice("type", _TYPES, "")
    texts = {name: fields.text(name) or "" for name in _TEXTS}
    numbers = {}
    for name, column in _NUMBERS.items():
        value = fields.number(name)
        if value is not None:
            if value < (column.least or 0):
                raise fields.fail(name, f"a number of at least {column.least:g}")
            numbers[name] = float(value)
    fields.finish()
    return Device(str(key), type=kind, numbers=numbers, **texts)

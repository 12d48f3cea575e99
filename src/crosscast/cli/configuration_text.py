"""Configurations as they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crosscast.errors import InputError

if TYPE_CHECKING:
    from crosscast.configuration import Configuration

__all__ = ["configurations_named"]

_FORM = "DEVICE:KNOB=VALUE,KNOB=VALUE;..."


def configurations_named(option: str, text: str, devices: Sequence[str]) -> list[Configuration]:
    """Read configurations that are separated by semicolons.

    Parameters
    ----------
    option
        The option that they were typed for, for messages.
    text
        What was typed, such as ``node:cpu_cap_w=120,gpu_cap_w=260;node:cpu_cap_w=65,gpu_cap_w=100``. Numbers
        are in SI units. The device may be left out where there is only one.
    devices
        Keys of the devices.

    Raises
    ------
    InputError
        If a configuration has no device or setting where one is expected.
    """
    from crosscast.configuration import Configuration

    found = []
    for part in text.split(";"):
        device, colon, settings = part.strip().rpartition(":")
        if not colon and len(devices) == 1:
            device = devices[0]
        if device.strip() not in devices:
            raise InputError(
                f"{option}: expected {_FORM} with one of the devices {', '.join(devices)}, found {part!r}"
            )
        found.append(Configuration(device.strip(), _settings(option, settings)))
    return found


def _settings(option: str, text: str) -> dict[str, float | str]:
    settings: dict[str, float | str] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        name, equals, value = (each.strip() for each in word.partition("="))
        if not equals or not name or not value or name in settings:
            raise InputError(f"{option}: expected each knob once, as KNOB=VALUE, found {word!r} in {text!r}")
        settings[name] = _setting(value)
    return settings


def _setting(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text

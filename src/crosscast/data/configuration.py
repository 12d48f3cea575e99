"""A configuration: a device and its settings, such as clocks, threads or power caps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, cast

from crosscast.data.fields import is_finite
from crosscast.errors import InputError
from crosscast.units import format_setting, setting_parts

Setting = float | str
"""Value of a knob: a number in SI units, or a word."""

Objective = Literal["performance", "energy", "edp", "power"]
"""Quantity that a choice of a configuration optimizes."""


@dataclass(frozen=True)
class Configuration:
    """A device and its settings.

    Parameters
    ----------
    device
        Key of the device.
    settings
        Values of the knobs by name; the name of a numeric knob ends with its unit, such as
        ``cpu_cap_w`` or ``core_clock_hz``. Counts, such as ``cores``, have none.

    Raises
    ------
    InputError
        If a setting is neither a finite number nor a word.

    Examples
    --------
    >>> print(Configuration("node", {"cpu_cap_w": 65, "core_clock_hz": 1.1e9}))
    node: core clock 1100 MHz, cpu cap 65 W
    """

    device: str
    settings: Mapping[str, Setting]

    def __post_init__(self) -> None:
        checked = {name: _setting(name, value) for name, value in self.settings.items()}
        object.__setattr__(self, "settings", MappingProxyType(dict(sorted(checked.items()))))

    def __hash__(self) -> int:
        return hash((self.device, tuple(self.settings.items())))

    def __reduce__(self) -> tuple[type[Configuration], tuple[str, dict[str, Setting]]]:
        # A mapping proxy cannot be pickled.
        return Configuration, (self.device, dict(self.settings))

    def __str__(self) -> str:
        """The device, then each knob in the order of its name, in the words of tables."""
        words = settings_text(self.settings)
        return f"{self.device}: {words}" if words else self.device

    def to_dict(self) -> dict[str, object]:
        """The configuration as a JSON object: ``device``, ``settings``."""
        return {"device": self.device, "settings": dict(self.settings)}

    @classmethod
    def of(cls, device: str, settings: str) -> Configuration:
        """Make the configuration of a table's row.

        Parameters
        ----------
        device
            Key of the device.
        settings
            The cell of the column ``configuration``: a JSON object.

        Raises
        ------
        InputError
            If it is not one of numbers and words.
        """
        try:
            values = json.loads(settings)
        except (ValueError, RecursionError) as error:
            raise InputError.of(
                field="configuration", expected="JSON objects", found=repr(settings[:60])
            ) from error
        if not isinstance(values, dict):
            raise InputError.of(
                field="configuration", expected="an object of settings", found=repr(settings[:60])
            )
        return cls.of_values(device, values)

    @classmethod
    def of_values(cls, device: str, values: Mapping[str, object]) -> Configuration:
        """Make the configuration of settings from outside."""
        return cls(device, cast(Mapping[str, Setting], values))


def _setting(name: str, value: object) -> Setting:
    if isinstance(value, str):
        return value
    if not is_finite(value):
        raise InputError.of(
            field="configuration", problem=f"{name}: expected a finite number or a word, found {value!r}"
        )
    return float(value)


def setting_text(value: Setting) -> str:
    """Write a setting for people."""
    return value if isinstance(value, str) else f"{value:g}"


def settings_text(settings: Mapping[str, Setting]) -> str:
    """Write settings for people, with units."""
    texts = []
    for name, value in settings.items():
        words, unit, _ = setting_parts(name)
        texts.append(f"{words} {format_setting(name, value)} {unit}".rstrip())
    return ", ".join(texts)


_FORM = "DEVICE:KNOB=VALUE,KNOB=VALUE;..."


def parse_configurations(field: str, text: str, devices: Sequence[str]) -> list[Configuration]:
    """Parse configurations separated by semicolons; `field` is the option they were given for.

    Numbers are in SI units, and the device may be left out where there is only one.

    Examples
    --------
    >>> [str(sample) for sample in parse_configurations("samples", "cores=4;node:cores=2", ["node"])]
    ['node: cores 4', 'node: cores 2']
    """
    configurations = []
    for part in text.split(";"):
        device, colon, settings = part.strip().rpartition(":")
        if not colon and len(devices) == 1:
            device = devices[0]
        if device.strip() not in devices:
            expected = f"{_FORM} with one of the devices {', '.join(devices)}"
            raise InputError.of(field=field, expected=expected, found=repr(part))
        configurations.append(Configuration(device.strip(), _knobs(field, settings)))
    return configurations


def _knobs(field: str, text: str) -> dict[str, float | str]:
    settings: dict[str, float | str] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        name, equals, value = map(str.strip, word.partition("="))
        if not equals or not name or not value or name in settings:
            raise InputError.of(
                field=field, expected="each knob once, as KNOB=VALUE", found=f"{word!r} in {text!r}"
            )
        settings[name] = _value(value)
    return settings


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text

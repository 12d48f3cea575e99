"""A configuration: a device and what it is set to, such as clocks, threads or power caps."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from crosscast.errors import InputError

__all__ = ["Configuration", "Setting", "setting_text"]

Setting = float | str
"""What a knob is set to: a number in SI units, or a word."""


@dataclass(frozen=True)
class Configuration:
    """A device and its settings.

    Parameters
    ----------
    device
        Key of the device.
    settings
        What each knob is set to, by name; the name of a number's knob ends with its unit, such as
        ``cpu_cap_w`` or ``core_clock_hz``. Counts, such as ``cores``, have none.

    Raises
    ------
    InputError
        If a setting is neither a finite number nor a word.

    Examples
    --------
    >>> print(Configuration("node", {"cpu_cap_w": 65, "gpu_cap_w": 100}))
    node: cpu_cap_w 65, gpu_cap_w 100
    """

    device: str
    settings: Mapping[str, Setting]

    def __post_init__(self) -> None:
        checked = {name: _setting(name, value) for name, value in self.settings.items()}
        object.__setattr__(self, "settings", MappingProxyType(dict(sorted(checked.items()))))

    def __hash__(self) -> int:
        return hash((self.device, tuple(self.settings.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        # A view of a mapping is sent to no other process.
        return Configuration, (self.device, dict(self.settings))

    def __str__(self) -> str:
        """The device, then each knob in the order of its name."""
        words = ", ".join(f"{name} {setting_text(value)}" for name, value in self.settings.items())
        return f"{self.device}: {words}" if words else self.device

    def to_dict(self) -> dict[str, Any]:
        """The configuration as a JSON object: ``device``, ``settings``."""
        return {"device": self.device, "settings": dict(self.settings)}

    @classmethod
    def of(cls, device: str, settings: str) -> Configuration:
        """The configuration of a row of a table.

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
            found = json.loads(settings)
        except (ValueError, RecursionError) as error:
            raise InputError(f"configuration: expected JSON objects, found {settings[:60]!r}") from error
        if not isinstance(found, dict):
            raise InputError(f"configuration: expected an object of settings, found {settings[:60]!r}")
        return cls(device, found)


def _setting(name: str, value: object) -> Setting:
    if isinstance(value, str):
        return value
    # Whole numbers of any length are less than infinity, but not all of them fit.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise InputError(f"configuration: {name}: expected a finite number or a word, found {value!r}")
    return float(value)


def setting_text(value: Setting) -> str:
    """A setting for people."""
    return value if isinstance(value, str) else f"{value:g}"

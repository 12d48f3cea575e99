"""Settings of configurations as columns of a table that people fill in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from crosscast.configuration import Configuration, Setting, setting_text
from crosscast.errors import InputError
from crosscast.predict.configuration.space import Space
from crosscast.tables.run_columns import DEVICE

__all__ = ["SettingColumns"]

_TOLERANCE = 1e-6
"""Share by which a number may differ from a known setting, as decimals are cut."""


@dataclass(frozen=True)
class SettingColumns:
    """The columns that tell the configurations of a space apart.

    Parameters
    ----------
    space
        The configurations.
    """

    space: Space

    @cached_property
    def known(self) -> tuple[str, ...]:
        """All settings that a configuration has, sorted."""
        return tuple(sorted({name for each in self.space.configurations for name in each.settings}))

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Columns that must be there: the device if there are several, and the settings that vary on one."""
        device = (DEVICE,) if len(self.space.devices) > 1 else ()
        return (*device, *sorted({*self.space.knobs, *self.space.words}))

    def cells(self, number: int) -> dict[str, str]:
        """What the needed columns, and the device, hold for a configuration."""
        configuration = self.space.configurations[number]
        settings = configuration.settings
        columns = [name for name in self.needed if name != DEVICE]
        return {
            DEVICE: configuration.device,
            **{name: _text(settings[name]) if name in settings else "" for name in columns},
        }

    def number(self, cells: Mapping[str, str | float], where: str) -> int:
        """Number of the configuration of a row.

        Parameters
        ----------
        cells
            What the row holds; cells that are empty or not there say nothing.
        where
            The row, for messages.

        Raises
        ------
        InputError
            If a setting is missing or is no number where one is expected, or there is no such configuration.
        """
        device = self._device(cells, where)
        own = [each for each in self.space.configurations if each.device == device]
        fitting = [each for each in own if self._fits(each, cells, where)]
        # Where knobs are not on all configurations, nothing may stand for one that does not have it.
        exact = [each for each in fitting if self._told(cells) == self._told(each.settings)]
        if len(fitting) == 1 or len(exact) == 1:
            return self.space.number_of((exact or fitting)[0])
        if fitting:
            lacking = [name for name in self.needed if _lacks(cells, name) and _varies(fitting, name)]
            raise InputError(
                f"{where}: {', '.join(lacking)}: expected what it was set to, found several configurations "
                f"that it may be, such as {fitting[0]} and {fitting[1]}"
            )
        told = {name: cells[name] for name in self.known if not _lacks(cells, name)}
        found = ", ".join(f"{name} {setting_text(value)}" for name, value in told.items()) or "no setting"
        raise InputError(
            f"{where}: expected one of the {len(own)} configurations of {device} that the model knows, such "
            f"as {own[0]}; found {found}"
        )

    def _told(self, cells: Mapping[str, str | float]) -> list[str]:
        return [name for name in self.needed if name != DEVICE and not _lacks(cells, name)]

    def _device(self, cells: Mapping[str, str | float], where: str) -> str:
        devices = self.space.devices
        if _lacks(cells, DEVICE) and len(devices) == 1:
            return devices[0]
        if cells.get(DEVICE, "") not in devices:
            found = cells.get(DEVICE) or "nothing"
            raise InputError(f"{where}: {DEVICE}: expected one of {', '.join(devices)}, found {found}")
        return str(cells[DEVICE])

    def _fits(self, configuration: Configuration, cells: Mapping[str, str | float], where: str) -> bool:
        for name in self.known:
            if _lacks(cells, name):
                continue
            setting = configuration.settings.get(name)
            if setting is None or not _equals(setting, cells[name], f"{where}: {name}"):
                return False
        return True


def _lacks(cells: Mapping[str, str | float], name: str) -> bool:
    return cells.get(name, "") == ""


def _varies(configurations: list[Configuration], name: str) -> bool:
    return len({each.settings.get(name) for each in configurations}) > 1


def _equals(setting: Setting, cell: str | float, where: str) -> bool:
    if isinstance(setting, str):
        return str(cell) == setting
    try:
        value = float(cell)
    except ValueError:
        raise InputError(f"{where}: expected a number such as {setting:g}, found {cell!r}") from None
    return math.isclose(value, setting, rel_tol=_TOLERANCE, abs_tol=0)


def _text(setting: Setting) -> str:
    if isinstance(setting, str):
        return setting
    return str(int(setting)) if setting.is_integer() and abs(setting) < 1e15 else repr(setting)

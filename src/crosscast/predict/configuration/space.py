"""The configurations of a machine, in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosscast.arrays import Reals
from crosscast.configuration import Configuration
from crosscast.errors import InputError

__all__ = ["Space"]


@dataclass(frozen=True)
class Space:
    """What one may choose from.

    Parameters
    ----------
    configurations
        The configurations, by device and then by their settings, each rising.

    Raises
    ------
    InputError
        If there is none, one is there twice, or a knob holds a number here and a word there.
    """

    configurations: tuple[Configuration, ...]

    def __post_init__(self) -> None:
        if not self.configurations:
            raise InputError("configurations: expected at least one, found none")
        seen = set()
        for each in self.configurations:
            if each in seen:
                raise InputError(f"configurations: expected each once, found {each} twice")
            seen.add(each)
        kinds: dict[str, type] = {}
        for each in self.configurations:
            for name, value in each.settings.items():
                if kinds.setdefault(name, type(value)) is not type(value):
                    raise InputError(f"configurations: {name}: expected numbers or words, found both")
        object.__setattr__(self, "configurations", tuple(sorted(self.configurations, key=_order)))

    def __len__(self) -> int:
        """Number of configurations."""
        return len(self.configurations)

    @cached_property
    def _numbers(self) -> dict[Configuration, int]:
        return {each: number for number, each in enumerate(self.configurations)}

    def number_of(self, configuration: Configuration) -> int:
        """Number of a configuration: its place among all, from 0.

        Raises
        ------
        InputError
            If it is not one of them.
        """
        if configuration not in self._numbers:
            raise InputError(
                f"configuration: expected one of the {len(self)} that are known, such as "
                f"{self.configurations[0]}; found {configuration}"
            )
        return self._numbers[configuration]

    @cached_property
    def devices(self) -> tuple[str, ...]:
        """Keys of the devices, sorted."""
        return tuple(sorted({each.device for each in self.configurations}))

    @cached_property
    def device_numbers(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """``(c,)`` For each configuration the place of its device in `devices`."""
        return np.array([self.devices.index(each.device) for each in self.configurations], np.int64)

    @cached_property
    def knobs(self) -> tuple[str, ...]:
        """Names of the numeric settings that have more than one value on some device, sorted."""
        return tuple(name for name in self._names(float) if self._varies(name))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Names of the settings that hold words and are not the same throughout, sorted."""
        return tuple(name for name in self._names(str) if self._varies(name))

    def _names(self, kind: type) -> list[str]:
        return sorted(
            {
                name
                for each in self.configurations
                for name, value in each.settings.items()
                if isinstance(value, kind)
            }
        )

    def _varies(self, name: str) -> bool:
        values: dict[str, set[object]] = {}
        for each in self.configurations:
            values.setdefault(each.device, set()).add(each.settings.get(name))
        return any(len(found) > 1 for found in values.values())

    @cached_property
    def matrix(self) -> Reals:
        """``(c, knobs)`` What each knob is set to; NaN where a device does not have it."""
        return np.array(
            [[each.settings.get(name, np.nan) for name in self.knobs] for each in self.configurations],
            np.float64,
        ).reshape(len(self), len(self.knobs))


def _order(configuration: Configuration) -> tuple[object, ...]:
    # A knob that a configuration lacks comes before any setting of it.
    return (
        configuration.device,
        tuple((name, isinstance(value, str), value) for name, value in configuration.settings.items()),
    )

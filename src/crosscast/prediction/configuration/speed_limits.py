"""Limits of times by physics: so many more cores or cycles make a kernel so many times faster at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.data.configuration import Configuration, Setting
from crosscast.prediction.configuration.data import ConfigurationSpace

_CORES = ("cores", "threads")
_CLOCK = "clock_hz"
_CACHES, _NOISE = 1.05, 1.02
"""Largest speed-up over the ratio of cores and clocks: more cores have more caches, and runs have noise."""


@dataclass(frozen=True, eq=False)
class SpeedLimits:
    """Cores and clocks of ``c`` configurations."""

    # (c,) Number of the group of each: those of a device that differ in nothing but cores and clocks
    group: Integers
    cores: Reals  # (a, c) Numbers of cores; 1 where there is no such setting
    clocks: Reals  # (b, c) Clocks; 1 where there is no such setting

    @classmethod
    def of(cls, space: ConfigurationSpace) -> SpeedLimits:
        """The limits of a space."""
        names = {name for each in space.configurations for name in each.settings}
        clocks = sorted(name for name in names if name.endswith(_CLOCK))
        groups = [_others(each) for each in space.configurations]
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}

        def rows(wanted: list[str]) -> Reals:
            values = [[_number(each.settings.get(name)) for each in space.configurations] for name in wanted]
            return np.array([np.ones(len(space)), *values], np.float64)

        cores = [name for name in _CORES if name in names]
        return cls(np.array([numbers[group] for group in groups], np.int64), rows(cores), rows(clocks))

    def times(self, numbers: Integers, time_s: Reals) -> tuple[Reals, Reals]:
        """Least and most times ``(c,)`` of a kernel, from its times at some configurations."""
        least, most = np.zeros(len(self.group)), np.full(len(self.group), np.inf)
        for number, seconds in zip(numbers.tolist(), time_s.tolist(), strict=True):
            like = self.group == self.group[number]
            to, back = (self._largest_speed_up(number, sign) for sign in (1, -1))
            least = np.where(like, np.maximum(least, seconds / to), least)
            most = np.where(like, np.minimum(most, seconds * back), most)
        # Runs that contradict each other limit nothing.
        consistent = least <= most
        return np.where(consistent, least, 0.0), np.where(consistent, most, np.inf)

    def _largest_speed_up(self, number: int, sign: int) -> Reals:
        """Largest speed-up ``(c,)`` from a configuration to each, or with a sign of -1 from each to it."""
        ratios = [(values / values[:, [number]]) ** sign for values in (self.cores, self.clocks)]
        cores, clocks = (np.maximum(each.max(axis=0), 1.0) for each in ratios)
        as_many: Flags = (self.cores == self.cores[:, [number]]).all(axis=0)
        return np.asarray(cores * clocks * np.where(as_many, _NOISE, _CACHES))


def _others(configuration: Configuration) -> tuple[object, ...]:
    """Device and settings but cores and clocks, of which only the names matter."""
    settings = configuration.settings
    is_speed = {name: name in _CORES or name.endswith(_CLOCK) for name in settings}
    return configuration.device, *((name, not is_speed[name] and settings[name]) for name in settings)


def _number(setting: Setting | None) -> float:
    """A number above 0; 1 where there is none."""
    return setting if isinstance(setting, float) and setting > 0 else 1.0

"""The physical model, corrected by what its errors on training kernels have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.correction import Correction, fit_correction
from crosscast.predict.grid import Grid, Profiles
from crosscast.predict.physical.model import Physical, PhysicalPredictor
from crosscast.predict.physical.quantities import quantities_of

__all__ = ["Combined", "CombinedPredictor"]


@dataclass(frozen=True)
class CombinedPredictor:
    """A fitted combination.

    Parameters
    ----------
    physical
        The physical model.
    correction
        What corrects it.
    """

    physical: PhysicalPredictor
    correction: Correction

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds, of shape ``(n, d)``.

        Raises
        ------
        InputError
            If a profile lacks a metric.
        """
        quantities = quantities_of(profiles)
        times, shares = self.physical.log_time_and_launch_share(quantities)
        return times + self.correction.log_factor(profiles, quantities, shares)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {**self.physical.state(), **self.correction.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> CombinedPredictor:
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
        physical, correction = PhysicalPredictor.from_state(state), Correction.from_state(state)
        found, wanted = correction.by_launch.shape[1], len(physical.gpu)
        if found != wanted:
            raise InputError(f"model: by_launch: expected {wanted} devices, found {found}")
        return cls(physical, correction)


@dataclass(frozen=True)
class Combined:
    """The physical model with a correction for how devices differ."""

    name: str = "combined"

    def fit(self, grid: Grid, seed: int) -> CombinedPredictor:
        """Fit the physical model, then the correction to its errors on the same kernels."""
        physical = Physical().fit(grid, seed)
        quantities = quantities_of(grid.profiles)
        times, shares = physical.log_time_and_launch_share(quantities)
        errors = grid.log_time - times
        correction = fit_correction(grid.profiles, quantities, errors, shares, grid.devices)
        return CombinedPredictor(physical, correction)

"""The protocol of models, in two steps: a centre for each device, and a forecast that says how sure it is.

A *point model* says where the logarithm of the time lies on each device that it was fitted on. Everything
else (intervals, probes, devices that were not there when it was fitted) is the same for all models, and is
made from the errors that a point model has on applications that were held out of its fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.predict.grid import Grid, Profiles

__all__ = ["Forecast", "Model", "PointModel", "PointPredictor", "Predictor"]


class PointPredictor(Protocol):
    """A fitted point model."""

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        ...


class PointModel(Protocol):
    """A way to predict logarithms of times from profiles."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        ...

    def fit(self, grid: Grid, seed: int) -> PointPredictor:
        """Fit it to a grid that may have cells without a time.

        Whatever it scales, tunes or selects, it does with this grid alone.
        """
        ...


@dataclass(frozen=True)
class Forecast:
    """Predicted times of ``n`` kernels on ``d`` devices, in seconds.

    Parameters
    ----------
    devices
        Keys of the devices, of length ``d``.
    centre
        Predicted median, of shape ``(n, d)``.
    low, high
        Limits of the interval that holds the time with a probability of `level`, of shape ``(n, d)``.
    level
        That probability.
    """

    devices: tuple[str, ...]
    centre: Reals
    low: Reals
    high: Reals
    level: float


class Predictor(Protocol):
    """A fitted model that says how sure it is."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it was fitted on."""
        ...

    def predict(
        self,
        profiles: Profiles,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> Forecast:
        """Predict times.

        Parameters
        ----------
        profiles
            ``n`` kernels.
        devices
            Keys of devices that it was fitted on, or devices that it was not fitted on, by what describes
            them; by default all that it was fitted on.
        probes
            Measured times in seconds on the devices that it was fitted on (all of them, in their order),
            of shape ``(n, number of those devices)``; not a number where not measured.
        level
            Probability that the interval is to hold.

        Raises
        ------
        InputError
            If a device is not known, or a probe is not a time.
        """
        ...


class Model(Protocol):
    """A way to make forecasts."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        ...

    def fit(self, grid: Grid, seed: int) -> Predictor:
        """Fit it, its intervals included, to this grid alone.

        Raises
        ------
        InputError
            If the grid has too few applications or devices.
        """
        ...

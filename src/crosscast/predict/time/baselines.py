"""What a model has to beat: one time a device, and the times of the most similar kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_reals
from crosscast.predict.time.data import Grid, Profiles, filled
from crosscast.predict.time.features import Features

_AMOUNTS = ("instructions", "work_items", "footprint")
_AT_ONCE = 4096


@dataclass(frozen=True)
class DeviceMean:
    """The geometric mean of a device's times, whatever the kernel: it always chooses the same device.

    Each kernel at a size counts the same. Weighting by application would be the worse baseline: applications
    with few kernels have long ones.
    """

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "device-mean"

    def fit(self, grid: Grid, seed: int) -> FittedMean:
        """Fit it; cells without a time are filled, so that no device looks slow for having had long kernels.

        Nothing is random, so the seed is not used.
        """
        return FittedMean(filled(grid).log_time.mean(axis=0))


@dataclass(frozen=True, eq=False)
class FittedMean:
    """Means of ``d`` devices."""

    mean: Reals  # Mean logarithms of times in seconds, of shape `(d,)`

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        return np.tile(self.mean, (len(profiles), 1))

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {"mean": self.mean}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedMean:
        """Make it from its arrays."""
        return cls(kept_reals(state, "mean", 1))


@dataclass(frozen=True)
class Nearest:
    """The times of the training kernel that is most similar in work, in work-items and in data.

    Nearest in the logarithms of these three, each scaled to deviation 1. Kernels that agree in all three
    count as one, with the geometric mean of their times.
    """

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        return "nearest"

    def fit(self, grid: Grid, seed: int) -> FittedNearest:
        """Fit it; cells without a time are filled. Nothing is random, so the seed is not used."""
        complete = filled(grid)
        features = Features.fit(complete.profiles, _AMOUNTS)
        points, number = np.unique(features.matrix(complete.profiles), axis=0, return_inverse=True)
        times = np.zeros((len(points), len(grid.devices)))
        np.add.at(times, number, complete.log_time)
        return FittedNearest(features, points, times / np.bincount(number)[:, None])


@dataclass(frozen=True, eq=False)
class FittedNearest:
    """``k`` points in the space of the features, and their times."""

    features: Features  # What the `f` coordinates are
    points: Reals  # The points, of shape `(k, f)`
    times: Reals  # Natural logarithms of times in seconds, of shape `(k, d)`

    def log_time(self, profiles: Profiles) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        scale = self.points.std(axis=0)
        # A feature that all points share tells nothing of which is nearer.
        scale[scale == 0] = np.inf
        points, rows = self.points / scale, self.features.matrix(profiles) / scale
        nearest = np.empty(len(rows), dtype=np.int64)
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            nearest[first : first + _AT_ONCE] = _squares(part, points).argmin(axis=1)
        return self.times[nearest]

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {**self.features.state(), "points": self.points, "times": self.times}

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> FittedNearest:
        """Make it from its arrays."""
        features = Features.from_state(state)
        points, times = kept_reals(state, "points", 2), kept_reals(state, "times", 2)
        expected = (len(times), len(features.names))
        if points.shape != expected or len(times) == 0:
            raise InputError(
                f"model: points: expected shape (k, f) {expected} with a point at least, found {points.shape}"
            )
        return cls(features, points, times)


def _squares(rows: Reals, points: Reals) -> Reals:
    squares: Reals = ((rows[:, None, :] - points) ** 2).sum(axis=2)
    return squares

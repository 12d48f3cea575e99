"""The trivial models of times, and the registry of all models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError, expect_known
from crosscast.prediction.serialization import Array, Stored
from crosscast.prediction.time.combined import Combined
from crosscast.prediction.time.data import Grid, ProfileBatch, impute
from crosscast.prediction.time.gaussian import Gaussian
from crosscast.prediction.time.johnston2018 import PublishedForest
from crosscast.prediction.time.physical import Physical, check_metrics, invalid_metrics


@dataclass(frozen=True)
class DeviceMean:
    """The geometric mean of a device's times for any kernel: always the same recommended device.

    Each kernel at a size counts the same. Weighting by application would be the worse baseline: applications
    with few kernels have long ones.
    """

    name: str = "device-mean"

    def fit(self, grid: Grid, seed: int) -> FittedMean:
        """Fit the means; cells without a time are imputed, so that long kernels make no device look slow."""
        return FittedMean(impute(grid).log_time.mean(axis=0))


@dataclass(frozen=True, eq=False)
class FittedMean(Stored, kind="mean"):
    """Means of ``d`` devices."""

    mean: Annotated[Reals, Array("d")]  # Mean logarithms of times in seconds

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        return np.tile(self.mean, (len(profiles), 1))


_AMOUNTS = {
    "instructions": "total_instruction_count",
    "work_items": "work_items",
    "footprint": "total_memory_footprint",
}
_AT_ONCE = 4096


def _logs(names: Sequence[str], profiles: ProfileBatch) -> Reals:
    """Logarithms of amounts, each plus one, of shape ``(n, f)``."""
    metrics = [_AMOUNTS[name] for name in names]
    check_metrics(profiles, metrics)
    return np.log1p(np.column_stack([profiles.metric(metric) for metric in metrics]))


@dataclass(frozen=True)
class Nearest:
    """The times of the training kernel that is most similar in work, in work-items and in data.

    Nearest in the logarithms of these three, or of those that all training kernels have, each scaled to
    deviation 1. Kernels that agree in all of them count as one, with the geometric mean of their times.
    """

    name: str = "nearest"

    def fit(self, grid: Grid, seed: int) -> FittedNearest:
        """Fit the points; cells without a time are imputed."""
        complete = impute(grid)
        invalid = invalid_metrics(complete.profiles, list(_AMOUNTS.values()))
        names = tuple(name for name, row in zip(_AMOUNTS, invalid, strict=True) if not row.any())
        if not names:
            expected = f"one of the metrics {', '.join(_AMOUNTS.values())} of all kernels"
            raise InputError.of(where="profiles", expected=expected, found="none")
        points, number = np.unique(_logs(names, complete.profiles), axis=0, return_inverse=True)
        times = np.zeros((len(points), len(grid.devices)))
        np.add.at(times, number, complete.log_time)
        return FittedNearest(names, points, times / np.bincount(number)[:, None])


@dataclass(frozen=True, eq=False)
class FittedNearest(Stored, kind="nearest"):
    """``k`` points in the space of the amounts, and their times."""

    features: Annotated[tuple[str, ...], Array("f", least=1, among=tuple(_AMOUNTS))]
    points: Annotated[Reals, Array("k f", least=1)]
    times: Annotated[Reals, Array("k d")]  # Natural logarithms of seconds

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        scale = self.points.std(axis=0)
        # A feature that is equal for all points does not change distances.
        scale[scale == 0] = np.inf
        points, rows = self.points / scale, _logs(self.features, profiles) / scale
        nearest = np.empty(len(rows), dtype=np.int64)
        for first in range(0, len(rows), _AT_ONCE):
            part = rows[first : first + _AT_ONCE]
            squares = ((part[:, None, :] - points) ** 2).sum(axis=2)
            nearest[first : first + _AT_ONCE] = squares.argmin(axis=1)
        return self.times[nearest]


DEFAULT_MODEL = "combined"

BASELINES = ("device-mean", "nearest")
"""Names of the models that all others must beat."""

_FEW_TREES = 60

MODELS: Mapping[str, Callable[[], Gaussian]] = {
    "device-mean": partial(Gaussian, DeviceMean()),
    "nearest": partial(Gaussian, Nearest()),
    "published-forest": partial(Gaussian, PublishedForest(), PublishedForest(trees=_FEW_TREES)),
    "physical": partial(Gaussian, Physical()),
    "combined": partial(Gaussian, Combined(), trivial=DeviceMean(), adaptive=True),
}
"""Factories of the models by name, from the trivial to the strong."""


def model_named(name: str) -> Gaussian:
    """Return a new model by its name."""
    expect_known(name, MODELS, where="model")
    return MODELS[name]()

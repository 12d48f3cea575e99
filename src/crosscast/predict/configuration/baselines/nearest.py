"""The training kernels whose sample runs are most like those of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.configuration.baselines.relative import RelativePredictor, changes_of
from crosscast.predict.configuration.surfaces import Surfaces

__all__ = ["FittedNearest", "NearestKernels"]

_LEAST_DISTANCE = 1e-6


@dataclass(frozen=True)
class NearestKernels:
    """Time and power change as those of the nearest training kernels did, in the weighted geometric mean.

    Nearest by the sample runs' features, each standardised; weighted by the inverse of the distance.

    Parameters
    ----------
    count
        How many kernels.

    Raises
    ------
    InputError
        If it is below 1.
    """

    count: int = 3

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError(f"nearest: expected at least 1 kernel, found {self.count}")

    @property
    def name(self) -> str:
        """Its name: ``nearest``, with the number of kernels where it is not 3."""
        return "nearest" if self.count == 3 else f"nearest-{self.count}"

    def fit(self, surfaces: Surfaces, samples: Sequence[int], seed: int = 0) -> RelativePredictor:
        """Remember the kernels that ran at all samples. Nothing is random, so the seed is not used.

        Raises
        ------
        InputError
            If there is none.
        """
        known = changes_of(surfaces, samples)
        learned = FittedNearest(self.count, known.points, known.time, known.power)
        return RelativePredictor(surfaces.space, tuple(samples), known.features, learned)


@dataclass(frozen=True, eq=False)
class FittedNearest:
    """``n`` kernels by their features.

    Parameters
    ----------
    count
        How many are taken.
    points
        ``(n, f)`` Their features.
    time, power
        ``(n, c)`` Logarithms of their times and powers over those at the sample; NaN where not known.
    """

    count: int
    points: Reals
    time: Reals
    power: Reals

    def changes(self, point: Reals) -> tuple[Reals, Reals]:
        """Weighted means over the nearest kernels; see `Learned.changes`.

        A configuration that none of them ran at is told by all kernels that did; NaN where there is none.
        """
        distances = np.sqrt(((self.points - point) ** 2).sum(axis=1))
        weights = 1 / np.maximum(distances, _LEAST_DISTANCE)
        near = np.argsort(distances, kind="stable")[: self.count]
        time, power = (_mean(values[near], weights[near]) for values in (self.time, self.power))
        lacking = np.isnan(time) | np.isnan(power)
        if lacking.any():
            time[lacking] = _mean(self.time[:, lacking], weights)
            power[lacking] = _mean(self.power[:, lacking], weights)
        return time, power


def _mean(values: Reals, weights: Reals) -> Reals:
    """Mean over the first axis of the values that are known; NaN where none is."""
    known = np.isfinite(values)
    total = weights @ known
    means: Reals = np.full(len(total), np.nan)
    return np.divide(weights @ np.where(known, values, 0.0), total, out=means, where=total > 0)

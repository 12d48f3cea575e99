"""A Gaussian process over a space: of counts of variants, and of what forecasts of their times are off by.

C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning (2006), sections 2.2, 2.7 and
5.4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crosscast.arrays import Reals
from crosscast.prediction.configuration.gaussian_process import matern, matern_slope, squares

_JITTER = 1e-9
_BLOCK = 4096


@dataclass(frozen=True)
class Prior:
    """Deviations that are expected of a function's parts, and how sure that is, in logarithms."""

    constant: float  # Of what all variants have in common
    linear: float  # Of the slopes in the features
    smooth: float  # Of what is smooth in the coordinates
    noise: float
    length: float = 2.0  # Of the coordinates over which that changes
    spread: float = 1.0  # Deviation of the logarithms of all of these


@dataclass(frozen=True, eq=False)
class TuningProcess:
    """A process that was fitted to ``m`` points with ``k`` values each, which share its deviations."""

    features: Reals  # `(m, q)` In which it is linear
    coordinates: Reals  # `(m, p)` In which it is smooth
    values: Reals  # `(m, k)`
    logs: Reals  # `(4 + p,)` Logarithms of the deviations constant, linear, smooth, noise, and of the lengths

    @classmethod
    def fit(
        cls, features: Reals, coordinates: Reals, values: Reals, prior: Prior, start: Reals | None = None
    ) -> TuningProcess:
        """Fit the deviations by the most likely values under their prior."""
        # Imported here: `crosscast.tuning` is looked at without it.
        from scipy.optimize import minimize

        p = coordinates.shape[1]
        centre = np.log(
            [prior.constant, prior.linear, prior.smooth, prior.noise, *(prior.length * p**0.5,) * p]
        )
        apart = (coordinates[:, None, :] - coordinates[None, :, :]) ** 2
        products = features @ features.T
        outer = values @ values.T / values.shape[1]

        def loss(logs: Reals) -> tuple[float, Reals]:
            parts = _parts(logs, products, apart)
            matrix = parts.sum
            root = np.linalg.cholesky(matrix)
            inverse = _inverse(matrix)
            drawn = (logs - centre) / prior.spread
            total = np.log(np.diag(root)).sum() + 0.5 * (inverse * outer).sum() + 0.5 * drawn @ drawn
            slope: Reals = 0.5 * (inverse - inverse @ outer @ inverse)
            return float(total), parts.slopes(slope) + drawn / prior.spread

        best = minimize(
            loss,
            centre if start is None else start,
            jac=True,
            method="L-BFGS-B",
            bounds=[(c - 4, c + 4) for c in centre],
            options={"maxiter": 60},
        )
        return cls(features, coordinates, values, np.asarray(best.x))

    @cached_property
    def _inverse(self) -> Reals:
        apart = (self.coordinates[:, None, :] - self.coordinates[None, :, :]) ** 2
        matrix = _parts(self.logs, self.features @ self.features.T, apart).sum
        return _inverse(matrix)

    def left_out(self) -> Reals:
        """What it says of each of its points from all others, of shape ``(m, k)``."""
        found: Reals = self.values - self._inverse @ self.values / np.diag(self._inverse)[:, None]
        return found

    def evidence(self) -> float:
        """Logarithm of the likelihood of each point given all others, summed over all (eq. 5.11)."""
        variance = 1.0 / np.diag(self._inverse)[:, None]
        squares = (self._inverse @ self.values * variance) ** 2
        return float((-0.5 * np.log(2 * np.pi * variance) - 0.5 * squares / variance).sum())

    def predict(self, features: Reals, coordinates: Reals) -> tuple[Reals, Reals]:
        """Means ``(n, k)`` and deviations ``(n,)`` without noise at other points."""
        constant, linear, smooth = np.exp(2 * self.logs[:3])
        weights = self._inverse @ self.values
        scale = np.exp(-self.logs[4:])
        mine = self.coordinates * scale
        means, deviations = [], []
        for first in range(0, len(features), _BLOCK):
            part, at = features[first : first + _BLOCK], coordinates[first : first + _BLOCK] * scale
            cross = constant + linear * part @ self.features.T + smooth * matern(squares(at, mine))
            own = constant + linear * (part**2).sum(1) + smooth
            means.append(cross @ weights)
            left = own - ((cross @ self._inverse) * cross).sum(1)
            deviations.append(np.sqrt(np.maximum(left, 1e-12)))
        return np.concatenate(means), np.concatenate(deviations)


def _inverse(matrix: Reals) -> Reals:
    found: Reals = np.linalg.inv(matrix).astype(np.float64)
    return found


@dataclass(frozen=True, eq=False)
class _ProcessParts:
    constant: float
    linear: Reals
    smooth: Reals
    noise: float
    near: Reals  # What slopes in the lengths are made of
    scaled: Reals  # `(m, m, p)` Squared distances over squared lengths

    @property
    def sum(self) -> Reals:
        size = len(self.linear)
        return self.constant + self.linear + self.smooth + (self.noise + _JITTER) * np.eye(size)

    def slopes(self, outer: Reals) -> Reals:
        """Slopes in the logarithms, of the slopes in the matrix."""
        lengths = np.einsum("ij,ijp->p", outer * self.near, self.scaled)
        first = [
            2 * self.constant * outer.sum(),
            2 * (self.linear * outer).sum(),
            2 * (self.smooth * outer).sum(),
            2 * self.noise * np.trace(outer),
        ]
        return np.concatenate([first, lengths])


def _parts(logs: Reals, products: Reals, apart: Reals) -> _ProcessParts:
    constant, linear, smooth, noise = np.exp(2 * logs[:4])
    scaled = apart * np.exp(-2 * logs[4:])
    distance = scaled.sum(axis=2)
    # The derivative in the logarithm of a length.
    near = -2 * smooth * matern_slope(distance)
    return _ProcessParts(
        float(constant), linear * products, smooth * matern(distance), float(noise), near, scaled
    )

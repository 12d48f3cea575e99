"""A Gaussian process over a space, of counts of variants or of errors of their forecast times.

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
    """Log-normal prior of a process's hyperparameters: medians, and the deviation of logarithms."""

    constant: float  # Deviation of the part that all variants have in common
    linear: float  # Deviation of the slopes in the features
    smooth: float  # Deviation of the part that is smooth in the coordinates
    noise: float  # Deviation of the noise
    length: float = 2.0  # Length scale of the smooth part in each coordinate, over the root of their number
    spread: float = 1.0  # Deviation of the logarithms of all of these


@dataclass(frozen=True, eq=False)
class TuningProcess:
    """A process fitted to ``m`` points with ``k`` values each, which share its hyperparameters."""

    features: Reals  # `(m, q)` In which it is linear
    coordinates: Reals  # `(m, p)` In which it is smooth
    values: Reals  # `(m, k)`
    logs: Reals  # `(4 + p,)` Logarithms of the deviations constant, linear, smooth and noise, and of lengths

    @classmethod
    def fit(
        cls, features: Reals, coordinates: Reals, values: Reals, prior: Prior, start: Reals | None = None
    ) -> TuningProcess:
        """Fit the hyperparameters: those of the largest posterior density.

        Parameters
        ----------
        features, coordinates, values
            The points: ``(m, q)``, ``(m, p)`` and ``(m, k)``.
        prior
            Prior of the hyperparameters.
        start
            Logarithms ``(4 + p,)`` at which the search for them begins; by default those of the prior.
        """
        # Imported here, so that importing this module does not load scipy.
        from scipy.optimize import minimize

        p = coordinates.shape[1]
        centre = np.log(
            [prior.constant, prior.linear, prior.smooth, prior.noise, *(prior.length * p**0.5,) * p]
        )
        squared = (coordinates[:, None, :] - coordinates[None, :, :]) ** 2
        products = features @ features.T
        outer = values @ values.T / values.shape[1]

        def loss(logs: Reals) -> tuple[float, Reals]:
            covariance = _covariance(logs, products, squared)
            matrix = covariance.sum
            root = np.linalg.cholesky(matrix)
            inverse = _inverse(matrix)
            z = (logs - centre) / prior.spread
            total = np.log(np.diag(root)).sum() + 0.5 * (inverse * outer).sum() + 0.5 * z @ z
            gradient: Reals = 0.5 * (inverse - inverse @ outer @ inverse)
            return float(total), covariance.gradient(gradient) + z / prior.spread

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
        squared = (self.coordinates[:, None, :] - self.coordinates[None, :, :]) ** 2
        return _inverse(_covariance(self.logs, self.features @ self.features.T, squared).sum)

    def leave_one_out(self) -> Reals:
        """Predict the values ``(m, k)`` of each point from all others (eq. 5.12)."""
        means: Reals = self.values - self._inverse @ self.values / np.diag(self._inverse)[:, None]
        return means

    def evidence(self) -> float:
        """Return the logarithm of the likelihood of each point given all others, summed (eq. 5.11)."""
        variance = 1.0 / np.diag(self._inverse)[:, None]
        errors = self._inverse @ self.values * variance
        return float((-0.5 * np.log(2 * np.pi * variance) - 0.5 * errors**2 / variance).sum())

    def predict(self, features: Reals, coordinates: Reals) -> tuple[Reals, Reals]:
        """Predict means ``(n, k)``, and deviations ``(n,)`` without noise, at ``n`` other points."""
        constant, linear, smooth = np.exp(2 * self.logs[:3])
        weights = self._inverse @ self.values
        scale = np.exp(-self.logs[4:])
        fitted = self.coordinates * scale
        means, deviations = [], []
        for first in range(0, len(features), _BLOCK):
            block, points = features[first : first + _BLOCK], coordinates[first : first + _BLOCK] * scale
            cross = constant + linear * block @ self.features.T + smooth * matern(squares(points, fitted))
            means.append(cross @ weights)
            prior_variance = constant + linear * (block**2).sum(1) + smooth
            variance = prior_variance - ((cross @ self._inverse) * cross).sum(1)
            deviations.append(np.sqrt(np.maximum(variance, 1e-12)))
        return np.concatenate(means), np.concatenate(deviations)


def _inverse(matrix: Reals) -> Reals:
    inverse: Reals = np.linalg.inv(matrix).astype(np.float64)
    return inverse


@dataclass(frozen=True, eq=False)
class _Covariance:
    """Covariance of ``m`` points as a sum of parts."""

    constant: float
    linear: Reals  # `(m, m)`
    smooth: Reals  # `(m, m)`
    noise: float
    length_slope: Reals  # `(m, m)` Derivative by the logarithm of a length, over its `scaled`
    scaled: Reals  # `(m, m, p)` Squared distances over squared lengths

    @property
    def sum(self) -> Reals:
        size = len(self.linear)
        return self.constant + self.linear + self.smooth + (self.noise + _JITTER) * np.eye(size)

    def gradient(self, by_matrix: Reals) -> Reals:
        """Return the gradient by the logarithms ``(4 + p,)`` of a function with the gradient `by_matrix`."""
        lengths = np.einsum("ij,ijp->p", by_matrix * self.length_slope, self.scaled)
        deviations = [
            2 * self.constant * by_matrix.sum(),
            2 * (self.linear * by_matrix).sum(),
            2 * (self.smooth * by_matrix).sum(),
            2 * self.noise * np.trace(by_matrix),
        ]
        return np.concatenate([deviations, lengths])


def _covariance(logs: Reals, products: Reals, squared: Reals) -> _Covariance:
    constant, linear, smooth, noise = np.exp(2 * logs[:4])
    scaled = squared * np.exp(-2 * logs[4:])
    distance = scaled.sum(axis=2)
    length_slope = -2 * smooth * matern_slope(distance)
    return _Covariance(
        float(constant), linear * products, smooth * matern(distance), float(noise), length_slope, scaled
    )

"""The covariance under which what was measured is likeliest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.predict.configuration.process.covariance import Covariance, matern, matern_slope

__all__ = ["likeliest"]

_START_LENGTH = 2.0
_START_NOISE = 0.02
_START_OWN = 0.1
_LENGTH_DEVIATION = 1.5
"""Standard deviation of the logarithm of a length about the first guess, before anything was measured."""

_RANGE = 5.0
"""How far logarithms may go from the first guess."""

_LEAST_VARIANCE = 1e-8
_STEPS = 25


@dataclass(frozen=True, eq=False)
class _Parts:
    """What the likelihood is computed from, the same at each step."""

    squared: Reals
    """``(d, n, n)`` Squared differences in each coordinate; settings come last."""

    same: Reals
    """``(n, n)`` 1 where both values are of one kernel."""

    values: Reals
    features: int


def likeliest(points: Reals, features: int, kernels: Integers, values: Reals) -> Covariance:
    """Climb the likelihood of values, times the prior of lengths.

    Parameters
    ----------
    points
        ``(n, f + s)`` Features of the kernel and settings of the configuration of each value.
    features
        ``f``.
    kernels
        ``(n,)`` Which kernel each is of.
    values
        ``(n,)`` The values, about 0.
    """
    from scipy.optimize import minimize

    parts = _parts(points, features, kernels, values)
    d = points.shape[1]
    variance = max(float(values.var()), _LEAST_VARIANCE)
    start = np.log(
        np.concatenate(
            [
                np.full(2 * d - features, _START_LENGTH),
                [variance, _START_OWN * variance, _START_NOISE * variance],
            ]
        )
    )
    found = minimize(
        _cost,
        start,
        args=(parts,),
        jac=True,
        method="L-BFGS-B",
        bounds=[(each - _RANGE, each + _RANGE) for each in start],
        options={"maxiter": _STEPS},
    )
    return _covariance(found.x, d, features)


def _parts(points: Reals, features: int, kernels: Integers, values: Reals) -> _Parts:
    return _Parts(
        (points.T[:, :, None] - points.T[:, None, :]) ** 2,
        np.equal.outer(kernels, kernels).astype(np.float64),
        values,
        features,
    )


def _covariance(logarithms: Reals, d: int, features: int) -> Covariance:
    found = np.exp(logarithms)
    lengths, own = found[:d], found[d : 2 * d - features]
    variance, own_variance, noise = found[-3:].tolist()
    return Covariance(lengths, variance, own, own_variance, noise)


def _cost(logarithms: Reals, parts: _Parts) -> tuple[float, Reals]:
    """Less the logarithm of likelihood and prior, and its gradient."""
    from scipy.linalg import cho_factor, cho_solve

    d, n = parts.squared.shape[:2]
    covariance = _covariance(logarithms, d, parts.features)
    weights, own_weights = covariance.lengths**-2.0, covariance.own_lengths**-2.0
    settings = parts.squared[parts.features :]
    distances = np.tensordot(weights, parts.squared, 1)
    own_distances = np.tensordot(own_weights, settings, 1)
    shared = covariance.variance * matern(distances)
    own = covariance.own_variance * matern(own_distances) * parts.same
    total = shared + own + (covariance.noise + _LEAST_VARIANCE) * np.eye(n)
    factor = cho_factor(total, lower=True)
    solved = cho_solve(factor, parts.values)
    # How the cost changes with each element of the covariance.
    slope = 0.5 * (cho_solve(factor, np.eye(n)) - np.outer(solved, solved))
    by_distance = slope * covariance.variance * matern_slope(distances)
    by_own = slope * covariance.own_variance * matern_slope(own_distances) * parts.same
    gradient = np.concatenate(
        [
            -2 * weights * np.tensordot(parts.squared, by_distance, 2),
            -2 * own_weights * np.tensordot(settings, by_own, 2),
            [(slope * shared).sum(), (slope * own).sum(), covariance.noise * np.trace(slope)],
        ]
    )
    lengths = logarithms[:-3] - np.log(_START_LENGTH)
    gradient[:-3] += lengths / _LENGTH_DEVIATION**2
    cost = 0.5 * parts.values @ solved + np.log(np.diag(factor[0])).sum()
    return float(cost + 0.5 * (lengths**2).sum() / _LENGTH_DEVIATION**2), gradient

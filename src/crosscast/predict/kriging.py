"""The time on a device by best linear unbiased prediction from the others: kriging, between descriptors.

How times on two devices vary together is taken as a sum of parts: one for both being GPUs or not, one for
their maker, one for their series, one that falls with the distance of their numbers, one linear in these, and
one that each has for itself. The parts' sizes are those that make the known times most likely, under priors
that keep them sound with few devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosscast.arrays import Reals
from crosscast.predict.descriptors import Pairs

__all__ = ["Kriging", "fit_kriging"]

_MEANS = np.log([0.1, 0.1, 0.05, 0.1, 0.1, 0.01, 1.0, np.e])
_SPREADS = np.array([1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0.7, 1.0])
_NEAR, _REACH, _SHARED = 3, 6, 7
_POWER = 0.8
_LIMIT = 6.0
_JITTER = 1e-8


@dataclass(frozen=True)
class Kriging:
    """Fitted sizes of the parts.

    Parameters
    ----------
    sizes
        Logarithms of the variances of the six parts in the order above, of the distance at which the fourth
        has fallen by ``exp(-1/2)``, and of how much more than this devices differ by what all kernels share.
    """

    WIDTH: ClassVar[int] = len(_MEANS)

    sizes: Reals

    def weights(self, pairs: Pairs) -> tuple[Reals, float]:
        """Weights of all devices but the last for the last, of shape ``(d - 1,)``, and what is added.

        The weights add up to one, so that a kernel that is slower everywhere is so on the new device.
        """
        covariance, known = self._covariance(pairs), len(pairs) - 1
        system = np.ones((known + 1, known + 1))
        system[:known, :known] = covariance[:-1, :-1]
        system[known, known] = 0.0
        weights = np.linalg.solve(system, np.append(covariance[-1, :-1], 1.0))[:known]
        return weights, float(_POWER * (pairs.trend[-1] - weights @ pairs.trend[:-1]))

    def sd(self, weights: Reals, pairs: Pairs) -> float:
        """Standard deviation of the error that weights (of any origin) make on the last device."""
        whole = np.append(-weights, 1.0)
        variance = whole @ self._covariance(pairs) @ whole * (1 + np.exp(self.sizes[_SHARED]))
        return float(np.sqrt(max(variance, _JITTER)))

    def _covariance(self, pairs: Pairs) -> Reals:
        covariance: Reals = np.tensordot(np.exp(self.sizes[:_REACH]), _parts(self.sizes, pairs), 1)
        return covariance


def _parts(sizes: Reals, pairs: Pairs) -> Reals:
    near = np.exp(-0.5 * pairs.squares / np.exp(2 * sizes[_REACH]))
    makers = pairs.types * pairs.vendors
    return np.stack([pairs.gpus, makers, pairs.series, near, pairs.products, np.eye(len(pairs))])


def fit_kriging(pairs: Pairs, log_time: Reals, kernels: Reals, replicates: int) -> Kriging:
    """Fit the sizes by the most likely ones given the known times (maximum a posteriori).

    Parameters
    ----------
    pairs
        How alike the ``d`` devices are.
    log_time
        Logarithms of times, of shape ``(n, d)``.
    kernels
        Weight of each kernel, of shape ``(n,)``.
    replicates
        For how many independent kernels the kernels count: as many as there are applications.
    """
    # Imported here: predicting with fitted sizes needs no SciPy.
    from scipy.linalg import helmert
    from scipy.optimize import minimize

    contrasts = helmert(len(pairs))
    share = kernels / kernels.sum()
    seen = (log_time - _POWER * pairs.trend) @ contrasts.T
    centre = share @ seen
    scatter = ((seen - centre) * share[:, None]).T @ (seen - centre)
    shared = np.outer(centre, centre)

    def loss(sizes: Reals) -> tuple[float, Reals]:
        parts, variances = _parts(sizes, pairs), np.exp(sizes[:_REACH])
        covariance = contrasts @ np.tensordot(variances, parts, 1) @ contrasts.T
        covariance += _JITTER * np.eye(len(covariance))
        inverse, (_, volume) = np.linalg.inv(covariance), np.linalg.slogdet(covariance)
        total = replicates * scatter + np.exp(-sizes[_SHARED]) * shared
        count = replicates + 1
        away = (sizes - _MEANS) / _SPREADS
        value = count * volume + (inverse * total).sum() + len(covariance) * sizes[_SHARED] + away @ away
        by_covariance = contrasts.T @ (count * inverse - inverse @ total @ inverse) @ contrasts
        slope = 2 * away / _SPREADS
        slope[:_REACH] += variances * (parts * by_covariance).sum(axis=(1, 2))
        bent = parts[_NEAR] * pairs.squares * np.exp(-2 * sizes[_REACH])
        slope[_REACH] += variances[_NEAR] * (bent * by_covariance).sum()
        slope[_SHARED] += len(covariance) - np.exp(-sizes[_SHARED]) * (inverse * shared).sum()
        return float(value) / 2, slope / 2

    bounds = [(mean - _LIMIT, mean + _LIMIT) for mean in _MEANS]
    return Kriging(minimize(loss, _MEANS, jac=True, method="L-BFGS-B", bounds=bounds).x)

"""What measured times on some devices say about the others.

The errors of a forecast are normal with a covariance between devices. But now and then a kernel is far slower
or faster than predicted on all devices, or on all of a kind, for a reason of its own: a stride that all GPUs
of a maker are bad at, say. Under one normal distribution, such an error on one device would drag every
other with it. So there are several: the plain one, and for each set of devices one in which they share
a large shift. How likely each is follows from the measured times, and the forecast is the mean over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.predict.kinds import kinds_of

__all__ = ["Scatter", "conditional", "shared_shifts", "spread"]

_LEAST_NOISE = 0.03
# Twice or half of either makes no difference on the published data that could be told from chance.
_SHIFT_ODDS = 0.03
_SHIFT_VARIANCE = 2.0


@dataclass(frozen=True)
class Scatter:
    """How errors of logarithms of times scatter over ``d`` devices, about zero.

    Parameters
    ----------
    covariance
        Covariance between devices where nothing is out of the ordinary, of shape ``(d, d)``.
    shifts
        Sets of devices that now and then share a large error, of shape ``(k, d)``; none by default.
    """

    covariance: Reals
    shifts: Flags | None = None

    def parts(self) -> tuple[Reals, Reals]:
        """Odds and covariances of the ``m`` normal distributions that it is a mixture of.

        Returns
        -------
        tuple of arrays
            Of shapes ``(m,)`` and ``(m, d, d)``.
        """
        plain = np.zeros((1, len(self.covariance)))
        sets = plain if self.shifts is None else np.vstack([plain, self.shifts])
        odds = np.where(sets.any(axis=1), _SHIFT_ODDS, 1.0)
        return odds, self.covariance + _SHIFT_VARIANCE * sets[:, :, None] * sets[:, None, :]


def shared_shifts(devices: Sequence[Device]) -> Flags:
    """Sets of devices that may share a large error: all of them, and those of each kind with several.

    Returns
    -------
    array
        Of shape ``(k, d)``; without sets where there is but one device.
    """
    kinds = kinds_of(devices)
    sets = [kinds == kind for kind in np.unique(kinds)]
    if len(sets) > 1:
        sets.insert(0, np.ones(len(devices), dtype=np.bool_))
    several = [each for each in sets if each.sum() > 1]
    return np.stack(several) if several else np.zeros((0, len(devices)), dtype=np.bool_)


def conditional(
    centre: Reals, scatter: Scatter, measured: Reals, noise: float = _LEAST_NOISE
) -> tuple[Reals, Reals]:
    """Condition logarithms of times on some that were measured.

    Parameters
    ----------
    centre
        What was predicted, of shape ``(n, d)``.
    scatter
        How errors scatter.
    measured
        Measured logarithms, of shape ``(n, d)``; not a number where not measured.
    noise
        Standard deviation of a measurement's logarithm.

    Returns
    -------
    tuple of arrays
        Means and standard deviations given the measurements, of shape ``(n, d)`` each; on a measured device,
        what was measured and its noise.
    """
    known = np.isfinite(measured)
    mean, sd = _moments(scatter, measured - centre, np.eye(centre.shape[1]), noise)
    return np.where(known, measured, centre + mean), np.where(known, noise, sd)


def spread(scatter: Scatter, errors: Reals, sums: Reals) -> Reals:
    """Standard deviations of weighted sums of the logarithms, given those of some devices.

    Parameters
    ----------
    scatter
        How errors scatter.
    errors
        Errors where measured, of shape ``(n, d)``; not a number elsewhere.
    sums
        Weights of the devices in each sum, of shape ``(s, d)``.

    Returns
    -------
    array
        Of shape ``(n, s)``.
    """
    return _moments(scatter, errors, sums, _LEAST_NOISE)[1]


def _moments(scatter: Scatter, errors: Reals, sums: Reals, noise: float) -> tuple[Reals, Reals]:
    """Means and standard deviations of weighted sums of errors, given some errors."""
    odds, covariances = scatter.parts()
    known = np.isfinite(errors)
    mean, variance = np.zeros((len(errors), len(sums))), np.empty((len(errors), len(sums)))
    for pattern in np.unique(known, axis=0):
        rows = (known == pattern).all(axis=1)
        if pattern.any():
            found = errors[np.ix_(rows, pattern)]
            mean[rows], variance[rows] = _given(odds, covariances, pattern, found, sums, noise)
        else:
            variance[rows] = (odds @ _variances(covariances, sums)) / odds.sum()
    return mean, np.sqrt(np.maximum(variance, noise**2))


def _given(
    odds: Reals, covariances: Reals, known: Flags, errors: Reals, sums: Reals, noise: float
) -> tuple[Reals, Reals]:
    """Means and variances of the sums, given the errors of the known devices."""
    across = sums @ covariances[:, :, known]
    within: Any = covariances[:, known][:, :, known] + noise**2 * np.eye(errors.shape[1])
    solved: Any = np.linalg.solve(within, errors.T)
    _, volumes = np.linalg.slogdet(within)
    evidence = np.log(odds)[:, None] - ((errors.T * solved).sum(axis=1) + volumes[:, None]) / 2
    shares = np.exp(evidence - evidence.max(axis=0))
    shares /= shares.sum(axis=0)
    means: Any = (across @ solved).swapaxes(1, 2)
    weights: Any = np.linalg.solve(within, across.swapaxes(1, 2))
    left = _variances(covariances, sums) - (weights.swapaxes(1, 2) * across).sum(axis=2)
    mean: Reals = np.einsum("mn,mns->ns", shares, means)
    variance: Reals = shares.T @ left + np.einsum("mn,mns->ns", shares, (means - mean) ** 2)
    return mean, variance


def _variances(covariances: Reals, sums: Reals) -> Reals:
    """Variances of sums under each covariance, of shape ``(m, s)``."""
    variances: Reals = ((sums @ covariances) * sums).sum(axis=2)
    return variances

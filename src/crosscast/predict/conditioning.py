"""What measured times on some devices say about the others.

The errors of a forecast are normal with a covariance between devices. But now and then a kernel is far slower
or faster than predicted on all devices, or on all of a kind, for a reason of its own: a stride that all GPUs
of a maker are bad at, say. Under one normal distribution, such an error on one device would drag every
other with it. So there are several: the plain one, and for each set of devices one in which they share
a large shift. How likely each is follows from the measured times, and the forecast is the mean over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosscast.device import Device
from crosscast.predict.grid import Flags, Reals
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

    def parts(self) -> Iterator[tuple[float, Reals]]:
        """Odds and covariance of each normal distribution that it is a mixture of."""
        shifts = np.zeros((0, len(self.covariance)), dtype=np.bool_) if self.shifts is None else self.shifts
        yield 1.0, self.covariance
        for each in shifts:
            yield _SHIFT_ODDS, self.covariance + _SHIFT_VARIANCE * np.outer(each, each)


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
    known = np.isfinite(errors)
    mean, sd = np.empty((len(errors), len(sums))), np.empty((len(errors), len(sums)))
    for pattern in np.unique(known, axis=0):
        rows = (known == pattern).all(axis=1)
        # Where nothing is known, it is the same for all.
        given = errors[np.ix_(rows, pattern)] if pattern.any() else np.empty((1, 0))
        parts = [_part(odds, covariance, pattern, given, sums, noise) for odds, covariance in scatter.parts()]
        evidence = np.stack([each.evidence for each in parts])
        shares = np.exp(evidence - evidence.max(axis=0))
        shares /= shares.sum(axis=0)
        middle: Any = sum(share[:, None] * each.mean for share, each in zip(shares, parts, strict=True))
        square: Any = sum(
            share[:, None] * (each.variance + (each.mean - middle) ** 2)
            for share, each in zip(shares, parts, strict=True)
        )
        mean[rows], sd[rows] = middle, np.sqrt(np.maximum(square, noise**2))
    return mean, sd


@dataclass(frozen=True)
class _Part:
    """A normal distribution, given ``n`` times the errors of some devices.

    Parameters
    ----------
    evidence
        Logarithm of its odds times the density of the errors under it, up to a constant, of shape
        ``(n,)``.
    mean
        Means of the sums, of shape ``(n, s)``.
    variance
        Variances of the sums, of shape ``(s,)``.
    """

    evidence: Reals
    mean: Reals
    variance: Reals


def _part(odds: float, covariance: Reals, known: Flags, errors: Reals, sums: Reals, noise: float) -> _Part:
    variance: Any = ((sums @ covariance) * sums).sum(axis=1)
    if not known.any():
        return _Part(np.log([odds]), np.zeros((1, len(sums))), variance)
    across = sums @ covariance[:, known]
    within: Any = covariance[np.ix_(known, known)] + noise**2 * np.eye(int(known.sum()))
    solved: Any = np.linalg.solve(within, errors.T).T
    weights: Any = np.linalg.solve(within, across.T).T
    _, volume = np.linalg.slogdet(within)
    return _Part(
        np.log(odds) - ((errors * solved).sum(axis=1) + volume) / 2,
        errors @ weights.T,
        variance - (weights * across).sum(axis=1),
    )

"""The time on a device by best linear unbiased prediction from the others: kriging, between descriptors.

How times on two devices vary together is taken as a sum of parts: one for both being GPUs or not, one for
their maker, one for their series, one that falls with the distance of their numbers, one linear in these, and
one that each has for itself. The parts' sizes are those that make the known times most likely, under priors
that keep them sound with few devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.artefact import kept_reals
from crosscast.predict.intervals import LEVELS, kept_quantiles, reach
from crosscast.predict.time.data import Grid, application_weights, filled
from crosscast.predict.time.features import Descriptors, Likeness, Pairs, fit_likeness

_MEANS = np.log([0.1, 0.1, 0.05, 0.1, 0.1, 0.01, 1.0, np.e])
_SPREADS = np.array([1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0.7, 1.0])
_NEAR, _REACH, _SHARED = 3, 6, 7
_POWER = 0.8
_LIMIT = 6.0
_JITTER = 1e-8


@dataclass(frozen=True)
class Kriging:
    """Fitted sizes of the parts."""

    WIDTH: ClassVar[int] = len(_MEANS)

    # Logarithms of the variances of the six parts in the order above, of the distance at which the fourth has
    # fallen by `exp(-1/2)`, and of how much more than this devices differ by what all kernels share
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
    """Fit the sizes by the most likely ones given the known times (maximum a posteriori)."""
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


_LEAST_DEVICES = 3


@dataclass(frozen=True)
class Transfer:
    """How the time on a new device follows from those on the known ones."""

    # Weight of the logarithm of the time on each of the `d` known devices, of shape `(d,)`; they add up to
    # one
    weights: Reals
    added: float  # What is added to the weighted sum
    sd: float  # Standard deviation of the error that comes from the descriptors alone

    def log_time(self, known: Reals) -> Reals:
        """Logarithms of times on the new device, of shape ``(n,)``, from those on the known ``(n, d)``."""
        total: Reals = known @ self.weights + self.added
        return total


@dataclass(frozen=True)
class UnseenDevices:
    """What is known of devices on which nothing was measured."""

    descriptors: Descriptors  # Descriptors of the known devices
    likeness: Likeness  # The two ways to weight
    kriging: Kriging
    # Quantiles of the absolute errors over their standard deviations, on known devices left out of the fit,
    # for probabilities from 0 to 1 in equal steps
    quantiles: Reals

    def transfer(self, device: Device) -> Transfer:
        """How the time on a new device follows from those on the known ones."""
        pairs = self.descriptors.joined(device).pairs(len(self.descriptors.types))
        return _transfer(self.likeness, self.kriging, pairs)

    def factor(self, level: float) -> float:
        """By how many standard deviations an interval of a level reaches."""
        return reach(self.quantiles, level)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Arrays from which `from_state` makes it again."""
        return {
            **self.descriptors.state(),
            "likeness": self.likeness.ways,
            "kriging": self.kriging.sizes,
            "unseen_quantiles": self.quantiles,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> UnseenDevices:
        """Make it from its arrays."""
        ways, sizes = kept_reals(state, "likeness", 2), kept_reals(state, "kriging", 1)
        quantiles = kept_quantiles(state, "unseen_quantiles", 1)
        if not len(ways) or ways.shape[1] != Likeness.WIDTH:
            raise InputError(
                f"model: likeness: expected rows of {Likeness.WIDTH} numbers, found shape {ways.shape}"
            )
        if len(sizes) != Kriging.WIDTH:
            raise InputError(f"model: kriging: expected {Kriging.WIDTH} numbers, found {len(sizes)}")
        return cls(Descriptors.from_state(state), Likeness(ways), Kriging(sizes), quantiles)


def enough_devices(grid: Grid) -> bool:
    """Whether a grid has the three devices that `fit_unseen` needs at least, and times on each."""
    known = np.isfinite(grid.log_time)
    return len(grid.devices) >= _LEAST_DEVICES and all(column.any() for column in known.T)


def fit_unseen(grid: Grid, seed: int) -> UnseenDevices:
    """Learn from a grid how times on devices follow from their descriptors.

    Cells without a time are filled with what the kernel's and the device's others suggest.
    """
    count = len(grid.devices)
    if count < _LEAST_DEVICES:
        raise InputError(
            f"devices: expected at least {_LEAST_DEVICES} to say something of one that was not measured, "
            f"found {count}"
        )
    descriptors = Descriptors.of(grid.devices)
    whole = filled(grid)
    learner = _Learner(
        whole.log_time,
        application_weights(whole.profiles),
        len(set(whole.profiles.application)),
        seed,
    )
    pairs = descriptors.pairs(count)
    likeness, kriging = learner.fit(pairs, list(range(count)))
    return UnseenDevices(descriptors, likeness, kriging, _quantiles(learner, pairs))


@dataclass(frozen=True)
class _Learner:
    """All that the fits share: times, weights of kernels, number of applications, and seed."""

    log_time: Reals
    kernels: Reals
    applications: int
    seed: int

    def fit(self, pairs: Pairs, devices: list[int]) -> tuple[Likeness, Kriging]:
        """Fit both ways to some of the devices."""
        known, times = pairs.take(devices), self.log_time[:, devices]
        return (
            fit_likeness(known, times, self.kernels, self.seed),
            fit_kriging(known, times, self.kernels, self.applications),
        )


def _transfer(likeness: Likeness, kriging: Kriging, pairs: Pairs) -> Transfer:
    """To the last of the devices from the others."""
    (alike, added), (linear, further) = likeness.weights(pairs), kriging.weights(pairs)
    weights = (alike + linear) / 2
    return Transfer(weights, (added + further) / 2, kriging.sd(weights, pairs))


def _quantiles(learner: _Learner, pairs: Pairs) -> Reals:
    """Quantiles of standardized errors on each device by a fit to the others, with a weight each."""
    ratios = []
    for device in range(len(pairs)):
        others = [each for each in range(len(pairs)) if each != device]
        transfer = _transfer(*learner.fit(pairs, others), pairs.take([*others, device]))
        error = transfer.log_time(learner.log_time[:, others]) - learner.log_time[:, device]
        ratios.append(np.abs(error) / transfer.sd)
    quantiles: Reals = np.quantile(np.concatenate(ratios), LEVELS)
    return quantiles

"""Times on a device on which nothing was measured, from times on others and from what describes them all.

The logarithm of the time on the new device is a weighted sum of the logarithms on the known ones, plus a
constant. Two ways to weight count half each: by likeness (`crosscast.predict.likeness`), and best linear
unbiased prediction (`crosscast.predict.kriging`). How far the truth lies from it is counted on the known
devices, each left out of the fit in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.descriptors import Descriptors, Pairs
from crosscast.predict.filled import filled
from crosscast.predict.grid import Grid
from crosscast.predict.kriging import Kriging, fit_kriging
from crosscast.predict.likeness import Likeness, fit_likeness
from crosscast.predict.quantiles import LEVELS, kept_quantiles, reach
from crosscast.predict.state import kept_reals
from crosscast.predict.weights import application_weights

__all__ = ["Transfer", "UnseenDevices", "enough_devices", "fit_unseen"]

_LEAST_DEVICES = 3


@dataclass(frozen=True)
class Transfer:
    """How the time on a new device follows from those on the known ones.

    Parameters
    ----------
    weights
        Weight of the logarithm of the time on each of the ``d`` known devices, of shape ``(d,)``; they add up
        to one.
    added
        What is added to the weighted sum.
    sd
        Standard deviation of the error that comes from the descriptors alone.
    """

    weights: Reals
    added: float
    sd: float

    def log_time(self, known: Reals) -> Reals:
        """Logarithms of times on the new device, of shape ``(n,)``, from those on the known ``(n, d)``."""
        total: Reals = known @ self.weights + self.added
        return total


@dataclass(frozen=True)
class UnseenDevices:
    """What is known of devices on which nothing was measured.

    Parameters
    ----------
    descriptors
        Descriptors of the known devices.
    likeness, kriging
        The two ways to weight.
    quantiles
        Quantiles of the absolute errors over their standard deviations, on known devices left out of the fit,
        for probabilities from 0 to 1 in equal steps.
    """

    descriptors: Descriptors
    likeness: Likeness
    kriging: Kriging
    quantiles: Reals

    def transfer(self, device: Device) -> Transfer:
        """How the time on a new device follows from those on the known ones.

        Raises
        ------
        InputError
            If nothing describes the device.
        """
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
        """Make it from its arrays.

        Raises
        ------
        InputError
            If an array is missing or damaged.
        """
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

    Parameters
    ----------
    grid
        Times, and devices with what describes them.
    seed
        Start of the random numbers.

    Raises
    ------
    InputError
        If there are fewer than three devices, or one of them has no time.
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

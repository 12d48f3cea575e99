"""From a point model to a forecast: intervals and probes, from errors on held-out applications.

The errors of one kernel on several devices hang together: a kernel that is slower than predicted on one GPU
is so on the next. Measured times (probes) therefore move the other devices, see
`crosscast.predict.conditioning`. How often errors stay within their standard deviation is not taken from a
distribution, but counted on held-out applications.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.conditioning import Scatter, conditional, shared_shifts, spread
from crosscast.predict.grid import Grid, Profiles
from crosscast.predict.model import Forecast, PointModel, PointPredictor
from crosscast.predict.quantiles import LEVELS, reach
from crosscast.predict.residuals import covariance_of, held_out_errors
from crosscast.predict.unseen import UnseenDevices, enough_devices, fit_unseen

__all__ = ["Gaussian", "GaussianPredictor"]

_MOST_PROBES = 2
_MOST_SETS = 60
# One-sided 95 % of a normal distribution.
_CAUTION = 1.645


@dataclass(frozen=True)
class GaussianPredictor:
    """A fitted model that says how sure it is.

    Parameters
    ----------
    devices
        The ``d`` devices that it was fitted on.
    point
        What predicts the centres.
    covariance
        Covariance of its errors on held-out applications, of shape ``(d, d)``.
    quantiles
        Quantiles of the absolute errors over their standard deviations, for 0, 1 and 2 or more probes (rows)
        and for probabilities from 0 to 1 in equal steps (columns).
    unseen
        What predicts devices that it was not fitted on, if it was fitted on enough to tell.
    """

    devices: tuple[Device, ...]
    point: PointPredictor
    covariance: Reals
    quantiles: Reals
    unseen: UnseenDevices | None = None

    def predict(
        self,
        profiles: Profiles,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> Forecast:
        """Predict times; see `crosscast.predict.model.Predictor.predict`."""
        if not 0 < level < 1:
            raise InputError(f"level: expected a probability between 0 and 1, found {level:g}")
        keys = tuple(device.key for device in self.devices)
        names, places, new = _asked(keys, devices)
        measured = _measured(probes, (len(profiles), len(keys)))
        centre = self.point.log_time(profiles)
        mean, sd = conditional(centre, self._scatter, measured)
        known = np.isfinite(measured)
        factor = self.factors(known.sum(axis=1), level)[:, None]
        half = np.where(known, _normal_factor(level), factor) * sd
        if new:
            means, halves = self._elsewhere(new, mean, measured - centre, factor, level)
            mean, half = np.hstack([mean, means]), np.hstack([half, halves])
        mean, half = mean[:, places], half[:, places]
        return Forecast(names, np.exp(mean), np.exp(mean - half), np.exp(mean + half), level)

    def _elsewhere(
        self, new: Sequence[Device], mean: Reals, errors: Reals, factor: Reals, level: float
    ) -> tuple[Reals, Reals]:
        """Logarithms of times on new devices and half their intervals, from those on the known ones."""
        if self.unseen is None:
            known_keys = ", ".join(device.key for device in self.devices)
            raise InputError(
                f"device: expected one that the model knows ({known_keys}), as these are too few to tell of "
                f"another, found {new[0].key!r}"
            )
        transfers = [self.unseen.transfer(device) for device in new]
        means = np.stack([transfer.log_time(mean) for transfer in transfers], axis=1)
        sums = np.stack([transfer.weights for transfer in transfers])
        before = factor * spread(self._scatter, errors, sums)
        beyond = self.unseen.factor(level) * np.array([transfer.sd for transfer in transfers])
        # What times on known devices leave open, and what descriptors do, have nothing to do with each other.
        return means, np.hypot(before, beyond)

    @cached_property
    def _scatter(self) -> Scatter:
        return Scatter(self.covariance, shared_shifts(self.devices))

    def factors(self, probes: Any, level: float) -> Reals:
        """By how many standard deviations an interval of a level reaches, for numbers of probes."""
        by_count = np.array([reach(row, level) for row in self.quantiles])
        factors: Reals = by_count[np.minimum(probes, len(by_count) - 1)]
        return factors


def _normal_factor(level: float) -> float:
    # Imported here, with the standard library's: no SciPy to predict.
    from statistics import NormalDist

    return NormalDist().inv_cdf(0.5 + level / 2)


def _asked(
    known: tuple[str, ...], wanted: Sequence[str | Device] | None
) -> tuple[tuple[str, ...], list[int], list[Device]]:
    """Keys of the devices that are asked for, their places, and those that are not known, which come last."""
    names, places, new = list[str](), list[int](), list[Device]()
    for each in known if wanted is None else wanted:
        key = each.key if isinstance(each, Device) else each
        names.append(key)
        if key in known:
            places.append(known.index(key))
        elif isinstance(each, Device):
            places.append(len(known) + len(new))
            new.append(each)
        else:
            raise InputError(
                f"device: expected one that the model knows ({', '.join(known)}), or the description of "
                f"another, found {key!r}"
            )
    return tuple(names), places, new


def _measured(probes: Reals | None, shape: tuple[int, int]) -> Reals:
    if probes is None:
        return np.full(shape, np.nan)
    if probes.shape != shape:
        raise InputError(f"probes: expected times of shape {shape}, found {probes.shape}")
    wrong = np.isfinite(probes) & (probes <= 0) | np.isinf(probes)
    if wrong.any():
        raise InputError(f"probes: expected times above 0 s, found {probes[wrong][0]:g}")
    return np.log(probes)


@dataclass(frozen=True)
class Gaussian:
    """A point model with intervals and probes.

    Parameters
    ----------
    point
        The point model.
    rehearsal
        A quicker form of it, whose errors are as large; by default itself. How sure a forecast is is taken
        from fits without each application in turn, which costs as many fits as there are applications.
    """

    point: PointModel
    rehearsal: PointModel | None = None

    @property
    def name(self) -> str:
        """Name of the point model."""
        return self.point.name

    def fit(self, grid: Grid, seed: int) -> GaussianPredictor:
        """Fit the point model to all applications but each in turn, and to all of them."""
        # Imported here: predicting needs it not.
        from threadpoolctl import threadpool_limits

        # Threads of BLAS take longer to agree than these small matrices take.
        with threadpool_limits(1):
            errors = held_out_errors(self.rehearsal or self.point, grid, seed)
            return GaussianPredictor(
                grid.devices,
                self.point.fit(grid, seed),
                covariance_of(errors, grid),
                _quantiles(errors, grid, seed),
                fit_unseen(grid, seed) if enough_devices(grid) else None,
            )


def _quantiles(errors: Reals, grid: Grid, seed: int) -> Reals:
    """Quantiles of standardized errors of each application, by the covariance of the others' errors."""
    d = len(grid.devices)
    groups = grid.profiles.groups("application")
    patterns = [_patterns(d, count, seed) for count in range(min(_MOST_PROBES, d - 1) + 1)]
    ratios: list[list[Reals]] = [[] for _ in patterns]
    for group in np.unique(groups):
        out = groups == group
        scatter = Scatter(covariance_of(errors[~out], grid.take(~out)), shared_shifts(grid.devices))
        for found, sets in zip(ratios, patterns, strict=True):
            found.append(np.concatenate([_ratios(errors[out], scatter, known) for known in sets]))
    return np.stack([_cautious_quantiles(found) for found in ratios])


def _ratios(errors: Reals, scatter: Scatter, known: Flags) -> Reals:
    """Absolute errors over their standard deviations, given those of some devices."""
    measured = np.where(known, errors, np.nan)
    mean, sd = conditional(np.zeros_like(measured), scatter, measured)
    ratio = (np.abs(errors - mean) / sd)[:, ~known]
    there: Reals = ratio[np.isfinite(ratio)]
    return there


def _patterns(d: int, count: int, seed: int) -> list[Flags]:
    sets = list(combinations(range(d), count))
    if len(sets) > _MOST_SETS:
        chosen = np.random.default_rng(seed).choice(len(sets), _MOST_SETS, replace=False)
        sets = [sets[place] for place in sorted(chosen.tolist())]
    flags = []
    for each in sets:
        known = np.zeros(d, dtype=np.bool_)
        known[list(each)] = True
        flags.append(known)
    return flags


def _cautious_quantiles(by_application: Sequence[Reals]) -> Reals:
    """Quantiles at which the mean share of an application's errors is reached with 95 % confidence.

    Without the confidence, the mean over few applications would be taken for that over all.
    """
    ratios = np.unique(np.concatenate(by_application))
    shares = np.stack(
        [
            np.searchsorted(np.sort(each), ratios, side="right") / len(each)
            for each in by_application
            if len(each)
        ]
    )
    error = shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
    sure = np.maximum.accumulate(shares.mean(axis=0) - _CAUTION * error)
    quantiles: Reals = ratios[np.minimum(np.searchsorted(sure, LEVELS), len(ratios) - 1)]
    return quantiles

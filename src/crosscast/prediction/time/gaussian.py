"""Predictive distributions of times, made of point models.

A *point model* predicts the logarithm of the time on each device that it was fitted on. Intervals, the use of
probes and predictions for other devices are the same for all models: they are derived from the errors of the
point model on applications that were held out of its fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import NormalDist
from typing import Annotated

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.intervals import (
    CAUTIOUS,
    CAUTIOUS_OF_MOST_GROUPS,
    LEVELS,
    correlation_within,
    factor_at,
)
from crosscast.prediction.serialization import NOT_STORED, Array, Stored
from crosscast.prediction.time import Grid, ProfileBatch, application_weights, device_groups
from crosscast.prediction.time.forecast import PointModel, PointPredictor, TimeForecast
from crosscast.prediction.time.unseen import UnseenDevices, enough_devices, fit_unseen
from crosscast.prediction.trained import single_threaded
from crosscast.profile import METRICS

_LEAST_NOISE = 0.03
# Twice or half of either makes no significant difference on the published data.
_SHIFT_ODDS = 0.03
_SHIFT_VARIANCE = 2.0


@dataclass(frozen=True)
class Scatter:
    """Distribution of the errors of log times over ``d`` devices, about zero.

    A mixture of normal distributions: of the covariance, and of the covariance with a large error that a set
    of devices shares.
    """

    covariance: Reals  # `(d, d)` Without a shared large error
    shifts: Flags | None = None  # `(k, d)` Sets of devices that sometimes share a large error

    def mixture(self) -> tuple[Reals, Reals, Reals]:
        """Sets ``(m, d)`` that share an error, the first one empty, its variance, and the odds of each."""
        empty = np.zeros((1, len(self.covariance)))
        sets = empty if self.shifts is None else np.vstack([empty, self.shifts])
        shared = sets.any(axis=1)
        return sets, np.where(shared, _SHIFT_VARIANCE, 0.0), np.where(shared, _SHIFT_ODDS, 1.0)

    def moments(self, errors: Reals, sums: Reals, noise: float = _LEAST_NOISE) -> tuple[Reals, Reals]:
        """Means and standard deviations ``(n, s)`` of weighted sums ``(s, d)`` of errors, given some errors.

        Errors are of shape ``(n, d)``, NaN where not known.
        """
        sets, shift_variances, odds = self.mixture()
        covariances = self.covariance + shift_variances[:, None, None] * sets[:, :, None] * sets[:, None, :]
        variances = ((sums @ covariances) * sums).sum(axis=2)
        known = np.isfinite(errors)
        mean, variance = np.zeros((2, len(errors), len(sums)))
        # Mostly all rows know the same devices; to see that takes a tenth of the time of `unique`.
        one_pattern = bool((known == known[:1]).all())
        for pattern in known[:1] if one_pattern else np.unique(known, axis=0):
            rows = (known == pattern).all(axis=1)
            if not pattern.any():
                variance[rows] = (odds @ variances) / odds.sum()
                continue
            given = errors[np.ix_(rows, pattern)].T
            across = sums @ covariances[:, :, pattern]
            within: Reals = covariances[:, pattern][:, :, pattern] + noise**2 * np.eye(len(given))
            solved = np.asarray(np.linalg.solve(within, given), np.float64)
            _, volumes = np.linalg.slogdet(within)
            evidence = np.log(odds)[:, None] - ((given * solved).sum(axis=1) + volumes[:, None]) / 2
            shares = np.exp(evidence - evidence.max(axis=0))
            shares /= shares.sum(axis=0)
            means: Reals = (across @ solved).swapaxes(1, 2)
            weights = np.asarray(np.linalg.solve(within, across.swapaxes(1, 2)), np.float64)
            residual = variances - (weights.swapaxes(1, 2) * across).sum(axis=2)
            mean[rows] = np.einsum("mn,mns->ns", shares, means)
            between = np.einsum("mn,mns->ns", shares, (means - mean[rows]) ** 2)
            variance[rows] = shares.T @ residual + between
        return mean, np.sqrt(np.maximum(variance, noise**2))


def shared_shifts(devices: Sequence[Device]) -> Flags:
    """Sets ``(k, d)`` of devices that may share a large error: all, and those of each kind with several."""
    kinds = device_groups(devices)
    sets = [kinds == kind for kind in np.unique(kinds)]
    if len(sets) > 1:
        sets.insert(0, np.ones(len(devices), dtype=np.bool_))
    several = [each for each in sets if each.sum() > 1]
    return np.array(several, dtype=np.bool_).reshape(-1, len(devices))


_LEAST_APPLICATIONS = 3
_SHRINKAGE = 0.3
_LIMIT = 1.5
# Median of the absolute value over the standard deviation, for a normal distribution.
_MEDIAN_TO_SD = 0.6745
_LEAST_VARIANCE = 1e-4


def out_of_fold_residuals(model: PointModel, grid: Grid, seed: int) -> Reals:
    """Measured less predicted logarithms ``(n, d)``; each application by the model fitted to the others."""
    groups = grid.profiles.groups("application")
    applications = len(grid.applications)
    if applications < _LEAST_APPLICATIONS:
        raise InputError.of(
            field="applications",
            expected=f"at least {_LEAST_APPLICATIONS} with profiles and records",
            found=f"{applications} (intervals are made from the errors on each of them)",
        )
    errors = np.full(grid.log_time.shape, np.nan)
    for out in (groups == group for group in range(applications)):
        predictor = model.fit(grid.take(~out), seed)
        errors[out] = grid.log_time[out] - predictor.log_time(grid.profiles.take(out))
    return errors


def covariance_of(errors: Reals, grid: Grid) -> Reals:
    """Covariance of the errors between devices, of shape ``(d, d)``.

    About zero, since an equal factor everywhere is an error, too. Correlations are shrunk to
    one value among devices of a type and vendor and one between such groups, so that the matrix is sound
    also where few kernels were measured. Large errors are limited to 1.5 robust standard deviations, so that
    no kernel sets it alone, and as those that devices share are in `Scatter`.
    """
    weights = application_weights(grid.profiles)
    known = np.isfinite(errors)
    limit = _LIMIT * float(np.median(np.abs(errors[known]))) / _MEDIAN_TO_SD if known.any() else 0.0
    limited = np.where(known, np.clip(errors, -limit, limit), 0.0) * np.sqrt(weights)[:, None]
    shared = (known * weights[:, None]).T @ known.astype(np.float64)
    products = np.divide(limited.T @ limited, shared, out=np.zeros_like(shared), where=shared > 0)
    variances, measured = np.diag(products).copy(), known.any(axis=0)
    # A device without any error gets the mean variance of the others, not zero.
    variances[~measured] = variances[measured].mean() if measured.any() else 1.0
    np.fill_diagonal(products, variances)
    scale = np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
    correlation = products / scale[:, None] / scale
    kinds = device_groups(grid.devices)
    same_kind, off = kinds[:, None] == kinds, ~np.eye(len(kinds), dtype=bool)
    by_group = np.ones_like(correlation)
    for pairs in (same_kind & off, ~same_kind & off):
        if pairs.any():
            by_group[pairs] = correlation[pairs].mean()
    values, vectors = np.linalg.eigh((1 - _SHRINKAGE) * correlation + _SHRINKAGE * by_group)
    positive = (vectors * np.maximum(values, _LEAST_VARIANCE)) @ vectors.T
    covariance: Reals = positive * scale[:, None] * scale
    return covariance


_MOST_PROBES = 2
_MOST_SETS = 60
_MIDDLE = 0.5
_NO_METRICS = np.empty((0, len(METRICS)))


_LEAST_SPREAD_APPLICATIONS = 5
_LEAST_RATIO = 0.05
_TAIL = 0.05


@dataclass(frozen=True)
class Spread(Stored):
    """Growth of the errors' standard deviation with the predicted time: a power of the time.

    Launches cost nearly the same for all kernels on a device; long work is less predictable.
    """

    power: float
    centre: float  # Logarithm of the time at which the factor is 1
    low: float  # Logarithms of times beyond which the factor is constant
    high: float

    def at(self, log_time: Reals) -> Reals:
        """Factors of standard deviations at predicted logarithms of times."""
        return np.asarray(np.exp(self.power * (np.clip(log_time, self.low, self.high) - self.centre)))


def fit_spread(ratios: Reals, log_time: Reals, grid: Grid) -> Spread | None:
    """Fit a spread to absolute errors over their standard deviations ``(n, d)``, and predicted times.

    By least squares on logarithms of kernels' means, with equal weights of applications. ``None`` with
    too few applications.
    """
    known = np.isfinite(ratios)
    rows: Flags = np.asarray(known.any(axis=1))
    if len(set(np.array(grid.profiles.application)[rows])) < _LEAST_SPREAD_APPLICATIONS:
        return None
    times, mean_ratios = (
        np.where(known, each, 0.0)[rows].sum(axis=1) / known[rows].sum(axis=1) for each in (log_time, ratios)
    )
    weights = application_weights(grid.profiles.take(rows))
    weights = weights / weights.sum()
    centre = float(weights @ times)
    squares = float(weights @ (times - centre) ** 2)
    if squares < _LEAST_VARIANCE:
        return None
    slope = float(weights @ ((times - centre) * np.log(np.maximum(mean_ratios, _LEAST_RATIO)))) / squares
    low, high = np.quantile(times, (_TAIL, 1 - _TAIL)).tolist()
    return Spread(slope, centre, low, high)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Predictions of ``n`` kernels on the ``k`` devices of the model, and the errors that probes show."""

    predictor: GaussianPredictor
    centre: Reals  # `(n, k)` Logarithms of the times, before the probes
    errors: Reals  # `(n, k)` Measured less predicted ones; NaN where not measured

    def probability_faster(self, row: int, first: str, second: str, apart: float) -> float | None:
        """Probability that the second of two devices is faster, given the predicted log ratio `apart`.

        Errors are normal, with the covariance widened as errors on held-out applications demand. ``None``
        where the model was not fitted on both.
        """
        keys, errors = self.predictor.keys, self.errors[row]
        if not {first, second} <= set(keys):
            return None
        difference = np.zeros((1, len(keys)))
        difference[0, keys.index(first)], difference[0, keys.index(second)] = -1.0, 1.0
        sd = float(self.predictor.scatter.moments(errors[None, :], difference)[1][0, 0])
        sd *= float(self.predictor.spread_at(self.centre[row, difference[0] != 0]).mean())
        probes = int(np.isfinite(errors).sum())
        width = float(self.predictor.factors(probes, _MIDDLE)) / NormalDist().inv_cdf(0.5 + _MIDDLE / 2)
        return NormalDist().cdf(-apart / (width * sd))


@dataclass(frozen=True, eq=False)
class GaussianPredictor(Stored):
    """A fitted point model with the distribution of its errors."""

    devices: Annotated[tuple[Device, ...], NOT_STORED]  # The `d` devices that it was fitted on
    point: PointPredictor  # Predicts the centres
    covariance: Annotated[Reals, Array("d d")]  # Of its errors on held-out applications
    # Quantiles of the absolute errors over their standard deviations, for 0, 1 and 2 or more probes (rows)
    # and for probabilities from 0 to 1 in equal steps (columns)
    quantiles: Annotated[Reals, Array("p q", low=0, least=1, rising=True)]
    # Predicts other devices from the first of these; `None` if fitted on too few
    unseen: UnseenDevices | None = None
    spread: Spread | None = None  # Of errors by the predicted time; `None` if constant
    # Of errors of an application's kernels on one device; `None` if not known
    correlation: Annotated[float, Array("", low=0, high=1)] | None = None

    def check(self) -> None:
        """Raise InputError unless the covariance is positive definite and all parts are of these devices."""
        matrix, d = self.covariance, len(self.devices)
        counts = {len(matrix), self.point.log_time(ProfileBatch((), (), (), _NO_METRICS)).shape[1]}
        if self.unseen is not None:
            counts.add(max(d, len(self.unseen.descriptors.device_types)))
        if counts != {d}:
            raise InputError.of(expected=f"a model of {d} devices", found=f"one of {max(counts - {d})}")
        if not (np.allclose(matrix, matrix.T) and (np.linalg.eigvalsh(matrix) > 0).all()):
            raise InputError.of(field="covariance", expected="a positive definite one", found="another")

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of the devices."""
        return tuple(device.key for device in self.devices)

    @cached_property
    def scatter(self) -> Scatter:
        """Distribution of the errors."""
        return Scatter(self.covariance, shared_shifts(self.devices))

    def predict(
        self,
        profiles: ProfileBatch,
        devices: Sequence[Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> TimeForecast:
        """Predict times; see `Predictor.predict`."""
        chosen = self.devices if devices is None else devices
        new = [device for device in chosen if device.key not in self.keys]
        keys = (*self.keys, *(device.key for device in new))
        indices = [keys.index(device.key) for device in chosen]
        none = np.full((len(profiles), len(self.keys)), np.nan)
        measured = none if probes is None else np.log(probes)
        centre, known = self.point.log_time(profiles), np.isfinite(measured)
        errors = measured - centre
        mean, sd = self.scatter.moments(errors, np.eye(len(self.keys)))
        spread = self.spread_at(centre)
        sd = sd * spread
        mean = np.where(known, measured, centre + mean)
        factor = self.factors(known.sum(axis=1), level)[:, None]
        half = np.where(known, NormalDist().inv_cdf(0.5 + level / 2) * _LEAST_NOISE, factor * sd)
        if new:
            factor = factor * spread.mean(axis=1, keepdims=True)
            means, halves = self._predict_new(new, mean, errors, factor, level)
            mean, half = np.hstack([mean, means]), np.hstack([half, halves])
            known = np.hstack([known, np.zeros(means.shape, dtype=np.bool_)])
        mean, half = mean[:, indices], half[:, indices]
        # An error of a device's descriptors is one of all its kernels.
        within = 1.0 if self.correlation is None else self.correlation
        correlation = np.where(np.array(indices) < len(self.keys), within, 1.0)
        return TimeForecast(
            profiles,
            tuple(device.key for device in chosen),
            np.exp(mean),
            np.exp(mean - half),
            np.exp(mean + half),
            level,
            known[:, indices],
            correlation=correlation,
            errors=Posterior(self, centre, errors),
        )

    def _predict_new(
        self, new: Sequence[Device], mean: Reals, errors: Reals, factor: Reals, level: float
    ) -> tuple[Reals, Reals]:
        """Logarithms of times on new devices and half their intervals, from those on the known ones."""
        if self.unseen is None:
            expected = (
                f"one that the model knows ({', '.join(self.keys)}), which are too few to predict others"
            )
            raise InputError.of(where="device", expected=expected, found=repr(new[0].key))
        transfers = [self.unseen.transfer(device) for device in new]
        known = len(self.unseen.descriptors.device_types)
        means = np.stack([transfer.log_time(mean[:, :known]) for transfer in transfers], axis=1)
        sums = np.zeros((len(new), len(self.keys)))
        sums[:, :known] = [transfer.weights for transfer in transfers]
        before = factor * self.scatter.moments(errors, sums)[1]
        beyond = self.unseen.factor(level) * np.array([transfer.sd for transfer in transfers])
        # The errors of the times on known devices and those of the descriptors are independent.
        return means, np.hypot(before, beyond)

    def spread_at(self, log_time: Reals) -> Reals:
        """Factors of standard deviations at log times predicted without probes."""
        return np.ones_like(log_time) if self.spread is None else self.spread.at(log_time)

    def factors(self, probes: int | Integers, level: float) -> Reals:
        """Half the width of an interval of a level, in standard deviations, by number of probes."""
        by_count = np.array([factor_at(level, row) for row in self.quantiles])
        return by_count[np.minimum(probes, len(by_count) - 1)]


@dataclass(frozen=True)
class Gaussian:
    """A point model with intervals and probes."""

    point: PointModel
    # A quicker variant with errors as large; by default the same. Out-of-fold residuals cost as many
    # fits as there are applications
    refit: PointModel | None = None
    # Replaces the point model where that is not better on held-out applications
    trivial: PointModel | None = None
    # Whether widths depend on the predicted time, and intervals are to hold in nearly every application
    adaptive: bool = False

    @property
    def name(self) -> str:
        """Name of the point model."""
        return self.point.name

    @property
    def residuals_from(self) -> PointModel:
        """The quicker variant, or else the point model."""
        return self.refit or self.point

    def fit(
        self, grid: Grid, seed: int, residuals: Reals | None = None, *, others: bool = True
    ) -> GaussianPredictor:
        """Fit the point model without each application in turn, if not told its residuals, and to all.

        Without `others` only devices of the grid are predicted.
        """
        # Synchronizing BLAS threads takes longer than these small matrices do.
        with single_threaded():
            if residuals is None:
                residuals = out_of_fold_residuals(self.residuals_from, grid, seed)
            point, errors = self.point, residuals
            if self.trivial is not None:
                trivial_errors = out_of_fold_residuals(self.trivial, grid, seed)
                if not _is_better(errors, trivial_errors, grid):
                    point, errors = self.trivial, trivial_errors
            quantiles, spread = _quantiles(errors, grid, seed, adaptive=self.adaptive)
            return GaussianPredictor(
                grid.devices,
                point.fit(grid, seed),
                covariance_of(errors, grid),
                quantiles,
                fit_unseen(grid, seed) if others and enough_devices(grid) else None,
                spread,
                correlation_within(errors, grid.profiles.groups("run")),
            )


def _is_better(errors: Reals, others: Reals, grid: Grid) -> bool:
    """Whether errors are less than others by more than a standard error of the mean over applications.

    Of two equally good models the simpler one is taken (the one-standard-error rule of Breiman et al. 1984):
    a few applications may favour the other by chance.
    """
    groups = grid.profiles.groups("application")
    gains = [
        float(np.nanmean(np.abs(others[groups == group]) - np.abs(errors[groups == group])))
        for group in np.unique(groups)
        if np.isfinite(errors[groups == group]).any()
    ]
    return len(gains) < 2 or float(np.mean(gains) - np.std(gains, ddof=1) / np.sqrt(len(gains))) > 0


def _quantiles(errors: Reals, grid: Grid, seed: int, *, adaptive: bool) -> tuple[Reals, Spread | None]:
    """Quantiles of standardized errors of each application, by the covariance of the others' errors.

    If adaptive, errors are also divided by the fitted spread, which is returned too.
    """
    d = len(grid.devices)
    groups, log_time = grid.profiles.groups("application"), grid.log_time - errors
    parts, shifts = [groups == group for group in np.unique(groups)], shared_shifts(grid.devices)
    scatters = [Scatter(covariance_of(errors[~out], grid.take(~out)), shifts) for out in parts]
    ratios_without_probes, no_probes = np.full_like(errors, np.nan), np.zeros(d, dtype=np.bool_)
    for out, scatter in zip(parts, scatters, strict=True):
        ratios_without_probes[out] = _standardized(errors[out], scatter, no_probes)
    spread = fit_spread(ratios_without_probes, log_time, grid) if adaptive else None
    by_time = np.ones_like(errors) if spread is None else spread.at(log_time)
    method, quantiles = CAUTIOUS_OF_MOST_GROUPS if adaptive else CAUTIOUS, []
    for count in range(min(_MOST_PROBES, d - 1) + 1):
        sets, ratios = _patterns(d, count, seed), []
        for out, scatter in zip(parts, scatters, strict=True):
            standardized = np.stack(
                [_standardized(errors[out], scatter, known) / by_time[out] for known in sets]
            )
            ratios.append(standardized[np.isfinite(standardized)])
        group = np.repeat(np.arange(len(parts)), [len(each) for each in ratios])
        quantiles.append(method.quantiles(np.concatenate(ratios), group, LEVELS))
    return np.stack(quantiles), spread


def _standardized(errors: Reals, scatter: Scatter, known: Flags) -> Reals:
    """Absolute errors over their standard deviations, given those of some devices; NaN for these."""
    measured = np.where(known, errors, np.nan)
    mean, sd = scatter.moments(measured, np.eye(len(known)))
    return np.asarray(np.where(known, np.nan, np.abs(errors - mean) / sd))


def _patterns(d: int, count: int, seed: int) -> list[Flags]:
    """Sets of `count` devices whose errors are known, a sample where there are many."""
    sets = list(combinations(range(d), count))
    if len(sets) > _MOST_SETS:
        chosen = np.random.default_rng(seed).choice(len(sets), _MOST_SETS, replace=False)
        sets = [sets[index] for index in sorted(chosen.tolist())]
    return [np.isin(np.arange(d), each) for each in sets]

"""Forecasts that say how sure they are, made of point models.

A *point model* says where the logarithm of the time lies on each device that it was fitted on. Everything
else (intervals, probes, devices that were not there when it was fitted) is the same for all models, and is
made from the errors that a point model has on applications that were held out of its fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import combinations
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.intervals import LEVELS, half_width
from crosscast.predict.time.data import Grid, ProfileBatch, application_weights, device_groups
from crosscast.predict.time.unseen import UnseenDevices, enough_devices, fit_unseen
from crosscast.results import Tabular


class PointPredictor(Protocol):
    """A fitted point model."""

    def log_time(self, profiles: ProfileBatch) -> Reals:
        """Natural logarithms of times in seconds on the devices of its grid, of shape ``(n, d)``."""
        ...


class PointModel(Protocol):
    """A way to predict logarithms of times from profiles."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        ...

    def fit(self, grid: Grid, seed: int) -> PointPredictor:
        """Fit it to a grid that may have cells without a time: all that it scales, tunes or selects."""
        ...


class Predictor(Protocol):
    """A fitted model that says how sure it is."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it was fitted on."""
        ...

    def predict(
        self,
        profiles: ProfileBatch,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> TimeForecast:
        """Predict times; `probes` are seconds of shape ``(n, d)``, not a number where not measured."""
        ...


class Model(Protocol):
    """A way to make forecasts."""

    @property
    def name(self) -> str:
        """Its name on the command line and in tables."""
        ...

    def fit(self, grid: Grid, seed: int) -> Predictor:
        """Fit it, its intervals included, to this grid alone."""
        ...


@dataclass(frozen=True)
class Recommendation:
    """The device to take for a kernel: the one with the least predicted time."""

    device: str
    runner_up: str | None = None  # The next; `None` if there is no other
    times_longer: float | None = None  # Predicted time of the next over that of the first
    # Probability that the next is in truth the faster of the two; `None` where it is not known
    probability_faster: float | None = None


@dataclass(frozen=True, eq=False)
class TimeForecast(Tabular):
    """Predicted times of ``n`` kernels on ``d`` devices, in seconds, of one launch.

    Parameters
    ----------
    profiles
        The kernels.
    devices
        Keys of the devices, of length ``d``.
    centre
        Predicted medians, of shape ``(n, d)``; a measured time where `measured`.
    low, high
        Limits of the intervals that hold the time with a probability of `level`, of shape ``(n, d)``.
    level
        That probability.
    measured
        Which times are those of probes, of shape ``(n, d)``; by default none.
    recorded
        Recorded times of which the model was not told, of shape ``(n, d)``; not a number where there is none.
    warnings
        For each kernel, what makes its forecast doubtful; sentences without a full stop.
    posterior
        What it was made of, if the model says.
    """

    profiles: ProfileBatch
    devices: tuple[str, ...]
    centre: Reals
    low: Reals
    high: Reals
    level: float
    measured: Flags | None = None
    recorded: Reals | None = None
    warnings: tuple[tuple[str, ...], ...] = ()
    posterior: Posterior | None = None

    @cached_property
    def ranks(self) -> Integers:
        """Place of each device in the order of the predicted times, from 1, of shape ``(n, d)``."""
        order = np.argsort(self.centre, axis=1, kind="stable")
        return np.argsort(order, axis=1, kind="stable") + 1

    @property
    def is_measured(self) -> Flags:
        """Which times are those of probes, of shape ``(n, d)``."""
        return np.zeros(self.centre.shape, dtype=np.bool_) if self.measured is None else self.measured

    @cached_property
    def labels(self) -> list[str]:
        """Names of each kernel, for people."""
        return [" ".join(filter(None, names)) for names in self.profiles.names]

    def with_recorded(self, times: Mapping[tuple[str, str, str], Mapping[str, float]]) -> TimeForecast:
        """The same beside times that were recorded, by application, kernel and size, and by device."""
        rows = [times.get(names, {}) for names in self.profiles.names]
        recorded = np.array([[row.get(device, np.nan) for device in self.devices] for row in rows])
        return replace(self, recorded=recorded) if times else self

    @cached_property
    def recommended(self) -> tuple[Recommendation, ...]:
        """For each kernel, the device to take."""
        return tuple(map(self._recommend, range(len(self.centre))))

    def _recommend(self, row: int) -> Recommendation:
        order = np.argsort(self.centre[row], kind="stable")
        names = [self.devices[place] for place in order.tolist()]
        if len(names) < 2:
            return Recommendation(names[0])
        first, second = self.centre[row, order[:2]]
        factor = float(second / first)
        if self.posterior is None:
            return Recommendation(names[0], names[1], factor)
        faster = self.posterior.probability_faster(row, names[0], names[1], float(np.log(factor)))
        return Recommendation(names[0], names[1], factor, faster)

    def columns(self) -> Mapping[str, Any]:
        """A row for each kernel and device."""
        n, d = self.centre.shape
        columns = {
            name: np.repeat(getattr(self.profiles, name), d) for name in ("application", "kernel", "size")
        }
        columns |= {
            "device": np.tile(self.devices, n),
            "time_s": self.centre.ravel(),
            "low_s": self.low.ravel(),
            "high_s": self.high.ravel(),
            "rank": self.ranks.ravel(),
            "measured": self.is_measured.ravel(),
        }
        return columns if self.recorded is None else {**columns, "recorded_s": self.recorded.ravel()}

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``crosscast predict --json`` prints it."""
        columns = super().to_dict()
        names = [columns.pop(name) for name in ("application", "kernel", "size")]
        columns.setdefault("recorded_s", [None] * self.centre.size)
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        d, kernels = len(self.devices), []
        for row, recommended in enumerate(self.recommended):
            best = asdict(recommended)
            device, following = best.pop("device"), best.pop("runner_up")
            kernels.append(
                {
                    "application": names[0][row * d] or None,
                    "kernel": names[1][row * d],
                    "size": names[2][row * d] or None,
                    "invocations": int(self.profiles.invocations[row]),
                    "level": self.level,
                    "devices": rows[row * d : (row + 1) * d],
                    "recommended": device,
                    "runner_up": {"device": following, **best} if following else None,
                    "warnings": list(self.warnings[row]) if self.warnings else [],
                }
            )
        return {"kernels": kernels}


_LEAST_NOISE = 0.03
# Twice or half of either makes no difference on the published data that could be told from chance.
_SHIFT_ODDS = 0.03
_SHIFT_VARIANCE = 2.0


@dataclass(frozen=True)
class Scatter:
    """How errors of logarithms of times scatter over ``d`` devices, about zero."""

    covariance: Reals  # `(d, d)` Where nothing is out of the ordinary
    shifts: Flags | None = None  # `(k, d)` Sets of devices that now and then share a large error

    def parts(self) -> tuple[Reals, Reals]:
        """Odds and covariances of the ``m`` normal distributions that it is a mixture of."""
        plain = np.zeros((1, len(self.covariance)))
        sets = plain if self.shifts is None else np.vstack([plain, self.shifts])
        odds = np.where(sets.any(axis=1), _SHIFT_ODDS, 1.0)
        return odds, self.covariance + _SHIFT_VARIANCE * sets[:, :, None] * sets[:, None, :]


def shared_shifts(devices: Sequence[Device]) -> Flags:
    """Sets ``(k, d)`` of devices that may share a large error: all, and those of each kind with several."""
    kinds = device_groups(devices)
    sets = [kinds == kind for kind in np.unique(kinds)]
    if len(sets) > 1:
        sets.insert(0, np.ones(len(devices), dtype=np.bool_))
    several = [each for each in sets if each.sum() > 1]
    return np.stack(several) if several else np.zeros((0, len(devices)), dtype=np.bool_)


def conditional(
    centre: Reals, scatter: Scatter, measured: Reals, noise: float = _LEAST_NOISE
) -> tuple[Reals, Reals]:
    """Condition logarithms of times on some that were measured."""
    known = np.isfinite(measured)
    mean, sd = _moments(scatter, measured - centre, np.eye(centre.shape[1]), noise)
    return np.where(known, measured, centre + mean), np.where(known, noise, sd)


def spread(scatter: Scatter, errors: Reals, sums: Reals) -> Reals:
    """Standard deviations ``(n, s)`` of weighted sums of the logarithms, given those of some devices."""
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


_LEAST_APPLICATIONS = 3
_SHRINKAGE = 0.3
_LIMIT = 1.5
# Median of the absolute value over the standard deviation, for a normal distribution.
_MEDIAN_TO_SD = 0.6745
_LEAST_VARIANCE = 1e-4


def out_of_fold_residuals(model: PointModel, grid: Grid, seed: int) -> Reals:
    """Measured less predicted logarithms ``(n, d)``; each application by the model fitted to the others."""
    groups = grid.profiles.groups("application")
    found = len(set(groups.tolist()))
    if found < _LEAST_APPLICATIONS:
        raise InputError(
            f"applications: expected at least {_LEAST_APPLICATIONS} with profiles and records, found {found} "
            "(fewer cannot tell how sure a forecast is)"
        )
    errors = np.full(grid.log_time.shape, np.nan)
    for group in range(found):
        out = groups == group
        predictor = model.fit(grid.take(~out), seed)
        errors[out] = grid.log_time[out] - predictor.log_time(grid.profiles.take(out))
    return errors


def covariance_of(errors: Reals, grid: Grid) -> Reals:
    """Covariance of the errors between devices, of shape ``(d, d)``.

    About zero, since a model that is wrong by the same factor everywhere is wrong. Correlations are shrunk to
    one value among devices of a type and vendor and one between such groups, so that the matrix is sound
    also where few kernels were measured. Large errors are limited to 1.5 robust standard deviations, so that
    no kernel sets it alone, and as they are seen apart (`crosscast.predict.time.forecast`).
    """
    weights = application_weights(grid.profiles)
    known = np.isfinite(errors)
    limit = _LIMIT * float(np.median(np.abs(errors[known]))) / _MEDIAN_TO_SD if known.any() else 0.0
    limited = np.where(known, np.clip(errors, -limit, limit), 0.0) * np.sqrt(weights)[:, None]
    shared = (known * weights[:, None]).T @ known.astype(np.float64)
    products = np.divide(limited.T @ limited, shared, out=np.zeros_like(shared), where=shared > 0)
    variances, seen = np.diag(products).copy(), known.any(axis=0)
    # Without an error that tells, a device is as unsure as the others, and not perfectly sure.
    variances[~seen] = variances[seen].mean() if seen.any() else 1.0
    np.fill_diagonal(products, variances)
    scale = np.sqrt(np.maximum(variances, _LEAST_VARIANCE))
    correlation = products / scale[:, None] / scale
    shrunk = (1 - _SHRINKAGE) * correlation + _SHRINKAGE * _by_group(correlation, grid.devices)
    covariance: Reals = _positive(shrunk) * scale[:, None] * scale
    return covariance


def _by_group(correlation: Reals, devices: Sequence[Device]) -> Reals:
    kinds = device_groups(devices)
    alike, off = kinds[:, None] == kinds, ~np.eye(len(kinds), dtype=bool)
    means = np.ones_like(correlation)
    for pairs in (alike & off, ~alike & off):
        if pairs.any():
            means[pairs] = correlation[pairs].mean()
    return means


def _positive(correlation: Reals) -> Reals:
    values, vectors = np.linalg.eigh(correlation)
    positive: Reals = (vectors * np.maximum(values, _LEAST_VARIANCE)) @ vectors.T
    return positive


_MOST_PROBES = 2
_MOST_SETS = 60
# One-sided 95 % of a normal distribution.
_CAUTION = 1.645
_MIDDLE = 0.5


def _normal_factor(level: float) -> float:
    return NormalDist().inv_cdf(0.5 + level / 2)


@dataclass(frozen=True, eq=False)
class Posterior:
    """What a forecast of ``n`` kernels was made of, on the ``k`` devices that the model was fitted on."""

    predictor: GaussianPredictor
    centre: Reals  # `(n, k)` Logarithms of the times, before the probes
    errors: Reals  # `(n, k)` By how much the measured ones are larger; not a number where not measured

    def probability_faster(self, row: int, first: str, second: str, apart: float) -> float | None:
        """Probability that the second of two devices is faster, whose logarithms are predicted apart.

        Errors are taken as normal, and as much wider than the covariance says as they were on held-out
        applications. ``None`` where the model was not fitted on both.
        """
        keys, errors = self.predictor.keys, self.errors[row]
        if not {first, second} <= set(keys):
            return None
        difference = np.zeros((1, len(keys)))
        difference[0, keys.index(first)], difference[0, keys.index(second)] = -1.0, 1.0
        sd = float(spread(self.predictor.scatter, errors[None, :], difference)[0, 0])
        probes = int(np.isfinite(errors).sum())
        width = float(self.predictor.factors(probes, _MIDDLE)) / _normal_factor(_MIDDLE)
        return NormalDist().cdf(-apart / (width * sd))


@dataclass(frozen=True, eq=False)
class GaussianPredictor:
    """A fitted model that says how sure it is."""

    devices: tuple[Device, ...]  # The `d` devices that it was fitted on
    point: PointPredictor  # What predicts the centres
    covariance: Reals  # `(d, d)` Of its errors on held-out applications
    # Quantiles of the absolute errors over their standard deviations, for 0, 1 and 2 or more probes (rows)
    # and for probabilities from 0 to 1 in equal steps (columns)
    quantiles: Reals
    unseen: UnseenDevices | None = None  # What predicts other devices, if it was fitted on enough to tell

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Keys of the devices."""
        return tuple(device.key for device in self.devices)

    @cached_property
    def scatter(self) -> Scatter:
        """How the errors scatter."""
        return Scatter(self.covariance, shared_shifts(self.devices))

    def predict(
        self,
        profiles: ProfileBatch,
        devices: Sequence[str | Device] | None = None,
        *,
        probes: Reals | None = None,
        level: float = 0.9,
    ) -> TimeForecast:
        """Predict times; see `Predictor.predict`."""
        if not 0 < level < 1:
            raise InputError(f"level: expected a probability between 0 and 1, found {level:g}")
        places, new = self._asked(devices)
        measured = _log_probes(probes, (len(profiles), len(self.keys)))
        centre = self.point.log_time(profiles)
        known = np.isfinite(measured)
        mean, sd = conditional(centre, self.scatter, measured)
        factor = self.factors(known.sum(axis=1), level)[:, None]
        half = np.where(known, _normal_factor(level), factor) * sd
        if new:
            means, halves = self._elsewhere(new, mean, measured - centre, factor, level)
            mean, half = np.hstack([mean, means]), np.hstack([half, halves])
            known = np.hstack([known, np.zeros(means.shape, dtype=np.bool_)])
        names = (*self.keys, *(device.key for device in new))
        mean, half = mean[:, places], half[:, places]
        return TimeForecast(
            profiles,
            tuple(names[place] for place in places),
            np.exp(mean),
            np.exp(mean - half),
            np.exp(mean + half),
            level,
            known[:, places],
            posterior=Posterior(self, centre, measured - centre),
        )

    def _asked(self, wanted: Sequence[str | Device] | None) -> tuple[list[int], list[Device]]:
        """Places of the devices that are asked for, and those that are not known, which come last."""
        places, new = list[int](), list[Device]()
        for each in self.keys if wanted is None else wanted:
            key = each.key if isinstance(each, Device) else each
            if key in self.keys:
                places.append(self.keys.index(key))
            elif isinstance(each, Device):
                places.append(len(self.keys) + len(new))
                new.append(each)
            else:
                raise InputError(
                    f"device: expected one that the model knows ({', '.join(self.keys)}), or the description "
                    f"of another, found {key!r}"
                )
        return places, new

    def _elsewhere(
        self, new: Sequence[Device], mean: Reals, errors: Reals, factor: Reals, level: float
    ) -> tuple[Reals, Reals]:
        """Logarithms of times on new devices and half their intervals, from those on the known ones."""
        if self.unseen is None:
            raise InputError(
                f"device: expected one that the model knows ({', '.join(self.keys)}), as these are too few "
                f"to tell of another, found {new[0].key!r}"
            )
        transfers = [self.unseen.transfer(device) for device in new]
        means = np.stack([transfer.log_time(mean) for transfer in transfers], axis=1)
        sums = np.stack([transfer.weights for transfer in transfers])
        before = factor * spread(self.scatter, errors, sums)
        beyond = self.unseen.factor(level) * np.array([transfer.sd for transfer in transfers])
        # What times on known devices leave open, and what descriptors do, have nothing to do with each other.
        return means, np.hypot(before, beyond)

    def factors(self, probes: Any, level: float) -> Reals:
        """By how many standard deviations an interval of a level reaches, for numbers of probes."""
        by_count = np.array([half_width(row, level) for row in self.quantiles])
        factors: Reals = by_count[np.minimum(probes, len(by_count) - 1)]
        return factors


def _log_probes(probes: Reals | None, shape: tuple[int, int]) -> Reals:
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
    """A point model with intervals and probes."""

    point: PointModel
    # A quicker form of it, whose errors are as large; by default itself. Out-of-fold residuals cost as many
    # fits as there are applications
    refit: PointModel | None = None

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
            errors = out_of_fold_residuals(self.refit or self.point, grid, seed)
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

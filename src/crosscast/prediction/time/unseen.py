"""Predict times on a device that was not measured from those on others: the mean of two weightings.

Similarity weights a device by the distance of its descriptors. Kriging, best linear unbiased prediction,
weights it by the covariance of times on two devices: a sum of parts for both being GPUs or not, for their
vendor and for their series, one that falls with the distance of their numbers, one linear in these, and one
of each device alone. The parts' variances maximize the posterior of the known times, under priors that keep
them plausible with few devices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.device import SPEED_NUMBERS, Device
from crosscast.errors import InputError
from crosscast.prediction.intervals import LEVELS, POOLED, factor_at
from crosscast.prediction.serialization import Array, Nested, Stored
from crosscast.prediction.time import Grid, application_weights, impute

# With equal weights: others would have to be learned from few devices.
_TREND = SPEED_NUMBERS[:2]
_LEAST_RANGE = 0.1


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairwise similarities of devices."""

    types: Reals  # `(d, d)` Ones where both are of the same type
    vendors: Reals
    series: Reals  # Ones where name, type and vendor are the same
    gpus: Reals  # Ones where both are GPUs, or neither is
    squares: Reals  # Mean square of the differences of their numbers in standard deviations
    products: Reals  # Mean product of their numbers' deviations from the mean in standard deviations
    trend: Reals  # `(d,)` Expected logarithm of an instruction's time, from clock and peak rate

    def __len__(self) -> int:
        return len(self.trend)

    def take(self, devices: Sequence[int]) -> Pairs:
        """The similarities of some of the devices, by index."""
        indices = np.array(devices, dtype=np.int64)
        return Pairs(*(array[np.ix_(*[indices] * array.ndim)] for array in vars(self).values()))


@dataclass(frozen=True, eq=False)
class Descriptors(Stored):
    """Descriptors of ``d`` devices."""

    device_types: Annotated[tuple[str, ...], Array("d")]  # Empty where not known
    device_vendors: Annotated[tuple[str, ...], Array("d")]
    device_series: Annotated[tuple[str, ...], Array("d")]
    # That at least one device has
    device_numbers: Annotated[tuple[str, ...], Array("k", among=SPEED_NUMBERS)]
    # Their logarithms. Where a device lacks a number, the mean over the devices of its type and vendor that
    # have it, or else of its type, or else of all
    device_logs: Annotated[Reals, Array("d k")]

    @classmethod
    def of(cls, devices: Sequence[Device]) -> Descriptors:
        """Collect the descriptors of devices."""
        logs = np.array([_log_numbers(device, SPEED_NUMBERS) for device in devices])
        known = np.isfinite(logs).any(axis=0)
        types, vendors, series = _texts(devices)
        names = tuple(name for name, is_known in zip(SPEED_NUMBERS, known.tolist(), strict=True) if is_known)
        return cls(types, vendors, series, names, _imputed(logs[:, known], types, vendors))

    def joined(self, device: Device) -> Descriptors:
        """Append a device."""
        numbers = _log_numbers(device, self.device_numbers)
        if not (device.type or device.vendor or device.series or np.isfinite(numbers).any()):
            expected = "a type, vendor, series or number"
            raise InputError.of(where=f"device {device.key}", expected=expected, found="none")
        known = (self.device_types, self.device_vendors, self.device_series)
        new = zip(known, _texts([device]), strict=True)
        types, vendors, series = (before + last for before, last in new)
        logs = _imputed(np.vstack([self.device_logs, numbers]), types, vendors)
        return Descriptors(types, vendors, series, self.device_numbers, logs)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Least and greatest of each number."""
        ends = np.exp([self.device_logs.min(axis=0), self.device_logs.max(axis=0)]).T.tolist()
        return {name: (low, high) for name, (low, high) in zip(self.device_numbers, ends, strict=True)}

    def pairs(self, known: int) -> Pairs:
        """Pairwise similarities, in standard deviations of the first `known` devices."""
        logs = self.device_logs
        scale = np.maximum(logs[:known].std(axis=0), _LEAST_RANGE)
        scaled = (logs - logs[:known].mean(axis=0)) / scale
        count = max(len(self.device_numbers), 1)
        types, vendors, series = map(_equal, (self.device_types, self.device_vendors, self.device_series))
        trend = [column for column, name in enumerate(self.device_numbers) if name in _TREND]
        return Pairs(
            types,
            vendors,
            types * vendors * series,
            _equal(["gpu" if kind == "gpu" else "other" for kind in self.device_types]),
            ((scaled[:, None] - scaled) ** 2).sum(axis=2) / count,
            scaled @ scaled.T / count,
            -logs[:, trend].sum(axis=1) / max(len(trend), 1),
        )


def _texts(devices: Sequence[Device]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(getattr(device, name) for device in devices) for name in ("type", "vendor", "series"))


def _log_numbers(device: Device, names: Sequence[str]) -> Reals:
    """Logarithms of numbers of a device; NaN where not known."""
    values = np.array([device.numbers.get(name, np.nan) for name in names])
    return np.log(np.where((values > 0) & (values < np.inf), values, np.nan))


def _imputed(logs: Reals, types: Sequence[str], vendors: Sequence[str]) -> Reals:
    """Fill missing numbers with the means over the most similar devices that have them."""
    imputed = logs.copy()
    same_type = _equal(types)
    for row, column in np.argwhere(np.isnan(logs)):
        known = ~np.isnan(logs[:, column])
        nearer = [same_type[row] * _equal(vendors)[row], same_type[row], np.ones(len(logs))]
        chosen = next(flags for each in nearer if (flags := known & (each > 0)).any())
        imputed[row, column] = logs[chosen, column].mean()
    return imputed


def _equal(texts: Sequence[str]) -> Reals:
    """Ones where texts are equal; an empty text equals only itself."""
    array = np.array(texts, dtype=np.str_)
    equal: Flags = (array[:, None] == array) & (array != "") | np.eye(len(array), dtype=np.bool_)
    return equal.astype(np.float64)


_WAY_MEANS = np.array([2.0, 1.0, 1.0, 2.0, 0.5, 0.4])
_WAY_SPREADS = np.array([2.0, 1.0, 1.0, 1.5, 1.0, 0.4])
_DRAWS = 300
_BEST = 10


def similarity_weights(ways: Reals, pairs: Pairs) -> tuple[Reals, float]:
    """Weights ``(d - 1,)`` of all devices but the last for the last, and an offset: means over all ways.

    The ``m`` ways, of shape ``(m, 6)``, are coefficients of the negative log weight: of another type, vendor
    and series, of the distance of the numbers in standard deviations, and of its square; the last is the
    power of clock and peak rate with which times are scaled from one device to another.
    """
    weights = _all_weights(ways, pairs)[:, -1, :-1]
    offsets = ways[:, 5] * (pairs.trend[-1] - weights @ pairs.trend[:-1])
    return weights.mean(axis=0), float(offsets.mean())


def fit_similarity(pairs: Pairs, log_time: Reals, kernels: Reals, seed: int) -> Reals:
    """The best ways to weight among many drawn at random, by the mean absolute error on devices left out.

    Several, as few devices do not determine the best one.
    """
    ways = np.abs(np.random.default_rng(seed).normal(_WAY_MEANS, _WAY_SPREADS, (_DRAWS, len(_WAY_MEANS))))
    losses = []
    # One after the other, as the errors of all would need much memory where kernels are many.
    for weights, power in zip(_all_weights(ways, pairs), ways[:, 5], strict=True):
        scaled = log_time - power * pairs.trend
        losses.append(kernels @ np.abs(scaled @ weights.T - scaled).sum(axis=1))
    return ways[np.argsort(losses, kind="stable")[:_BEST]]


def _all_weights(ways: Reals, pairs: Pairs) -> Reals:
    """Weights for each device (second axis) of the others (third axis), of shape ``(m, d, d)``."""
    others = [1 - pairs.types, 1 - pairs.vendors, 1 - pairs.series]
    logs = -np.tensordot(ways[:, :5], np.stack([*others, np.sqrt(pairs.squares), pairs.squares]), 1)
    logs[:, np.arange(len(pairs)), np.arange(len(pairs))] = -np.inf
    weights = np.exp(logs - logs.max(axis=2, keepdims=True))
    shares: Reals = weights / weights.sum(axis=2, keepdims=True)
    return shares


_MEANS = np.log([0.1, 0.1, 0.05, 0.1, 0.1, 0.01, 1.0, math.e])
_SPREADS = np.array([1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0.7, 1.0])
_NEAR, _REACH, _SHARED = 3, 6, 7
_POWER = 0.8
_LIMIT = 6.0
_JITTER = 1e-8


def kriging_weights(sizes: Reals, pairs: Pairs) -> tuple[Reals, float]:
    """Weights of all devices but the last for the last, of shape ``(d - 1,)``, and an offset.

    The weights add up to one, so that a kernel that is slower everywhere is so on the new device. Sizes
    ``(8,)`` are logarithms of the variances of the six parts in the order above, of the distance at which the
    fourth has fallen by ``exp(-1/2)``, and of the variance that all kernels share over that of one kernel.
    """
    covariance, known = _covariance(sizes, pairs), len(pairs) - 1
    system = np.ones((known + 1, known + 1))
    system[:known, :known] = covariance[:-1, :-1]
    system[known, known] = 0.0
    weights = np.linalg.solve(system, np.append(covariance[-1, :-1], 1.0))[:known]
    return weights, float(_POWER * (pairs.trend[-1] - weights @ pairs.trend[:-1]))


def kriging_sd(sizes: Reals, weights: Reals, pairs: Pairs) -> float:
    """Standard deviation of the error of any weights on the last device."""
    contrast = np.append(-weights, 1.0)
    variance = contrast @ _covariance(sizes, pairs) @ contrast * (1 + np.exp(sizes[_SHARED]))
    return float(np.sqrt(max(variance, _JITTER)))


def _covariance(sizes: Reals, pairs: Pairs) -> Reals:
    return np.tensordot(np.exp(sizes[:_REACH]), _parts(sizes, pairs), 1)


def _parts(sizes: Reals, pairs: Pairs) -> Reals:
    near = np.exp(-0.5 * pairs.squares / np.exp(2 * sizes[_REACH]))
    same_vendor = pairs.types * pairs.vendors
    return np.stack([pairs.gpus, same_vendor, pairs.series, near, pairs.products, np.eye(len(pairs))])


def fit_kriging(pairs: Pairs, log_time: Reals, kernels: Reals, replicates: int) -> Reals:
    """Fit the sizes of the parts by maximum a posteriori."""
    # Imported here: predicting with fitted sizes needs no SciPy.
    from scipy.linalg import helmert
    from scipy.optimize import minimize

    contrasts = helmert(len(pairs))
    share = kernels / kernels.sum()
    contrasted = (log_time - _POWER * pairs.trend) @ contrasts.T
    centre = share @ contrasted
    scatter = ((contrasted - centre) * share[:, None]).T @ (contrasted - centre)
    shared = np.outer(centre, centre)

    def loss(sizes: Reals) -> tuple[float, Reals]:
        parts, variances = _parts(sizes, pairs), np.exp(sizes[:_REACH])
        covariance = contrasts @ np.tensordot(variances, parts, 1) @ contrasts.T
        covariance += _JITTER * np.eye(len(covariance))
        inverse, (_, volume) = np.linalg.inv(covariance), np.linalg.slogdet(covariance)
        total = replicates * scatter + np.exp(-sizes[_SHARED]) * shared
        count = replicates + 1
        deviations = (sizes - _MEANS) / _SPREADS
        value = (
            count * volume
            + (inverse * total).sum()
            + len(covariance) * sizes[_SHARED]
            + deviations @ deviations
        )
        by_covariance = contrasts.T @ (count * inverse - inverse @ total @ inverse) @ contrasts
        slope = 2 * deviations / _SPREADS
        slope[:_REACH] += variances * (parts * by_covariance).sum(axis=(1, 2))
        bent = parts[_NEAR] * pairs.squares * np.exp(-2 * sizes[_REACH])
        slope[_REACH] += variances[_NEAR] * (bent * by_covariance).sum()
        slope[_SHARED] += len(covariance) - np.exp(-sizes[_SHARED]) * (inverse * shared).sum()
        return float(value) / 2, slope / 2

    bounds = [(mean - _LIMIT, mean + _LIMIT) for mean in _MEANS]
    sizes: Reals = minimize(loss, _MEANS, jac=True, method="L-BFGS-B", bounds=bounds).x
    return sizes


_LEAST_DEVICES = 3
_FAR = 2.0
_FAR_SD = 0.5
"""Standard deviation of the logarithm of a time for each e-fold by which a number is beyond `_FAR`.

On the published data, fitted to the 6 to 10 devices with the least or the greatest of one of five numbers,
90 % intervals held 98 % of the times on devices up to 3.3 times outside, and 80 % on those further outside
(101 cases); with this, 90 % of these. The greatest distance predicted errors better than their mean.
"""


@dataclass(frozen=True, eq=False)
class Transfer:
    """Linear prediction of log times on a new device from those on the known ones."""

    weights: Reals  # `(d,)` Weight of the logarithm of the time on each known device; they add up to one
    offset: float  # Added to the weighted sum
    sd: float  # Standard deviation of the error that comes from the descriptors alone

    @classmethod
    def of(cls, similarity: Reals, kriging: Reals, pairs: Pairs) -> Transfer:
        """To the last of the devices from the others: the mean of both weightings."""
        by_similarity, similarity_offset = similarity_weights(similarity, pairs)
        by_kriging, kriging_offset = kriging_weights(kriging, pairs)
        weights = (by_similarity + by_kriging) / 2
        return cls(weights, (similarity_offset + kriging_offset) / 2, kriging_sd(kriging, weights, pairs))

    def log_time(self, known: Reals) -> Reals:
        """Logarithms of times on the new device, of shape ``(n,)``, from those on the known ``(n, d)``."""
        return known @ self.weights + self.offset


@dataclass(frozen=True, eq=False)
class UnseenDevices(Stored):
    """Predictor of times on devices that were not measured."""

    descriptors: Annotated[Descriptors, Nested(flat=True)]  # Of the known devices
    similarity: Annotated[Reals, Array(f"m {len(_WAY_MEANS)}", least=1)]  # See `similarity_weights`
    kriging: Annotated[Reals, Array(f"{len(_MEANS)}")]  # See `kriging_weights`
    # Quantiles of the absolute errors over their standard deviations, on known devices left out of the fit,
    # for probabilities from 0 to 1 in equal steps
    unseen_quantiles: Annotated[Reals, Array("q", low=0, least=1, rising=True)]

    def transfer(self, device: Device) -> Transfer:
        """Transfer from the known devices to a new one, with a larger deviation far outside of them.

        See `_FAR_SD`.
        """
        pairs = self.descriptors.joined(device).pairs(len(self.descriptors.device_types))
        transfer = Transfer.of(self.similarity, self.kriging, pairs)
        most = max(self.far(device).values(), default=_FAR)
        return replace(transfer, sd=float(np.hypot(transfer.sd, _FAR_SD * np.log(most / _FAR))))

    def far(self, device: Device) -> dict[str, float]:
        """Factors by which numbers of a device are outside of those of the known ones, if above `_FAR`."""
        far_numbers = {}
        for name, (low, high) in self.descriptors.ranges().items():
            value = device.numbers.get(name, 0.0)
            outside = max(low / value, value / high) if 0 < value < np.inf else 0.0
            # Ranges are stored as logarithms, which do not round-trip to the last digit.
            if outside > _FAR * (1 + 1e-9):
                far_numbers[name] = outside
        return far_numbers

    def factor(self, level: float) -> float:
        """Half the width of an interval of a level, in standard deviations."""
        return factor_at(level, self.unseen_quantiles)


def enough_devices(grid: Grid) -> bool:
    """Whether a grid has the devices that `fit_unseen` needs, and times on each."""
    known = np.isfinite(grid.log_time)
    return len(grid.devices) >= _LEAST_DEVICES and bool(known.any(axis=0).all())


def fit_unseen(grid: Grid, seed: int) -> UnseenDevices:
    """Fit the prediction of times from devices' descriptors to a grid; cells without a time are imputed."""
    count = len(grid.devices)
    if count < _LEAST_DEVICES:
        expected = f"at least {_LEAST_DEVICES} to predict one that was not measured"
        raise InputError.of(where="devices", expected=expected, found=count)
    descriptors = Descriptors.of(grid.devices)
    complete = impute(grid)
    kernels, applications = application_weights(complete.profiles), len(complete.applications)
    pairs = descriptors.pairs(count)

    def fit(devices: Sequence[int]) -> tuple[Reals, Reals]:
        known, times = pairs.take(devices), complete.log_time[:, list(devices)]
        kriging = fit_kriging(known, times, kernels, applications)
        return fit_similarity(known, times, kernels, seed), kriging

    ratios = []
    for device in range(count):
        others = [each for each in range(count) if each != device]
        transfer = Transfer.of(*fit(others), pairs.take([*others, device]))
        error = transfer.log_time(complete.log_time[:, others]) - complete.log_time[:, device]
        ratios.append(np.abs(error) / transfer.sd)
    group = np.repeat(np.arange(count), [len(each) for each in ratios])
    quantiles = POOLED.quantiles(np.concatenate(ratios), group, LEVELS)
    return UnseenDevices(descriptors, *fit(range(count)), quantiles)

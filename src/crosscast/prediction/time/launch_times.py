"""The model of launch times: a sum of terms of work on a device; see `crosscast.prediction.time.terms`.

Inputs are profiles with counts by sub-groups, and data sheets of devices. Factors of the terms are fitted to
times on the device, and on others of its architecture, vendor and kind. Deviations are fitted to errors on
applications that were held out, by the terms on which the time is mostly spent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Annotated, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.sheets import Sheets, sheets_of
from crosscast.errors import InputError
from crosscast.prediction.intervals import factor_at
from crosscast.prediction.serialization import Array, Stored
from crosscast.prediction.time.correction import Correction, kind_number
from crosscast.prediction.time.terms import (
    MEMORY,
    TERMS,
    Efficiencies,
    has_new_drivers,
    has_own_rates,
    joined,
    measured_terms,
    terms,
)
from crosscast.prediction.time.work import Work

KINDS = ("launch", "start", "rates", "memory", "latency")
"""Kinds of times, by the terms on which most is spent; their errors differ."""

_KIND_OF = {
    "launch": 0,
    "start": 1,
    **dict.fromkeys(("arithmetic", "issue", "local", "l1", "l2", "spills"), 2),
    "memory": 3,
    **dict.fromkeys(("latency", "waiting", "scattered", "groups", "atomics"), 4),
}
_INTO_KINDS = np.eye(len(KINDS))[[_KIND_OF[term] for term in TERMS]]
_OF_MEMORY = KINDS.index("memory")
_LEAST_DEVIATION = 0.04
_LEAST_VARIANCE = 1e-12
_EXPECTED = np.log([0.7, 0.5, 0.5, 0.2, 0.5])  # Prior medians of the deviations
DRAWN = 0.005
_DRAWN_SIDE = 0.02  # Sides have fewer applications
_FREEDOM = 12.0
"""Of Student's distribution: of 2 to 1000, with the best score of intervals (Winkler 1972) held out."""
_LEVELS = np.linspace(0.02, 0.98, 49)
_TAIL = 0.9  # Level from which on single applications decide the quantiles
_FASTER, _FASTER_MEMORY = 1.25, 1.03
_KEPT, _SURELY, _SURELY_INTEGERS = 0.75, 0.25, 0.5

SIDES = 4
"""GPUs with drivers of 2018, those with newer ones, other devices, and those whose rates were measured.

Errors of one kind of time differ.
"""

_NO_GPUS = (2, 3)


def side_of(device: Device) -> int:
    """Return the row of a device's deviations."""
    if device.kind == "gpu":
        return int(has_new_drivers(device))
    return _NO_GPUS[has_own_rates(device)]


def deviation_of(shares: Reals, deviations: Reals) -> Reals:
    """Deviations of times with given shares of the terms ``(..., len(TERMS))``, from deviations by kind."""
    deviation: Reals = np.sqrt(((shares @ _INTO_KINDS) * deviations**2).sum(axis=-1))
    return deviation


def shared_part(shares: Reals, deviations: Reals) -> Reals:
    """Part of the deviations of times with given shares of the terms that other devices share.

    How much of its memory's rate a kernel reaches is each device's own.
    """
    squares = (shares @ _INTO_KINDS) * deviations**2
    part: Reals = np.sqrt(1.0 - squares[..., _OF_MEMORY] / squares.sum(axis=-1))
    return part


IN_COMMON = ("nothing", "type", "vendor", "architecture")
"""Traits that two devices may share, each together with those before it."""


def in_common(devices: Sequence[Device]) -> Integers:
    """Index in `IN_COMMON` of the most that two devices have in common, ``(d, d)``."""

    def same(texts: Sequence[str]) -> Flags:
        array = np.array(texts, dtype=np.str_)
        equal: Flags = (array[:, None] == array) & (array != "")
        return equal

    of_type = same([each.kind for each in devices])
    of_vendor = of_type & same([each.vendor for each in devices])
    of_architecture = of_vendor & same([each.series for each in devices])
    return of_type.astype(np.int64) + of_vendor + of_architecture


@dataclass(frozen=True, eq=False)
class DeviceErrors:
    """Errors of log times of ``n`` kernels on ``d`` devices, of which some are known."""

    devices: tuple[str, ...]  # Keys
    deviation: Reals  # `(n, d)` Before any is known
    shared: Reals  # `(n, d)` Part of it that devices share
    correlation: Reals  # `(d, d)` Of the shared parts
    known: Reals  # `(n, d)` NaN where not known

    def remaining(self, row: int) -> tuple[Reals, Reals]:
        """Expected errors of a kernel ``(d,)`` given the known ones, and their covariance ``(d, d)``."""
        shared = self.shared[row] * self.deviation[row]
        covariance = self.correlation * np.outer(shared, shared)
        np.fill_diagonal(covariance, self.deviation[row] ** 2)
        known = np.isfinite(self.known[row])
        gain = np.linalg.solve(covariance[known][:, known], covariance[known]).T
        return gain @ self.known[row, known], covariance - gain @ covariance[known]

    def conditioned(self, log_time: Reals) -> tuple[Reals, Reals]:
        """Log times and deviations ``(n, d)``, given the known errors; a known time has hardly any."""
        log_time, deviation = log_time.copy(), self.deviation.copy()
        for row in np.flatnonzero(np.isfinite(self.known).any(axis=1)).tolist():
            errors, covariance = self.remaining(row)
            log_time[row] += errors
            deviation[row] = np.sqrt(np.maximum(np.diagonal(covariance), _LEAST_VARIANCE))
        return log_time, deviation

    def probability_faster(self, row: int, first: str, second: str, apart: float) -> float | None:
        """Probability that the second of two devices is faster, given the predicted log ratio `apart`.

        Errors are normal. ``None`` where both times are known.
        """
        _, covariance = self.remaining(row)
        one, other = self.devices.index(first), self.devices.index(second)
        variance = covariance[one, one] + covariance[other, other] - 2 * covariance[one, other]
        return NormalDist().cdf(-apart / float(np.sqrt(variance))) if variance > _LEAST_VARIANCE else None


@dataclass(frozen=True, eq=False)
class Doubt(Stored, kind="doubt"):
    """Distribution of the errors of log times."""

    deviations: Annotated[Reals, Array(f"{SIDES} {len(KINDS)}", above=0)]  # Of times of a single kind
    # Of absolute errors over deviations
    quantiles: Annotated[Reals, Array(str(len(_LEVELS)), low=0, rising=True)]
    applications: Annotated[float, Array(low=1)]  # Number of which these are the errors

    def deviation(self, shares: Reals, sides: Integers) -> Reals:
        """Standard deviations of log times ``(c,)`` with given shares of the terms ``(c, len(TERMS))``."""
        deviations: Reals = self.deviations[sides]
        return deviation_of(shares, deviations)

    @property
    def most_level(self) -> float:
        """The highest level of which quantiles are known."""
        return float(_LEVELS[-1]) / (1 + 1 / self.applications)

    def factor(self, level: float) -> float:
        """Half the width of an interval of a level for one more application, in deviations.

        Its errors are exchangeable with those of the others, as in conformal prediction (Vovk et al. 2005).
        """
        return self.quantile(level * (1 + 1 / self.applications))

    def quantile(self, level: float) -> float:
        """Quantile of the absolute errors over their deviations."""
        return factor_at(level, self.quantiles, _LEVELS)


def doubt_of(errors: Reals, shares: Reals, weights: Reals, sides: Integers, applications: int) -> Doubt:
    """Fit deviations to errors of held-out times ``(c,)``, and quantiles to the standardized errors.

    Deviations of GPUs are drawn to those of all GPUs, others to those of all devices. As single applications
    decide the quantiles of high levels, these are in Student's ratio to that of 90 %.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.stats import t

    overall = fit_deviations(errors, shares, weights, np.exp(_EXPECTED), DRAWN)

    def of(rows: Flags, expected: Reals, drawn: float) -> Reals:
        if not rows.any():
            return expected
        return fit_deviations(errors[rows], shares[rows], weights[rows], expected, drawn)

    of_gpus = of(~np.isin(sides, _NO_GPUS), overall, DRAWN)
    expected = [overall if side in _NO_GPUS else of_gpus for side in range(SIDES)]
    deviations = np.stack([of(sides == side, each, _DRAWN_SIDE) for side, each in enumerate(expected)])
    ratio = np.abs(errors) / deviation_of(shares, deviations[sides])
    order = np.argsort(ratio)
    scaled = weights / weights.sum()
    below = np.cumsum(scaled[order]) - 0.5 * scaled[order]
    tail = np.maximum(t.ppf((1 + _LEVELS) / 2, _FREEDOM) / t.ppf((1 + _TAIL) / 2, _FREEDOM), 1.0)
    quantiles = np.interp(np.minimum(_LEVELS, _TAIL), below, ratio[order]) * tail
    return Doubt(deviations, quantiles, float(applications))


def fit_deviations(errors: Reals, shares: Reals, weights: Reals, expected: Reals, drawn: float) -> Reals:
    """Deviations by kind ``(len(KINDS),)``, of maximum likelihood under Student's distribution.

    A prior draws their logarithms to those `expected`, as if there were `drawn` times as many more errors of
    the expected size: an error adds about 2 to the precision of a logarithm.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.optimize import minimize

    kinds = shares @ _INTO_KINDS
    scaled = weights / weights.sum()
    centre = np.log(expected)

    def loss(values: Reals) -> tuple[float, Reals]:
        squares = np.exp(2 * values)
        variance = kinds @ squares
        ratio = errors**2 / variance
        terms = 0.5 * np.log(variance) + 0.5 * (_FREEDOM + 1) * np.log1p(ratio / _FREEDOM)
        slope = 0.5 / variance - 0.5 * (_FREEDOM + 1) * ratio / variance / (_FREEDOM + ratio)
        away = values - centre
        total = float(scaled @ terms) + drawn * float(away @ away)
        return total, (scaled * slope) @ kinds * 2 * squares + 2 * drawn * away

    limits = [(np.log(_LEAST_DEVIATION), 1.0)] * len(KINDS)
    deviations: Reals = np.exp(minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=limits).x)
    return deviations


def bounds(work: Work, sheets: Sheets) -> tuple[Reals, Reals]:
    """Physical lower and upper limits of seconds, of shape ``(n, d)``.

    Lower: distinct bytes over the bandwidth, from none that fill three quarters of the last cache, where they
    may still be, to all that fill it, of which a stream leaves nothing; operations over the peak, of clocks a
    quarter above those of the data sheets. Upper: one work-item after another, with the full latency of each
    instruction.
    """
    # Metrics alone do not have the width of accesses.
    distinct = np.where(work.exact, 1.0, _SURELY) * work.distinct
    filled = distinct / np.maximum(sheets.last_cache, 1.0)
    moved = distinct * np.clip((filled - _KEPT) / (1.0 - _KEPT), 0.0, 1.0)
    # Compilers join some sums and logic of integers, and leave some out.
    computed = np.maximum(work.floating, work.exact * _SURELY_INTEGERS * (work.integers + work.shifts))
    computed = np.maximum(computed, work.floating_fp64 / sheets.fp64)
    operations = computed / (sheets.rate * sheets.lanes * _FASTER)
    # Data sheets give the bandwidth to a few percent; the best of short runs is less exact.
    faster = np.where(sheets.streamed, _FASTER, _FASTER_MEMORY)
    least = np.maximum(moved / sheets.bandwidth / faster, operations)
    most = 1e-2 + work.items * work.longest * work.mean * 1000.0 / sheets.clock
    return least, most


class OnDevices(NamedTuple):
    """Features of ``d`` devices, with factors and deviations of a model on them."""

    sheets: Sheets
    factors: Reals  # `(d, len(TERMS))`
    deviations: Reals  # By kind of time, `(d, len(KINDS))`
    kinds: Integers  # `(d,)`, see `kind_number`
    near: Reals  # `(d,)`, see `LaunchTimes`


class LaunchEstimates(NamedTuple):
    """Estimates of ``n`` times on ``d`` devices; arrays are of shape ``(n, d)``."""

    seconds: Reals
    shares: Reals  # `(n, d, len(TERMS))` Of the terms
    deviation: Reals
    least: Reals  # Physical limits
    most: Reals
    nearest: Integers  # `(n,)` Number of the most similar launch that was measured
    similarity: Reals  # `(n,)` From 1, where both do the same work, to 0


@dataclass(frozen=True, eq=False)
class LaunchTimes(Stored, kind="terms"):
    """The fitted model: ``k`` factors by level and key of the terms, and its uncertainty."""

    keys: Annotated[tuple[str, ...], Array("k")]
    factors: Annotated[Reals, Array(f"k {len(TERMS)}")]
    doubt: Doubt
    # Deviations by kind on devices of each side that were not measured
    unseen: Annotated[Reals, Array(f"{SIDES} {len(KINDS)}", above=0)]
    # Correlation of the shared parts of a kernel's errors on two devices, by what these have in common
    together: Annotated[Reals, Array(str(len(IN_COMMON)), low=0, high=1)]
    correction: Correction  # From similar launches
    # Deviation near a known launch over that far away, by side
    near: Annotated[Reals, Array(str(SIDES), above=0, high=1)]
    # Devices that joined later, and deviations on them over those on other measured devices
    joined: Annotated[tuple[str, ...], Array("j")]
    wider: Annotated[Reals, Array(f"j {len(KINDS)}", above=0)]

    def efficiencies(self) -> Efficiencies:
        """The factors."""
        return Efficiencies(dict(zip(self.keys, self.factors, strict=True)))

    @cached_property
    def on(self) -> Callable[[tuple[Device, ...]], OnDevices]:
        """Function that returns, and remembers, what is known of devices.

        A kind of time whose rates were all measured on a device has the deviation of devices with measured
        times.
        """
        known, wider = self.efficiencies(), dict(zip(self.joined, self.wider, strict=True))

        def deviations(device: Device) -> Reals:
            usual: Reals = self.doubt.deviations[side_of(device)]
            if self.measured(device):
                return np.asarray(usual * wider.get(device.key, 1.0))
            rates_known = _INTO_KINDS[~measured_terms(device)].sum(axis=0) == 0
            return np.where(rates_known, usual, self.unseen[side_of(device)])

        @lru_cache(64)
        def on(devices: tuple[Device, ...]) -> OnDevices:
            return OnDevices(
                sheets_of(devices),
                np.exp([known.of(each) for each in devices]),
                np.stack([deviations(each) for each in devices]),
                np.array([kind_number(each) for each in devices]),
                self.near[[side_of(each) for each in devices]],
            )

        return on

    def measured(self, device: Device) -> bool:
        """Whether the model was fitted to times of the device."""
        return f"device:{device.key}" in self.keys

    def predict(self, work: Work, on: OnDevices) -> LaunchEstimates:
        """Times of launches by the host's clock."""
        seconds, shares = joined(terms(work, on.sheets) * on.factors)
        distances = self.correction.distances(work.traits)
        shift, explained = self.correction.of(distances, on.kinds, shares[..., MEMORY])
        deviation = deviation_of(shares, on.deviations) * narrowed(explained, on.near)
        limits, nearest = bounds(work, on.sheets), self.correction.nearest(distances)
        return LaunchEstimates(seconds * np.exp(shift), shares, deviation, *limits, *nearest)


@dataclass(frozen=True, eq=False)
class LaunchModels(Stored, kind="launch-models"):
    """The model for profiles with counts by sub-groups, and that for profiles of metrics alone."""

    counted: LaunchTimes
    estimated: LaunchTimes | None  # `None` if it was not fitted

    def of(self, counted: bool) -> LaunchTimes:
        """The model for profiles with counts by sub-groups, or without; InputError if there is none."""
        if counted:
            return self.counted
        if self.estimated is None:
            raise InputError.of(
                where="profile",
                field="launch.sub_groups",
                expected="counts by sub-groups, as crosscast characterize makes them",
                found="none",
            )
        return self.estimated


def narrowed(explained: Reals, near: Reals) -> Reals:
    """Deviations over those far from all measured launches, by the share of the variance explained."""
    narrower: Reals = 1.0 - explained * (1.0 - near)
    return narrower


def limits(
    centre: Reals, deviation: Reals, factor: float | Reals, least: Reals, most: Reals
) -> tuple[Reals, Reals, Reals]:
    """Times and the limits of their intervals, clipped to the physical limits, ``(n, d)`` each."""
    wide = np.exp(factor * deviation)
    middle, low, high = (
        np.minimum(np.maximum(each, least), most) for each in (centre, centre / wide, centre * wide)
    )
    return middle, np.minimum(low, middle), np.maximum(high, middle)

"""The model of launch times: a sum of terms of work on a device; see `crosscast.prediction.time.terms`.

Inputs are profiles with counts by sub-groups, and data sheets of devices. Factors of the terms are fitted to
times on the device, and on others of its architecture, vendor and kind. Deviations are fitted to errors on
applications that were held out, by the terms on which the time is mostly spent.

Launches of similar work have similar errors of the physical terms. They are a Gaussian process over traits of
a launch's work, with a covariance that falls with distance (Rasmussen and Williams 2006, *Gaussian Processes
for Machine Learning*, ch. 2 and 4.2): near a measured launch the correction is that launch's error, far from
all of them it is zero. Errors on devices of one kind are more strongly correlated than on others, and smaller
where memory takes the time, as its rate is known best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Annotated, Any, NamedTuple

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.sheets import Sheets, sheets_of
from crosscast.errors import InputError
from crosscast.prediction.intervals import factor_at
from crosscast.prediction.serialization import Array, Stored
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
from crosscast.prediction.time.work import TRAITS, Work
from crosscast.prediction.trained import squared_distances

KINDS = ("launch", "start", "rates", "memory", "latency")
"""Kinds of times, by the terms on which most is spent; their errors differ."""

_KIND_OF = {
    "launch": 0,
    "start": 1,
    **dict.fromkeys(("arithmetic", "issue", "local", "l1", "l2", "spills"), 2),
    "memory": 3,
    **dict.fromkeys(("latency", "waiting", "scattered", "groups", "atomics"), 4),
}
INTO_KINDS = np.eye(len(KINDS))[[_KIND_OF[term] for term in TERMS]]
_OF_MEMORY = KINDS.index("memory")
_LEAST_VARIANCE = 1e-12
DOUBT_LEVELS = np.linspace(0.02, 0.98, 49)
_FASTER, _FASTER_MEMORY = 1.25, 1.03
_KEPT, _SURELY, _SURELY_INTEGERS = 0.75, 0.25, 0.5

SIDES = 4
"""GPUs with drivers of 2018, those with newer ones, other devices, and those whose rates were measured.

Errors of one kind of time differ.
"""

NO_GPUS = (2, 3)


def side_of(device: Device) -> int:
    """Return the row of a device's deviations."""
    if device.kind == "gpu":
        return int(has_new_drivers(device))
    return NO_GPUS[has_own_rates(device)]


def deviation_of(shares: Reals, deviations: Reals) -> Reals:
    """Deviations of times with given shares of the terms ``(..., len(TERMS))``, from deviations by kind."""
    deviation: Reals = np.sqrt(((shares @ INTO_KINDS) * deviations**2).sum(axis=-1))
    return deviation


def shared_part(shares: Reals, deviations: Reals) -> Reals:
    """Part of the deviations of times with given shares of the terms that other devices share.

    How much of its memory's rate a kernel reaches is each device's own.
    """
    squares = (shares @ INTO_KINDS) * deviations**2
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
    quantiles: Annotated[Reals, Array(str(len(DOUBT_LEVELS)), low=0, rising=True)]
    applications: Annotated[float, Array(low=1)]  # Number of which these are the errors

    def deviation(self, shares: Reals, sides: Integers) -> Reals:
        """Standard deviations of log times ``(c,)`` with given shares of the terms ``(c, len(TERMS))``."""
        deviations: Reals = self.deviations[sides]
        return deviation_of(shares, deviations)

    @property
    def most_level(self) -> float:
        """The highest level of which quantiles are known."""
        return float(DOUBT_LEVELS[-1]) / (1 + 1 / self.applications)

    def factor(self, level: float) -> float:
        """Half the width of an interval of a level for one more application, in deviations.

        Its errors are exchangeable with those of the others, as in conformal prediction (Vovk et al. 2005).
        """
        return self.quantile(level * (1 + 1 / self.applications))

    def quantile(self, level: float) -> float:
        """Quantile of the absolute errors over their deviations."""
        return factor_at(level, self.quantiles, DOUBT_LEVELS)


BETWEEN_KINDS = np.array(
    [[1.0, 0.3, 0.3, 0.0], [0.3, 1.0, 0.6, 0.0], [0.3, 0.6, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]
)
"""Correlation of the errors of one launch on CPUs, GPUs of Nvidia, other GPUs, and CPUs of measured rates."""

_SIZE_IN_MEMORY = 0.5
"""Size of the errors of times that are all of memory, over that of times without.

The likelihood of the errors on published times is highest for this of 1, 0.5, 0.25 and 0.1.
"""

_SIMILAR = 6.0
"""Range over which launches are similar enough for errors of one size, over that of the errors themselves."""
_LEAST_NOISE = 0.01


def kind_number(device: Device) -> int:
    """Number of a device's row in `BETWEEN_KINDS`."""
    if device.kind == "cpu":
        return 3 if has_own_rates(device) else 0
    return 1 if device.vendor == "Nvidia" else 2


@dataclass(frozen=True, eq=False)
class Correction(Stored, kind="correction"):
    """Errors of ``n`` launches on kinds of devices, ``g`` in all, and the covariance that spreads them."""

    names: Annotated[tuple[str, ...], Array("n")]  # Of the launches, for people
    traits: Annotated[Reals, Array(f"n {len(TRAITS)}")]
    launch: Annotated[Integers, Array("g", low=0, below="n")]
    side: Annotated[Integers, Array("g", low=0, below=len(BETWEEN_KINDS))]
    memory: Annotated[Reals, Array("g", low=0, high=1)]  # Share of memory in the times
    errors: Annotated[Reals, Array("g")]  # Measured less predicted logarithms
    counts: Annotated[Reals, Array("g", above=0)]  # Number of times of which each is the median
    range: Annotated[float, Array(above=0)]  # Distance of traits over which covariance falls to 1/e
    variance: Annotated[float, Array(above=0)]
    # Variance of the errors of single times, by kind of device
    noise: Annotated[Reals, Array(str(len(BETWEEN_KINDS)), above=0)]

    def _covariance(self, reach: float) -> Reals:
        """Covariance ``(g, g)`` of the errors, of launches whose covariance falls to 1/e over a distance."""
        sizes = _sizes(self.memory)
        fall = np.exp(self.distances(self.traits)[self.launch][:, self.launch] / -reach)
        shared = self.variance * BETWEEN_KINDS[self.side[:, None], self.side]
        covariance = fall * (shared * sizes) * sizes[:, None]
        covariance[np.diag_indices(len(covariance))] += _LEAST_NOISE + self.noise[self.side] / self.counts
        return covariance

    def log_likelihood(self) -> float:
        """Logarithm of the likelihood of the errors, but for a constant."""
        covariance = self._covariance(self.range)
        weights = np.linalg.solve(covariance, self.errors)
        return float(-0.5 * self.errors @ weights - 0.5 * np.linalg.slogdet(covariance)[1])

    @cached_property
    def _of_kinds(self) -> list[tuple[Integers, Reals, Reals]]:
        """For each kind of device the launches whose errors say something of it, and what they say.

        Weights, of which the sum over the launches, each times its fall with distance, is the correction; and
        a matrix, of which the product with these on both sides is the share of the variance explained.
        """
        weights = np.linalg.solve(self._covariance(self.range), self.errors)
        inverse = np.linalg.inv(self._covariance(_SIMILAR * self.range))
        of_kinds = []
        for correlation in BETWEEN_KINDS:
            known = np.argsort(self.launch, kind="stable")
            known = known[correlation[self.side[known]] > 0]
            launches, first = np.unique(self.launch[known], return_index=True)
            amounts = self.variance * correlation[self.side[known]] * _sizes(self.memory[known])
            products = inverse[known][:, known] * amounts * amounts[:, None] / self.variance
            explained = np.add.reduceat(np.add.reduceat(products, first, axis=0), first, axis=1)
            of_kinds.append((launches, np.add.reduceat(amounts * weights[known], first), explained))
        return of_kinds

    def distances(self, traits: Reals) -> Reals:
        """Distances ``(m, n)`` of launches of some traits, ``(m, len(TRAITS))``, from the known ones."""
        return np.sqrt(squared_distances(traits, self.traits))

    def of(self, distances: Reals, kinds: Integers, memory: Reals) -> tuple[Reals, Reals]:
        """Logarithms to add to those of times ``(m, d)`` of launches at some distances on kinds ``(d,)``.

        Also the share of the errors' variance that known launches explain, from 0 to 1. `memory` is its share
        in each time, ``(m, d)``.
        """
        shift, explained = np.zeros((2, len(distances), len(BETWEEN_KINDS)))
        if len(self.launch):
            ranges = distances / -self.range
            fall, similar = np.exp(ranges), np.exp(ranges / _SIMILAR)
            for kind in set(kinds.tolist()):
                launches, weights, products = self._of_kinds[kind]
                near = similar[:, launches]
                shift[:, kind] = fall[:, launches] @ weights
                explained[:, kind] = (near @ products * near).sum(axis=1)
        return shift[:, kinds] * _sizes(memory), np.minimum(np.maximum(explained, 0.0), 1.0)[:, kinds]

    def with_launches(self, other: Correction) -> Correction:
        """Correction with the launches of both, and the covariance of this one."""
        numbered = replace(other, launch=other.launch + len(self.names))
        names = ("traits", "launch", "side", "memory", "errors", "counts")
        both: Any = {name: np.concatenate([getattr(self, name), getattr(numbered, name)]) for name in names}
        return replace(self, names=(*self.names, *other.names), **both)

    def nearest(self, distances: Reals) -> tuple[Integers, Reals]:
        """Numbers of the known launches most similar to ``m``, and similarities from 1 to 0."""
        number = distances.argmin(axis=1)
        return number, np.exp(distances[np.arange(len(number)), number] / (-_SIMILAR * self.range))


def _sizes(memory: Reals) -> Reals:
    """Sizes of errors of times with a share of memory, over those of times without."""
    sizes: Reals = 1.0 - (1.0 - _SIZE_IN_MEMORY) * memory
    return sizes


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
    # Compilers may compute in single precision instead.
    half = work.operations_fp16 / np.maximum(sheets.fp16, 1.0)
    computed = np.maximum(computed, np.where(sheets.gpu, half, 0.0))
    # A work-group is on one unit; threads of CPUs have more of theirs, and higher clocks, if few run.
    busy = np.where(sheets.gpu, np.minimum(sheets.units, work.groups), sheets.units)
    operations = computed / (busy * sheets.clock * sheets.lanes * _FASTER)
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
            rates_known = INTO_KINDS[~measured_terms(device)].sum(axis=0) == 0
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

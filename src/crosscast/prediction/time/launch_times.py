"""The model of times that adds up what a launch's work costs a device; see `crosscast.prediction.time.terms`.

It asks profiles that counted by sub-groups, knows devices by data sheets, and by the times that were measured
on them, on others of their architecture, of their maker, and of their kind. How wrong it may be it knows from
kernels of applications that were held out, by what the time is mostly spent on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.device import Device
from crosscast.devices.architectures import Sheets, sheets_of
from crosscast.errors import InputError
from crosscast.prediction.intervals import factor_at
from crosscast.prediction.serialization import Array, Stored
from crosscast.prediction.time.correction import Correction, kind_number
from crosscast.prediction.time.efficiencies import Efficiencies, measured_terms
from crosscast.prediction.time.terms import TERMS, joined, terms
from crosscast.prediction.time.work import Work, traits_of

KINDS = ("launch", "start", "rates", "memory", "latency")
"""What a time may mostly be spent on: sources of error that differ."""

_KIND_OF = {
    "launch": 0,
    "start": 1,
    **dict.fromkeys(("arithmetic", "issue", "local", "l1", "l2", "spills"), 2),
    "memory": 3,
    **dict.fromkeys(("latency", "waiting", "scattered", "groups", "atomics"), 4),
}
_INTO_KINDS = np.eye(len(KINDS))[[_KIND_OF[term] for term in TERMS]]
_LEAST_DEVIATION = 0.04
_EXPECTED = np.log([0.7, 0.5, 0.5, 0.2, 0.5])  # Deviations where no held-out time says
_DRAWN = 0.005
_FREEDOM = 4.0
_LEVELS = np.linspace(0.02, 0.98, 49)
_FASTER, _FASTER_MEMORY = 1.25, 1.03
_KEPT, _SURELY = 0.75, 0.25


def deviation_of(shares: Reals, deviations: Reals) -> Reals:
    """Deviations of times with such shares ``(..., len(TERMS))``, from those of times of one kind each."""
    found: Reals = np.sqrt(((shares @ _INTO_KINDS) * deviations**2).sum(axis=-1))
    return found


@dataclass(frozen=True, eq=False)
class Doubt(Stored, kind="doubt"):
    """How far the logarithms of times are from those predicted."""

    deviations: Annotated[Reals, Array(str(len(KINDS)), above=0)]  # Of a time that is all of one kind
    quantiles: Annotated[Reals, Array(str(len(_LEVELS)), low=0, rising=True)]  # Of absolute errors over these

    def deviation(self, shares: Reals) -> Reals:
        """Standard deviations of logarithms of times with such shares of the terms ``(..., len(TERMS))``."""
        return deviation_of(shares, self.deviations)

    def factor(self, level: float) -> float:
        """How many deviations hold so large a share of the errors."""
        return factor_at(level, self.quantiles, _LEVELS)


def doubt_of(errors: Reals, shares: Reals, weights: Reals) -> Doubt:
    """Fit deviations to errors of held-out times ``(c,)``, and take the quantiles of what is left."""
    deviations = fit_deviations(errors, shares, weights, np.exp(_EXPECTED), _DRAWN)
    ratio = np.abs(errors) / deviation_of(shares, deviations)
    order = np.argsort(ratio)
    scaled = weights / weights.sum()
    below = np.cumsum(scaled[order]) - 0.5 * scaled[order]
    return Doubt(deviations, np.interp(_LEVELS, below, ratio[order]))


def fit_deviations(errors: Reals, shares: Reals, weights: Reals, expected: Reals, drawn: float) -> Reals:
    """Deviations of times of one kind each ``(len(KINDS),)``, by the likelihood of Student's distribution.

    Their logarithms are drawn to those of what is expected, as if `drawn` times as many more errors were as
    expected: an error adds about 2 to the precision of a logarithm.
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
    found: Reals = np.exp(minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=limits).x)
    return found


def bounds(work: Work, sheets: Sheets) -> tuple[Reals, Reals]:
    """Seconds that physics allows at least and at most, of shape ``(n, d)``.

    At least: distinct bytes over the bandwidth, where they may not still be in the last cache; operations
    over the peak, of devices whose clocks go a quarter higher than their sheets say. At most: one work-item
    after another, each waiting for all it does.
    """
    # Metrics alone do not tell how wide accesses are.
    distinct = np.where(work.exact, work.distinct, _SURELY * work.distinct)[:, None]
    moved = np.where(distinct > _KEPT * sheets.last_cache, distinct, 0.0)
    operations = work.floating[:, None] / (sheets.units * sheets.clock * sheets.lanes * _FASTER)
    # Data sheets know memory to a few percent; the best of short runs does not.
    faster = np.where(np.isfinite(sheets.writing), _FASTER, _FASTER_MEMORY)
    least = np.maximum(moved / sheets.bandwidth / faster, operations)
    most = 1e-2 + work.items[:, None] * work.longest[:, None] * 1000.0 / sheets.clock
    return least, most


@dataclass(frozen=True, eq=False)
class LaunchTimes(Stored, kind="terms"):
    """The fitted model: ``k`` factors by level and key of ``t`` terms, and its doubt."""

    keys: Annotated[tuple[str, ...], Array("k")]
    factors: Annotated[Reals, Array(f"k {len(TERMS)}")]
    doubt: Doubt
    # Deviations of times on GPUs and on CPUs that were not measured, all of one kind
    unseen: Annotated[Reals, Array(f"2 {len(KINDS)}", above=0)]
    together: Annotated[float, Array(low=0, below=1)]  # Correlation of a kernel's errors on two devices
    correction: Correction  # What is known of like launches
    near: Annotated[float, Array(above=0, high=1)]  # Deviation beside a known launch over that far away
    # Devices that joined later, and how much wider times on them are than on others that were measured
    joined: Annotated[tuple[str, ...], Array("j")]
    wider: Annotated[Reals, Array(f"j {len(KINDS)}", above=0)]

    def efficiencies(self) -> Efficiencies:
        """The factors."""
        return Efficiencies(dict(zip(self.keys, self.factors, strict=True)))

    def measured(self, device: Device) -> bool:
        """Whether times of the device are among those that it was fitted to."""
        return f"device:{device.key}" in self.keys

    def deviations(self, devices: Sequence[Device]) -> Reals:
        """Deviations of times on devices that are all of one kind, ``(d, len(KINDS))``.

        Kinds whose rates were measured on a device are as sure as those of devices with measured times.
        """
        wider = dict(zip(self.joined, self.wider, strict=True))

        def of(device: Device) -> Reals:
            if self.measured(device):
                times: Reals = self.doubt.deviations * wider.get(device.key, 1.0)
                return times
            known = _INTO_KINDS[~measured_terms(device)].sum(axis=0) == 0
            found: Reals = np.where(known, self.doubt.deviations, self.unseen[int(device.type != "gpu")])
            return found

        deviations: Reals = np.stack([of(device) for device in devices])
        return deviations

    def predict(self, work: Work, devices: Sequence[Device]) -> tuple[Reals, Reals, Reals]:
        """Seconds ``(n, d)`` of one launch by the host's clock, shares of the terms, and deviations."""
        known = self.efficiencies()
        factors = np.exp([known.of(device) for device in devices])
        seconds, parts = joined(terms(work, sheets_of(devices)) * factors)
        kinds = np.array([kind_number(device) for device in devices])
        shift, explained = self.correction.of(traits_of(work), kinds)
        deviation = deviation_of(parts, self.deviations(devices)) * narrowed(explained, self.near)
        return seconds * np.exp(shift), parts, deviation


@dataclass(frozen=True, eq=False)
class LaunchModels(Stored, kind="launch-models"):
    """The model of launches whose profiles counted by sub-groups, and that of profiles with metrics alone."""

    counted: LaunchTimes
    estimated: LaunchTimes | None  # `None` if it was not fitted

    def of(self, counted: bool) -> LaunchTimes:
        """The model of one kind of profiles.

        Raises
        ------
        InputError
            If it is asked for metrics alone, and was not fitted to such.
        """
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


def narrowed(explained: Reals, near: float) -> Reals:
    """Deviations over those far from all that was measured, by how much of the errors is explained."""
    narrower: Reals = 1.0 - explained * (1.0 - near)
    return narrower


def limits(
    centre: Reals, deviation: Reals, factor: float | Reals, least: Reals, most: Reals
) -> tuple[Reals, Reals, Reals]:
    """Times and their limits, cut at what physics allows, of shape ``(n, d)`` each."""
    low, high = centre * np.exp(-factor * deviation), centre * np.exp(factor * deviation)
    middle = np.clip(centre, least, most)
    return (
        middle,
        np.minimum(np.clip(low, least, most), middle),
        np.maximum(np.clip(high, least, most), middle),
    )


def conditioned(
    log_time: Reals, deviation: Reals, probes: Reals, together: float
) -> tuple[Reals, Reals, Flags]:
    """Logarithms of times and deviations, given measured seconds ``(n, d)``.

    Seconds are not a number where nothing was measured.
    A kernel's errors on its devices, over their deviations, are as alike as any two of them.
    """
    known = np.isfinite(probes)
    errors = np.where(known, np.log(np.where(known, probes, 1.0)) - log_time, 0.0) / deviation
    count = known.sum(axis=1, keepdims=True)
    shared = together / (1 + (count - 1) * together)
    shared = np.where(count > 0, shared, 0.0)
    moved = log_time + np.where(known, errors, shared * errors.sum(axis=1, keepdims=True)) * deviation
    left = np.sqrt(1 - count * together * shared)
    return moved, np.where(known, 1e-6, left * deviation), known

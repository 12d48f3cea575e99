"""How much of the rates on paper devices reach: factors of the terms, fitted to measured times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.architectures import streams
from crosscast.prediction.time.terms import TERMS, joined

LEVELS = ("kind", "vendor", "architecture", "device")
"""Of what a factor is made: the product of one of each."""

# Of each term on GPUs and on CPUs: the factor that is expected before anything is measured, and the
# deviation of its logarithm from kind to kind. Memory is the surest: streams reach 70 to 95 % of the rate on
# paper. A launch costs what a system makes of it, and drivers differ more than chips.
_PRIORS = {
    "launch": ((1.5, 0.7), (1.0, 0.7)),
    "start": ((1.5, 0.5), (1.0, 0.7)),
    "arithmetic": ((1.2, 0.15), (1.0, 0.5)),
    "issue": ((1.3, 0.3), (1.0, 0.5)),
    "local": ((1.5, 0.3), (1.0, 0.4)),
    "l1": ((1.5, 0.3), (1.0, 0.4)),
    "l2": ((1.3, 0.3), (1.0, 0.5)),
    "memory": ((1.18, 0.08), (1.4, 0.3)),
    "scattered": ((1.0, 0.5), (1.0, 0.5)),
    "spills": ((1.2, 0.3), (1.0, 0.5)),
    "latency": ((1.0, 0.4), (1.0, 0.5)),
    "waiting": ((1.0, 0.5), (1.0, 0.5)),
    "groups": ((1.0, 0.5), (1.0, 0.5)),
    "atomics": ((1.0, 0.7), (1.0, 0.7)),
}
_WITHIN = {"kind": 0.2, "vendor": 0.2, "architecture": 1.2, "device": 0.5}
"""How much of that deviation the factors of each level have.

What is learned of an architecture, with the compilers and drivers of its time, goes over to others only a
little: of one that was not measured, rates are those that are usual.
"""

# What a launch costs is of the system and its time: little of it goes over to devices of other architectures,
# but the drivers of a maker's GPUs are more alike than those of two makers.
_WITHIN_LAUNCH = {
    "kind": (0.4, 0.4),
    "vendor": (0.7, 0.2),
    "architecture": (1.0, 1.0),
    "device": (0.6, 0.6),
}  # On GPUs and on CPUs

_NOISE = 0.35
_ROBUSTNESS = 0.6
_STEPS, _ENOUGH = 60, 1e-4
_POWER = 0.5


def level_keys(device: Device) -> tuple[str, str, str, str]:
    """What a device has factors by."""
    kind = "gpu" if device.type == "gpu" else "cpu"
    return kind, f"{kind} {device.vendor}", f"{kind} {device.series}", device.key


def measured_terms(device: Device) -> Flags:
    """Of which terms the rates were measured on a device itself by microbenchmarks, ``(len(TERMS),)``."""
    known = {
        "launch": "round_trip_s" in device.measured,
        "start": "empty_s" in device.measured,
        "scattered": "scattered_bytes_per_s" in device.measured,
        "memory": bool(np.isfinite(streams(device)).all()),
    }
    return np.array([known.get(term, False) for term in TERMS])


def prior_of(device: Device) -> Reals:
    """Logarithms of the factors that are expected of a device of its kind, ``(len(TERMS),)``."""
    side = int(device.type != "gpu")
    return np.where(measured_terms(device), 0.0, np.log([_PRIORS[term][side][0] for term in TERMS]))


def _levels(device: Device) -> Flags:
    """Which levels have a factor of each term, ``(len(LEVELS), len(TERMS))``.

    Of a rate that was measured on the device, others of its kind say nothing.
    """
    found: Flags = ~measured_terms(device) | (np.array(LEVELS) == "device")[:, None]
    return found


@dataclass(frozen=True, eq=False)
class Times:
    """Measured times of ``c`` cells, each of one or more of ``r`` launches on a device."""

    seconds: Reals  # `(r, len(TERMS))` of each launch's terms on its cell's device
    share: Reals  # `(r,)` Launches that it stands for, over all of the cell where the time is a mean
    cell: Integers  # `(r,)`
    device: Integers  # `(c,)` Number of its device
    log_time: Reals  # `(c,)`
    weights: Reals  # `(c,)`

    def take(self, cells: Flags) -> Times:
        """Some of the cells."""
        number = np.cumsum(cells) - 1
        rows = cells[self.cell]
        return Times(
            self.seconds[rows],
            self.share[rows],
            number[self.cell[rows]],
            self.device[cells],
            self.log_time[cells],
            self.weights[cells],
        )


def weights_of(sources: Sequence[str], groups: Sequence[object]) -> Reals:
    """Weights of cells, of mean 1: neither a source nor a group of many cells outweighs the others.

    Cells of one group err together, so that a group of n counts as its root does: an application whose
    work is taken for too little on one device is so on all of a kind.
    """
    keys = list(zip(sources, groups, strict=True))
    counts: dict[object, int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return np.array([counts[key] ** -_POWER for key in keys])


@dataclass(frozen=True, eq=False)
class Efficiencies:
    """Fitted factors: logarithms by level and key, ``(len(TERMS),)`` each; those not known are 0."""

    factors: Mapping[str, Reals]

    def of(self, device: Device) -> Reals:
        """Logarithms of the factors of a device; of one that is not known, those of its kind."""
        nothing = np.zeros(len(TERMS))
        factors = [
            self.factors.get(f"{level}:{key}", nothing)
            for level, key in zip(LEVELS, level_keys(device), strict=True)
        ]
        found: Reals = prior_of(device) + np.where(_levels(device), factors, 0.0).sum(axis=0)
        return found


def log_times(times: Times, factors: Reals) -> tuple[Reals, Reals]:
    """Logarithms of the cells' times ``(c,)``, and their slopes in the terms' factors ``(c, len(TERMS))``.

    Factors are logarithms of shape ``(c, len(TERMS))``.
    """
    found, shares = joined(times.seconds * np.exp(factors)[times.cell])
    parts = found[:, None] * shares * times.share[:, None]
    by_term = np.zeros((len(times.log_time), len(TERMS)))
    np.add.at(by_term, times.cell, parts)
    sums = by_term.sum(axis=1)
    return np.log(sums), by_term / sums[:, None]


def fit(times: Times, devices: Sequence[Device], known: Efficiencies | None = None) -> Efficiencies:
    """Fit factors by a robust loss of the logarithms, drawn to 1, by reweighted least squares.

    With factors that are known those stay as they are, and the devices' own are fitted beside them.
    """
    keys = [
        [f"{level}:{key}" for level, key in zip(LEVELS, level_keys(device), strict=True)]
        for device in devices
    ]
    sides = [int(of_device[0] != "kind:gpu") for of_device in keys]
    if known is not None:
        keys = [of_device[-1:] for of_device in keys]
    used = sorted({key for number in set(times.device.tolist()) for key in keys[number]})
    place = {key: number for number, key in enumerate(used)}
    t = len(TERMS)
    member = np.zeros((len(devices), len(used), t))
    for number, (device, found) in enumerate(zip(devices, keys, strict=True)):
        for key, terms in zip(found, _levels(device)[-len(found) :], strict=True):
            if key in place:
                member[number, place[key]] = terms
    centre = np.stack([prior_of(device) if known is None else known.of(device) for device in devices])
    precision = np.empty((len(used), t))
    for side, found in zip(sides, keys, strict=True):
        spreads = np.array([_PRIORS[term][side][1] for term in TERMS])
        for key in found:
            if key in place:
                level = key.partition(":")[0]
                precision[place[key]] = (spreads * _WITHIN[level]) ** -2.0
                precision[place[key], 0] = (spreads[0] * _WITHIN_LAUNCH[level][side]) ** -2.0
    prior = precision.ravel()
    values = np.zeros((len(used), t))
    damping, best = 1e-3, np.inf

    def loss(trial: Reals) -> tuple[float, Reals, Reals]:
        found, slopes = log_times(times, (centre + np.einsum("dkt,kt->dt", member, trial))[times.device])
        error = found - times.log_time
        root = np.sqrt(1 + (error / _ROBUSTNESS) ** 2)
        total = (times.weights * 2 * _ROBUSTNESS**2 * (root - 1)).sum() / _NOISE**2 + (
            prior * trial.ravel() ** 2
        ).sum()
        return float(total), error, slopes

    best, error, slopes = loss(values)
    for _ in range(_STEPS):
        weights = times.weights / np.sqrt(1 + (error / _ROBUSTNESS) ** 2) / _NOISE**2
        # Cells of one device have the same row of `member`, so that products are by device first.
        square, right = np.zeros((len(used), t, len(used), t)), np.zeros((len(used), t))
        for number in np.unique(times.device).tolist():
            rows = times.device == number
            scaled = slopes[rows] * weights[rows, None]
            own, slope = scaled.T @ slopes[rows], scaled.T @ error[rows]
            of = np.flatnonzero(member[number].any(axis=1))
            for i in of:
                right[i] += slope * member[number, i]
                for j in of:
                    square[i, :, j, :] += own * np.outer(member[number, i], member[number, j])
        matrix = square.reshape(prior.size, prior.size)
        gradient = right.ravel() + prior * values.ravel()
        while damping < 1e8:
            step = np.linalg.solve(matrix + np.diag(prior * (1 + damping)), gradient)
            trial = values - np.clip(step, -1.0, 1.0).reshape(values.shape)
            after, new_error, new_slopes = loss(trial)
            if after <= best:
                break
            damping *= 10
        else:
            break
        gain, best, values, error, slopes = best - after, after, trial, new_error, new_slopes
        damping = max(damping / 5, 1e-9)
        if gain < _ENOUGH * (1 + best):
            break
    return Efficiencies({**(known.factors if known else {}), **dict(zip(used, values, strict=True))})

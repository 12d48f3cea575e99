"""Terms of a launch's time: the seconds that each kind of its work takes on a device.

Each term is the time of its work alone at the rate on paper. Kinds of work that overlap take a smooth maximum
of their times (`joined`), to which the costs of a launch before and after its work are added. Each term has a
factor, the inverse of the efficiency, which `fit` fits to measured times with a prior.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosscast.arrays import Flags, Integers, Reals
from crosscast.device import Device
from crosscast.devices.sheets import Sheets, streams
from crosscast.prediction.time.cpu_terms import cpu_terms
from crosscast.prediction.time.gpu_terms import gpu_terms
from crosscast.prediction.time.work import Work

TERMS = (
    "launch",
    "start",
    "arithmetic",
    "issue",
    "local",
    "l1",
    "l2",
    "memory",
    "scattered",
    "spills",
    "latency",
    "waiting",
    "groups",
    "atomics",
)
"""Terms of a launch's time.

- launch: from the host's call to the device's start, and from its end to the host's notification.
- start: starting and ending a kernel on the device.
- arithmetic: real operations, and on GPUs those on integers but for addresses, at the rate of a unit's
  lanes, idle lanes too; doubles, shifts and products of integers at their own.
- issue: all other instructions of sub-groups at the rate of the lanes. On GPUs both take longer if thousands
  of instructions with accesses among them follow each other.
- local: wavefronts of local memory, one a clock and unit, except loads whose values registers keep.
- l1: lines that accesses touch, looked up one or four a clock and unit, and their words, one a clock and
  bank; where sub-groups have 64 work-items, a clock for each line of 64 bytes and at least four an access.
- l2: bytes behind the units' own caches, and those behind the second where memory has a larger cache.
- memory: bytes behind the last cache, as many groups sharing it as are resident; of a launch that is
  repeated, so that data that fit a GPU's last cache are still there. Pages that neighbours walk in apart take
  longer.
- scattered: lines that a thread of a CPU fetches from anywhere, beyond those that one after another need;
  of GPUs, bytes at random addresses of memory beyond those of streams, reads of one address by all units that
  their own caches do not keep, and on AMD's older ones lines of one memory channel.
- spills: values that do not fit the registers, to memory and back; of loops, to the second cache.
- latency: the chains of dependent instructions of a work-item, block by block on GPUs, and loads of which
  the address depends on a load; once for each wave of groups.
- waiting: memory accesses of a work-item, once for each wave: a few in flight at once, but no block begins
  before the loads of the one before it are back, unless a compiler joins the two.
- groups: beginning and ending work-groups, on units and on the device.
- atomics: those that wait for each other.
"""

_NUMBERS = {term: number for number, term in enumerate(TERMS)}
LAUNCH, MEMORY = _NUMBERS["launch"], _NUMBERS["memory"]

_ADDED = 2
"""Number of the first terms, which do not overlap with others."""

SHARPNESS = 2.5
"""Of the smooth maximum: the exponent of the norm by which the terms are joined."""

_OF_KIND = {"gpu": gpu_terms, "cpu": cpu_terms}
_TINY = 1e-15


def terms(work: Work, sheets: Sheets) -> Reals:
    """Seconds that each term takes at rates on paper, of shape ``(n, d, len(TERMS))``.

    The time is from the host's call to its notification of the end; see `by_device`.
    """
    seconds = np.empty((len(work), sheets.gpu.size, len(TERMS)))
    for kind, (columns, of_kind) in sheets.by_kind.items():
        parts = np.zeros((len(TERMS), len(work), len(columns)))
        for name, of_term in _OF_KIND[kind](work, of_kind).items():
            parts[_NUMBERS[name]] = of_term
        seconds[:, columns] = parts.transpose(1, 2, 0)
    return np.maximum(seconds, _TINY, out=seconds)


def by_device(seconds: Reals) -> Reals:
    """Terms of times that the device measures, which lack the launch by the host."""
    on_device = seconds.copy()
    on_device[..., LAUNCH] = _TINY
    return on_device


def joined(seconds: Reals) -> tuple[Reals, Reals]:
    """Total time of terms ``(..., len(TERMS))``, and the share of each.

    The time is the sum of launch, start, and a smooth maximum of the others, in seconds. Shares are also the
    derivatives of the log time by the logarithm of each term.
    """
    work = seconds[..., _ADDED:]
    most = work.max(axis=-1, keepdims=True)
    powers = (work / most) ** SHARPNESS
    total = powers.sum(axis=-1, keepdims=True)
    overlap = most * total ** (1 / SHARPNESS) * powers / total
    parts = np.concatenate([seconds[..., :_ADDED], overlap], axis=-1)
    sums = parts.sum(axis=-1)
    return sums, parts / sums[..., None]


def saved_by_half(shares: Reals) -> Reals:
    """Share of a time that halving each term would save, by the terms' shares ``(..., len(TERMS))``."""
    added, parts = shares[..., :_ADDED], shares[..., _ADDED:]
    overlap = 1.0 - added.sum(axis=-1, keepdims=True)
    parts = parts / np.maximum(overlap, _TINY)
    remaining = (1.0 - parts * (1.0 - 0.5**SHARPNESS)) ** (1 / SHARPNESS)
    return np.concatenate([0.5 * added, overlap * (1.0 - remaining)], axis=-1)


LEVELS = ("kind", "vendor", "architecture", "device")
"""A factor is the product of one of each level."""

# Of each term on GPUs and on CPUs: the median of the factor's prior, and the standard deviation of its
# logarithm. Memory is the surest: streams reach 70 to 95 % of the rate on paper, of CPUs 60 to 80 %.
# Multiply-adds alone reach the peak of a GPU (clpeak, mixbench). The cost of a launch depends on the system;
# drivers differ more than chips.
_PRIORS = {
    "launch": ((1.5, 0.7), (1.0, 0.7)),
    "start": ((1.5, 0.5), (1.0, 0.7)),
    "arithmetic": ((1.05, 0.15), (1.0, 0.5)),
    "issue": ((1.15, 0.3), (1.0, 0.5)),
    "local": ((1.5, 0.3), (1.0, 0.4)),
    "l1": ((1.1, 0.2), (1.0, 0.4)),
    "l2": ((1.3, 0.3), (1.0, 0.5)),
    "memory": ((1.18, 0.08), (1.4, 0.1)),
    "scattered": ((1.0, 0.5), (1.0, 0.5)),
    "spills": ((1.2, 0.3), (1.0, 0.5)),
    "latency": ((1.1, 0.4), (1.0, 0.5)),
    "waiting": ((1.0, 0.5), (1.0, 0.5)),
    "groups": ((1.0, 0.5), (1.0, 0.5)),
    "atomics": ((1.0, 0.7), (1.0, 0.7)),
}
_WITHIN = {"kind": 0.2, "vendor": 0.2, "architecture": 1.2, "device": 0.5}
"""Prior deviation of the factors of each level, as a share of the term's.

Factors of an architecture, with the compilers and drivers of its time, say little about other architectures:
one that was not measured has the usual rates.
"""

# How much of its bandwidth a device reaches is its own: kinds of memory and its error correction differ.
_WITHIN_MEMORY = {**_WITHIN, "architecture": 0.5, "device": 1.2}

# Launch costs belong to the system and its time: they say little about devices of other architectures, but
# the drivers of one vendor's GPUs are more similar than those of two vendors.
_WITHIN_LAUNCH = {
    "kind": (0.4, 0.4),
    "vendor": (0.7, 0.2),
    "architecture": (1.0, 1.0),
    "device": (0.6, 0.6),
}  # On GPUs and on CPUs

# Measured launches of AMD's GPUs take 8 to 24 us with the drivers of these, 40 to 180 us with those before.
# From the call to the start, those of Nvidia's take 3.4 to 6 us, and 4 to 25 us before.
_NEW_DRIVERS = ("RDNA", "CDNA", "Vega 20", "Volta", "Turing", "Ampere", "Ada Lovelace", "Hopper", "Blackwell")

_NOISE = 0.35
_ROBUSTNESS = 0.6
_STEPS, _ENOUGH = 60, 1e-4
_POWER = 0.5


def has_own_rates(device: Device) -> bool:
    """Whether a CPU's rates are those that `crosscast calibrate` measured on it.

    What most CPUs lack of their rates on paper is in a measured rate.
    """
    return device.kind == "cpu" and "chain_flop_per_s" in device.measured


def level_keys(device: Device) -> tuple[str, str, str, str]:
    """Keys of a device's factors, one by level."""
    kind = f"measured {device.kind}" if has_own_rates(device) else device.kind
    return kind, f"{kind} {device.vendor}", f"{kind} {device.series}", device.key


def measured_terms(device: Device) -> Flags:
    """Mask of the terms whose rates microbenchmarks measured on the device itself, ``(len(TERMS),)``."""
    known = {
        "launch": "round_trip_s" in device.measured,
        "start": "empty_s" in device.measured,
        "scattered": "scattered_bytes_per_s" in device.measured,
        "memory": bool(np.isfinite(streams(device)).all()),
    }
    return np.array([known.get(term, False) for term in TERMS])


def _prior_column(device: Device) -> int:
    """Return 0 for a GPU, 1 for any other device."""
    return ("gpu", "cpu").index(device.kind)


def has_new_drivers(device: Device) -> bool:
    """Whether a GPU's drivers are newer than those of 2018."""
    return device.series.startswith(_NEW_DRIVERS)


def prior_of(device: Device) -> Reals:
    """Logarithms of a device's factors before any measurement, ``(len(TERMS),)``."""
    side = _prior_column(device)
    return np.where(measured_terms(device), 0.0, np.log([_PRIORS[term][side][0] for term in TERMS]))


def _levels(device: Device) -> Flags:
    """Mask of the levels that have a factor of each term, ``(len(LEVELS), len(TERMS))``.

    A rate that was measured on the device has no factor of the device's kind. Launches of newer drivers have
    none of older ones.
    """
    levels: Flags = ~measured_terms(device) | (np.array(LEVELS) == "device")[:, None]
    if has_new_drivers(device):
        levels[[LEVELS.index("kind"), LEVELS.index("vendor")], TERMS.index("launch")] = False
    return levels


@dataclass(frozen=True, eq=False)
class Times:
    """Measured times of ``c`` cells, each of one or more of ``r`` launches on a device."""

    seconds: Reals  # `(r, len(TERMS))` of each launch's terms on its cell's device
    share: Reals  # `(r,)` Launches that it represents; divided by the cell's where the time is a mean
    cell: Integers  # `(r,)`
    device: Integers  # `(c,)` Index of its device
    log_time: Reals  # `(c,)`
    weights: Reals  # `(c,)`

    def take(self, cells: Flags) -> Times:
        """The times of some cells."""
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

    Errors of a group's cells are correlated, so that a group of n weighs as the root of n: an application
    whose work is underestimated on one device is so on all devices of a kind.
    """
    keys = list(zip(sources, groups, strict=True))
    counts = Counter(keys)
    return np.array([counts[key] ** -_POWER for key in keys])


@dataclass(frozen=True, eq=False)
class Efficiencies:
    """Fitted factors: logarithms by level and key, ``(len(TERMS),)`` each; unknown ones are 0."""

    factors: Mapping[str, Reals]

    def of(self, device: Device) -> Reals:
        """Logarithms of the factors of a device; those of its kind if the device is unknown."""
        zeros = np.zeros(len(TERMS))
        factors = [
            self.factors.get(f"{level}:{key}", zeros)
            for level, key in zip(LEVELS, level_keys(device), strict=True)
        ]
        total: Reals = prior_of(device) + np.where(_levels(device), factors, 0.0).sum(axis=0)
        return total


def log_times(times: Times, factors: Reals) -> tuple[Reals, Reals]:
    """Logarithms of the cells' times ``(c,)``, and derivatives by the terms' factors ``(c, len(TERMS))``.

    Factors are logarithms of shape ``(c, len(TERMS))``.
    """
    seconds, shares = joined(times.seconds * np.exp(factors)[times.cell])
    parts = seconds[:, None] * shares * times.share[:, None]
    by_term = np.zeros((len(times.log_time), len(TERMS)))
    np.add.at(by_term, times.cell, parts)
    sums = by_term.sum(axis=1)
    return np.log(sums), by_term / sums[:, None]


def fit(times: Times, devices: Sequence[Device], known: Efficiencies | None = None) -> Efficiencies:
    """Fit factors by iteratively reweighted least squares, with a robust loss of log times and a prior.

    With `known` factors only those of the level `device` are fitted; the known ones stay.
    """
    keys = [
        [f"{level}:{key}" for level, key in zip(LEVELS, level_keys(device), strict=True)]
        for device in devices
    ]
    sides = [_prior_column(device) for device in devices]
    if known is not None:
        keys = [of_device[-1:] for of_device in keys]
    used = sorted({key for number in set(times.device.tolist()) for key in keys[number]})
    column = {key: number for number, key in enumerate(used)}
    t = len(TERMS)
    design = np.zeros((len(devices), len(used), t))
    for number, (device, of_device) in enumerate(zip(devices, keys, strict=True)):
        for key, terms in zip(of_device, _levels(device)[-len(of_device) :], strict=True):
            if key in column:
                design[number, column[key]] = terms
    centre = np.stack([prior_of(device) if known is None else known.of(device) for device in devices])
    precision = np.empty((len(used), t))
    for side, of_device in zip(sides, keys, strict=True):
        spreads = np.array([_PRIORS[term][side][1] for term in TERMS])
        for key in (key for key in of_device if key in column):
            level = key.partition(":")[0]
            within = np.full(t, _WITHIN[level])
            within[[LAUNCH, MEMORY]] = _WITHIN_LAUNCH[level][side], _WITHIN_MEMORY[level]
            precision[column[key]] = (spreads * within) ** -2.0
    prior = precision.ravel()
    values, of_terms = np.zeros((len(used), t)), np.arange(t)
    damping, best = 1e-3, np.inf

    def loss(trial: Reals) -> tuple[float, Reals, Reals]:
        predicted, slopes = log_times(times, (centre + np.einsum("dkt,kt->dt", design, trial))[times.device])
        error = predicted - times.log_time
        root = np.sqrt(1 + (error / _ROBUSTNESS) ** 2)
        total = (times.weights * 2 * _ROBUSTNESS**2 * (root - 1)).sum() / _NOISE**2 + (
            prior * trial.ravel() ** 2
        ).sum()
        return float(total), error, slopes

    best, error, slopes = loss(values)
    for _ in range(_STEPS):
        weights = times.weights / np.sqrt(1 + (error / _ROBUSTNESS) ** 2) / _NOISE**2
        # Cells of one device have the same row of `design`, so that products are by device first.
        square, right = np.zeros((len(used), t, len(used), t)), np.zeros((len(used), t))
        for number in np.unique(times.device).tolist():
            rows = times.device == number
            scaled = slopes[rows] * weights[rows, None]
            curvature, direction = scaled.T @ slopes[rows], scaled.T @ error[rows]
            columns = np.flatnonzero(design[number].any(axis=1))
            chosen = design[number, columns]
            right[columns] += direction * chosen
            block = chosen[:, :, None, None] * curvature[:, None] * chosen
            square[np.ix_(columns, of_terms, columns, of_terms)] += block
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

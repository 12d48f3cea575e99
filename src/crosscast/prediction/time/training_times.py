"""Fit the model of launch times to tables of profiles and of times, with the launches of each time.

The tables are those of `benchmarks.training_profiles`: see `crosscast.data.times`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crosscast.arrays import AnyArray, Flags, Integers, Reals
from crosscast.data.times import KernelTime, LaunchTables, read_launch_tables
from crosscast.device import Device
from crosscast.devices.catalogue import device_named
from crosscast.devices.sheets import sheets_of
from crosscast.errors import InputError
from crosscast.prediction.time.correction import Correction, fit_correction, kind_number
from crosscast.prediction.time.counts import work_of
from crosscast.prediction.time.data import Toolchain
from crosscast.prediction.time.launch_times import (
    DRAWN,
    IN_COMMON,
    KINDS,
    SIDES,
    Doubt,
    LaunchTimes,
    bounds,
    deviation_of,
    doubt_of,
    fit_deviations,
    in_common,
    narrowed,
    shared_part,
    side_of,
)
from crosscast.prediction.time.terms import (
    MEMORY,
    Efficiencies,
    Times,
    by_device,
    fit,
    log_times,
    terms,
    weights_of,
)

_BY_HOST = ("host", "clFinish")
_DEVICE_FOLDS, _LAUNCH_FOLDS = 6, 5
_IS_NEAR, _NEAREST = 0.5, 0.3
_MOST_TOGETHER = 0.95
_ITERATIONS = 2
_LEAST_SHARE = 0.5  # Of the physical lower limit, which data sheets give to a few percent
# Measured over unfitted time: of one, and the median of a source on a device
_LONGEST, _LONGEST_USUAL = 3000.0, 100.0


_FURTHER_LAUNCH = 0.3
"""Launch cost of each launch after the first of those that are timed together, over that of the first.

The host enqueues them with events to wait for (E. Bainville, OpenCL FFT library, 2011).
"""


@dataclass(frozen=True, eq=False)
class TrainingTimes:
    """Measured times of ``c`` cells with their launches."""

    times: Times
    rows: tuple[KernelTime, ...]  # Of the cells
    devices: tuple[Device, ...]
    least: Reals  # `(c,)` Physical lower and upper limits in seconds
    most: Reals
    traits: Reals  # `(c, len(TRAITS))` Of the cell's launches, their mean
    toolchains: tuple[Toolchain, ...]  # Of the profiles

    def labels(self, by: str) -> AnyArray:
        """Label of each cell by which cells are held out: ``source``, ``application`` or ``device``."""
        return np.array([getattr(row, by) for row in self.rows])

    @property
    def noted(self) -> Flags:
        """Mask of the cells with a note that the time includes something else."""
        return np.array([bool(row.note) for row in self.rows], dtype=np.bool_)

    @property
    def kinds(self) -> Integers:
        """Number of the kind of each cell's device; see `kind_number`."""
        return np.array([kind_number(device) for device in self.devices])[self.times.device]

    @property
    def sides(self) -> Integers:
        """Row of the deviations of each cell's device."""
        return np.array([side_of(device) for device in self.devices])[self.times.device]

    def take(self, cells: Flags) -> TrainingTimes:
        """The times of some cells."""
        return replace(
            self,
            times=self.times.take(cells),
            rows=tuple(self.rows[k] for k in np.flatnonzero(cells).tolist()),
            least=self.least[cells],
            most=self.most[cells],
            traits=self.traits[cells],
        )


def read_training(tables: str | Path | LaunchTables, *, counted: bool = True) -> TrainingTimes:
    """Read the training data of a model from tables, or from the tables of a folder.

    Without `counted` the work is estimated from the metrics of the profiles alone. Raise InputError as
    `crosscast.data.times.read_launch_tables`, or if times are of an unknown device, or cannot be seconds.
    """
    if not isinstance(tables, LaunchTables):
        tables = read_launch_tables(tables)
    profiles, parts, rows = tables.profiles, tables.parts, tables.times
    if not counted:
        profiles = tuple(replace(profile, launch={}) for profile in profiles)
    work = work_of(profiles)
    keys = sorted({row.device for row in rows})
    devices = tuple(tables.devices[key] if key in tables.devices else device_named(key) for key in keys)
    sheets = sheets_of(devices)
    by_host = terms(work, sheets)
    on_device, limits_s = by_device(by_host), bounds(work, sheets)
    seconds, share, cell, of_cells = list[Reals](), list[float](), list[int](), list[list[float]]()
    columns = [keys.index(row.device) for row in rows]
    for number, (row, column) in enumerate(zip(rows, columns, strict=True)):
        of_cell = parts[row.cell]
        count = sum(launches for _, launches in of_cell)
        divisor = 1.0 if row.total else count
        of_cells.append([sum(each[k, column] * n for k, n in of_cell) / divisor for each in limits_s])
        # Launches that are timed together wait for each other on the device, and in part for the host.
        launch_share = 1.0 / count if row.total else 1.0
        launch_share += _FURTHER_LAUNCH * (1.0 - launch_share)
        first_terms = by_host if any(word in row.timed for word in _BY_HOST) else on_device
        for profile, launches in of_cell:
            first, others = first_terms[profile, column], on_device[profile, column]
            seconds.append(launch_share * first + (1.0 - launch_share) * others)
            share.append(launches / divisor)
            cell.append(number)
    groups = [
        (row.application, devices[column].type == "gpu") for row, column in zip(rows, columns, strict=True)
    ]
    weights = weights_of([row.source for row in rows], groups)
    log_time = np.log([row.time_s for row in rows])
    of_rows = np.array(share), np.array(cell), np.array(columns), log_time, weights
    times = Times(np.array(seconds), *of_rows)
    least, most = np.array(of_cells).T
    _refuse_other_units(tables.label, rows, times, least)
    traits = {
        each: np.average(work.traits[[k for k, _ in of_cell]], axis=0, weights=[n for _, n in of_cell])
        for each, of_cell in parts.items()
    }
    return TrainingTimes(
        times,
        rows,
        devices,
        least,
        most,
        np.stack([traits[row.cell] for row in rows]),
        tuple(sorted({Toolchain.of(profile.program) for profile in profiles})),
    )


def _refuse_other_units(label: str, cells: Sequence[KernelTime], times: Times, least: Reals) -> None:
    """Raise InputError for times that physics forbids, and for those too long to be in seconds."""
    unfitted, _ = log_times(times, np.zeros((len(cells), times.seconds.shape[1])))
    ratio = np.exp(times.log_time - unfitted)
    labels = [f"{row.source} on {row.device}" for row in cells]
    medians = {name: float(np.median(ratio[np.array(labels) == name])) for name in set(labels)}
    median_ratio = np.array([medians[name] for name in labels])
    short = np.exp(times.log_time) < _LEAST_SHARE * least
    for invalid, expected in (
        (short, "seconds, and no less than moving its bytes takes"),
        ((ratio > _LONGEST) | (median_ratio > _LONGEST_USUAL), "seconds"),
    ):
        if invalid.any():
            index = int(np.argmax(invalid))
            row = cells[index]
            cell = f"{row.kernel} {row.launch} of {labels[index]}"
            raise InputError.of(
                where=f"{label}: times",
                field="time_s",
                expected=f"{expected} (about {np.exp(unfitted[index]):.2g} for {cell})",
                found=f"{row.time_s:.2g}",
            )


def predicted(times: Times, known: Efficiencies, devices: Sequence[Device]) -> tuple[Reals, Reals]:
    """Logarithms of the cells' times, and shares of the terms in them."""
    return log_times(times, np.stack([known.of(device) for device in devices])[times.device])


Fit = Callable[[TrainingTimes], tuple[Efficiencies, Correction]]


def held_out(training: TrainingTimes, labels: AnyArray, fit_to: Fit) -> tuple[Reals, Reals, Reals]:
    """Errors of cells, shares of their terms, and explained variance, each label held out in turn.

    Errors are measured less predicted logarithms; NaN where nothing remains to fit to.
    """
    errors, explained = np.full((2, len(labels)), np.nan)
    shares = np.zeros((len(labels), training.times.seconds.shape[1]))
    for held in (labels == label for label in np.unique(labels)):
        if held.all():
            continue
        rest, part = training.take(~held), training.take(held)
        known, correction = fit_to(rest)
        centre, shares[held] = predicted(part.times, known, part.devices)
        shift, explained[held] = corrected(part, correction, shares[held])
        errors[held] = part.times.log_time - centre - shift
    return errors, shares, explained


def correction_of(
    training: TrainingTimes, known: Efficiencies, template: Correction | None = None
) -> Correction:
    """Fit a correction to the errors of the fitted terms; times with a note are not used."""
    centre, shares = predicted(training.times, known, training.devices)
    errors, sound = training.times.log_time - centre, ~training.noted
    launches = [row.cell for row in training.rows if not row.note]
    traits, kinds, memory = training.traits[sound], training.kinds[sound], shares[sound, MEMORY]
    return fit_correction(traits, launches, kinds, memory, errors[sound], template)


def corrected(training: TrainingTimes, correction: Correction, shares: Reals) -> tuple[Reals, Reals]:
    """Logarithms to add to the cells' times, and the share of their errors' variance explained.

    Given the shares of the terms in the times, ``(c, len(TERMS))``.
    """
    shift, explained = np.zeros((2, len(shares)))
    for kind in np.unique(training.kinds).tolist():
        rows = training.kinds == kind
        distances = correction.distances(training.traits[rows])
        of_kind = correction.of(distances, np.array([kind]), shares[rows, MEMORY, None])
        shift[rows], explained[rows] = (each[:, 0] for each in of_kind)
    return shift, explained


def _as(template: Correction) -> Fit:
    """Fit factors, and a correction with the covariance of a template."""

    def fit_to(training: TrainingTimes) -> tuple[Efficiencies, Correction]:
        known = fit(training.times, training.devices)
        return known, correction_of(training, known, template)

    return fit_to


def _folds(keys: Sequence[Any], count: int) -> Integers:
    """Fold of each cell by a key, of which all in their order are dealt to so many folds."""
    fold = {key: number % count for number, key in enumerate(sorted(set(keys)))}
    return np.array([fold[key] for key in keys])


def fit_launch_times(training: TrainingTimes, *, of_devices: bool = True) -> LaunchTimes:
    """Fit factors to all times, and deviations to errors on held-out applications, launches and devices.

    Times with a note are not used for the deviations.
    """
    times = training.times
    known = fit(times, training.devices)
    correction = correction_of(training, known)
    applications = training.labels("application")
    errors, shares, explained = held_out(training, applications, _as(correction))
    sound = np.isfinite(errors) & ~training.noted
    weights = equal_weights(applications)
    # The next application is one more of those on its kind of device.
    kinds = training.kinds
    number = max(len(set(applications[sound & (kinds == kind)].tolist())) for kind in np.unique(kinds))
    # Their kernels have other launches in the training.
    launches = _folds([row.cell for row in training.rows], _LAUNCH_FOLDS)
    near_known = held_out(training, launches, _as(correction))
    # Alternate between deviations far from all measured launches, and their ratio near one.
    near = np.ones(SIDES)
    for _ in range(_ITERATIONS):
        far_errors = errors[sound] / narrowed(explained[sound], near[training.sides[sound]])
        doubt = doubt_of(far_errors, shares[sound], weights[sound], training.sides[sound], number)
        near = _near(training, near_known, doubt)
    unseen = _unseen(training, correction, doubt, near) if of_devices else doubt.deviations
    together = _together(training, errors, shares, doubt, sound)
    names = tuple(known.factors)
    factors = np.stack([known.factors[name] for name in names])
    return LaunchTimes(
        names, factors, doubt, unseen, together, correction, near, (), np.zeros((0, len(KINDS)))
    )


def equal_weights(applications: AnyArray) -> Reals:
    """Weights of cells with equal sums for all applications."""
    _, number, count = np.unique(applications, return_inverse=True, return_counts=True)
    weights: Reals = 1.0 / count[number]
    return weights


def widening(
    training: TrainingTimes,
    errors: Reals,
    deviation: Reals,
    doubt: Doubt,
    rows: Flags,
    *,
    few: bool = False,
) -> float:
    """Factor of the deviations with which intervals hold nine of ten errors.

    With `few` these are errors of one more application than those given, as in `Doubt.factor`.
    """
    chosen = np.flatnonzero(rows & np.isfinite(errors) & ~training.noted)
    if not len(chosen):
        return 1.0
    ratio = np.abs(errors) / deviation
    chosen = chosen[np.argsort(ratio[chosen])]
    applications = training.labels("application")[chosen]
    weights = equal_weights(applications)
    below = np.cumsum(weights) / weights.sum()
    share = min(0.9 * (1 + few / len(set(applications.tolist()))), 1.0)
    return float(np.interp(share, below, ratio[chosen])) / (doubt.factor if few else doubt.quantile)(0.9)


def _near(training: TrainingTimes, near_known: tuple[Reals, Reals, Reals], doubt: Doubt) -> Reals:
    """Deviation of times of launches near known ones, over that far from all, by side."""
    errors, shares, explained = near_known
    deviation = doubt.deviation(shares, training.sides)
    is_near = [(explained > _IS_NEAR) & (training.sides == side) for side in range(SIDES)]
    near: Reals = np.array([widening(training, errors, deviation, doubt, rows) for rows in is_near])
    return np.clip(near, _NEAREST, 1.0)


def _unseen(training: TrainingTimes, correction: Correction, doubt: Doubt, near: Reals) -> Reals:
    """Deviations by kind on devices of each side that were not measured."""
    devices = _folds(training.labels("device").tolist(), _DEVICE_FOLDS)
    errors, shares, explained = held_out(training, devices, _as(correction))
    narrower = narrowed(explained, near[training.sides])
    sound = np.isfinite(errors) & ~training.noted
    weights = equal_weights(training.labels("application"))
    # Accelerators of many small cores are neither CPUs nor GPUs.
    usual_type = np.array([device.type in ("gpu", "cpu") for device in training.devices])
    by_side = []
    for side, usual in enumerate(doubt.deviations):
        of_side = (training.sides == side) & usual_type[training.times.device]
        rows, deviations = sound & of_side, usual
        if rows.any():
            scaled = errors[rows] / narrower[rows]
            deviations = fit_deviations(scaled, shares[rows], weights[rows], usual, DRAWN)
        of_cells = deviation_of(shares, deviations) * narrower
        wider = widening(training, errors, of_cells, doubt, of_side)
        by_side.append(np.maximum(deviations * wider, usual))
    return np.stack(by_side)


def _together(training: TrainingTimes, errors: Reals, shares: Reals, doubt: Doubt, sound: Flags) -> Reals:
    """Correlation of the shared parts of a kernel's errors on two devices, by what these have in common.

    Of each application the mean over pairs of devices; devices that have more in common share no less.
    """
    # Imported here: predicting needs no SciPy.
    from scipy.optimize import isotonic_regression

    device, common = training.times.device, in_common(training.devices)
    scaled = np.clip(errors / doubt.deviation(shares, training.sides), -4, 4)
    shared = shared_part(shares, doubt.deviations[training.sides])
    products: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for cells in cells_of_launches(training, sound):
        first, second = np.triu_indices(len(cells), 1)
        one, other = cells[first], cells[second]
        of_pairs = common[device[one], device[other]]
        product = scaled[one] * scaled[other]
        expected = shared[one] * shared[other] * (scaled[one] ** 2 + scaled[other] ** 2) / 2
        for level, *pair in zip(of_pairs.tolist(), product.tolist(), expected.tolist(), strict=True):
            products.setdefault((level, training.rows[cells[0]].application), []).append((pair[0], pair[1]))
    sums, count = np.zeros((len(IN_COMMON), 2)), np.zeros(len(IN_COMMON))
    for (level, _), pairs in products.items():
        sums[level] += np.mean(pairs, axis=0)
        count[level] += 1
    known = np.flatnonzero((count > 0) & (sums[:, 1] > 0))
    if not len(known):
        return np.zeros(len(IN_COMMON))
    rising = isotonic_regression(sums[known, 0] / sums[known, 1], weights=count[known]).x
    together: Reals = np.clip(np.interp(np.arange(len(IN_COMMON)), known, rising), 0.0, _MOST_TOGETHER)
    return together


def cells_of_launches(training: TrainingTimes, sound: Flags) -> Iterator[Integers]:
    """Cells of each source's times of a launch on different devices."""
    cells: dict[tuple[str, ...], dict[str, int]] = {}
    for number in np.flatnonzero(sound).tolist():
        row = training.rows[number]
        cells.setdefault((row.source, *row.cell), {})[row.device] = number
    return (np.array(list(numbers.values())) for numbers in cells.values())


def forecasts_of(part: TrainingTimes, fitted: LaunchTimes) -> tuple[Reals, Reals, Reals]:
    """Log times of cells by a fitted model, their deviations, and the part of these that devices share."""
    centre, shares = predicted(part.times, fitted.efficiencies(), part.devices)
    shift, explained = corrected(part, fitted.correction, shares)
    deviations = fitted.on(part.devices).deviations[part.times.device]
    deviation = deviation_of(shares, deviations) * narrowed(explained, fitted.near[part.sides])
    return centre + shift, deviation, shared_part(shares, deviations)

"""Fit the model of launch times to tables of profiles and of times, with the launches of each time.

The tables are those of `benchmarks.training_profiles`: see `crosscast.data.times`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from crosscast.arrays import AnyArray, Arrays, Flags, Integers, Reals
from crosscast.data.times import KernelTime, LaunchTables, read_launch_tables
from crosscast.device import Device
from crosscast.devices.architectures import sheets_of
from crosscast.devices.catalogue import device_named
from crosscast.errors import InputError
from crosscast.prediction.time.card import Range, TimeCard
from crosscast.prediction.time.correction import Correction, fit_correction, kind_number
from crosscast.prediction.time.data import Toolchain
from crosscast.prediction.time.efficiencies import Efficiencies, Times, fit, log_times, weights_of
from crosscast.prediction.time.launch_model import MODEL, TrainedLaunchTimes
from crosscast.prediction.time.launch_times import (
    DRAWN,
    IN_COMMON,
    KINDS,
    SIDES,
    Doubt,
    LaunchModels,
    LaunchTimes,
    bounds,
    deviation_of,
    doubt_of,
    fit_deviations,
    in_common,
    limits,
    narrowed,
    shared_part,
    side_of,
)
from crosscast.prediction.time.terms import MEMORY, by_device, terms
from crosscast.prediction.time.work import work_of

_BY_HOST = ("host", "clFinish")
_DEVICE_FOLDS, _LAUNCH_FOLDS = 6, 5
_IS_NEAR, _NEAREST = 0.5, 0.3
_MOST_TOGETHER = 0.95
_ITERATIONS = 2
_LEAST_SHARE = 0.5  # Of the physical lower limit, which data sheets give to a few percent
_LONGEST, _LONGEST_USUAL = (
    3000.0,
    100.0,
)  # Measured over unfitted time: of one, and the median of a source on a device


_FURTHER_LAUNCH = 0.3
"""Launch cost of each launch after the first of those that are timed together, over that of the first.

The host enqueues them with events to wait for (E. Bainville, OpenCL FFT library, 2011).
"""


@dataclass(frozen=True, eq=False)
class TrainingTimes:
    """Measured times of cells with their launches; tuples are of length ``c``."""

    times: Times
    source: tuple[str, ...]
    application: tuple[str, ...]
    kernel: tuple[str, ...]
    launch: tuple[str, ...]
    key: tuple[str, ...]  # Of the device
    devices: tuple[Device, ...]
    least: Reals  # `(c,)` Physical lower and upper limits in seconds
    most: Reals
    noted: Flags  # Whether a note says that the time includes something else
    traits: Reals  # `(c, len(TRAITS))` Of the cell's launches, their mean
    profiles: int  # Their number
    toolchains: tuple[Toolchain, ...]  # Of the profiles

    def labels(self, by: str) -> AnyArray:
        """Label of each cell by which cells are held out: ``source``, ``application`` or ``device``."""
        return np.array(self.key if by == "device" else getattr(self, by))

    @property
    def launches(self) -> list[tuple[str, str, str]]:
        """Application, kernel and launch of each cell."""
        return list(zip(self.application, self.kernel, self.launch, strict=True))

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
        chosen = np.flatnonzero(cells).tolist()

        def of(values: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(values[k] for k in chosen)

        return replace(
            self,
            times=self.times.take(cells),
            source=of(self.source),
            application=of(self.application),
            kernel=of(self.kernel),
            launch=of(self.launch),
            key=of(self.key),
            least=self.least[cells],
            most=self.most[cells],
            noted=self.noted[cells],
            traits=self.traits[cells],
        )


def read_training(tables: str | Path | LaunchTables, *, counted: bool = True) -> TrainingTimes:
    """Read the training data of a model from tables, or from the tables of a folder.

    Without `counted` the work is estimated from the metrics of the profiles alone.

    Raises
    ------
    InputError
        As `crosscast.data.times.read_launch_tables`, or if times are of an unknown device, or cannot be
        seconds.
    """
    if not isinstance(tables, LaunchTables):
        tables = read_launch_tables(tables)
    profiles, parts, cells = tables.profiles, tables.parts, tables.times
    if not counted:
        profiles = tuple(replace(profile, launch={}) for profile in profiles)
    work = work_of(profiles)
    keys = sorted({row.device for row in cells})
    devices = tuple(tables.devices[key] if key in tables.devices else device_named(key) for key in keys)
    sheets = sheets_of(devices)
    by_host = terms(work, sheets)
    on_device = by_device(by_host)
    least, most = bounds(work, sheets)
    columns: dict[str, list[float]] = {
        name: [] for name in ("seconds", "share", "cell", "device", "least", "most")
    }
    for number, row in enumerate(cells):
        column = keys.index(row.device)
        first_terms = by_host if any(word in row.timed for word in _BY_HOST) else on_device
        of_cell = parts[row.cell]
        divisor = 1.0 if row.total else sum(launches for _, launches in of_cell)
        columns["device"].append(column)
        columns["least"].append(sum(least[profile, column] * n for profile, n in of_cell) / divisor)
        columns["most"].append(sum(most[profile, column] * n for profile, n in of_cell) / divisor)
        # Launches that are timed together wait for each other on the device, and in part for the host.
        launch_share = 1.0 / sum(launches for _, launches in of_cell) if row.total else 1.0
        launch_share += _FURTHER_LAUNCH * (1.0 - launch_share)
        for profile, launches in of_cell:
            first, others = first_terms[profile, column], on_device[profile, column]
            columns["seconds"].append(launch_share * first + (1.0 - launch_share) * others)
            columns["share"].append(launches / divisor)
            columns["cell"].append(number)
    source = tuple(row.source for row in cells)
    application, kernel, launch = zip(*(row.cell for row in cells), strict=True)
    key = tuple(row.device for row in cells)
    is_gpu = {device.key: device.type == "gpu" for device in devices}
    times = Times(
        np.array(columns["seconds"]),
        np.array(columns["share"]),
        np.array(columns["cell"]),
        np.array(columns["device"]),
        np.log([row.time_s for row in cells]),
        weights_of(source, [(a, is_gpu[d]) for a, d in zip(application, key, strict=True)]),
    )
    noted = np.array([bool(row.note) for row in cells])
    least_s, most_s = np.array(columns["least"]), np.array(columns["most"])
    _refuse_other_units(tables.label, cells, times, least_s)
    traits = {
        cell: np.average(
            work.traits[[profile for profile, _ in of_cell]], axis=0, weights=[n for _, n in of_cell]
        )
        for cell, of_cell in parts.items()
    }
    return TrainingTimes(
        times,
        source,
        application,
        kernel,
        launch,
        key,
        devices,
        least_s,
        most_s,
        noted,
        np.stack([traits[cell] for cell in zip(application, kernel, launch, strict=True)]),
        len(profiles),
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


def held_out(training: TrainingTimes, labels: AnyArray, template: Correction) -> tuple[Reals, Reals, Reals]:
    """Errors of cells, shares of their terms, and explained variance, each label held out in turn.

    Errors are measured less predicted logarithms.
    """
    errors, explained = np.full((2, len(labels)), np.nan)
    shares = np.zeros((len(labels), training.times.seconds.shape[1]))
    for _, held in _folds(labels):
        rest, part = training.take(~held), training.take(held)
        known = fit(rest.times, rest.devices)
        centre, shares[held] = predicted(part.times, known, part.devices)
        shift, explained[held] = corrected(part, correction_of(rest, known, template), shares[held])
        errors[held] = part.times.log_time - centre - shift
    return errors, shares, explained


def correction_of(
    training: TrainingTimes, known: Efficiencies, template: Correction | None = None
) -> Correction:
    """Fit a correction to the errors of the fitted terms; times with a note are not used."""
    centre, shares = predicted(training.times, known, training.devices)
    memory = shares[:, MEMORY]
    sound = ~training.noted
    launches = [name for name, use in zip(training.launches, sound.tolist(), strict=True) if use]
    errors = training.times.log_time - centre
    return fit_correction(
        training.traits[sound], launches, training.kinds[sound], memory[sound], errors[sound], template
    )


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


def device_folds(keys: AnyArray) -> AnyArray:
    """Fold of each cell by its device: devices in a few groups, by their order."""
    order = {key: number % _DEVICE_FOLDS for number, key in enumerate(sorted(set(keys.tolist())))}
    return np.array([order[key] for key in keys.tolist()])


def fit_launch_times(training: TrainingTimes, *, of_devices: bool = True) -> LaunchTimes:
    """Fit factors to all times, and deviations to errors on held-out applications, launches and devices.

    Times with a note are not used for the deviations.
    """
    times = training.times
    known = fit(times, training.devices)
    correction = correction_of(training, known)
    applications = training.labels("application")
    errors, shares, explained = held_out(training, applications, correction)
    sound = np.isfinite(errors) & ~training.noted
    weights = equal_weights(applications)
    # The next application is one more of those on its kind of device.
    kinds = training.kinds
    number = max(len(set(applications[sound & (kinds == kind)].tolist())) for kind in np.unique(kinds))
    near_known = _held_out_launches(training, correction)
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


def _held_out_launches(training: TrainingTimes, correction: Correction) -> tuple[Reals, Reals, Reals]:
    """As `held_out`, for folds of launches whose kernels have other launches in the training."""
    launches = training.launches
    number = {name: k % _LAUNCH_FOLDS for k, name in enumerate(sorted(set(launches)))}
    return held_out(training, np.array([number[name] for name in launches]), correction)


def _near(training: TrainingTimes, near_known: tuple[Reals, Reals, Reals], doubt: Doubt) -> Reals:
    """Deviation of times of launches near known ones, over that far from all, by side."""
    errors, shares, explained = near_known
    deviation = doubt.deviation(shares, training.sides)
    is_near = [(explained > _IS_NEAR) & (training.sides == side) for side in range(SIDES)]
    near: Reals = np.array([widening(training, errors, deviation, doubt, rows) for rows in is_near])
    return np.clip(near, _NEAREST, 1.0)


def _unseen(training: TrainingTimes, correction: Correction, doubt: Doubt, near: Reals) -> Reals:
    """Deviations by kind on devices of each side that were not measured."""
    errors, shares, explained = held_out(training, device_folds(training.labels("device")), correction)
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
            products.setdefault((level, training.application[cells[0]]), []).append((pair[0], pair[1]))
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
    names = zip(training.source, *zip(*training.launches, strict=True), strict=True)
    for number, (name, key) in enumerate(zip(names, training.key, strict=True)):
        if sound[number]:
            cells.setdefault(name, {})[key] = number
    return (np.array(list(numbers.values())) for numbers in cells.values())


@dataclass(frozen=True, eq=False)
class Outside:
    """Forecasts of cells by models whose training lacked their source, application or device."""

    by: str
    log_error: Reals  # `(c,)` Predicted less measured; NaN where no training data remained
    low: Reals  # Limits of the intervals over the predicted time
    high: Reals
    inside: Flags


def forecast_held_out(training: TrainingTimes, held: Flags, level: float) -> Arrays:
    """Forecasts of held-out cells by a model that was fitted to the others: arrays of `Outside`."""
    rest, part = training.take(~held), training.take(held)
    of_devices = bool(set(part.key) - set(rest.key))
    return forecast_cells(part, fit_launch_times(rest, of_devices=of_devices), level)


def forecasts_of(part: TrainingTimes, fitted: LaunchTimes) -> tuple[Reals, Reals, Reals]:
    """Log times of cells by a fitted model, their deviations, and the part of these that devices share."""
    centre, shares = predicted(part.times, fitted.efficiencies(), part.devices)
    shift, explained = corrected(part, fitted.correction, shares)
    deviations = fitted.deviations(part.devices)[part.times.device]
    deviation = deviation_of(shares, deviations) * narrowed(explained, fitted.near[part.sides])
    return centre + shift, deviation, shared_part(shares, deviations)


def forecast_cells(part: TrainingTimes, fitted: LaunchTimes, level: float) -> Arrays:
    """Forecasts of cells that a model was not fitted to: arrays of `Outside`."""
    log_time, deviation, _ = forecasts_of(part, fitted)
    clipped = limits(np.exp(log_time), deviation, fitted.doubt.factor(level), part.least, part.most)
    middle, least, most = map(np.log, clipped)
    measured = part.times.log_time
    return {
        "log_error": middle - measured,
        "low": least - middle,
        "high": most - middle,
        "inside": (least <= measured) & (measured <= most),
    }


HeldOut = tuple[str, Flags]
"""Name of a fold for people, and the mask of its cells."""

Runner = Callable[[TrainingTimes, Sequence[HeldOut], float], Iterable[Arrays]]
"""Calls `forecast_held_out` for each of several folds, in their order."""


def one_after_another(training: TrainingTimes, folds: Sequence[HeldOut], level: float) -> Iterator[Arrays]:
    """Forecast the folds in this process."""
    return (forecast_held_out(training, held, level) for _, held in folds)


def evaluate(
    training: TrainingTimes, by: str, level: float = 0.9, run: Runner = one_after_another
) -> Outside:
    """Hold out each source, application or device in turn; factors and intervals are fitted within."""
    labels = training.labels(by)
    folds = [(f"{by} {label}", held) for label, held in _folds(labels)]
    error, low, high = np.full((3, len(labels)), np.nan)
    inside = np.zeros(len(labels), dtype=bool)
    for (_, held), forecasts in zip(folds, run(training, folds, level), strict=True):
        error[held], low[held], high[held] = forecasts["log_error"], forecasts["low"], forecasts["high"]
        inside[held] = forecasts["inside"]
    return Outside(by, error, low, high, inside)


def _folds(labels: AnyArray) -> Iterator[tuple[str, Flags]]:
    for label in sorted(set(labels.tolist())):
        held = labels == label
        if not held.all():
            yield str(label), held


def scores(training: TrainingTimes, forecasts: Outside, rows: Flags) -> dict[str, float]:
    """Scores of some forecasts: errors, coverage, width, and the slowdown on the recommended device."""
    rows = rows & np.isfinite(forecasts.log_error)
    error, applications = forecasts.log_error[rows], training.labels("application")
    by_application = [rows & (applications == name) for name in sorted(set(applications[rows].tolist()))]
    errors = np.abs(np.expm1(forecasts.log_error))
    values = {
        "bias": float(np.exp(error.mean())),
        "rmse_log": float(np.sqrt((error**2).mean())),
        "median_ape": float(np.median(errors[rows])),
        "median_ape_by_application": float(np.mean([np.median(errors[each]) for each in by_application])),
        "coverage": float(np.mean([forecasts.inside[each].mean() for each in by_application])),
        "coverage_worst_application": float(min(forecasts.inside[each].mean() for each in by_application)),
        "width": float(np.exp(np.median(forecasts.high[rows] - forecasts.low[rows]))),
    }
    slowdowns = _slowdowns(training, forecasts, rows)
    return values | ({"slowdown_mean": float(np.mean(slowdowns))} if slowdowns else {})


_DEVICES_TO_CHOOSE = 5


def _slowdowns(training: TrainingTimes, forecasts: Outside, rows: Flags) -> list[float]:
    """Time on the device with the least forecast over the least time, of launches on several devices."""
    cells: dict[tuple[str, str, str, str], list[int]] = {}
    for number in np.flatnonzero(rows).tolist():
        names = (training.source, training.application, training.kernel, training.launch)
        cells.setdefault(tuple(name[number] for name in names), []).append(number)  # type: ignore[arg-type]
    slowdowns = []
    for numbers in cells.values():
        if len({training.key[number] for number in numbers}) >= _DEVICES_TO_CHOOSE:
            measured = training.times.log_time[numbers]
            recommended = int(np.argmin(measured + forecasts.log_error[numbers]))
            slowdowns.append(float(np.exp(measured[recommended] - measured.min())))
    return slowdowns


def train_launch_times(
    tables: str | Path | LaunchTables, level: float = 0.9, run: Runner = one_after_another
) -> TrainedLaunchTimes:
    """Fit the model to tables, or to those of a folder, and evaluate it on held-out groups."""
    if not isinstance(tables, LaunchTables):
        tables = read_launch_tables(tables)
    training, estimated = (read_training(tables, counted=counted) for counted in (True, False))
    keys = training.key
    # A machine that tables describe beside devices of the catalogue is nobody else's.
    listed = [device for device in training.devices if device.key not in tables.devices] or training.devices
    fitted = LaunchModels(fit_launch_times(training), fit_launch_times(estimated))
    sound = ~training.noted & np.isin(keys, [device.key for device in listed])
    of_applications = evaluate(training, "application", level, run)
    of_sources = evaluate(training, "source", level, run)
    of_metrics = evaluate(estimated, "application", level, run)
    sources = {
        name: scores(training, of_sources, training.labels("source") == name)
        for name in sorted(set(training.source))
        if len(set(training.source)) > 1
    }
    times = np.exp(training.times.log_time)
    names = sorted(set(training.application))
    kernels = set(zip(training.application, training.kernel, strict=True))
    launches = set(zip(training.application, training.kernel, training.launch, strict=True))
    result: dict[str, object] = {"model": MODEL, "split": "leave-application-out", "probes": 0}
    result |= scores(training, of_applications, sound)
    # One source has most of the cells, and they are easy.
    result["median_ape"] = result["median_ape_by_application"]
    card = TimeCard(
        model=MODEL,
        seed=0,
        training={
            "dataset": " and ".join(sorted(set(training.source))),
            "origin": "times of launches, each with its profile",
            "cells": len(keys),
            "kernels_at_a_size": len(launches),
            "kernels": len(kernels),
            "applications": len(names),
            "devices": len(training.devices),
            "names": names,
            "records": len(keys),
        },
        toolchains=training.toolchains,
        devices=tuple(listed),
        metrics=(),
        time_s=Range(float(times.min()), float(times.max())),
        errors={
            "protocol": "leave-application-out",
            "seed": 0,
            "level": level,
            "results": [result],
            "sources_held_out": sources,
            "metrics_alone": scores(estimated, of_metrics, sound),
        },
    )
    return TrainedLaunchTimes(card, fitted)

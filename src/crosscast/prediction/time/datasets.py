"""Grids of times from datasets, whose tables need pyarrow."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Literal

import msgspec
import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.library import pc
from crosscast.data.profiles import from_row
from crosscast.data.table import Table, distinct, key_numbers, samples_of
from crosscast.data.times import KernelTime, LaunchTables
from crosscast.data.views import CELL, KERNEL_AT_A_SIZE, join, of_successful_sessions, run_means
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.time.card import HeldOut, Range
from crosscast.prediction.time.correction import Correction
from crosscast.prediction.time.data import Grid, ProfileBatch
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from crosscast.prediction.time.launch_times import (
    LaunchModels,
    LaunchTimes,
    deviation_of,
    fit_deviations,
    narrowed,
)
from crosscast.prediction.time.terms import Efficiencies, fit
from crosscast.prediction.time.training_times import (
    TrainingTimes,
    correction_of,
    equal_weights,
    held_out,
    read_training,
    widening,
)
from crosscast.profile import METRICS


def devices_of(dataset: Dataset) -> dict[str, Device]:
    """The devices of a dataset, by key."""
    devices = {}
    for row in dataset.devices.to_pylist():
        numbers = {name: float(value) for name, value in row.items() if type(value) in (int, float)}
        name, vendor, kind, series = (row[text] or "" for text in ("name", "vendor", "type", "series"))
        devices[row["device"]] = Device(row["device"], name, vendor, kind, series, numbers)
    return devices


def grid_of(dataset: Dataset, *, invocations: Literal["mean", "first"] = "mean") -> Grid:
    """The grid of a dataset's kernels that have a profile, with the records of a cell combined."""
    joined = join(dataset, invocations=invocations)
    joined = joined.filter(pc.is_valid(joined.column("total_instruction_count")))
    if joined.num_rows == 0:
        raise InputError.of(where=dataset.label, expected="a kernel with a profile and records", found="none")
    _check_configurations(dataset.label, joined)
    kernels, rows = distinct(joined, KERNEL_AT_A_SIZE)
    names, columns = distinct(joined, ("device",))
    log_time, spread = np.full((2, kernels.num_rows, names.num_rows), np.nan)
    runs = np.zeros(log_time.shape, dtype=np.int64)
    log_time[rows, columns] = np.log(joined.column("time_median_s").to_numpy())
    runs[rows, columns] = joined.column("runs").to_numpy()
    records = of_successful_sessions(dataset.records, dataset.sessions)
    cells, of_cell = distinct(records, CELL)
    # Each cell of the joined view is one of these.
    joined_key, cell_key = key_numbers([joined, cells], CELL)
    spreads = np.empty(len(cell_key))
    spreads[cell_key] = samples_of(of_cell, np.log(run_means(records))).sd()
    spread[rows, columns] = spreads[joined_key]
    metrics = np.empty((kernels.num_rows, len(METRICS)))
    for column, metric in enumerate(METRICS):
        metrics[rows, column] = joined.column(metric.name).to_numpy()
    # Of each kernel at a size, as many invocations as there are profiles.
    kernel_index, profile_kernel = key_numbers([kernels, dataset.profiles], KERNEL_AT_A_SIZE)
    counts = np.bincount(profile_kernel, minlength=int(kernel_index.max()) + 1)[kernel_index]
    application, kernel, size = (tuple(kernels.column(name).to_pylist()) for name in KERNEL_AT_A_SIZE)
    by_key = devices_of(dataset)
    devices = tuple(by_key[key] for key in names.column("device").to_pylist())
    profiles = ProfileBatch(application, kernel, size, metrics, counts)
    return Grid(profiles, devices, log_time, spread, runs)


def recorded_times(dataset: Dataset) -> dict[tuple[str, str, str], dict[str, float]]:
    """Median times in seconds, by application, kernel and size, and by device."""
    joined = join(dataset)
    if joined.num_rows:
        _check_configurations(dataset.label, joined)
    columns = [joined.column(name).to_pylist() for name in (*KERNEL_AT_A_SIZE, "device", "time_median_s")]
    times: dict[tuple[str, str, str], dict[str, float]] = {}
    for application, kernel, size, device, time in zip(*columns, strict=True):
        times.setdefault((application, kernel, size), {})[device] = time
    return times


def _check_configurations(label: str, joined: Table) -> None:
    pairs, _ = distinct(joined, ("device", "configuration"))
    device, count = Counter(pairs.column("device").to_pylist()).most_common(1)[0]
    if count > 1:
        found = f"{count} of {device!r}"
        raise InputError.of(where=f"{label}: records", expected="one configuration a device", found=found)


LEVEL = 0.9
_WORTH_APPLICATIONS = 1.0
"""Weight of the deviations on other devices, in applications."""


def launch_tables_of(dataset: Dataset, device: Device | None = None) -> LaunchTables:
    """Times of a dataset, each the mean of a kernel's launches at a size, on a device or all it describes.

    Raise InputError if there are no times, or a profile has no counts by sub-groups.
    """
    profiles = tuple(from_row(row) for row in dataset.profiles.to_pylist())
    parts: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for index, profile in enumerate(profiles):
        if profile.launch.get("sub_groups") is None:
            raise InputError.of(
                where=f"{dataset.label}: profiles",
                expected="counts by sub-groups, as crosscast characterize makes them",
                found=f"none in that of {profile.application} {profile.kernel}",
            )
        cell = (profile.application or "", profile.kernel, profile.size or "")
        parts.setdefault(cell, []).append((index, 1.0))
    known = devices_of(dataset)
    rows = tuple(
        KernelTime(
            "measured", *cell, (device or known[key]).key, seconds, "the kernel on the device", total=False
        )
        for cell, times in sorted(recorded_times(dataset).items())
        if cell in parts
        for key, seconds in times.items()
    )
    if not rows:
        raise InputError.of(where=dataset.label, expected="times of kernels with a profile", found="none")
    described = known.values() if device is None else (device,)
    return LaunchTables(dataset.label, profiles, rows, parts, {each.key: each for each in described})


def with_device(
    base: TrainedLaunchTimes, tables: LaunchTables, **about: object
) -> tuple[TrainedLaunchTimes, HeldOut]:
    """Add the one device of some times to a model; also return its errors, each application held out in turn.

    Factors of other devices stay as they are. `about` is added to the card's training.
    """
    counted = read_training(tables)
    models = base.predictor
    joined_model, errors = _joined(models.counted, counted)
    estimated = models.estimated and _joined(models.estimated, read_training(tables, counted=False))[0]
    (device,) = counted.devices
    times = np.exp(counted.times.log_time)
    card = base.card
    training = {
        **card.training,
        **about,
        "devices": len(card.devices) + 1,
        "calibrated": {
            "device": device.key,
            "kernels_at_a_size": len({row.cell for row in counted.rows}),
            "applications": sorted({row.application for row in counted.rows}),
            "held_out": errors.to_dict(),
        },
    }
    time_range = Range(min(card.time_s.low, float(times.min())), max(card.time_s.high, float(times.max())))
    new = msgspec.structs.replace(card, training=training, devices=(*card.devices, device), time_s=time_range)
    return TrainedLaunchTimes(new, LaunchModels(joined_model, estimated)), errors


def _joined(model: LaunchTimes, training: TrainingTimes) -> tuple[LaunchTimes, HeldOut]:
    """Fit a device's factors; fit its uncertainty to held-out errors, drawn to that of other devices."""
    applications = training.labels("application")

    def fit_to(times: TrainingTimes) -> tuple[Efficiencies, Correction]:
        known = fit(times.times, times.devices, model.efficiencies())
        return known, model.correction.with_launches(correction_of(times, known, model.correction))

    errors, shares, explained = held_out(training, applications, fit_to)
    names: list[str] = np.unique(applications).tolist()
    if not np.isfinite(errors).any():
        expected = "times of two applications or more"
        raise InputError.of(where="training", expected=expected, found=names[0])
    narrower = narrowed(explained, model.near[training.sides])
    usual: Reals = model.doubt.deviations[training.sides[0]]

    def deviations(rows: Flags) -> Reals:
        """Deviations by kind of time, fitted to some of the cells, of which they cover nine of ten errors.

        A few applications say little about a kind of times: the deviations on other devices weigh as much as
        one application, and are the least.
        """
        chosen = rows & np.isfinite(errors) & ~training.noted
        if not chosen.any():
            return usual
        scaled, weights = errors[chosen] / narrower[chosen], equal_weights(applications[chosen])
        pull = _WORTH_APPLICATIONS / len(np.unique(applications[chosen]))
        of_kinds = fit_deviations(scaled, shares[chosen], weights, usual, pull)
        of_cells = deviation_of(shares, of_kinds) * narrower
        wider = widening(training, errors, of_cells, model.doubt, rows, few=True)
        return np.maximum(of_kinds * wider, usual)

    factor, inside = model.doubt.factor(LEVEL), []
    for rows in (applications == name for name in names):
        deviation = deviation_of(shares[rows], deviations(~rows)) * narrower[rows]
        inside.append(float(np.mean(np.abs(errors[rows]) <= factor * deviation)))
    scores = HeldOut(
        float(np.median(np.abs(np.expm1(-errors)))),
        float(np.sqrt(np.mean(errors**2))),
        float(np.mean(inside)),
        min(inside),
        LEVEL,
    )
    known, correction = fit_to(training)
    wider = deviations(np.ones(len(errors), dtype=np.bool_)) / usual
    fitted = replace(
        model,
        keys=tuple(known.factors),
        factors=np.stack([*known.factors.values()]),
        correction=correction,
        joined=(*model.joined, *(device.key for device in training.devices)),
        wider=np.vstack([model.wider, wider]),
    )
    return fitted, scores

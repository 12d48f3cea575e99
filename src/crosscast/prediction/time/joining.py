"""A device joins the model of launch times: its own factors, from kernels that were measured on it."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from crosscast.arrays import Flags
from crosscast.data.dataset import Dataset
from crosscast.data.profiles import from_row
from crosscast.data.times import LaunchTables
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.time.card import HeldOut, Range
from crosscast.prediction.time.data import devices_of, recorded_times
from crosscast.prediction.time.efficiencies import Efficiencies, fit
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from crosscast.prediction.time.launch_times import LaunchModels, LaunchTimes, deviation_of, narrowed
from crosscast.prediction.time.training_times import (
    TrainingTimes,
    corrected,
    correction_of,
    predicted,
    read_training,
    widening,
)

LEVEL = 0.9


def launch_tables_of(dataset: Dataset, device: Device | None = None) -> LaunchTables:
    """Times of a dataset, each the mean of a kernel's launches at a size.

    Parameters
    ----------
    dataset
        Profiles, and records of the kernels on devices.
    device
        What all its times were measured on; by default the devices that the dataset describes.

    Raises
    ------
    InputError
        If there are none, or a profile has no counts by sub-groups.
    """
    profiles = tuple(from_row(row) for row in dataset.profiles.to_pylist())
    parts: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    for number, profile in enumerate(profiles):
        if profile.launch.get("sub_groups") is None:
            raise InputError.of(
                where=f"{dataset.label}: profiles",
                expected="counts by sub-groups, as crosscast characterize makes them",
                found=f"none in that of {profile.application} {profile.kernel}",
            )
        cell = (profile.application or "", profile.kernel, profile.size or "")
        parts.setdefault(cell, []).append((number, 1.0))
    known = devices_of(dataset)
    rows = tuple(
        {
            "source": "measured",
            **dict(zip(("application", "kernel", "launch"), cell, strict=True)),
            "device": (device or known[key]).key,
            "time_s": seconds,
            "timed": "the kernel on the device",
            "total": 0,
            "note": "",
        }
        for cell, times in sorted(recorded_times(dataset).items())
        if cell in parts
        for key, seconds in times.items()
    )
    if not rows:
        raise InputError.of(where=dataset.label, expected="times of kernels with a profile", found="none")
    described = known.values() if device is None else (device,)
    return LaunchTables(dataset.label, profiles, rows, parts, {each.key: each for each in described})


def joined(
    base: TrainedLaunchTimes, tables: LaunchTables, **about: object
) -> tuple[TrainedLaunchTimes, HeldOut]:
    """Let the one device of some times join a model; also errors on it, each application held out in turn.

    All that the model knows of other devices stays as it is. `about` is added to the card's training.
    """
    counted = read_training(tables)
    models = base.predictor
    own, held_out = _joined(models.counted, counted)
    plain = models.estimated and _joined(models.estimated, read_training(tables, counted=False))[0]
    (device,) = counted.devices
    times = np.exp(counted.times.log_time)
    card = base.card
    training = {
        **card.training,
        **about,
        "devices": len(card.devices) + 1,
        "calibrated": {
            "device": device.key,
            "kernels_at_a_size": len(set(counted.launches)),
            "applications": sorted(set(counted.application)),
            "held_out": held_out.to_dict(),
        },
    }
    seconds = Range(min(card.time_s.low, float(times.min())), max(card.time_s.high, float(times.max())))
    new = msgspec.structs.replace(card, training=training, devices=(*card.devices, device), time_s=seconds)
    return TrainedLaunchTimes(new, LaunchModels(own, plain)), held_out


def _joined(model: LaunchTimes, training: TrainingTimes) -> tuple[LaunchTimes, HeldOut]:
    """Fit a device's own factors; its doubt is that of others, scaled to its held-out errors."""
    applications = training.labels("application")
    errors, ratio = np.full((2, len(applications)), np.nan)
    names = sorted(set(applications.tolist()))
    for name in names:
        away = applications == name
        if away.all():
            continue
        known, fitted = _fitted(model, training.take(~away))
        part = training.take(away)
        centre, shares = predicted(part.times, known, part.devices)
        shift, explained = corrected(part, fitted.correction)
        errors[away] = part.times.log_time - centre - shift
        deviation = deviation_of(shares, model.doubt.deviations) * narrowed(explained, model.near)
        ratio[away] = np.abs(errors[away]) / deviation
    _, fitted = _fitted(model, training)
    if not np.isfinite(errors).any():
        where = "training"
        raise InputError.of(where=where, expected="times of two applications or more", found=names[0])

    def wider(cells: Flags) -> float:
        return widening(training, ratio, np.ones(len(ratio)), model.doubt, cells)

    factor = model.doubt.factor(LEVEL)
    inside = [
        float(np.mean(ratio[applications == name] <= factor * wider(applications != name))) for name in names
    ]
    held_out = HeldOut(
        float(np.median(np.abs(np.expm1(-errors)))),
        float(np.sqrt(np.mean(errors**2))),
        float(np.mean(inside)),
        min(inside),
        LEVEL,
    )
    whole = np.ones(len(ratio), dtype=np.bool_)
    keys = (*model.joined, *(device.key for device in training.devices))
    return replace(fitted, joined=keys, wider=np.append(model.wider, wider(whole))), held_out


def _fitted(model: LaunchTimes, training: TrainingTimes) -> tuple[Efficiencies, LaunchTimes]:
    known = fit(training.times, training.devices, model.efficiencies())
    names = tuple(known.factors)
    correction = model.correction.and_of(correction_of(training, known, model.correction))
    factors = np.stack([known.factors[name] for name in names])
    return known, replace(model, keys=names, factors=factors, correction=correction)

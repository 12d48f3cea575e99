"""Add a device to the model of launch times: fit its factors to kernels that were measured on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import msgspec
import numpy as np

from crosscast.arrays import Flags, Reals
from crosscast.data.dataset import Dataset
from crosscast.data.profiles import from_row
from crosscast.data.times import KernelTime, LaunchTables
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.prediction.time.card import HeldOut, Range
from crosscast.prediction.time.correction import Correction
from crosscast.prediction.time.efficiencies import Efficiencies, fit
from crosscast.prediction.time.grids import devices_of, recorded_times
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from crosscast.prediction.time.launch_times import (
    Doubt,
    LaunchModels,
    LaunchTimes,
    deviation_of,
    fit_deviations,
    narrowed,
)
from crosscast.prediction.time.training_times import (
    TrainingTimes,
    correction_of,
    equal_weights,
    held_out,
    read_training,
    widening,
)

LEVEL = 0.9
_WORTH_APPLICATIONS = 1.0
"""Weight of the deviations on other devices, in applications."""


def launch_tables_of(dataset: Dataset, device: Device | None = None) -> LaunchTables:
    """Times of a dataset, each the mean of a kernel's launches at a size.

    Parameters
    ----------
    dataset
        Profiles, and records of the kernels on devices.
    device
        Device of all times; by default the devices that the dataset describes.

    Raises
    ------
    InputError
        If there are no times, or a profile has no counts by sub-groups.
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


def joined(
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
    errors, shares, explained = held_out(training, applications, partial(_fitted, model))
    names: list[str] = np.unique(applications).tolist()
    if not np.isfinite(errors).any():
        expected = "times of two applications or more"
        raise InputError.of(where="training", expected=expected, found=names[0])
    narrower = narrowed(explained, model.near[training.sides])
    usual = model.doubt.deviations[training.sides[0]]
    doubted = _HeldOutErrors(model.doubt, usual, training, errors, shares, narrower)
    factor, inside = model.doubt.factor(LEVEL), []
    for rows in (applications == name for name in names):
        deviation = deviation_of(shares[rows], doubted.deviations(~rows)) * narrower[rows]
        inside.append(float(np.mean(np.abs(errors[rows]) <= factor * deviation)))
    scores = HeldOut(
        float(np.median(np.abs(np.expm1(-errors)))),
        float(np.sqrt(np.mean(errors**2))),
        float(np.mean(inside)),
        min(inside),
        LEVEL,
    )
    known, correction = _fitted(model, training)
    of_device, factors = tuple(known.factors), np.stack([*known.factors.values()])
    wider = doubted.deviations(np.ones(len(errors), dtype=np.bool_)) / usual
    keys = (*model.joined, *(device.key for device in training.devices))
    wider_of = np.vstack([model.wider, wider])
    fitted = replace(
        model, keys=of_device, factors=factors, correction=correction, joined=keys, wider=wider_of
    )
    return fitted, scores


@dataclass(frozen=True, eq=False)
class _HeldOutErrors:
    """Errors of one device's held-out times, and the deviations they imply."""

    doubt: Doubt  # On other devices
    usual: Reals  # Deviations of these, of the device's side
    training: TrainingTimes
    errors: Reals
    shares: Reals
    narrower: Reals  # Deviations near known launches over those far from all

    def deviations(self, rows: Flags) -> Reals:
        """Deviations by kind of time, fitted to some of the cells, of which they cover nine of ten errors.

        A few applications say little about a kind of times: the deviations on other devices weigh as much as
        one application, and are the least.
        """
        chosen = rows & np.isfinite(self.errors) & ~self.training.noted
        if not chosen.any():
            return self.usual
        applications = self.training.labels("application")[chosen]
        scaled, weights = self.errors[chosen] / self.narrower[chosen], equal_weights(applications)
        pull = _WORTH_APPLICATIONS / len(set(applications.tolist()))
        deviations = fit_deviations(scaled, self.shares[chosen], weights, self.usual, pull)
        of_cells = deviation_of(self.shares, deviations) * self.narrower
        wider = widening(self.training, self.errors, of_cells, self.doubt, rows, few=True)
        return np.maximum(deviations * wider, self.usual)


def _fitted(model: LaunchTimes, training: TrainingTimes) -> tuple[Efficiencies, Correction]:
    known = fit(training.times, training.devices, model.efficiencies())
    return known, model.correction.with_launches(correction_of(training, known, model.correction))

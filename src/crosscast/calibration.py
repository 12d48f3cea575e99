"""Calibration: a device of this machine joins the bundled model of times, by kernels measured on it.

The kernels are some of the suite's. The model is fitted again, to its own training data and to what was
measured here. Profiles of the suite come with Crosscast, so that only times have to be measured.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from crosscast.arrays import Reals, npz_bytes
from crosscast.data.dataset import Dataset, bundled_dataset, read_dataset
from crosscast.data.files import data_home, whole_file
from crosscast.data.library import pa, pc
from crosscast.device import Device
from crosscast.errors import EnvironmentFault, InputError
from crosscast.measure import campaign
from crosscast.measure.opencl import OpenCLDevice, find
from crosscast.measure.subjects import Settings
from crosscast.prediction.named_models import BUNDLED, load_model, models_home, recipes
from crosscast.prediction.time.artefact import TrainedTimeModel, metric_ranges
from crosscast.prediction.time.card import Range
from crosscast.prediction.time.data import Grid, ProfileBatch, grid_of
from crosscast.prediction.time.gaussian import Gaussian, HeldOut, held_out_on
from crosscast.prediction.time.models import model_named
from crosscast.suite.application import TYPICAL
from crosscast.suite.registry import selected

BASE = "opencl-15-devices"
"""Name of the bundled model that devices join."""

TRAINING = "training.npz"
"""File beside that model with what it was fitted to."""

SIZES = ("small", "medium", "tiny")
"""The sizes that are measured, in this order."""

_LEAST_SD = 1e-9
LEAST_APPLICATIONS = 6
"""Applications that must be measured, for errors on held-out ones to mean something."""

LEVEL = 0.9
_MIN_RUNS, _WARMUPS = 10, 1
_TIME_SHARE = 0.3
"""Share of the time of a measurement in which the kernels run; the rest is starting and compiling."""
_LEAST_S, _MOST_S = 0.1, 2.0
_MOST_FAILURES = 3


@dataclass(frozen=True)
class Calibration:
    """A device that was measured, and the model that it joined."""

    name: str  # The device's, and the model's
    model: TrainedTimeModel
    folder: Path  # Where the model was written
    kernels: int  # Kernels at a size that were measured
    applications: int  # Applications that they are of
    seconds: float  # That measuring and fitting took
    held_out: HeldOut  # Errors on the device, each application left out in turn
    notes: tuple[str, ...]  # What went wrong without failing

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return {
            "device": self.name,
            "model": str(self.folder),
            "kernels": self.kernels,
            "applications": self.applications,
            "seconds": self.seconds,
            "held_out": self.held_out.to_dict(),
            "notes": list(self.notes),
        }


def write_training(dataset: Dataset, folder: Path) -> None:
    """Write what a model of times was fitted to beside it: medians of times, and means of metrics."""
    grid = grid_of(dataset)
    profiles = grid.profiles
    texts = {name: np.array(getattr(profiles, name)) for name in ("application", "kernel", "size")}
    numbers = {"metrics": profiles.metrics, "invocations": profiles.invocations, "log_time": grid.log_time}
    devices = np.array([device.key for device in grid.devices])
    with whole_file(folder / TRAINING) as temporary:
        temporary.write_bytes(npz_bytes({**texts, **numbers, "devices": devices}))


@cache
def _training() -> Grid:
    with np.load(BUNDLED / BASE / TRAINING, allow_pickle=False) as file:
        arrays = dict(file)
    model: TrainedTimeModel = load_model(BUNDLED / BASE)
    application, kernel, size, keys = (
        tuple(arrays[name].tolist()) for name in ("application", "kernel", "size", "devices")
    )
    described = {device.key: device for device in model.devices}
    profiles = ProfileBatch(application, kernel, size, arrays["metrics"], arrays["invocations"])
    times = arrays["log_time"]
    known = np.isfinite(times)
    return Grid(
        profiles,
        tuple(described[key] for key in keys),
        times,
        np.where(known, 0.0, np.nan),
        known.astype(np.int64),
    )


def order() -> tuple[tuple[str, str], ...]:
    """Applications of the suite at sizes, in the order in which they are measured.

    All at small, then at medium, then at tiny, so that any beginning has as many applications as it can. Each
    application is as far as can be from those before it: between two the distance is that of their nearest
    kernels, in standard deviations of the logarithms of their metrics.
    """
    batch = _suite_profiles()
    known = np.isfinite(batch.metrics).all(axis=0)
    logs = np.log1p(np.abs(batch.metrics[:, known]))
    points = (logs - logs.mean(axis=0)) / np.maximum(logs.std(axis=0), _LEAST_SD)
    rows = {
        name: np.flatnonzero(batch.groups("application") == place)
        for place, name in enumerate(sorted(set(batch.application)))
    }
    centre = {name: float(np.linalg.norm(points[own], axis=1).min()) for name, own in rows.items()}
    chosen = [min(centre, key=lambda name: centre[name])]
    while len(chosen) < len(rows):
        before = np.vstack([points[rows[name]] for name in chosen])
        apart = {
            name: float(np.linalg.norm(points[own][:, None] - before, axis=2).min())
            for name, own in rows.items()
            if name not in chosen
        }
        chosen.append(max(apart, key=lambda name: apart[name]))
    return tuple((name, size) for size in SIZES for name in chosen)


@cache
def _suite() -> Dataset:
    return bundled_dataset()


@cache
def _suite_profiles() -> ProfileBatch:
    return grid_of(_suite()).profiles


def calibrate(
    device: OpenCLDevice | str,
    name: str = "mine",
    *,
    seconds: float = 120.0,
    model: Gaussian | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Calibration:
    """Measure kernels of the suite on a device, fit the bundled model with it, and keep that for the user.

    This is what ``crosscast calibrate`` does after its microbenchmarks.

    What was measured stays in ``calibrations/NAME`` of the user's data folder: a calibration that was
    interrupted goes on, and one with more time adds to it.

    Parameters
    ----------
    device
        Where to measure, or its id, as ``crosscast devices`` shows it, such as ``pocl:0``.
    name
        What the device is called from now on, and the model's name.
    seconds
        How long to measure; fitting takes some seconds more.
    model
        What is fitted; by default the kind of the bundled model.
    report
        Told what is done.

    Returns
    -------
    Calibration
        The model, which `crosscast.predict` takes from now on, and its errors on the device.

    Raises
    ------
    InputError
        If the name is taken, or the time is too short for six applications.
    EnvironmentFault
        If measurements fail one after the other, as when the device is gone.
    """
    check_name(name)
    if isinstance(device, str):
        device = find(device)
    start = time.monotonic()
    folder = data_home() / "calibrations" / name
    notes = _measure(device, folder, seconds, report)
    report("fitting the model")
    measured = measured_grid(read_dataset(folder), name)
    trained, held_out = fit(measured, model or model_named(recipes()[BASE].model or "combined"))
    home = models_home() / name
    trained.save(home)
    counts = len(measured.profiles), len(measured.applications)
    return Calibration(name, trained, home, *counts, time.monotonic() - start, held_out, tuple(notes))


def check_name(name: str) -> None:
    """Refuse a name that cannot be a device's, or is another model's or device's."""
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InputError(f"name: expected letters, digits, - and _, found {name!r}")
    base: TrainedTimeModel = load_model(BUNDLED / BASE)
    if name in recipes() or name in [device.key for device in base.devices]:
        raise InputError(f"name: expected one that no bundled model or device has, found {name!r}")
    home = models_home() / name
    if home.exists() and not (data_home() / "calibrations" / name).exists():
        raise InputError(f"name: expected one that is not taken, found {name!r}, a model in {home}")


def _measure(device: OpenCLDevice, folder: Path, seconds: float, report: Callable[[str], None]) -> list[str]:
    notes: list[str] = []
    end, failed = time.monotonic() + seconds, 0
    settings = _settings(seconds)
    done = set[str]()
    for application, size in order():
        left = end - time.monotonic()
        if left <= 0 and len(done) >= LEAST_APPLICATIONS:
            break
        if left <= -seconds:
            raise InputError(
                f"minutes: expected time for {LEAST_APPLICATIONS} applications, found that "
                f"{seconds / 60:g} minutes are enough for {len(done)}; what was measured is kept in {folder}"
            )
        measured = f"{len(done)} applications measured, {max(left, 0):.0f} s left"
        report(f"{application} {size} on {device.id}: {measured}")
        outcome = campaign.run(_tasks(device, application, size, settings), folder)
        notes += outcome.notes if outcome.done else []
        if outcome.failures:
            failed += 1
            notes += [f"{each.task.label}: {each.reason}" for each in outcome.failures]
            if failed == _MOST_FAILURES:
                raise EnvironmentFault(
                    f"{device.id}: {failed} measurements failed one after the other, the last with: "
                    f"{outcome.failures[-1].reason}"
                )
            continue
        failed = 0
        done.add(application)
    return notes


def _settings(seconds: float) -> Settings:
    """As long a measurement as the time allows for each application at two sizes."""
    of_each = _TIME_SHARE * seconds / (2 * len({application for application, _ in order()}))
    return Settings(_MIN_RUNS, float(np.clip(of_each, _LEAST_S, _MOST_S)), _WARMUPS, 120.0, "none", False)


def _tasks(
    device: OpenCLDevice, application: str, size: str, settings: Settings
) -> Callable[[Dataset, campaign.Outcome], Sequence[campaign.Task]]:
    plan = campaign.Plan(selected([application]), (size,), (device,), TYPICAL, settings)

    def tasks(dataset: Dataset, outcome: campaign.Outcome) -> list[campaign.Task]:
        # Profiles come with Crosscast.
        return [task for task in campaign.tasks(plan, dataset, outcome) if task.kind != "characterize"]

    return tasks


def measured_grid(dataset: Dataset, name: str) -> Grid:
    """What was measured on the one device, with the profiles of the suite."""
    grid = grid_of(replace(dataset, profiles=_profiles_of(dataset)))
    return replace(grid, devices=tuple(replace(each, key=name) for each in grid.devices))


def _profiles_of(dataset: Dataset) -> Any:
    profiles = _suite().profiles
    measured = set(dataset.records.column("application").to_pylist())
    names = pa.array(sorted(measured), pa.string())
    return profiles.filter(pc.is_in(profiles.column("application"), value_set=names))


def joined(first: Grid, second: Grid) -> Grid:
    """Kernels and devices of two grids that share neither."""
    batches = (first.profiles, second.profiles)
    profiles = ProfileBatch(
        first.profiles.application + second.profiles.application,
        first.profiles.kernel + second.profiles.kernel,
        first.profiles.size + second.profiles.size,
        np.vstack([each.metrics for each in batches]),
        np.concatenate([each.invocations for each in batches]),
    )
    devices: tuple[Device, ...] = (*first.devices, *second.devices)

    def both(field: str, fill: float) -> Any:
        one, other = getattr(first, field), getattr(second, field)
        whole = np.full((len(profiles), len(devices)), fill, dtype=one.dtype)
        whole[: len(one), : one.shape[1]] = one
        whole[len(one) :, one.shape[1] :] = other
        return whole

    return Grid(profiles, devices, both("log_time", np.nan), both("spread", np.nan), both("runs", 0))


def fit(measured: Grid, model: Gaussian) -> tuple[TrainedTimeModel, HeldOut]:
    """Fit the bundled model together with what was measured; also its errors on the measured device."""
    base: TrainedTimeModel = load_model(BUNDLED / BASE)
    grid = joined(_training(), measured)
    # Data sheets tell what they did before: no kernel of the training data ran on the new device.
    predictor, errors = model.fit_with_errors(grid, base.card.seed, base.predictor.unseen)
    held_out = held_out_on(errors, grid, len(grid.devices) - 1, LEVEL, adaptive=model.adaptive)
    times: Reals = np.exp(grid.log_time[np.isfinite(grid.log_time)])
    recipe = recipes()[BASE]
    (device,) = measured.devices
    card = base.card
    calibrated = {
        "device": device.key,
        "kernels_at_a_size": len(measured.profiles),
        "applications": list(measured.applications),
        "held_out": held_out.to_dict(),
    }
    described = {
        "about": f"Time of a kernel on {device.key} ({device.name}) and the devices of {BASE}",
        "licence": recipe.licence,
        "origin": f"{recipe.origin} and this machine",
        "citation": recipe.citation,
    }
    new = msgspec.structs.replace(
        card,
        training={**card.training, "devices": len(card.devices), **described, "calibrated": calibrated},
        devices=grid.devices,
        metrics=metric_ranges(predictor.point, grid.profiles),
        time_s=Range(float(times.min()), float(times.max())),
    )
    return TrainedTimeModel(new, predictor), held_out

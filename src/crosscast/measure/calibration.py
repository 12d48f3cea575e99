"""Calibration: a device of this machine joins the bundled model of times, by kernels measured on it.

The kernels are some of the suite's, which are profiled here too. What the model knows of other devices stays
as it is; what the new one reaches of its rates is fitted, and held out by application.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from crosscast.data.dataset import Dataset, bundled_dataset, read_dataset
from crosscast.data.files import data_home
from crosscast.device import Device
from crosscast.errors import EnvironmentFault, InputError
from crosscast.measure import campaign
from crosscast.measure.opencl import OpenCLDevice, find
from crosscast.measure.subjects import Settings
from crosscast.prediction.named_models import BUNDLED, load_model, models_home, recipes
from crosscast.prediction.time.card import HeldOut
from crosscast.prediction.time.data import ProfileBatch, devices_of, grid_of
from crosscast.prediction.time.joining import joined, launch_tables_of
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from crosscast.suite.application import TYPICAL
from crosscast.suite.registry import selected

BASE = "launch-times"
"""Name of the bundled model that devices join."""

SIZES = ("small", "medium", "tiny")
"""The sizes that are measured, in this order."""

_LEAST_SD = 1e-9
LEAST_APPLICATIONS = 6
"""Applications that must be measured, for errors on held-out ones to mean something."""

_MIN_RUNS, _WARMUPS = 10, 1
_TIME_SHARE = 0.3
"""Share of the time of a measurement in which the kernels run; the rest is starting and compiling."""
_LEAST_S, _MOST_S = 0.1, 2.0
_MOST_FAILURES = 3


@dataclass(frozen=True)
class Calibration:
    """A device that was measured, and the model that it joined."""

    name: str  # The device's, and the model's
    model: TrainedLaunchTimes
    folder: Path  # Where the model was written
    kernels: int  # Kernels at a size that were measured
    applications: int  # Applications that they are of
    seconds: float  # That measuring and fitting took
    held_out: HeldOut  # Errors on the device, each application left out in turn
    notes: tuple[str, ...]  # What went wrong without failing

    def to_dict(self) -> dict[str, object]:
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
def _suite_profiles() -> ProfileBatch:
    return grid_of(bundled_dataset()).profiles


def calibrate(
    device: OpenCLDevice | str,
    name: str = "mine",
    *,
    described: Device | None = None,
    seconds: float = 120.0,
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
    described
        The device with what microbenchmarks measured on it; by default as OpenCL describes it.
    seconds
        How long to measure; fitting takes some seconds more.
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
    dataset = read_dataset(folder)
    if described is None:
        (described,) = devices_of(dataset).values()
    base: TrainedLaunchTimes = load_model(BUNDLED / BASE)
    recipe = recipes()[BASE]
    about = {
        "about": f"Time of a kernel on {name} ({described.name}) and the devices of {BASE}",
        "licence": recipe.licence,
        "origin": f"{recipe.origin} and this machine",
        "citation": recipe.citation,
    }
    trained, held_out = joined(base, launch_tables_of(dataset, replace(described, key=name)), **about)
    home = models_home() / name
    trained.save(home)
    facts = trained.card.calibrated
    assert facts is not None
    counts = facts.kernels_at_a_size, len(facts.applications)
    return Calibration(name, trained, home, *counts, time.monotonic() - start, held_out, tuple(notes))


def check_name(name: str) -> None:
    """Refuse a name that cannot be a device's, or is another model's or device's."""
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InputError.of(field="name", expected="letters, digits, - and _", found=repr(name))
    base: TrainedLaunchTimes = load_model(BUNDLED / BASE)
    if name in recipes() or name in [device.key for device in base.devices]:
        raise InputError.of(
            field="name", expected="one that no bundled model or device has", found=repr(name)
        )
    home = models_home() / name
    if home.exists() and not (data_home() / "calibrations" / name).exists():
        raise InputError.of(
            field="name", expected="one that is not taken", found=f"{name!r}, a model in {home}"
        )


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
            raise InputError.of(
                field="minutes",
                expected=f"time for {LEAST_APPLICATIONS} applications",
                found=(
                    f"that {seconds / 60:g} minutes are enough for {len(done)}; what was measured is kept "
                    f"in {folder}"
                ),
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
) -> Callable[[Dataset, campaign.CampaignOutcome], Sequence[campaign.CampaignTask]]:
    plan = campaign.CampaignPlan(selected([application]), (size,), (device,), TYPICAL, settings)
    return partial(campaign.tasks, plan)

"""Calibration: a device of this machine joins the bundled model of times, by kernels measured on it.

The kernels are some of the suite's, which are also characterized. The model's parameters of other devices do
not change; the rates that the new device attains are fitted, and evaluated with applications held out.
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
from crosscast.devices import device_files
from crosscast.errors import EnvironmentFault, InputError
from crosscast.measure import campaign
from crosscast.measure.opencl import OpenCLDevice, find
from crosscast.measure.subjects import Settings
from crosscast.prediction.named_models import BUNDLED, load_model, models_home, recipes
from crosscast.prediction.time.card import HeldOut
from crosscast.prediction.time.datasets import devices_of, grid_of, launch_tables_of
from crosscast.prediction.time.launch_model import TrainedLaunchTimes
from crosscast.prediction.time.training_times import with_device
from crosscast.suite.application import TYPICAL, selected

BASE = "launch-times"
"""Name of the bundled model that devices join."""

SIZES = ("small", "medium", "tiny")
"""Sizes in the order of measuring."""

_LEAST_SD = 1e-9
LEAST_APPLICATIONS = 6
"""Fewest measured applications for meaningful errors on held-out ones."""

_MIN_RUNS, _WARMUPS = 10, 1
_TIME_SHARE = 0.3
"""Share of a measurement in which kernels run; the rest is process start and compilation."""
_LEAST_S, _MOST_S = 0.1, 2.0
_MOST_FAILURES = 3


@dataclass(frozen=True)
class Calibration:
    """A measured device, and the model that it joined."""

    name: str  # Name of the device and of the model
    model: TrainedLaunchTimes
    folder: Path  # Folder of the model
    kernels: int  # Number of measured kernels at a size
    applications: int  # Number of their applications
    seconds: float  # Duration of measuring and fitting
    held_out: HeldOut  # Errors on the device, each application left out in turn
    notes: tuple[str, ...]  # Problems that were no failures

    def to_dict(self) -> dict[str, object]:
        """Return the calibration for JSON."""
        return {
            "device": self.name,
            "model": str(self.folder),
            "kernels": self.kernels,
            "applications": self.applications,
            "seconds": self.seconds,
            "held_out": self.held_out.to_dict(),
            "notes": list(self.notes),
        }


@cache
def order() -> tuple[tuple[str, str], ...]:
    """Order the applications of the suite at sizes for measuring.

    All at small, then at medium, then at tiny, so that any prefix has as many applications as possible.
    Farthest-first traversal: each application is as far as possible from those before it. The distance of two
    is that of their nearest kernels, in standard deviations of the logarithms of their metrics.
    """
    batch = grid_of(bundled_dataset()).profiles
    known = np.isfinite(batch.metrics).all(axis=0)
    logs = np.log1p(np.abs(batch.metrics[:, known]))
    points = (logs - logs.mean(axis=0)) / np.maximum(logs.std(axis=0), _LEAST_SD)
    rows = {
        name: np.flatnonzero(batch.groups("application") == group)
        for group, name in enumerate(sorted(set(batch.application)))
    }
    centre = {name: float(np.linalg.norm(points[indices], axis=1).min()) for name, indices in rows.items()}
    chosen = [min(centre, key=lambda name: centre[name])]
    while len(chosen) < len(rows):
        before = np.vstack([points[rows[name]] for name in chosen])
        distances = {
            name: float(np.linalg.norm(points[indices][:, None] - before, axis=2).min())
            for name, indices in rows.items()
            if name not in chosen
        }
        chosen.append(max(distances, key=lambda name: distances[name]))
    return tuple((name, size) for size in SIZES for name in chosen)


def calibrate(
    device: OpenCLDevice | str,
    name: str = "mine",
    *,
    described: Device | None = None,
    seconds: float = 120.0,
    report: Callable[[str], None] = lambda text: None,
) -> Calibration:
    """Measure kernels of the suite on a device, fit the bundled model with it, and save it for the user.

    This is what ``crosscast calibrate`` does after its microbenchmarks.

    Measurements stay in ``calibrations/NAME`` of the user's data folder: an interrupted calibration resumes,
    and one with more time adds to it.

    Parameters
    ----------
    device
        The device, or its id, as ``crosscast devices`` shows it, such as ``pocl:0``.
    name
        Name of the device and of the model.
    described
        The device with the results of its microbenchmarks; by default as ``dataset build`` describes it.
    seconds
        Time for measuring; fitting takes some seconds more.
    report
        Called with sentences on progress.

    Returns
    -------
    Calibration
        The model, which `crosscast.predict` uses from now on, and its errors on the device.

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
    trained, held_out = with_device(base, launch_tables_of(dataset, replace(described, key=name)), **about)
    home = models_home() / name
    trained.save(home)
    calibrated = trained.card.calibrated
    assert calibrated is not None
    counts = calibrated.kernels_at_a_size, len(calibrated.applications)
    return Calibration(name, trained, home, *counts, time.monotonic() - start, held_out, tuple(notes))


def check_name(name: str) -> None:
    """Raise for a name that is no valid name of a device, or that another model or device has."""
    device_files.check_name(name)
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
        left_s = end - time.monotonic()
        if left_s <= 0 and len(done) >= LEAST_APPLICATIONS:
            break
        if left_s <= -seconds:
            raise InputError.of(
                field="minutes",
                expected=f"time for {LEAST_APPLICATIONS} applications",
                found=(
                    f"that {seconds / 60:g} minutes are enough for {len(done)}; what was measured is kept "
                    f"in {folder}"
                ),
            )
        measured = f"{len(done)} applications measured, {max(left_s, 0):.0f} s left"
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
    """Return settings by which the time suffices for each application at two sizes."""
    share_s = _TIME_SHARE * seconds / (2 * len({application for application, _ in order()}))
    return Settings(_MIN_RUNS, float(np.clip(share_s, _LEAST_S, _MOST_S)), _WARMUPS, 120.0, "none", False)


def _tasks(
    device: OpenCLDevice, application: str, size: str, settings: Settings
) -> Callable[[Dataset, campaign.CampaignOutcome], Sequence[campaign.CampaignTask]]:
    plan = campaign.CampaignPlan(selected([application]), (size,), (device,), TYPICAL, settings)
    return partial(campaign.tasks, plan)

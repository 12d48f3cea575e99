"""A forecast of a recorded program: its kernels, as often as they are launched, and its transfers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crosscast.data.fields import listed
from crosscast.devices.roofline import launch_cost
from crosscast.errors import InputError
from crosscast.prediction.first_fit import first_fit, models_for, named_devices
from crosscast.prediction.time.data import ProfileBatch
from crosscast.results import Tabular
from crosscast.tracing.summary import UPLOAD

if TYPE_CHECKING:
    import numpy.typing as npt

    from crosscast.device import Device
    from crosscast.prediction.named_models import TrainedTimes
    from crosscast.prediction.time.forecast import TimeForecast
    from crosscast.results import Column
    from crosscast.tracing.summary import Replayed, Summary

__all__ = ["ASSUMED", "ApplicationForecast", "forecast_application"]


@dataclass(frozen=True, eq=False)
class ApplicationForecast(Tabular):
    """How long the kernels and transfers of a recorded program take on each device, in seconds."""

    kernels: TimeForecast  # Of one launch of each class that has a profile, and how many there are
    covered: float  # Share of the recorded time of all kernels that these have
    transfers: Mapping[str, float]  # Time of transfers, by device
    launches: Mapping[str, float]  # What all launches cost where each waits for the one before, by device
    # `(n,)` How many launches of the kernel are taken to be like those that a profile is of, for each of them
    repeat: npt.NDArray[np.float64] | float = 1.0

    def columns(self) -> Mapping[str, Column]:
        """A row a device, the fastest first."""
        moved = np.array([self.transfers[device] for device in self.kernels.devices])
        costs = np.array([self.launches[device] for device in self.kernels.devices])
        kernels, low, high = self.kernels.of_all_launches(self.repeat)
        low, high = low + moved * _LINK_RANGE[0], high + moved * _LINK_RANGE[1] + costs
        launches = costs * _WAITING
        whole = kernels + moved + launches
        order = np.argsort(whole, kind="stable")
        return {
            "device": [self.kernels.devices[place] for place in order],
            "time_s": whole[order],
            "low_s": low[order],
            "high_s": high[order],
            "kernels_s": kernels[order],
            "transfers_s": moved[order],
            "launches_s": launches[order],
        }


_LINK_BYTES_PER_S = 15.75e9
"""What PCI Express 3.0 with 16 lanes moves at most (PCI-SIG 2010, section 4.2)."""

_LINK_RANGE = (1.0, 2.0)
"""What a transfer takes, in times of that at the documented bandwidth."""

_WAITING = 0.5
"""Share of the cost of launches that is taken: it is nothing where a launch is queued while another runs,
and all of it where the host waits for each."""

ASSUMED = (
    "A launch is taken to cost half of an empty kernel, as measured on the device or else 5 µs on GPUs and "
    "20 µs elsewhere (nothing to all of it in the interval); transfers take 15.75 GB/s to GPUs (PCI Express "
    "3.0), half the bandwidth of memory on CPUs, up to twice as long in the interval."
)
"""What is not predicted."""


def forecast_application(
    summary: Summary,
    replayed: Sequence[Replayed],
    model: str | Path | None = None,
    *,
    devices: Sequence[str | Device] | str | Device | None = None,
    level: float = 0.9,
) -> ApplicationForecast:
    """Predict a recorded program: each class of launches, times how often it is launched, and its transfers.

    Each launch costs up to as much as an empty kernel on the device (`launch_overhead_s` where it was
    measured), half of it in the prediction. Transfers to and from a GPU or accelerator take their bytes
    over the bandwidth of PCI Express 3.0 with 16 lanes, on CPUs over half of that of memory, up to twice as
    long. What the host does is not in it.

    Parameters
    ----------
    summary, replayed
        The program, and the profiles of its classes.
    model, devices, level
        As of `predict`.

    Raises
    ------
    InputError
        If no class has a profile, a device is not known, or no model fits.
    """
    known = [
        (each, found.profile) for each, found in zip(summary.classes, replayed, strict=True) if found.profile
    ]
    if not known:
        raise InputError(f"{summary.trace.folder}: expected launches that can be run again, found none")
    batch = ProfileBatch.joined(
        [ProfileBatch.of([profile], invocations=each.count) for each, profile in known if profile]
    )
    counts = {id(profile): float(each.count) for each, profile in known}
    for each, found in zip(summary.classes, replayed, strict=True):
        for place, launches in found.like.items():
            counts[id(replayed[place].profile)] += launches * each.count
    repeat = np.array(list(counts.values())) / batch.invocations
    moved = sum(each.bytes for each in summary.transfers if each.kind in ("read", "write", UPLOAD))

    def predicted(trained: TrainedTimes) -> ApplicationForecast:
        by_key = {device.key: device for device in trained.devices}
        chosen = None if devices is None else named_devices(listed(devices), list(by_key))
        forecast = trained.predict(batch, chosen, level=level).on_device()
        by_key |= {each.key: each for each in chosen or () if not isinstance(each, str)}
        covered = sum(
            each.seconds
            for each, found in zip(summary.classes, replayed, strict=True)
            if found.profile or found.like
        )
        covered = covered / summary.device_s if summary.device_s else 1.0
        transfers = {key: moved / _link(by_key[key]) for key in forecast.devices}
        launches = {key: summary.launches * launch_cost(by_key[key]) for key in forecast.devices}
        return ApplicationForecast(forecast, covered, transfers, launches, repeat)

    return first_fit(models_for(model, "time", devices), predicted)[1]


def _link(device: Device) -> float:
    """Bandwidth between the host's memory and the device's, in bytes per second."""
    if device.type == "cpu":
        return device.numbers.get("bandwidth_bytes_per_s", 2 * _LINK_BYTES_PER_S) / 2
    return _LINK_BYTES_PER_S

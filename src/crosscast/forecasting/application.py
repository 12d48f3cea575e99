"""The forecast of a recorded program: its kernels, as often as they are launched, and its transfers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crosscast.data.fields import as_sequence
from crosscast.devices.limits import launch_cost
from crosscast.errors import InputError
from crosscast.prediction.named_models import first_fit, models_for, named_devices
from crosscast.prediction.time.data import ProfileBatch
from crosscast.results import Tabular
from crosscast.tracing.summary import UPLOAD, represented

if TYPE_CHECKING:
    import numpy.typing as npt

    from crosscast.device import Device
    from crosscast.prediction.time.card import TrainedTimes
    from crosscast.prediction.time.forecast import TimeForecast
    from crosscast.results import Column
    from crosscast.tracing.summary import Replayed, Summary


@dataclass(frozen=True, eq=False)
class ApplicationForecast(Tabular):
    """Times of the kernels and transfers of a recorded program on each device, in seconds."""

    kernels: TimeForecast  # Of one launch of each class that has a profile, with the number of launches
    covered: float  # Share of these in the recorded time of all kernels
    transfers: Mapping[str, float]  # Time of transfers, by device
    launches: Mapping[str, float]  # Cost of all launches if each waits for the previous one, by device
    # `(n,)` Launches of each kernel that each profiled launch represents
    repeat: npt.NDArray[np.float64] | float = 1.0

    def columns(self) -> Mapping[str, Column]:
        """A row a device, the fastest first."""
        transfers = np.array([self.transfers[device] for device in self.kernels.devices])
        costs = np.array([self.launches[device] for device in self.kernels.devices])
        kernels, low, high = self.kernels.of_all_launches(self.repeat)
        low, high = low + transfers * _LINK_RANGE[0], high + transfers * _LINK_RANGE[1] + costs
        launches = costs * _WAITING
        total = kernels + transfers + launches
        order = np.argsort(total, kind="stable")
        return {
            "device": [self.kernels.devices[index] for index in order],
            "time_s": total[order],
            "low_s": low[order],
            "high_s": high[order],
            "kernels_s": kernels[order],
            "transfers_s": transfers[order],
            "launches_s": launches[order],
        }


_LINK_BYTES_PER_S = 15.75e9
"""Bandwidth of PCI Express 3.0 with 16 lanes (PCI-SIG 2010, section 4.2)."""

_LINK_RANGE = (1.0, 2.0)
"""Limits of a transfer's time over that at the documented bandwidth."""

_WAITING = 0.5
"""Expected share of the cost of launches: 0 where a launch is queued while another runs, 1 where the host
waits for each."""

ASSUMED = (
    "A launch is taken to cost half of an empty kernel, as measured on the device or else 5 µs on GPUs and "
    "20 µs elsewhere (nothing to all of it in the interval); transfers take 15.75 GB/s to GPUs (PCI Express "
    "3.0), half the bandwidth of memory on CPUs, up to twice as long in the interval."
)
"""Assumptions on launches and transfers, which are not predicted."""


def forecast_application(
    summary: Summary,
    replayed: Sequence[Replayed],
    model: str | Path | None = None,
    *,
    devices: Sequence[str | Device] | str | Device | None = None,
    level: float = 0.9,
) -> ApplicationForecast:
    """Predict a recorded program: the time of each class of launches, times their number, and transfers.

    Each launch costs up to as much as an empty kernel on the device (`launch_overhead_s` where it was
    measured), half of it in the prediction. Transfers to and from a GPU or accelerator take their bytes over
    the bandwidth of PCI Express 3.0 with 16 lanes, on CPUs over half of that of memory, up to twice as long.
    The work of the host is not included.
    """
    known = [
        (each, result.profile)
        for each, result in zip(summary.classes, replayed, strict=True)
        if result.profile
    ]
    if not known:
        raise InputError(f"{summary.trace.folder}: expected launches that can be run again, found none")
    batch = ProfileBatch.joined(
        [ProfileBatch.of([profile], invocations=each.count) for each, profile in known if profile]
    )
    launches_of = zip(represented(summary, replayed), replayed, strict=True)
    repeat = np.array([count for count, result in launches_of if result.profile]) / batch.invocations
    transferred = sum(each.bytes for each in summary.transfers if each.kind in ("read", "write", UPLOAD))

    def predicted(trained: TrainedTimes[Any]) -> ApplicationForecast:
        by_key = {device.key: device for device in trained.devices}
        chosen = None if devices is None else named_devices(as_sequence(devices), list(by_key))
        forecast = trained.predict(batch, chosen, level=level).on_device()
        by_key |= {each.key: each for each in chosen or () if not isinstance(each, str)}
        covered = sum(
            each.seconds
            for each, result in zip(summary.classes, replayed, strict=True)
            if result.profile or result.interpolation
        )
        covered = covered / summary.device_s if summary.device_s else 1.0
        transfers = {key: transferred / _link(by_key[key]) for key in forecast.devices}
        launches = {key: summary.launches * launch_cost(by_key[key]) for key in forecast.devices}
        return ApplicationForecast(forecast, covered, transfers, launches, repeat)

    return first_fit(models_for(model, "time", devices), predicted)[1]


def _link(device: Device) -> float:
    """Bandwidth between the host's memory and the device's, in bytes per second."""
    if device.type == "cpu":
        return device.numbers.get("bandwidth_bytes_per_s", 2 * _LINK_BYTES_PER_S) / 2
    return _LINK_BYTES_PER_S

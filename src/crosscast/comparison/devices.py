"""Two devices side by side: their numbers, and the kernels of the suite at which each is faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crosscast.data.dataset import bundled_folder
from crosscast.devices.architectures import KnownDevice, known_of
from crosscast.errors import InputError
from crosscast.forecasting import predict

if TYPE_CHECKING:
    from crosscast.prediction.time.forecast import TimeForecast


LAUNCHES = bundled_folder() / "launches.jsonl"
"""Profiles of the middle launch of each kernel of the suite at a size, as drivers compile it."""


@dataclass(frozen=True)
class KernelTimes:
    """Forecasts for a kernel of the suite on two devices, in seconds."""

    application: str
    kernel: str
    size: str
    first_s: float
    second_s: float
    probability: float | None  # That the first device is faster, if the model knows

    @property
    def ratio(self) -> float:
        """Speed of the first device over that of the second."""
        return self.second_s / self.first_s


@dataclass(frozen=True)
class DeviceComparison:
    """Numbers of two devices, and forecasts of the suite's kernels on both."""

    first: KnownDevice
    second: KnownDevice
    kernels: tuple[KernelTimes, ...]  # The first's greatest advantage first
    forecast: TimeForecast

    def numbers(self) -> Mapping[str, tuple[float | None, float | None]]:
        """Numbers of the data sheets and measured ones, of the first and the second."""
        one, other = self.first.device, self.second.device
        pairs: dict[str, tuple[float | None, float | None]] = {}
        for first, second in ((one.numbers, other.numbers), (one.measured, other.measured)):
            pairs |= {name: (first.get(name), second.get(name)) for name in dict.fromkeys((*first, *second))}
        return pairs

    def to_dict(self) -> dict[str, object]:
        """The comparison, for JSON."""
        return {
            "devices": [self.first.to_dict(), self.second.to_dict()],
            "numbers": {
                name: {"first": one, "second": other, "ratio": one / other if one and other else None}
                for name, (one, other) in self.numbers().items()
            },
            "kernels": [{**vars(each), "ratio": each.ratio} for each in self.kernels],
        }


def compare_devices(first: str, second: str) -> DeviceComparison:
    """Compare two devices, which must differ."""
    one, other = known_of(first), known_of(second)
    if one.device.key == other.device.key:
        raise InputError.of(where="devices", expected="two devices", found=f"{one.device.key} twice")
    forecast = predict(LAUNCHES, devices=[one.device, other.device])
    kernels = [
        KernelTimes(*names, float(times[0]), float(times[1]), forecast.probability_faster(row, 1, 0))
        for row, (names, times) in enumerate(zip(forecast.profiles.names, forecast.centre, strict=True))
    ]
    return DeviceComparison(one, other, tuple(sorted(kernels, key=lambda each: -each.ratio)), forecast)

"""The answer for each kernel: times on devices with intervals and ranks, the device to take, and doubts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.artefact import TrainedModel
from crosscast.predict.asked import Asked
from crosscast.predict.choice import Choice, choose, ranks
from crosscast.predict.doubts import doubts_of, probe_array
from crosscast.predict.grid import Profiles
from crosscast.predict.model import Forecast

__all__ = ["DeviceTime", "Prediction", "predictions_of"]


@dataclass(frozen=True)
class DeviceTime:
    """What is predicted for one device.

    Parameters
    ----------
    device
        Its key.
    time_s, low_s, high_s
        Median and limits of the interval, in seconds, of one launch.
    rank
        Place in the order of the times, from 1.
    measured
        Whether the time is a probe's, measured and not predicted.
    recorded_s
        Median time that was recorded for comparison, in seconds, of which the model was not told; ``None``
        where there is none.
    """

    device: str
    time_s: float
    low_s: float
    high_s: float
    rank: int
    measured: bool
    recorded_s: float | None = None


@dataclass(frozen=True)
class Prediction:
    """What is predicted for one kernel.

    Parameters
    ----------
    application, kernel, size
        Its names; empty where there is none.
    invocations
        How often it is launched in a run.
    level
        Probability that the intervals are to hold.
    devices
        The devices, in the order in which they were asked for.
    choice
        Which to take.
    warnings
        What makes this doubtful; sentences without a full stop.
    """

    application: str
    kernel: str
    size: str
    invocations: int
    level: float
    devices: tuple[DeviceTime, ...]
    choice: Choice
    warnings: tuple[str, ...]

    @property
    def label(self) -> str:
        """Its names, for people."""
        return " ".join(filter(None, (self.application, self.kernel, self.size)))

    @property
    def probes(self) -> int:
        """On how many of the devices shown it was measured."""
        return sum(each.measured for each in self.devices)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as the object that ``--json`` prints."""
        choice = self.choice
        runner_up = None
        if choice.runner_up is not None:
            runner_up = {
                "device": choice.runner_up,
                "times_longer": choice.factor,
                "probability_faster": choice.doubt,
            }
        return {
            "application": self.application or None,
            "kernel": self.kernel,
            "size": self.size or None,
            "invocations": self.invocations,
            "level": self.level,
            "devices": [asdict(each) for each in self.devices],
            "recommended": choice.device,
            "runner_up": runner_up,
            "warnings": list(self.warnings),
        }


def predictions_of(
    model: TrainedModel,
    asked: Asked,
    *,
    devices: Sequence[str | Device] | None = None,
    probes: Mapping[str, float] | None = None,
    level: float = 0.9,
    recorded: Mapping[tuple[str, str, str], Mapping[str, float]] | None = None,
) -> list[Prediction]:
    """Predict the times of kernels.

    Parameters
    ----------
    model
        The model.
    asked
        The kernels.
    devices
        Devices, by key or by what describes them; by default all that the model was trained on.
    probes
        Measured times of the kernel in seconds, by the key of a device; for a single kernel only.
    level
        Probability that the intervals are to hold.
    recorded
        Recorded times in seconds to be put beside the predicted ones, by application, kernel and size, and by
        the key of a device.

    Raises
    ------
    InputError
        If a profile lacks a metric that is needed, a device is not known, there are probes and several
        kernels, or a probe is no time, or absurd.
    """
    profiles, predictor = asked.profiles, model.predictor
    measured = _measured(model.devices, profiles, probes or {})
    forecast = predictor.predict(profiles, devices, probes=measured, level=level)
    doubts = doubts_of(model.card, predictor, asked, forecast, measured)
    places = ranks(forecast)
    errors = np.full((len(profiles), len(model.devices)), np.nan)
    if measured is not None:
        errors = np.log(measured) - predictor.point.log_time(profiles)
    return [
        Prediction(
            *names,
            int(profiles.invocations[row]),
            level,
            _device_times(forecast, row, places[row], probes or {}, (recorded or {}).get(names, {})),
            choose(predictor, forecast, row, errors[row]),
            tuple(doubts[row]),
        )
        for row, names in enumerate(profiles.names)
    ]


def _measured(devices: Sequence[Device], profiles: Profiles, probes: Mapping[str, float]) -> Reals | None:
    """Measured times as a predictor takes them, or ``None``."""
    if not probes:
        return None
    if len(profiles) > 1:
        names = ", ".join(profiles.kernel)
        raise InputError(f"probe: expected one kernel to predict, found {len(profiles)} ({names})")
    return probe_array(devices, probes)


def _device_times(
    forecast: Forecast,
    row: int,
    places: Integers,
    probes: Collection[str],
    recorded: Mapping[str, float],
) -> tuple[DeviceTime, ...]:
    return tuple(
        DeviceTime(
            key,
            float(forecast.centre[row, place]),
            float(forecast.low[row, place]),
            float(forecast.high[row, place]),
            int(places[place]),
            key in probes,
            recorded.get(key),
        )
        for place, key in enumerate(forecast.devices)
    )

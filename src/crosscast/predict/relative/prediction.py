"""The answer for each run: times relative to a device, seconds where one is known, the device to take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crosscast.arrays import Reals
from crosscast.errors import InputError
from crosscast.predict.relative.artefact import TrainedRelativeModel
from crosscast.predict.relative.forecast import RelativeForecast
from crosscast.predict.relative.observations import NO_SOURCE, Observations

__all__ = ["RelativePrediction", "RelativeTime", "relative_predictions_of"]

_LEAST_S, _MOST_S = 1e-9, 1e9


@dataclass(frozen=True)
class RelativeTime:
    """What is predicted of one run on one device.

    Parameters
    ----------
    device
        Its key.
    relative, low, high
        Time over that on the device that it is relative to, and limits of its interval.
    rank
        Place in the order of the times, from 1.
    probability_fastest
        Probability that no device is faster.
    time_s, time_low_s, time_high_s
        Time and limits of its interval in seconds; ``None`` where no time is known on a device.
    """

    device: str
    relative: float
    low: float
    high: float
    rank: int
    probability_fastest: float
    time_s: float | None = None
    time_low_s: float | None = None
    time_high_s: float | None = None

    @property
    def speed_up(self) -> float:
        """How many times as fast it is as the device that its time is relative to."""
        return 1 / self.relative


@dataclass(frozen=True)
class RelativePrediction:
    """What is predicted of one run.

    Parameters
    ----------
    application, kernel, size, scale
        Its names; empty where there is none.
    source
        Device on which it was counted; ``None`` where that is not known, or none has a part in it.
    relative_to
        Device that times are relative to; ``None`` for the slowest.
    level, reached
        Probability of intervals that was asked for, and that they have.
    devices
        The devices, in the model's order.
    same_order
        Probability that the whole order is as predicted.
    timed_on, timed_s
        Device on which a time is known, and the time in seconds; ``None`` where there is none.
    warnings
        What makes this doubtful; sentences without a full stop.
    """

    application: str
    kernel: str
    size: str
    scale: str
    source: str | None
    relative_to: str | None
    level: float
    reached: float
    devices: tuple[RelativeTime, ...]
    same_order: float
    timed_on: str | None
    timed_s: float | None
    warnings: tuple[str, ...]

    @property
    def label(self) -> str:
        """Its names, for people."""
        names = (self.application, self.kernel, self.size, self.scale)
        return " ".join(dict.fromkeys(filter(None, names))) or "profile"

    @property
    def order(self) -> tuple[RelativeTime, ...]:
        """The devices, fastest first."""
        return tuple(sorted(self.devices, key=lambda each: each.rank))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as the object that ``--json`` prints."""
        return {
            "application": self.application or None,
            "kernel": self.kernel or None,
            "size": self.size or None,
            "scale": self.scale or None,
            "source": self.source,
            "relative_to": self.relative_to,
            "level": self.level,
            "level_reached": self.reached,
            "devices": [{**asdict(each), "speed_up": each.speed_up} for each in self.devices],
            "order": [each.device for each in self.order],
            "probability_same_order": self.same_order,
            "recommended": self.order[0].device,
            "time": None if self.timed_on is None else {"device": self.timed_on, "time_s": self.timed_s},
            "warnings": list(self.warnings),
        }


def relative_predictions_of(
    model: TrainedRelativeModel,
    observations: Observations,
    *,
    relative_to: str | None = None,
    level: float = 0.9,
    timed_on: str | None = None,
    time_s: float | None = None,
) -> list[RelativePrediction]:
    """Predict runs.

    Parameters
    ----------
    model
        The model.
    observations
        The runs, ``r`` of them.
    relative_to
        Device that times are to be relative to; the slowest of each run by default.
    level
        Probability that intervals are to hold.
    timed_on
        Device on which a time is known; by default the source of each run.
    time_s
        That time in seconds; by default the run's own.

    Raises
    ------
    InputError
        If a run has no counter that the model knows, a device is unknown, the level is no probability, the
        time is no time or on no device, or an array of the model is missing or damaged.
    """
    if timed_on is not None and timed_on not in model.devices:
        raise InputError(f"source: expected one of {', '.join(model.devices)}, found {timed_on!r}")
    if time_s is not None and not _LEAST_S <= time_s <= _MOST_S:
        raise InputError(f"time: expected from {_LEAST_S:g} to {_MOST_S:g} seconds, found {time_s:g}")
    forecast = model.forecast(observations, relative_to=relative_to, level=level)
    seconds: dict[str, RelativeForecast] = {}
    found = []
    for row in range(len(observations)):
        device = timed_on or observations.source[row]
        known = time_s if time_s is not None else float(observations.time_s[row])
        if device not in model.devices:
            if time_s is not None:
                raise InputError(
                    f"time: expected the device that it was measured on, one of {', '.join(model.devices)}, "
                    f"found {'none' if device == NO_SOURCE else device}"
                )
            known = np.nan
        if np.isfinite(known) and device not in seconds:
            seconds[device] = model.forecast(observations, relative_to=device, level=level)
        times = known * _limits(seconds[device], row) if np.isfinite(known) else None
        found.append(_prediction(forecast, observations, row, device, known, times))
    return found


def _limits(forecast: RelativeForecast, row: int) -> Reals:
    """Centre, low and high of a run, of shape ``(d, 3)``."""
    return np.stack([forecast.centre[row], forecast.low[row], forecast.high[row]], axis=1)


def _prediction(
    forecast: RelativeForecast,
    observations: Observations,
    row: int,
    timed_on: str,
    timed_s: float,
    times_s: Reals | None,
) -> RelativePrediction:
    ranks = np.argsort(forecast.order[row]) + 1
    source = observations.source[row]
    seconds: list[list[float | None]] = (
        [[None] * 3] * len(ranks) if times_s is None else [list(limits) for limits in times_s.tolist()]
    )
    devices = []
    for place, (relative, low, high) in enumerate(_limits(forecast, row).tolist()):
        share = float(forecast.fastest[row, place])
        name, rank = forecast.devices[place], int(ranks[place])
        devices.append(RelativeTime(name, relative, low, high, rank, share, *seconds[place]))
    return RelativePrediction(
        observations.application[row],
        observations.kernel[row],
        observations.size[row],
        observations.scale[row],
        None if source == NO_SOURCE else source,
        forecast.relative_to,
        forecast.level,
        float(forecast.reached[row]),
        tuple(devices),
        float(forecast.same_order[row]),
        None if times_s is None else timed_on,
        None if times_s is None else timed_s,
        forecast.warnings[row],
    )

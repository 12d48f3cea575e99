"""Which device to take by a forecast, what the next best costs, and how likely that is the better one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from crosscast.arrays import Integers, Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.time.artefact import Card, Effect, TrainedModel
from crosscast.predict.time.data import Asked, Profiles, Toolchain
from crosscast.predict.time.gaussian import Forecast, GaussianPredictor, Scatter, shared_shifts, spread
from crosscast.predict.warnings import listed
from crosscast.profile import METRICS
from crosscast.units import format_seconds

_MIDDLE = 0.5


@dataclass(frozen=True)
class Choice:
    """The device to take for a kernel."""

    device: str  # Key of the device with the least predicted time
    runner_up: str | None = None  # Key of the next; `None` if there is no other
    factor: float | None = None  # Predicted time of the next over that of the first
    # Probability that the next is in truth the faster of the two; `None` where it is not known
    doubt: float | None = None


def ranks(forecast: Forecast) -> Integers:
    """Place of each device in the order of the predicted times, from 1, of shape ``(n, d)``."""
    order = np.argsort(forecast.centre, axis=1, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(1, order.shape[1] + 1)[None, :], axis=1)
    return places


def choose(predictor: GaussianPredictor, forecast: Forecast, row: int, errors: Reals) -> Choice:
    """Choose a device."""
    order = np.argsort(forecast.centre[row], kind="stable")
    names = [forecast.devices[place] for place in order.tolist()]
    if len(names) < 2:
        return Choice(names[0])
    first, second = forecast.centre[row, order[:2]]
    doubt = _doubt(predictor, names[0], names[1], float(np.log(second / first)), errors)
    return Choice(names[0], names[1], float(second / first), doubt)


def _doubt(
    predictor: GaussianPredictor, first: str, second: str, apart: float, errors: Reals
) -> float | None:
    """Probability that the second is faster, by the errors that the two do not share.

    Errors are taken as normal, and as much wider than the covariance says as they were on held-out
    applications.
    """
    keys = [device.key for device in predictor.devices]
    if not {first, second} <= set(keys):
        return None
    difference = np.zeros((1, len(keys)))
    difference[0, keys.index(first)], difference[0, keys.index(second)] = -1.0, 1.0
    scatter = Scatter(predictor.covariance, shared_shifts(predictor.devices))
    sd = float(spread(scatter, errors[None, :], difference)[0, 0])
    probes = int(np.isfinite(errors).sum())
    width = float(predictor.factors(probes, _MIDDLE)) / NormalDist().inv_cdf(0.5 + _MIDDLE / 2)
    return NormalDist().cdf(-apart / (width * sd))


_LEAST_S, _MOST_S = 1e-9, 1e6
_ABSURD = 1e3
_FAR = 0.999
_MORE_INSTRUCTIONS = 1.25
_MOST_NAMED = 5
_COUNTS = tuple(
    place
    for place, each in enumerate(METRICS)
    if each.name == "total_instruction_count" or each.name.endswith(("_itb", "_ipt"))
)


def probe_array(devices: Sequence[Device], probes: Mapping[str, float]) -> Reals:
    """Measured times of one kernel on the devices of a model, of shape ``(1, d)``."""
    keys = [device.key for device in devices]
    times = np.full((1, len(keys)), np.nan)
    for key, seconds in probes.items():
        if key not in keys:
            raise InputError(
                f"probe: expected a device that the model knows ({', '.join(keys)}), found {key!r}"
            )
        if not _LEAST_S <= seconds <= _MOST_S:
            raise InputError(
                f"probe: {key}: expected a time from {_LEAST_S:g} to {_MOST_S:g} seconds, found {seconds:g}"
            )
        times[0, keys.index(key)] = seconds
    return times


def doubts_of(
    card: Card, predictor: GaussianPredictor, asked: Asked, forecast: Forecast, probes: Reals | None = None
) -> list[list[str]]:
    """Say for each kernel what makes its forecast doubtful."""
    found: list[list[str]] = []
    for row in range(len(asked.profiles)):
        one = asked.profiles.take(np.array([row]))
        sentences = [
            *_toolchains(card, predictor, one, asked.toolchains[row]),
            *_outside(card, one),
            *_times_outside(card, forecast, row),
        ]
        if probes is not None:
            sentences += _far_probes(predictor, one, probes[row])
        found.append(sentences)
    return found


def _toolchains(
    card: Card, predictor: GaussianPredictor, one: Profiles, toolchains: Sequence[Toolchain]
) -> list[str]:
    effects = {effect.toolchain: effect for effect in card.effects}
    trained = " and ".join(map(str, card.toolchains))
    return [
        f"its profile was made with {each}, those that the model was trained on with {trained}: "
        + (_measured(effects[each]) if each in effects else _felt(predictor, one))
        for each in toolchains
        if each not in card.toolchains
    ]


def _measured(effect: Effect) -> str:
    return (
        f"on {effect.kernels} kernels profiled with both, that gives {effect.factor:.2f} times the predicted "
        f"time in the median, and {effect.low:.2g} to {effect.high:.2g} times for 80 % of them"
    )


def _felt(predictor: GaussianPredictor, one: Profiles) -> str:
    """How the prediction moves with the counts of instructions, which is what compilers change most."""
    metrics = one.metrics.copy()
    metrics[:, _COUNTS] *= _MORE_INSTRUCTIONS
    moved = predictor.point.log_time(replace(one, metrics=metrics)) - predictor.point.log_time(one)
    change = np.expm1(np.median(moved))
    return (
        f"what that changes was not measured; {_MORE_INSTRUCTIONS - 1:.0%} more instructions would change "
        f"the predicted times by {change:+.0%}"
    ).replace("%", " %")


def _outside(card: Card, one: Profiles) -> list[str]:
    places = {metric.name: place for place, metric in enumerate(METRICS)}
    beyond = []
    for each in card.metrics:
        value = one.metrics[0, places[each.name]] if each.name in places else np.nan
        if value < each.low or value > each.high:
            beyond.append(f"{each.name} {value:.4g} (trained on {each.low:.4g} to {each.high:.4g})")
    if not beyond:
        return []
    return [f"outside of what the model was trained on: {listed(beyond, _MOST_NAMED)}"]


def _times_outside(card: Card, forecast: Forecast, row: int) -> list[str]:
    times = forecast.centre[row]
    if (times >= card.time_low_s).all() and (times <= card.time_high_s).all():
        return []
    worst = float(times.max() if times.max() > card.time_high_s else times.min())
    return [
        f"a predicted time of {format_seconds(worst)} is outside of the times that the model was trained on "
        f"({format_seconds(card.time_low_s)} to {format_seconds(card.time_high_s)})"
    ]


def _far_probes(predictor: GaussianPredictor, one: Profiles, times: Reals) -> list[str]:
    """Compare measured times with the forecast without them."""
    if not np.isfinite(times).any():
        return []
    wide = predictor.predict(one, level=_FAR)
    sentences = []
    for place in np.flatnonzero(np.isfinite(times)).tolist():
        key, low, high = wide.devices[place], float(wide.low[0, place]), float(wide.high[0, place])
        seconds = float(times[place])
        beyond = max(low / seconds, seconds / high)
        expected = f"{format_seconds(low)} to {format_seconds(high)}"
        if beyond > _ABSURD:
            raise InputError(
                f"probe: {key}: expected about {expected} ({100 * _FAR:g} % interval of the model), found "
                f"{format_seconds(seconds)}: is it in seconds, and of this kernel?"
            )
        if beyond > 1:
            sentences.append(
                f"the time measured on {key}, {format_seconds(seconds)}, is outside of the model's "
                f"{100 * _FAR:g} % interval ({expected}): check its unit and kernel"
            )
    return sentences


@dataclass(frozen=True)
class DeviceTime:
    """What is predicted for one device."""

    device: str  # Its key
    time_s: float  # Median and limits of the interval, in seconds, of one launch
    low_s: float
    high_s: float
    rank: int  # Place in the order of the times, from 1
    measured: bool  # Whether the time is a probe's, measured and not predicted
    # Median time that was recorded for comparison, in seconds, of which the model was not told; `None` where
    # there is none
    recorded_s: float | None = None


@dataclass(frozen=True)
class Prediction:
    """What is predicted for one kernel."""

    application: str  # Its names; empty where there is none
    kernel: str
    size: str
    invocations: int  # How often it is launched in a run
    level: float  # Probability that the intervals are to hold
    devices: tuple[DeviceTime, ...]  # The devices, in the order in which they were asked for
    choice: Choice  # Which to take
    warnings: tuple[str, ...]  # What makes this doubtful; sentences without a full stop

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
    """Predict the times of kernels."""
    profiles, predictor = asked.profiles, model.predictor
    measured = _probe_times(model.devices, profiles, probes or {})
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


def _probe_times(devices: Sequence[Device], profiles: Profiles, probes: Mapping[str, float]) -> Reals | None:
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

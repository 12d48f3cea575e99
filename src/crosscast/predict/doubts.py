"""What makes a forecast doubtful: a profile or a probe that is unlike what the model was trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosscast.arrays import Reals
from crosscast.device import Device
from crosscast.errors import InputError
from crosscast.predict.asked import Asked
from crosscast.predict.card import Card, Effect
from crosscast.predict.gaussian import GaussianPredictor
from crosscast.predict.grid import Profiles
from crosscast.predict.listed import listed
from crosscast.predict.model import Forecast
from crosscast.predict.toolchain import Toolchain
from crosscast.profile import METRICS
from crosscast.units import format_seconds

__all__ = ["doubts_of", "probe_array"]

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
    """Measured times of one kernel on the devices of a model, of shape ``(1, d)``.

    Parameters
    ----------
    devices
        The model's devices.
    probes
        Measured times in seconds, by key of the device.

    Raises
    ------
    InputError
        If a device is not the model's, or a time is not between 1 ns and 1,000,000 s.
    """
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
    """Say for each kernel what makes its forecast doubtful.

    Parameters
    ----------
    card
        The model's card.
    predictor
        The model.
    asked
        The kernels.
    forecast
        What was predicted for them.
    probes
        Measured times, as the forecast was made with.

    Returns
    -------
    list of list of str
        For each kernel, sentences without its name and without a full stop.

    Raises
    ------
    InputError
        If a probe is more than a thousand times beyond the model's interval of 99.9 %.
    """
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

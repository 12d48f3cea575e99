"""Predicted times on a terminal: a table a kernel, the device to take, and how good the model is.

Plain text, as importing rich takes longer than to predict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import numpy as np

from crosscast.predict.time.artefact import TimeCard
from crosscast.predict.time.forecast import Recommendation, TimeForecast
from crosscast.report.numbers import percent
from crosscast.units import format_count, format_seconds

__all__ = ["honest_errors", "print_predictions", "trained_on"]


def print_predictions(forecast: TimeForecast, card: TimeCard, probes: int, stream: TextIO) -> None:
    """Print what was predicted, by a model with this card, of kernels measured on so many devices."""
    for row, label in enumerate(forecast.labels):
        count = int(forecast.profiles.invocations[row])
        subject = label if count == 1 else f"{label}, one of {format_count(count)} launches"
        print(_bold(subject, stream), file=stream)
        for line in _table(forecast, row, stream):
            print(line, file=stream)
        print(f"{_advice(forecast.recommended[row])}\n", file=stream)
    comparison = _comparison(forecast)
    if comparison:
        print(comparison, file=stream)
    print(f"{card.model}, {trained_on(card)}", *honest_errors(card, probes), sep="\n", file=stream)


def _bold(text: str, stream: TextIO) -> str:
    return f"\033[1m{text}\033[0m" if stream.isatty() else text


def _comparison(forecast: TimeForecast) -> str:
    """How the predicted times compare with recorded ones; empty where there are none."""
    if forecast.recorded is None:
        return ""
    compared = np.isfinite(forecast.recorded) & ~forecast.is_measured
    if not compared.any():
        return ""
    recorded = forecast.recorded[compared]
    error = float(np.median(np.abs(forecast.centre[compared] / recorded - 1)))
    inside = np.count_nonzero((forecast.low[compared] <= recorded) & (recorded <= forecast.high[compared]))
    return (
        f"Of {len(recorded)} recorded times, {inside} lie within the intervals; "
        f"median error {percent(error)}."
    )


def _table(forecast: TimeForecast, row: int, stream: TextIO) -> list[str]:
    """Devices with their times, the fastest first; what is a number is on the right of its column."""
    recorded = None if forecast.recorded is None else forecast.recorded[row]
    compared = recorded is not None and bool(np.isfinite(recorded).any())
    more = ("recorded", "predicted/recorded") if compared else ()
    lines = [("device", "time", f"{100 * forecast.level:g} % interval", "rank", *more)]
    for rank, place in enumerate(np.argsort(forecast.ranks[row]).tolist(), 1):
        time, low, high = (float(each[row, place]) for each in (forecast.centre, forecast.low, forecast.high))
        lines.append(
            (
                forecast.devices[place],
                format_seconds(time),
                "measured"
                if forecast.is_measured[row, place]
                else f"{format_seconds(low)} to {format_seconds(high)}",
                str(rank),
                *(_recorded(time, float(recorded[place])) if compared and recorded is not None else ()),
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = ["<", ">", "<", ">", ">", ">"]
    heading, (first, *others), *rest = (
        [f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=False)]
        for line in lines
    )
    fastest = "  ".join([_bold(first, stream), *others])
    return [_bold("  ".join(heading), stream), fastest, *map("  ".join, rest)]


def _recorded(time: float, recorded: float) -> tuple[str, str]:
    return ("", "") if np.isnan(recorded) else (format_seconds(recorded), f"{time / recorded:.2f}")


def _advice(choice: Recommendation) -> str:
    if choice.runner_up is None or choice.times_longer is None:
        return f"No other device to compare {choice.device} with."
    faster = choice.probability_faster
    doubt = "" if faster is None else f", and is the faster one with a probability of {_probability(faster)}"
    longer = _factor(choice.times_longer)
    return f"Take {choice.device}. The runner-up {choice.runner_up} takes about {longer}{doubt}."


def _factor(factor: float) -> str:
    return "as long" if factor < 1.005 else f"{factor:.3g} times as long"


def _probability(share: float) -> str:
    return "less than 1 %" if share < 0.005 else percent(share)


def trained_on(card: TimeCard) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    made = " and ".join(map(str, card.toolchains))
    return (
        f"trained on {facts.get('dataset')}: {facts.get('cells')} times of {facts.get('kernels_at_a_size')} "
        f"kernels at a size ({facts.get('kernels')} kernels, {facts.get('applications')} applications) on "
        f"{len(card.devices)} devices, profiled with {made}."
    )


def honest_errors(card: TimeCard, probes: int) -> list[str]:
    """How good the model was on applications that it had not seen, with so many probes or the next fewer.

    Returns
    -------
    list of str
        Sentences; none if the card does not say.
    """
    results = [
        each
        for each in card.errors.get("results", ())
        if each.get("model") == card.model and each.get("probes", 0) <= probes
    ]
    if not results:
        return []
    result = max(results, key=lambda each: int(each.get("probes", 0)))
    told = {0: "", 1: " and measured on one other device"}.get(
        result["probes"], f" and measured on {result['probes']} other devices"
    )
    return [f"On applications that it had not seen{told}: {', '.join(_scores(result, card.errors))}."]


def _scores(result: Mapping[str, Any], errors: Mapping[str, Any]) -> list[str]:
    parts = []
    if result.get("median_ape") is not None:
        parts.append(f"median error {percent(result['median_ape'])}{_between(result, 'median_ape')}")
    if result.get("slowdown_mean") is not None:
        parts.append(f"the device taken needed {result['slowdown_mean']:.2f} times the time of the fastest")
    if result.get("coverage") is not None:
        worst = result.get("coverage_worst_application")
        least = "" if worst is None else f", {percent(worst)} in the worst application"
        level = errors.get("level", 0.9)
        parts.append(
            f"{100 * level:g} % intervals held {percent(result['coverage'])} of an application's times{least}"
        )
    return parts


def _between(result: Mapping[str, Any], name: str) -> str:
    interval = result.get("intervals", {}).get(name)
    if interval is None:
        return ""
    return f" (95 % bootstrap {100 * interval[0]:.0f} to {100 * interval[1]:.0f} %)"

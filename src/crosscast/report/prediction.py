"""Predicted times on a terminal: a table a kernel, the device to take, and how good the model is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

import numpy as np
from rich.table import Table
from rich.text import Text

from crosscast.predict.time.artefact import TimeCard
from crosscast.predict.time.forecast import Recommendation, TimeForecast
from crosscast.report.console import console_of_numbers
from crosscast.report.numbers import percent
from crosscast.units import format_count, format_seconds

__all__ = ["honest_errors", "print_predictions", "trained_on"]


def print_predictions(forecast: TimeForecast, card: TimeCard, probes: int, stream: TextIO) -> None:
    """Print what was predicted, by a model with this card, of kernels measured on so many devices.

    Colours are there only on a terminal.
    """
    console = console_of_numbers(stream)
    for row, label in enumerate(forecast.labels):
        count = int(forecast.profiles.invocations[row])
        subject = label if count == 1 else f"{label}, one of {format_count(count)} launches"
        console.print(Text(subject, style="bold"), soft_wrap=True)
        console.print(_table(forecast, row))
        console.print(Text(_advice(forecast.recommended[row])), soft_wrap=True)
        console.print()
    comparison = _comparison(forecast)
    if comparison:
        console.print(Text(comparison), soft_wrap=True)
    console.print(Text(f"{card.model}, {trained_on(card)}"), soft_wrap=True)
    for line in honest_errors(card, probes):
        console.print(Text(line), soft_wrap=True)


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


def _table(forecast: TimeForecast, row: int) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("device", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column(f"{100 * forecast.level:g} % interval", no_wrap=True)
    table.add_column("rank", justify="right", no_wrap=True)
    recorded = None if forecast.recorded is None else forecast.recorded[row]
    compared = recorded is not None and bool(np.isfinite(recorded).any())
    if compared:
        table.add_column("recorded", justify="right", no_wrap=True)
        table.add_column("predicted/recorded", justify="right", no_wrap=True)
    for rank, place in enumerate(np.argsort(forecast.ranks[row]).tolist(), 1):
        time, low, high = (float(each[row, place]) for each in (forecast.centre, forecast.low, forecast.high))
        between = f"{format_seconds(low)} to {format_seconds(high)}"
        table.add_row(
            Text(forecast.devices[place], style="bold" if rank == 1 else ""),
            format_seconds(time),
            "measured" if forecast.is_measured[row, place] else between,
            str(rank),
            *(_recorded(time, float(recorded[place])) if compared and recorded is not None else ()),
        )
    return table


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

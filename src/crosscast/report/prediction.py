"""Predicted times on a terminal: a table a kernel, the device to take, and how good the model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from crosscast.predict.time.artefact import Card
from crosscast.predict.time.prediction import DeviceTime, Prediction
from crosscast.report.console import console_of_numbers
from crosscast.report.numbers import percent
from crosscast.units import format_count, format_seconds

__all__ = ["honest_errors", "print_predictions", "trained_on"]


def print_predictions(predictions: Sequence[Prediction], card: Card, probes: int, stream: TextIO) -> None:
    """Print what was predicted.

    Parameters
    ----------
    predictions
        The kernels.
    card
        Card of the model.
    probes
        On how many devices the kernels were measured.
    stream
        Where to print; colours only on a terminal.
    """
    console = console_of_numbers(stream)
    for prediction in predictions:
        console.print(Text(_subject(prediction), style="bold"), soft_wrap=True)
        console.print(_table(prediction))
        console.print(Text(_advice(prediction)), soft_wrap=True)
        console.print()
    comparison = _comparison(predictions)
    if comparison:
        console.print(Text(comparison), soft_wrap=True)
    console.print(Text(f"{card.model}, {trained_on(card)}"), soft_wrap=True)
    for line in honest_errors(card, probes):
        console.print(Text(line), soft_wrap=True)


def _comparison(predictions: Sequence[Prediction]) -> str:
    """How the predicted times compare with recorded ones; empty where there are none."""
    pairs = [
        (each.time_s / each.recorded_s, each.low_s <= each.recorded_s <= each.high_s)
        for prediction in predictions
        for each in prediction.devices
        if each.recorded_s is not None and not each.measured
    ]
    if not pairs:
        return ""
    error = median(abs(ratio - 1) for ratio, _ in pairs)
    inside = sum(held for _, held in pairs)
    return (
        f"Of {len(pairs)} recorded times, {inside} lie within the intervals; median error {percent(error)}."
    )


def _subject(prediction: Prediction) -> str:
    if prediction.invocations == 1:
        return prediction.label
    return f"{prediction.label}, one of {format_count(prediction.invocations)} launches"


def _table(prediction: Prediction) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("device", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column(f"{100 * prediction.level:g} % interval", no_wrap=True)
    table.add_column("rank", justify="right", no_wrap=True)
    compared = any(each.recorded_s is not None for each in prediction.devices)
    if compared:
        table.add_column("recorded", justify="right", no_wrap=True)
        table.add_column("predicted/recorded", justify="right", no_wrap=True)
    for each in sorted(prediction.devices, key=lambda each: each.rank):
        style = "bold" if each.rank == 1 else ""
        between = f"{format_seconds(each.low_s)} to {format_seconds(each.high_s)}"
        table.add_row(
            Text(each.device, style=style),
            format_seconds(each.time_s),
            "measured" if each.measured else between,
            str(each.rank),
            *(_recorded(each) if compared else ()),
        )
    return table


def _recorded(each: DeviceTime) -> tuple[str, str]:
    if each.recorded_s is None:
        return "", ""
    return format_seconds(each.recorded_s), f"{each.time_s / each.recorded_s:.2f}"


def _advice(prediction: Prediction) -> str:
    choice = prediction.choice
    if choice.runner_up is None or choice.factor is None:
        return f"No other device to compare {choice.device} with."
    doubt = (
        ""
        if choice.doubt is None
        else f", and is the faster one with a probability of {_probability(choice.doubt)}"
    )
    return (
        f"Take {choice.device}. The runner-up {choice.runner_up} takes about {_factor(choice.factor)}{doubt}."
    )


def _factor(factor: float) -> str:
    return "as long" if factor < 1.005 else f"{factor:.3g} times as long"


def _probability(share: float) -> str:
    return "less than 1 %" if share < 0.005 else percent(share)


def trained_on(card: Card) -> str:
    """What a model was trained on, as a sentence without its subject."""
    facts = card.training
    made = " and ".join(map(str, card.toolchains))
    return (
        f"trained on {facts.get('dataset')}: {facts.get('cells')} times of {facts.get('kernels_at_a_size')} "
        f"kernels at a size ({facts.get('kernels')} kernels, {facts.get('applications')} applications) on "
        f"{len(card.devices)} devices, profiled with {made}."
    )


def honest_errors(card: Card, probes: int) -> list[str]:
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
